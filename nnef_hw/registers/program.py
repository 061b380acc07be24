"""A program for the registers as C: its words, and what writes them."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.registers.table import WORD_BYTES, RegisterMap

__all__ = ["program_header"]

_COLUMNS = 8


def program_header(registers: RegisterMap, image: bytes) -> str:
    """Return C99 with a program and a function that writes it to the registers.

    ``NAME_load_program(registers, words)`` returns how many words the accelerator lacks then: 0.
    """
    name, prefix = registers.name, registers.name.upper()
    words = [image[n : n + WORD_BYTES] for n in range(0, len(image), WORD_BYTES)]
    return "\n".join([
        f"/* Program of {registers.title}, with its weights. */",
        f"#ifndef {prefix}_PROGRAM_H",
        f"#define {prefix}_PROGRAM_H",
        "",
        "#include <stdint.h>",
        "",
        '#include "registers.h"',
        "",
        f"#define {prefix}_PROGRAM_WORDS {len(words)}",
        f"static const uint32_t {prefix}_PROGRAM_IMAGE[{prefix}_PROGRAM_WORDS] = {{",
        *_lines(words),
        "};",
        "",
        "/* Writes a program, which drops the frames inside; control.run stays as it is.",
        " * Returns how many words are missing: 0, unless the bus has refused some. */",
        f"static inline uint32_t {name}_load_program(volatile uint32_t *registers,",
        "                                           const uint32_t *words) {",
        f"    const uint32_t run = registers[{prefix}_CONTROL / 4] & {prefix}_CONTROL_RUN_MASK;",
        f"    registers[{prefix}_CONTROL / 4] = run | {prefix}_CONTROL_LOAD_MASK;",
        f"    for (uint32_t n = 0; n < {prefix}_PROGRAM_WORDS; n++) {{",
        f"        registers[{prefix}_PROGRAM / 4] = words[n];",
        "    }",
        f"    return registers[{prefix}_PROGRAM_LEFT / 4];",
        "}",
        "",
        "#endif",
    ]) + "\n"  # fmt: skip


def _lines(words: list[bytes]) -> Iterator[str]:
    for first in range(0, len(words), _COLUMNS):
        row = (f"{int.from_bytes(x, 'little'):#010x}" for x in words[first : first + _COLUMNS])
        yield f"    {', '.join(row)},"
