"""Registers as a table for people, in Markdown."""

from __future__ import annotations

from nnef_hw.registers.table import ACCESSES, RegisterMap

__all__ = ["access_table", "register_table"]


def register_table(registers: RegisterMap) -> str:
    """Return a table with a row for each field."""
    rows = [
        "| address | register | bits | field | access | after a reset | |",
        "|---|---|---|---|---|---|---|",
    ]
    for address, register in registers.addressed():
        place = f"| {address:#04x} | `{register.name}` "
        for field in register.fields:
            bits = f"{field.highest}:{field.lowest}" if field.bits > 1 else str(field.lowest)
            init = f"{field.init:#x}" if field.init > 1 else str(field.init)
            rows.append(
                f"{place}| {bits} | `{field.name}` | {field.access.title} | {init} "
                f"| {field.description} |"
            )
            place = "| | "
    return "\n".join(rows) + "\n"


def access_table() -> str:
    """Return a table of what software may do with fields."""
    rows = [f"| {access.title} | {access.meaning} |" for access in ACCESSES]
    return "\n".join(["| access | meaning |", "|---|---|", *rows]) + "\n"
