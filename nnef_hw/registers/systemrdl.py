"""Registers as SystemRDL 2.0, from which other generators start."""

from __future__ import annotations

import json
from collections.abc import Iterator

from nnef_hw.registers.table import WORD_BITS, RegisterMap

__all__ = ["system_rdl"]


def system_rdl(registers: RegisterMap) -> str:
    """Return SystemRDL of an address map."""
    return "\n".join(_lines(registers)) + "\n"


def _lines(registers: RegisterMap) -> Iterator[str]:
    yield f"addrmap {registers.name} {{"
    yield f"    desc = {json.dumps(registers.title)};"
    yield f"    default regwidth = {WORD_BITS};"
    yield f"    default accesswidth = {WORD_BITS};"
    for address, register in registers.addressed():
        yield "    reg {"
        yield f"        desc = {json.dumps(register.description)};"
        for field in register.fields:
            properties = " ".join(field.access.rdl)
            yield f"        field {{ {properties} desc = {json.dumps(field.description)}; }}"
            yield f"            \\{field.name}[{field.highest}:{field.lowest}] = {field.init:#x};"
        yield f"    }} \\{register.name} @ {address:#x};"
    yield "};"
