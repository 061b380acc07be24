"""A build's Verilog with models of the memories beside the FPGA."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.architecture.stored import StoredImage
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.memory_pins import package_ports
from nnef_hw.rtl.readers.pads import padded_top, pads_verilog
from nnef_hw.sim.memories import simulated_board

__all__ = ["board_with_memories", "image_text", "with_memories"]


def with_memories(verilog: str, plan: AcceleratorPlan, top: str, image: Path) -> tuple[str, str]:
    """Return Verilog of an accelerator with its memories, and the name of the module.

    ``image`` is the file with their contents.
    """
    ports = {"clk": ("input", 1), "rst": ("input", 1), "memory_error": ("output", 1)}
    ports |= _ports(plan.inputs, "input", "output") | _ports(plan.outputs, "output", "input")
    # What the host would have loaded is there from the beginning.
    loaded = {
        "image__payload": "16'd0",
        "image__valid": "1'b0",
        "image__ready": "",
        "loaded": "1'b1",
    }
    constants = loaded if any(stored.is_loaded for stored in plan.images) else {}
    pads = [stored.part.make_pads() for stored in plan.images]
    padded = padded_top(top, pads, ports, name=f"{top}_padded", constants=constants)
    text = "\n".join([verilog, padded, pads_verilog()])
    models = [_model(stored, image) for stored in plan.images]
    name = f"{top}_simulated"
    return simulated_board(text, models, top=f"{top}_padded", name=name, ports=ports), name


def board_with_memories(verilog: str, plan: AcceleratorPlan, image: Path) -> tuple[str, str]:
    """Return the same of a board's top; memories that the host loads are empty."""
    models = [_model(stored, None if stored.is_loaded else image) for stored in plan.images]
    names: dict[str, str] = {}
    for memory in find_board(plan.board).memories if plan.images else ():
        if memory.kind in {stored.kind for stored in plan.images}:
            names |= package_ports(find_board(plan.board), memory)
    pins = {model.prefix + wire for model in models for wire in model.wires}
    inner = {names.get(pin, pin) for pin in pins}
    ports = {name: port for name, port in _head(verilog).items() if name not in inner}
    return simulated_board(verilog, models, ports=ports, names=names), "board_sim"


def _head(verilog: str) -> dict[str, tuple[str, int]]:
    """Return the ports of a board's top with pads: directions and widths."""
    [head] = re.findall(r"^module board_top \((.*?)^\);", verilog, re.MULTILINE | re.DOTALL)
    ports = re.findall(r"^\s*(input|output|inout) (?:\[(\d+):0\] )?(\w+)", head, re.MULTILINE)
    return {name: (direction, int(high or 0) + 1) for direction, high, name in ports}


def image_text(stored: StoredImage) -> str:
    """Return the text of a memory's contents from which its model reads them."""
    return str(_model(stored, None).text(stored.data, stored.address))


def _model(stored: StoredImage, image: Path | None) -> Any:
    """Return a model of a memory, with the contents in such a file or without any."""
    memory = stored.memory
    size = stored.address + len(stored.data)
    module, _, name = memory.model.partition(":")
    model = getattr(import_module(module), name)
    return model.of(memory, memory.clock_mhz, image, size)


def _ports(ports: Sequence[Port], forth: str, back: str) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for port in ports:
        found |= {
            f"{port.name}__payload": (forth, port.lanes * port.bits + 1),
            f"{port.name}__valid": (forth, 1), f"{port.name}__ready": (back, 1),
        }  # fmt: skip
    return found
