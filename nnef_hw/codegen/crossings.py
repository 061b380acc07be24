"""Signals that pass from one component to another one without being ports of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from amaranth.hdl import Fragment, Instance, Signal, Value

from nnef_hw.parts.base.untyped import Hardware

__all__ = ["Crossings"]


@dataclass(slots=True)
class Crossings:
    """Record of what components drive and read, to find signals that no port carries.

    Each component becomes a module with the ports of its signature alone. A signal of another one
    that is read as it is, as Amaranth allows, would be 0 there.
    """

    _drivers: dict[int, str] = field(default_factory=dict)
    _free: list[tuple[str, list[Signal]]] = field(default_factory=list)
    _kept: list[Signal] = field(default_factory=list)

    def add(self, kind: str, fragment: Fragment, ports: Iterable[Value]) -> None:
        """Add a component, whose own components are instances already."""
        driven: list[Signal] = []
        read: list[Signal] = []
        for part in _parts(fragment):
            if isinstance(part, Instance):
                for value, way in part.ports.values():
                    if way == "o":
                        driven += value._lhs_signals()
                    elif way == "i":
                        read += _read(value)
            for statements in part.statements.values():
                driven += statements._lhs_signals()
                for statement in statements:
                    read += _read(statement)
        known = {id(signal) for signal in driven}
        self._drivers |= dict.fromkeys(known, kind)
        # nothing else gets their numbers
        self._kept += driven
        for value in ports:
            known |= {id(signal) for signal in value._rhs_signals()}
        self._free.append((kind, [signal for signal in read if id(signal) not in known]))

    def check(self) -> None:
        """Refuse a design with a signal that one component drives and another one reads.

        Raises
        ------
        ValueError
            With its name and theirs.
        """
        for kind, signals in self._free:
            for signal in signals:
                if id(signal) in self._drivers:
                    raise ValueError(
                        f"{kind} reads {signal.name!r}, which {self._drivers[id(signal)]} drives: "
                        "it has to be a port of both, or is 0 in Verilog"
                    )


def _read(value: Hardware) -> list[Signal]:
    """Return the signals with bits that something reads; none if the reset is among them."""
    try:
        return [signal for signal in value._rhs_signals() if len(signal)]
    except NotImplementedError:
        return []


def _parts(fragment: Fragment) -> Iterator[Fragment]:
    """Yield a fragment and all below it."""
    yield fragment
    for below, _, _ in fragment.subfragments:
        yield from _parts(below)
