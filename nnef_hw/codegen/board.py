"""Plan and fixed graph -> the board's top in Verilog, with its constraints."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.lib.wiring import Out

from nnef_hw.architecture.architecture import AcceleratorPlan, queued_ports
from nnef_hw.architectures import find_architecture
from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.boards import Board
from nnef_hw.boards.hardware.cameras.open_drain import open_drain_verilog
from nnef_hw.boards.hardware.memory_pins import memory_pins, package_ports
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces import (
    DEFAULT_LINK,
    ChipLoop,
    HostLink,
    Interface,
    link_of,
    sink_of,
    source_of,
)
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.host.manifest import manifest_hash
from nnef_hw.ir import Graph
from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.parts.streams.stream import make_fifo
from nnef_hw.place.constraints import board_constraints
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.rtl.readers.pads import pad_ports, padded_top, pads_verilog

__all__ = [
    "BoardDesign", "check_clock", "design_board", "fastest_clock", "link_clock", "may_follow",
    "why_constant",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardDesign:
    """Inputs of place and route: Verilog of module ``board_top``, and constraints."""

    verilog: str
    constraints: str
    suffix: str


def check_clock(
    board: Board, clock_mhz: float, users: Sequence[Interface] = (DEFAULT_LINK,)
) -> None:
    """Refuse a clock that the board's PLL cannot make, or that a link or a sink cannot work with.

    Raises
    ------
    TargetError
        Naming the nearest possible clocks.
    """
    board.clock(clock_mhz)
    for user in users:
        user.check_clock(round(clock_mhz * 1e6))


def fastest_clock(board: Board, limit_mhz: float, users: Sequence[Interface]) -> float:
    """Return the fastest clock in MHz, up to a limit, that PLL and users take.

    Raises
    ------
    TargetError
        If a link or a sink works with no clock up to the limit.
    """
    frequencies: tuple[float, ...] = board.frequencies
    for clock_mhz in reversed(frequencies):
        if clock_mhz <= limit_mhz:
            with contextlib.suppress(TargetError):
                check_clock(board, clock_mhz, users)
                return clock_mhz
    titles = " and ".join(user.title for user in users)
    raise TargetError(
        f"{board.name} has no clock up to {limit_mhz:g} MHz for {titles}",
        remedy="choose another --freq, or other options of the link",
    )


def may_follow(board: Board, link: HostLink, others: Sequence[type[Interface]] = ()) -> bool:
    """Return whether a PLL may be set after routing, as far as board and interfaces decide."""
    return not _why_fixed(board, link, others)


def _why_fixed(board: Board, link: HostLink, others: Sequence[type[Interface]]) -> str:
    """Say why a PLL cannot be set after routing; nothing if it can.

    The host link then keeps the oscillator's time, and nothing behind the PLL any. A link without
    packets of ours has no such way to the accelerator, and a toolchain that leaves placement to
    another program has no design to set a PLL in.
    """
    if not board.has_pll:
        return f"the open tools have no PLL of {board.device.name}"
    if not toolchain_of(board.device.family).places:
        return "another program places the design, and the PLL is part of it"
    if not link.has_packets:
        return f"{link.title} runs at the accelerator's clock"
    for kind in others:
        if kind.keeps_time:
            return f"{kind.sort} {kind.name} counts time by the accelerator's clock"
    if link.keeps_time:
        try:
            link.check_clock(round(board.input_mhz * 1e6))
        except TargetError:
            return f"{link.title} cannot run at the oscillator's {board.input_mhz:g} MHz"
    return ""


def link_clock(
    board: Board, plan: AcceleratorPlan, link: HostLink, others: Sequence[type[Interface]] = ()
) -> float | None:
    """Return the oscillator's clock in MHz, where the link has it and the PLL may be set later.

    None if the clock is a constant of the netlist (:func:`why_constant`).
    """
    why = why_constant(board, plan.clock_mhz, link, others, has_images=bool(plan.images))
    return None if why else board.input_mhz


def why_constant(
    board: Board,
    clock_mhz: float,
    link: HostLink,
    others: Sequence[type[Interface]] = (),
    *,
    has_images: bool,
) -> str:
    """Say why the clock of a design is a constant of its netlist; nothing if it is not.

    It is the oscillator's itself, or a memory beside the FPGA is read with it, or the PLL cannot be
    set after routing. ``has_images``: such a memory holds data of the design.
    """
    if why := _why_fixed(board, link, others):
        return why
    if clock_mhz == board.input_mhz:
        return "it is the oscillator's"
    return "a memory beside the FPGA is read with it" if has_images else ""


def design_board(
    plan: AcceleratorPlan,
    graph: Graph,
    manifest: JsonObject,
    board: Board,
    asked_mhz: float | None = None,
) -> BoardDesign:
    """Put the accelerator behind the board's host link, clock and reset.

    ``asked_mhz`` is the clock that place and route is asked for, by default that of the plan.
    """
    architecture = find_architecture(plan.arch)
    accelerator = architecture.component(plan, graph, restartable=True, counted=plan.layer_counters)
    link = link_of(manifest["link"])
    merges = isinstance(link, HostLink) and link.merges_frames
    queues = {
        port.name: make_fifo(
            port.bits, port.signed, port.queue_depth, port.beats, board.device, lanes=port.lanes
        ).build(shape=getattr(accelerator, port.name).payload.shape())
        for port in (queued_ports(plan.inputs, plan.outputs) if merges else ())
    }
    sinks = [sink_of(entry) for entry in manifest.get("sinks", ())]
    sources = [source_of(entry) for entry in manifest.get("sources", ())]
    names = {
        name: port.name
        for tensors, found in ((graph.inputs, plan.inputs), (graph.outputs, plan.outputs))
        for name, port in zip(tensors, found, strict=True)
    }
    looped = manifest.get("token_loop")
    top, ports = board_top(
        board, accelerator, asked_mhz or plan.clock_mhz, manifest_hash(manifest), link=link,
        has_own_clock="oscillator_mhz" in manifest,
        sources={names[source.input]: source for source in sources},
        sinks={names[x.output]: [y for y in sinks if y.output == x.output] for x in sinks},
        loop=ChipLoop.from_json(looped).named(names) if looped else None,
        frames={port.name: port.beats for port in (*plan.inputs, *plan.outputs)}, queues=queues,
        layers=len(plan.stations) if plan.layer_counters else 0, batch=plan.batch,
    )  # fmt: skip
    pads = top.pads
    verilog = to_verilog(top, name="board_core" if pads else "board_top", ports=ports)
    pins: dict[str, Hardware] = {}
    if pads:
        prefixes = {group.prefix for group in top.core.pads}
        used = [memory for memory in board.memories if memory.prefix in prefixes]
        renamed: dict[str, str] = {}
        for memory in used:
            pins |= memory_pins(board, memory)
            renamed |= package_ports(board, memory)
        wires = open_drain_verilog() if top.core.wires else ""
        inner = {*pad_ports(pads), "core_clk"}
        members = top.signature.members
        outer = {
            signal.name: (
                "output" if members[signal.name].flow == Out else "input", len(signal)
            )
            for signal in ports if signal.name not in inner
        }  # fmt: skip
        padded = padded_top("board_core", pads, outer, clock="core_clk", names=renamed)
        verilog = "\n".join([verilog, padded, pads_verilog(), *filter(None, [wires])])
    return BoardDesign(
        verilog=verilog,
        constraints=board_constraints(board, (link, *sources, *sinks), pins),
        suffix=toolchain_of(board.device.family).constraints_suffix,
    )
