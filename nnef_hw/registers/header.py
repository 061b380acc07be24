"""Registers as a C header."""

from __future__ import annotations

from nnef_hw.registers.table import RegisterMap

__all__ = ["c_header"]


def c_header(registers: RegisterMap) -> str:
    """Return C99 with addresses, masks and shifts of all registers.

    ``NAME_CONTROL`` is the register's address in bytes; ``NAME_CONTROL_RUN_MASK`` and ``_SHIFT``
    are its field's bits, ``NAME_CONTROL_INIT`` its value after a reset.
    """
    prefix = registers.name.upper()
    lines = [
        f"/* Registers of {registers.title}: addresses in bytes, masks and shifts of fields. */",
        f"#ifndef {prefix}_REGISTERS_H",
        f"#define {prefix}_REGISTERS_H",
    ]
    for address, register in registers.addressed():
        word = f"{prefix}_{register.name.upper()}"
        lines += [
            "",
            f"/* {register.description} */",
            f"#define {word} {address:#04x}u",
            f"#define {word}_INIT {register.init:#x}u",
        ]
        for field in register.fields:
            label = f"{prefix}_{register.label(field).upper()}"
            lines += [
                f"/* {field.description} ({field.access.title}) */",
                f"#define {label}_SHIFT {field.lowest}",
                f"#define {label}_MASK {field.mask:#x}u",
            ]
    return "\n".join([*lines, "", "#endif"]) + "\n"
