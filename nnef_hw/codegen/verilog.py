"""Amaranth components as one self-contained Verilog text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nnef_hw.boards.interfaces import BUSES
from nnef_hw.codegen.hierarchy import CLOCKING, Converted, module_names
from nnef_hw.codegen.ip import bus_module
from nnef_hw.codegen.layer_cache import CachingConverter
from nnef_hw.rtl.base.primitives import PREFIX, primitives_verilog
from nnef_hw.verilog.module_text import module_text
from nnef_hw.verilog.names import identifier

__all__ = ["to_verilog"]


def to_verilog(
    component: object,
    *,
    name: str = "top",
    ports: object = None,
    prefix: str = PREFIX,
    comments: Mapping[str, str] | None = None,
    all_primitives: bool = True,
) -> str:
    """Convert a component; the text ends with the primitives it may instantiate.

    The names of all modules begin with ``name``, those of the primitives with ``prefix``.
    ``comments`` stand above the component's module, whose key is "", and above those of its
    instances of these names, instead of what their classes say. Unless ``all_primitives``, they
    are there only if one of them is used.
    """
    converter = CachingConverter(prefix)
    top = converter.convert(component, ports)
    every = primitives_verilog(prefix, engine=True, wide=True, packed=True)
    reserved = {
        *re.findall(r"^module (\w+)", every, re.MULTILINE),
        f"{name}_axis",
        f"{name}_tb",
        *(bus_module(name, bus) for bus in BUSES),
    }
    names = module_names(top, name, converter.found, reserved)
    notes = {names[key]: found.note for key, found in converter.found.items() if key in names}
    for instance, comment in (comments or {}).items():
        notes[name if not instance else names[dict(top.children)[instance]]] = comment
    directions = {key: _directions(converter.found[key]) for key in names}
    texts = []
    for key, module_name in names.items():
        found = converter.found[key]
        own, *others = found.modules
        # Parts that are not components, such as synchronizers.
        inner = {x.name: identifier(module_name + x.name.removeprefix(own.name)) for x in others}
        called = names | inner
        note = notes[module_name]
        texts.append(module_text(own, module_name, found.ports, called, directions, note))
        texts += [module_text(x, called[x.name], {}, called, directions) for x in others]
    engine, wide, packed = (
        any(prefix + name in text for text in texts)
        for name in ("restarted_sum", "wide_product", "packed_product")
    )
    primitives = primitives_verilog(prefix, engine=engine, wide=wide, packed=packed)
    known = set(re.findall(r"^module (\w+)", primitives, re.MULTILINE))
    if not all_primitives and known.isdisjoint(re.findall(r"\w+", "".join(texts))):
        primitives = ""
    return "\n".join([*texts, primitives])


def _directions(converted: Converted) -> dict[str, str]:
    """Return the directions of a module's ports, in their order."""
    flows = {wire.name[1:]: wire.flow for wire in converted.modules[0].wires.values() if wire.flow}
    order = dict.fromkeys((*CLOCKING, *converted.ports, *flows))
    return {name: flows[name] for name in order if name in flows}
