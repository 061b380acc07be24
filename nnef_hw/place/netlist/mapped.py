"""Bits and cells of a mapped design, as yosys writes it in JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from nnef_hw.arithmetic.records import JsonView

__all__ = ["Bit", "drivers_of", "users_of"]

Bit: TypeAlias = int | str
"""A number, or the constant ``"0"``, ``"1"`` or ``"x"``."""


def drivers_of(cells: Mapping[str, JsonView]) -> dict[Bit, tuple[str, str]]:
    """Return the cell and the pin that drive a bit."""
    return {
        bit: (name, pin)
        for name, cell in cells.items() for pin, bits in cell["connections"].items()
        if cell["port_directions"][pin] == "output" for bit in bits
    }  # fmt: skip


def users_of(module: JsonView) -> Mapping[Bit, list[tuple[str, str]]]:
    """Return cells and pins that read a bit; a port of the module is a cell without a name."""
    users: dict[Bit, list[tuple[str, str]]] = defaultdict(list)
    for name, cell in module["cells"].items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"].get(pin) != "output":
                for bit in bits:
                    users[bit].append((name, pin))
    for pin, port in module["ports"].items():
        if port["direction"] != "input":
            for bit in port["bits"]:
                users[bit].append(("", pin))
    return users
