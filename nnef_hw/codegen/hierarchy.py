"""Amaranth components -> RTLIL modules, each component one with the ports of its signature."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Fragment, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from nnef_hw.boards.hardware.clocks import BOARD_DOMAIN
from nnef_hw.codegen.crossings import Crossings
from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.rtl.base.primitives import PREFIX
from nnef_hw.system.files import digest
from nnef_hw.verilog.folding import fold_constants
from nnef_hw.verilog.rtlil import Module, parse_rtlil, references

__all__ = ["CLOCKING", "Converted", "Converter", "module_names"]

_AMARANTHS = "amaranth."
"""Package whose components are no modules of their own."""
CLOCKING = ("clk", "rst")
_OWN_DOMAIN = "sync"


@dataclass(frozen=True, slots=True)
class Converted:
    """A component as RTLIL; its instances are of modules called like the keys of others.

    Parameters
    ----------
    key
        Digest of all that it consists of.
    modules
        The component's own, and further ones if parts of it are not components.
    kind
        Name of its class.
    ports
        What its ports hold, in their order; those that need no words are empty.
    note
        What it is, in a line.
    children
        Instances: name and key.
    """

    key: str
    modules: list[Module]
    kind: str
    ports: dict[str, str]
    note: str
    children: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Converter:
    """Converts components; what is the same becomes one module.

    It is also what a component gets as its platform: "elaborated for Verilog". Components that hold
    device primitives then instantiate the modules of ``rtl/base/primitives.v``; without a platform,
    in Amaranth's own simulator, they elaborate to plain logic. ``prefix`` is what the names of
    these modules begin with.
    """

    prefix: str = PREFIX
    found: dict[str, Converted] = field(default_factory=dict)
    _crossings: Crossings = field(default_factory=Crossings)

    def convert(self, component: object, ports: object = None) -> Converted:
        """Convert a component and all below it; ``ports`` stand for those of its signature.

        Raises
        ------
        ValueError
            If a component reads a signal of another one that no port carries.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=DeprecationWarning)
            top = self._convert(component, Fragment.get(component, self), ports, is_top=True)
        self._crossings.check()
        return top

    def instance(self, component: object, reset: object = None, *, alone: bool = False) -> object:
        """Return an instance of a component, which ``reset`` resets as its domain's reset does.

        If ``alone`` that of the domain does not.
        """
        return _instance(component, self.convert_component(component), reset, alone=alone)

    def convert_component(self, component: object) -> Converted:
        """Return the module of a component that is not the top."""
        return self._convert(component, Fragment.get(component, self))

    def _convert(
        self, component: object, fragment: Fragment, ports: object = None, *, is_top: bool = False
    ) -> Converted:
        children = tuple(self._separate(fragment))
        if ports is None:
            ports = {name: value for name, value in _ports(component).items() if len(value[0])}
        inner: list[Hardware] = (
            [*ports.values()] if isinstance(ports, dict) else [*cast(Hardware, ports)]
        )
        self._crossings.add(
            type(component).__name__, fragment,
            [one[0] if isinstance(one, tuple) else Value.cast(one) for one in inner],
        )  # fmt: skip
        design, _ = rtlil.convert_fragment(fragment, ports, "module", emit_src=False)
        fields = _fields(component)
        names = {name: fields.get(name, "") for name in ports} if isinstance(ports, dict) else {}
        kind, note = _snake(type(component).__name__), _note(component)
        key = f"m{digest(design, kind, note, repr((children, names, is_top)))[:24]}"
        if key not in self.found:
            modules = parse_rtlil(design)
            for module in modules:
                fold_constants(module)
            clocks = [port for _, *pair in _domains(modules[0]) for port in pair]
            _put_first(modules[0], clocks)
            if not is_top:
                _drop_unread(modules[0], clocks)
            self.found[key] = Converted(key, modules, kind, names, note, children)
        return self.found[key]

    def _separate(self, fragment: Fragment) -> Iterator[tuple[str, str]]:
        """Put instances where components were; yield their names and keys."""
        for n, (below, name, place) in enumerate(fragment.subfragments):
            if isinstance(below, Instance) and below.type in self.found:
                yield str(name), below.type
            elif type(below) is Fragment:
                component = _component(below)
                if component is None:
                    yield from self._separate(below)
                    continue
                module = self._convert(component, below)
                fragment.subfragments[n] = (_instance(component, module), name, place)
                yield str(name), module.key


def _instance(
    component: object, module: Converted, reset: object = None, *, alone: bool = False
) -> object:
    ports: dict[str, object] = {}
    for domain, clk, rst in _domains(module.modules[0]):
        if f"\\{clk}" in module.modules[0].wires:
            ports[f"i_{clk}"] = ClockSignal(domain)
        if f"\\{rst}" in module.modules[0].wires:
            own = ResetSignal(domain, allow_reset_less=True)
            if reset is not None and domain == _OWN_DOMAIN:
                own = reset if alone else own | reset
            ports[f"i_{rst}"] = own
    for name, (value, flow) in _ports(component).items():
        if len(value):
            ports[f"{flow.value[0]}_{name}"] = value
    return Instance(module.key, **ports)


def _domains(module: Module) -> list[tuple[str, str, str]]:
    """Return the clock domains of a module that come from outside, each with clock and reset."""
    found = [(_OWN_DOMAIN, *CLOCKING)]
    for wire in module.wires.values():
        name = wire.name[1:]
        if wire.flow == "input" and name == f"{BOARD_DOMAIN}_clk":
            found.append((BOARD_DOMAIN, name, f"{BOARD_DOMAIN}_rst"))
    return found


def _put_first(module: Module, names: Sequence[str]) -> None:
    """Give a module's clocks and resets an order, which Amaranth takes from a set of domains."""
    first = {f"\\{name}": None for name in names if f"\\{name}" in module.wires}
    module.wires = {name: module.wires[name] for name in (first | module.wires)}


def _drop_unread(module: Module, names: Sequence[str]) -> None:
    read = set(references(module))
    for name in names:
        wire = module.wires.get(f"\\{name}")
        if wire is not None and wire.flow == "input" and wire.name not in read:
            del module.wires[wire.name]


def _component(fragment: Fragment) -> object:
    """Return the component that a fragment comes from; None if it has no ports of its own."""
    for origin in fragment.origins or ():
        is_amaranths = type(origin).__module__.startswith(_AMARANTHS)
        if isinstance(origin, wiring.Component) and not is_amaranths:
            return origin
    return None


def _ports(component: Hardware) -> dict[str, tuple[Hardware, Hardware]]:
    """Return the ports of a signature as Amaranth names them, with their directions."""
    found = {}
    for path, member, value in component.signature.flatten(component):
        flow = PortDirection.Input if member.flow == In else PortDirection.Output
        found["__".join(map(str, path))] = (Value.cast(value), flow)
    return found


def _fields(component: Hardware) -> dict[str, str]:
    """Return the fields of ports that have some, and their bits."""
    found = {}
    for path, member, _ in component.signature.flatten(component):
        if isinstance(member.shape, data.StructLayout):
            fields = [
                f"{name} [{field.offset + field.width - 1}:{field.offset}]"
                if field.width > 1
                else f"{name} [{field.offset}]"
                for name, field in member.shape
                if field.width
            ]
            found["__".join(map(str, path))] = ", ".join(fields)
    return found


def _note(component: object) -> str:
    """Return a description of a component: by itself, or by the first line of its documentation."""
    text = getattr(component, "note", None) or type(component).__doc__ or ""
    return re.sub(r"[`*]|:\w+:", "", text.strip().partition("\n")[0])


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def module_names(
    top: Converted, name: str, found: dict[str, Converted], reserved: Iterable[str]
) -> dict[str, str]:
    """Return names of modules by key, in stream order; none is reserved.

    One that is there once is called after its place, another one after its class.
    """
    order = list(_from_top(top, found))
    uses = Counter(key for module in order for _, key in module.children)
    names = {top.key: name}
    used = {name, *reserved}
    for module in order:
        for instance, key in module.children:
            if key in names:
                continue
            own = f"{names[module.key]}_{instance}"
            wish = f"{name}_{found[key].kind}" if uses[key] > 1 else own
            unique, number = wish, 1
            while unique in used:
                number += 1
                unique = f"{wish}_{number}"
            used.add(unique)
            names[key] = unique
    return {module.key: names[module.key] for module in order}


def _from_top(top: Converted, found: dict[str, Converted]) -> Iterator[Converted]:
    """Go through the modules of a design once each: a module, then what is in it."""
    seen = set()
    waiting = [top.key]
    while waiting:
        key = waiting.pop(0)
        if key not in seen:
            seen.add(key)
            yield found[key]
            waiting = [child for _, child in found[key].children] + waiting
