"""The accelerator in a system: registers on a bus around plain IP, and what describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import PurePosixPath

from amaranth.lib import wiring

from nnef_hw.architecture.architecture import AcceleratorPlan, Port, queued_ports
from nnef_hw.boards.buses.peripheral import BusPeripheral
from nnef_hw.boards.buses.words import frame_words
from nnef_hw.boards.interfaces import PlainStreams
from nnef_hw.boards.interfaces.bus import BusPin
from nnef_hw.codegen.comments import printable
from nnef_hw.codegen.ip import (
    INPUT_PORTS,
    OUTPUT_PORTS,
    axi_name,
    axi_width,
    bus_module,
    input_codes,
    output_codes,
)
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import find_device
from nnef_hw.parts.streams.stream import make_fifo
from nnef_hw.registers.accelerator import accelerator_registers
from nnef_hw.registers.header import c_header
from nnef_hw.registers.program import program_header
from nnef_hw.registers.svd import svd
from nnef_hw.registers.systemrdl import system_rdl
from nnef_hw.registers.table import WORD_BITS, WORD_BYTES, RegisterMap
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["MOST_WORDS", "bus_files", "bus_registers", "bus_verilog"]

MOST_WORDS = 4096
"""Words of a frame that pass through registers: as many wait in block RAM."""

WRAPPER = """\
// {model} behind {title}: registers at addresses 0 to {last:#x}, see ip/README.md.{streams}
module {module} (
{ports}
);
    wire reset = {reset};
    wire restart;
{wires}    {inner} registers (
{peripheral}
    );
    \\{name} accelerator (
{accelerator}
    );
{results}endmodule

"""
STREAMS = """
// Frames pass as on {name}_axis: a transfer is a beat, tlast ends a frame."""
WORDS = """
// A frame is {input} words for the register input, a result {output} words of result."""


def bus_registers(
    plan: AcceleratorPlan, name: str, streams: PlainStreams, build_hash: bytes
) -> RegisterMap:
    """Return the registers of an accelerator."""
    title = f"{printable(plan.model)}, an accelerator of nnef-hw"
    return accelerator_registers(
        name, title, build_hash, with_data=streams.with_data, with_program=streams.with_program
    )


def bus_files(
    plan: AcceleratorPlan, name: str, streams: PlainStreams, build_hash: bytes, accelerator: str
) -> dict[PurePosixPath, str]:
    """Return Verilog, C headers, CMSIS-SVD and SystemRDL by path; none if there is no bus.

    ``accelerator`` is the accelerator's Verilog, whose modules have names of their own.

    Raises
    ------
    TargetError
        If frames are too long to pass through registers.
    """
    if streams.bus is None:
        return {}
    registers = bus_registers(plan, name, streams, build_hash)
    folder = PurePosixPath("ip")
    programs = {}
    if plan.loaded is not None:
        programs[folder / "program.h"] = program_header(registers, plan.loaded)
    return {
        **programs,
        folder / f"{bus_module(name, streams.bus)}.v": bus_verilog(
            plan, name, streams, registers, _free_name(f"{name}_registers", accelerator)
        ),
        folder / "registers.h": c_header(registers),
        folder / f"{name}.svd": svd(registers),
        folder / f"{name}.rdl": system_rdl(registers),
    }


def _free_name(name: str, verilog: str) -> str:
    """Return a name with which none in a text begins."""
    names = chain([name], (f"{name}{n}" for n in count(2)))
    return next(free for free in names if not re.search(rf"\b{free}", verilog))


def bus_verilog(
    plan: AcceleratorPlan, name: str, streams: PlainStreams, registers: RegisterMap, module: str
) -> str:
    """Return Verilog of a module with the bus, and of ``module``, the registers inside."""
    bus = streams.bus
    assert bus is not None
    words = {
        kind: frame_words(sum(port.beats * axi_width(port) // 8 for port in ports))
        for kind, ports in (("input", plan.inputs), ("output", plan.outputs))
    }
    if streams.with_data and max(words.values()) > MOST_WORDS:
        raise TargetError(
            f"frames of {words['input']:,} words and results of {words['output']:,} are too long "
            f"for registers, which take {MOST_WORDS:,}",
            remedy="use --bus-data streams",
        )
    peripheral = BusPeripheral(
        bus, registers, inputs=_layouts(plan.inputs), outputs=_layouts(plan.outputs),
        with_data=streams.with_data, queues=_queues(plan) if streams.with_data else {},
        batch=plan.batch, program_words=_program_words(plan),
    )  # fmt: skip
    text = to_verilog(peripheral, name=module, prefix=f"{module}_", all_primitives=False)
    notes = WORDS.format(**words) if streams.with_data else STREAMS.format(name=name)
    return _wrapper(plan, name, streams, registers, module, notes) + text


def _program_words(plan: AcceleratorPlan) -> int:
    """Return the words of a program that may be loaded; 0 if none may."""
    return 0 if plan.loaded is None else len(plan.loaded) // WORD_BYTES


def _layouts(ports: Sequence[Port]) -> dict[str, tuple[object, int]]:
    return {
        port.name: (
            beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes), port.beats
        )
        for port in ports
    }  # fmt: skip


def _queues(plan: AcceleratorPlan) -> Mapping[str, wiring.Component]:
    device = find_device(plan.device)
    return {
        port.name: make_fifo(
            port.bits, port.signed, port.queue_depth, port.beats, device, lanes=port.lanes
        ).build(shape=beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes))
        for port in queued_ports(plan.inputs, plan.outputs)
    }


def _wrapper(
    plan: AcceleratorPlan,
    name: str,
    streams: PlainStreams,
    registers: RegisterMap,
    inner_module: str,
    notes: str,
) -> str:
    bus = streams.bus
    assert bus is not None
    bits = registers.address_bits
    ports = [f"    input {bus.clock}, {bus.reset}"]
    ports += [_port(pin, bits) for pin in bus.pins]
    ports.append("    output irq")
    peripheral = [f".clk({bus.clock}), .rst(reset), .irq(irq), .restart(restart)"]
    peripheral += [f".bus__{pin.member}({pin.name})" for pin in bus.pins if pin.member]
    accelerator = [f".clk({bus.clock}), .rst(reset | restart)"]
    wires, results = [], []
    if words := _program_words(plan):
        wires += [
            f"wire [{WORD_BITS}-1:0] image;", f"wire [{words.bit_length()}-1:0] left;",
            "wire load, image_valid, image_ready;",
        ]  # fmt: skip
        for connections in (peripheral, accelerator):
            connections += [".load(load), .left(left)", *_stream("program", "image")]
    for port in (*plan.inputs, *plan.outputs):
        is_input = port in plan.inputs
        inner = f"{'to' if is_input else 'from'}_{port.name}"
        wires.append(f"wire [{port.payload_bits}-1:0] {inner};")
        wires.append(f"wire {inner}_valid, {inner}_ready;")
        peripheral += _stream(inner, inner)
        accelerator += _stream(port.name, inner)
        if streams.with_data:
            continue
        axis = axi_name(port)
        template = INPUT_PORTS if is_input else OUTPUT_PORTS
        ports.append(template.format(axis=axis, width=axi_width(port)))
        outer = axis
        if is_input:
            payload = f"{{{input_codes(port)}}}"
        else:
            payload = f"result{port.name[1:]}"
            wires.append(f"wire [{port.payload_bits}-1:0] {payload};")
            results += [
                f"assign {axis}_tlast = {payload}[{port.payload_bits - 1}];",
                f"assign {axis}_tdata = {{{output_codes(port, payload)}}};",
            ]
        peripheral += [
            f".{port.name}__payload({payload}), .{port.name}__valid({outer}_tvalid)",
            f".{port.name}__ready({outer}_tready)",
        ]
    return WRAPPER.format(
        model=printable(plan.model), title=bus.title, streams=notes,
        last=4 * (len(registers.registers) - 1), module=bus_module(name, bus), name=name,
        inner=inner_module,
        reset=f"~{bus.reset}" if bus.reset_low else bus.reset, ports=",\n".join(ports),
        wires="".join(f"    {line}\n" for line in wires), peripheral=_indented(peripheral),
        accelerator=_indented(accelerator), results="".join(f"    {line}\n" for line in results),
    )  # fmt: skip


def _port(pin: BusPin, address_bits: int) -> str:
    bits = pin.bits or address_bits
    return f"    {'input' if pin.is_input else 'output'} {f'[{bits}-1:0] ' * (bits > 1)}{pin.name}"


def _stream(name: str, wire: str) -> Iterator[str]:
    yield f".{name}__payload({wire})"
    yield f".{name}__valid({wire}_valid), .{name}__ready({wire}_ready)"


def _indented(connections: Sequence[str]) -> str:
    return ",\n".join(f"        {line}" for line in connections)
