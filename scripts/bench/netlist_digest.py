"""Digest of what Verilog describes: cells and wires, whatever they are called and where they stand.

Yosys elaborates the top module for a family, so that comments, modules that nobody uses, and
defaults of parameters that an instance sets are gone. What is left is a graph of cells and bits for
each module. Its cells and bits get colours, which are refined by those of their neighbours until no
further ones can be told apart; the digest is that of all colours in ascending order.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.system.tools import run_tool

__all__ = ["netlist_digest"]

Colours = npt.NDArray[np.uint64]
ELABORATE = (
    "read_verilog -sv -D{define} design.v",
    "hierarchy -top {top}",
    "proc",
    "opt_clean -purge",
    "memory_collect",
    "write_json design.json",
)
REMARKS = {
    "dynports", "full_case", "hdlname", "module_not_derived", "single_bit_vector", "src", "top",
}  # fmt: skip
"""Attributes of yosys's own about the text that something comes from."""
INITIAL = "init"
"""Attribute of a net that has a character for each of its bits, the last one first."""
NAMES = {"MEMID"}
"""Parameters of cells that are names of the text."""


def netlist_digest(verilog: str, *, top: str, define: str) -> str:
    """Return the digest of a design.

    Parameters
    ----------
    verilog
        All modules; those that are missing are cells of the device.
    top
        Name of the module in which all others are.
    define
        Macro of the family.
    """
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
        folder = Path(scratch)
        (folder / "design.v").write_text(verilog)
        script = "\n".join(ELABORATE).format(define=define, top=top)
        (folder / "elaborate.ys").write_text(f"{script}\n")
        run_tool("yosys", ["-s", "elaborate.ys"], cwd=folder)
        modules: Mapping[str, JsonObject] = json.loads((folder / "design.json").read_text())[
            "modules"
        ]

    @cache
    def module_digest(name: str) -> str:
        return _digest(modules[name], {
            cell["type"]: module_digest(cell["type"])
            for cell in modules[name]["cells"].values() if cell["type"] in modules
        })  # fmt: skip

    return module_digest(top)


def _digest(module: JsonObject, instantiated: Mapping[str, str]) -> str:
    """Return the digest of a module, in which others are instantiated that have digests."""
    numbers: dict[object, int] = {}
    starts: list[list[int]] = []

    def bit_number(bit: object) -> int:
        """Return the number of a bit of a net, or of a constant."""
        if bit not in numbers:
            numbers[bit] = len(numbers)
            starts.append([] if isinstance(bit, int) else [_colour("constant", bit)])
        return numbers[bit]

    for name, port in module["ports"].items():
        for n, bit in enumerate(port["bits"]):
            starts[bit_number(bit)].append(_colour(port["direction"], name, n))
    cells, pins = [], []
    for number, cell in enumerate(module["cells"].values()):
        kind = instantiated.get(cell["type"], cell["type"])
        cells.append(_colour(kind, _described(cell["parameters"], NAMES),
                             _described(cell["attributes"], REMARKS)))  # fmt: skip
        for name, bits in cell["connections"].items():
            pins += [(number, _colour(name, n), bit_number(bit)) for n, bit in enumerate(bits)]
    for net in module["netnames"].values():
        for name in sorted(net["attributes"].keys() - REMARKS):
            value = net["attributes"][name]
            values = reversed(value) if name == INITIAL else repeat(value)
            for bit, told in zip(net["bits"], values, strict=False):
                if bit in numbers:
                    starts[numbers[bit]].append(_colour(name, told))
    return _refined(
        np.array(cells, np.uint64), np.array([sum(start) % 2**64 for start in starts], np.uint64),
        np.array(pins, np.uint64).reshape(-1, 3),
    )  # fmt: skip


def _refined(cells: Colours, bits: Colours, pins: Colours) -> str:
    """Return the digest of cells and bits; a pin is a cell's number, a colour, a bit's number."""
    cell, bit = pins[:, 0].astype(np.intp), pins[:, 2].astype(np.intp)
    told = 0
    while told < (told := len(np.unique(cells)) + len(np.unique(bits))):
        cells = _mixed(cells + _gathered(bits[bit] + pins[:, 1], cell, len(cells)))
        bits = _mixed(bits + _gathered(cells[cell] + pins[:, 1], bit, len(bits)))
    colours = chain(np.sort(cells).tolist(), [len(cells)], np.sort(bits).tolist())
    return hashlib.sha256(",".join(map(str, colours)).encode()).hexdigest()


def _gathered(pins: Colours, owner: npt.NDArray[np.intp], owners: int) -> Colours:
    """Return the sums of what the pins of each owner make, in whatever order these are."""
    sums = np.zeros(owners, np.uint64)
    np.add.at(sums, owner, _mixed(pins))
    return sums


def _mixed(colours: Colours) -> Colours:
    """Return colours any bit of which depends on any bit of those given: splitmix64."""
    mixed = colours + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return cast(Colours, mixed ^ (mixed >> np.uint64(31)))


def _colour(*facts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(facts).encode(), digest_size=8).digest(), "little")


def _described(facts: Mapping[str, object], without: set[str]) -> str:
    return repr(sorted((name, value) for name, value in facts.items() if name not in without))
