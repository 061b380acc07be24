"""RTLIL, in which Amaranth describes modules, as objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = [
    "Assign", "Bits", "Case", "Cell", "Module", "Process", "Sig", "Slice", "Switch", "Wire",
    "parse_rtlil", "references", "width_of", "wires_of",
]  # fmt: skip


class Slice(NamedTuple):
    """Bits ``low`` to ``low + width - 1`` of a wire."""

    wire: str
    low: int
    width: int


class Bits(NamedTuple):
    """A constant, most significant bit first."""

    digits: str

    @property
    def width(self) -> int:
        """Number of bits."""
        return len(self.digits)


Sig = tuple[Slice | Bits, ...]
"""What a value is put together of, most significant part first."""


def width_of(sig: Sig) -> int:
    """Bits of a value."""
    return sum(part.width for part in sig)


@dataclass(slots=True)
class Wire:
    """A wire; ``flow`` is "input" or "output" of a port, ``init`` what a register begins with."""

    name: str
    width: int
    signed: bool
    flow: str
    init: str | None


@dataclass(slots=True)
class Cell:
    """An operator, a flip-flop, a port of a memory, or the instance of a module."""

    kind: str
    name: str
    parameters: dict[str, str] = field(default_factory=dict)
    ports: dict[str, Sig] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def memory(self) -> str:
        """Name of the memory that a port belongs to."""
        return self.parameters["MEMID"].strip('"').replace("\\\\", "\\")

    def number(self, parameter: str) -> int:
        """Return a parameter that is a number."""
        return int(self.parameters[parameter])


class Assign(NamedTuple):
    """``target = value`` in a process."""

    target: Slice
    value: Sig


class Case(NamedTuple):
    """Statements for values that match one of ``patterns``; without any, for all others."""

    patterns: tuple[str, ...]
    body: list[Assign | Switch]


class Switch(NamedTuple):
    """The first matching case is done."""

    value: Sig
    cases: list[Case]


@dataclass(slots=True)
class Process:
    """Assignments to one wire, the later ones counting; the first is to the whole of it."""

    body: list[Assign | Switch]

    @property
    def target(self) -> str:
        """The wire."""
        first = self.body[0]
        assert isinstance(first, Assign)
        return first.target.wire


class Memory(NamedTuple):
    """A memory and its attributes."""

    width: int
    depth: int
    attributes: dict[str, str]


@dataclass(slots=True)
class Module:
    """A module; ``connects`` are other names of values, by wire."""

    name: str
    wires: dict[str, Wire] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    connects: dict[str, Sig] = field(default_factory=dict)


def references(module: Module) -> Iterator[str]:
    """Name the wires that are read, once per place.

    Processes of several targets say the same conditions again, which counts once.
    """
    for cell in module.cells:
        for port, sig in cell.ports.items():
            if port not in {"Y", "Q"}:
                yield from wires_of(sig)
    conditions: set[Sig] = set()
    for process in module.processes:
        yield from _read(process.body, conditions)
    for sig in conditions:
        yield from wires_of(sig)
    for wire, sig in module.connects.items():
        if module.wires[wire].flow:
            yield from wires_of(sig)


def wires_of(sig: Sig) -> Iterator[str]:
    """Name the wires of a value."""
    return (part.wire for part in sig if isinstance(part, Slice))


def _read(body: list[Assign | Switch], conditions: set[Sig]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Assign):
            yield from wires_of(statement.value)
        else:
            conditions.add(statement.value)
            for case in statement.cases:
                yield from _read(case.body, conditions)


_TOKEN = re.compile(r"(\d+)'([01xz-]*)|([\\$]\S+)(?: \[(\d+)(?::(\d+))?\])?")


def parse_rtlil(text: str) -> list[Module]:
    """Read a design in RTLIL, as Amaranth writes it."""
    lines = (line.strip() for line in text.splitlines())
    return list(_modules(line for line in lines if line))


def _modules(lines: Iterator[str]) -> Iterator[Module]:
    attributes: dict[str, str] = {}
    module = Module("")
    for line in lines:
        keyword, _, rest = line.partition(" ")
        if keyword == "attribute":
            name, _, text = rest.partition(" ")
            attributes[name[1:]] = text
            continue
        if keyword == "module":
            module = Module(rest[1:])
        elif keyword == "wire":
            wire = _wire(rest, attributes)
            module.wires[wire.name] = wire
        elif keyword == "memory":
            _, width, _, depth, name = rest.split()
            module.memories[name] = Memory(int(width), int(depth), attributes)
        elif keyword == "cell":
            module.cells.append(_cell(rest, lines, module, attributes))
        elif keyword == "process":
            module.processes.append(Process(list(_body(lines, module))))
        elif keyword == "connect":
            target, value = _sigs(rest, module)
            part = target[0] if target else None
            if isinstance(part, Slice):
                module.connects[part.wire] = value
        elif keyword == "end":
            yield module
        else:
            raise ValueError(f"unknown RTLIL: {line!r}")
        attributes = {}


def _wire(rest: str, attributes: dict[str, str]) -> Wire:
    words = rest.split()
    flow = next((word for word in words if word in {"input", "output", "inout"}), "")
    init = attributes.get("init")
    return Wire(
        words[-1], int(words[1]), "signed" in words[2:-1], flow, init and init.partition("'")[2]
    )


def _cell(rest: str, lines: Iterator[str], module: Module, attributes: dict[str, str]) -> Cell:
    kind, name = rest.split()
    cell = Cell(kind, name, attributes=attributes)
    for line in lines:
        keyword, _, rest = line.partition(" ")
        if keyword == "end":
            break
        if keyword == "parameter":
            *kinds, parameter, text = rest.split(" ")
            cell.parameters[parameter[1:]] = text.strip('"') if "real" in kinds else text
        else:
            port, _, text = rest.partition(" ")
            (cell.ports[port[1:]],) = _sigs(text, module)
    return cell


def _body(lines: Iterator[str], module: Module) -> Iterator[Assign | Switch]:
    """Read statements up to the end of their process or switch."""
    yield from _statements(lines, module)[0]


def _statements(lines: Iterator[str], module: Module) -> tuple[list[Assign | Switch], str]:
    """Read statements; return them and the line behind them, an ``end`` or the next ``case``."""
    found: list[Assign | Switch] = []
    for line in lines:
        keyword, _, rest = line.partition(" ")
        if keyword in {"end", "case"}:
            return found, line
        if keyword == "assign":
            target, value = _sigs(rest, module)
            (part,) = target
            assert isinstance(part, Slice)
            found.append(Assign(part, value))
        else:
            (tested,) = _sigs(rest, module)
            found.append(_switch(tested, lines, module))
    raise ValueError("RTLIL ends within a process")


def _switch(value: Sig, lines: Iterator[str], module: Module) -> Switch:
    switch = Switch(value, [])
    line = next(lines)
    while line != "end":
        patterns = tuple(re.findall(r"\d+'([01-]*)", line))
        body, line = _statements(lines, module)
        switch.cases.append(Case(patterns, body))
    return switch


def _sigs(text: str, module: Module) -> list[Sig]:
    """Read the values that are in a line."""
    found: list[Sig] = []
    parts: list[Slice | Bits] | None = None
    position = 0
    while position < len(text):
        character = text[position]
        if character == " ":
            position += 1
        elif character == "{":
            parts, position = [], position + 1
        elif character == "}":
            assert parts is not None
            found.append(tuple(parts))
            parts, position = None, position + 1
        else:
            match = _TOKEN.match(text, position)
            assert match, text
            position = match.end()
            part = _part(match, module)
            if parts is None:
                found.append((part,) if part.width else ())
            elif part.width:
                parts.append(part)
    return found


def _part(match: re.Match[str], module: Module) -> Slice | Bits:
    _, digits, name, high, low = match.groups()
    if name is None:
        return Bits(digits)
    if high is None:
        return Slice(name, 0, module.wires[name].width)
    return Slice(name, int(low or high), int(high) - int(low or high) + 1)
