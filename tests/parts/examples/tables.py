"""Examples of tables: whole, interpolated, corrected, of two operands, of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from examples.example import RAM, Example, Marks, Measured, Proof, swept
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import IntArray, QType, signed_bits
from nnef_hw.arithmetic.tables import table_size, unary_table
from nnef_hw.arithmetic.tflite.short_functions import short_tanh
from nnef_hw.parts.functions.corrected_table import corrected_table

__all__ = ["MEASURED", "PAIR", "TABLES", "TWO"]

Stimulus = Callable[[np.random.Generator], list[IntArray]]

VERILATED = ("verilator",)
BOTH = ("verilator", "cocotb")


def sampled(source: QType, lanes: int = 1, count: int = 300) -> Stimulus:
    """All codes of a narrow format; of a wide one the ends, those around knots, and others."""

    def stimulus(rng):
        every = np.arange(source.lo, source.hi + 1)
        codes = rng.permutation(every)
        if len(every) > count:
            knots = source.lo + (1 << source.bits - 8) * rng.integers(1, 256, count // 6)
            near = knots + rng.integers(-1, 2, count // 6)
            codes = np.concatenate([every[:4], every[-4:], near, codes[: count // 2]])
        return [codes[: len(codes) // (5 * lanes) * 5 * lanes].reshape(-1, lanes)]

    return stimulus


def table(in_bits, in_signed, out_bits, out_signed, lanes=1, ram=RAM, entries=None, **more):
    source = QType(in_bits, in_signed, 0.05)
    target = QType(out_bits, out_signed, 2.0 ** (1 - out_bits))
    entries = unary_table(np.tanh, source, target) if entries is None else entries
    part = parts.Table(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed,
        lanes=lanes, ram=ram,
    )  # fmt: skip

    def stimulus(rng):
        codes = rng.permutation(np.tile(np.arange(source.lo, source.hi + 1), 5))
        return [codes.reshape(-1, lanes)]

    return Example(part=part, contents={"entries": entries.tolist()}, stimulus=stimulus, **more)


def proved_table(lanes):
    part = parts.Table(
        in_bits=2, out_bits=2, in_signed=False, out_signed=False, lanes=lanes, ram=RAM
    )
    return Example(part=part, contents={"entries": [3, 1, 0, 2]}, sizes=[3], proof=Proof())


def interpolated(
    in_bits, in_signed, out_bits, out_signed, lanes=1, *, noise=False, ram=RAM, function=np.tanh,
    reach=6.0, top=1.0, **more,
):  # fmt: skip
    """Of a function from ``-reach`` to ``reach``, whose values go up to ``top``."""
    source = QType(in_bits, in_signed, 2 * reach / (1 << in_bits))
    target = QType(out_bits, out_signed, 2 * top / (1 << out_bits))
    knots = unary_table(function, source, target)
    if noise:  # differences of both signs and of the full width
        rng = np.random.default_rng(in_bits)
        knots = rng.integers(target.lo, target.hi + 1, table_size(in_bits))
        knots[:4] = target.lo, target.hi, target.lo, target.lo
    rises = np.diff(knots)
    part = parts.InterpolatedTable(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed,
        rise_bits=signed_bits(int(rises.min()), int(rises.max())), lanes=lanes, ram=ram,
    )  # fmt: skip
    return Example(
        part=part, contents={"knots": knots.tolist()}, stimulus=sampled(source, lanes, 512), **more
    )


WIDE = {
    "u9 s8": (9, False, 8, True), "s10 u16": (10, True, 16, False),
    "u11 u5": (11, False, 5, False), "s12 s12": (12, True, 12, True),
    "u13 s16": (13, False, 16, True), "s16 u16": (16, True, 16, False),
    "u16 u8": (16, False, 8, False),
}  # fmt: skip


def corrected(in_bits, in_signed, out_bits, out_signed, smooth, **more):
    source, target = QType(in_bits, in_signed, 1.0), QType(out_bits, out_signed, 1.0)
    rng = np.random.default_rng(in_bits)
    entries = rng.integers(target.lo, target.hi + 1, 1 << in_bits)
    if smooth:
        entries = np.clip(
            np.sort(entries) + rng.integers(-2, 2, 1 << in_bits), target.lo, target.hi
        )
    return corrected_of(entries, source, target, **more)


def corrected_of(entries, source, target, ram=RAM, **more):
    part = corrected_table(entries, source, target, ram)
    return Example(
        part=part, contents={"entries": entries.tolist()}, stimulus=sampled(source), **more
    )


def table_sum(in_bits=(8, 8), in_signed=(True, True), acc_bits=29, ram=RAM, **more):
    """Tables of noise, with the extremes that the sum may have."""
    limit, rng = 1 << acc_bits - 2, np.random.default_rng(in_bits)
    tables = [rng.integers(-limit, limit, 1 << bits) for bits in in_bits]
    for each in tables:
        each[0], each[-1] = -limit, limit - 1
    part = parts.TableSum(in_bits=in_bits, in_signed=in_signed, acc_bits=acc_bits, ram=ram)
    return Example(
        part=part, contents={"entries": [each.tolist() for each in tables]}, sizes=(12, 12), **more
    )


def lookup(rows, channels, in_bits, lanes, style, bits=5, ram=RAM, codes=None, **more):
    part = parts.Lookup(
        rows=rows, channels=channels, in_bits=in_bits, bits=bits, signed=True, lanes=lanes, ram=ram,
        style=style,
    )  # fmt: skip
    if codes is None:
        codes = np.random.default_rng([rows, channels]).integers(-16, 16, (rows, channels))

    def stimulus(rng):
        """Every integer, those beyond the last row as well."""
        return [rng.permutation(np.arange(1 << in_bits)).reshape(-1, 1)]

    return Example(
        part=part, contents={"codes": codes.tolist()}, stimulus=stimulus,
        frames=min(2, 1 << in_bits), **more,
    )  # fmt: skip


LOOKUPS = {
    "one": (1, 1, 1, 1), "whole": (4, 3, 2, 1), "beyond": (5, 4, 3, 2), "wide": (27, 6, 5, 6),
}  # fmt: skip


TWO = {"in_bits": (2, 2), "in_signed": (False, False)}
PAIR = Proof(frame_bits=4, patience=8)
SMALL = {"in_bits": 9, "out_bits": 4, "in_signed": False, "out_signed": False, "ram": RAM}
TABLES: Mapping[str, Mapping[str, Example]] = {
    "Table": {
        **{
            f"{name}, {lanes}": table(*formats, lanes, verilog=VERILATED * (name == "s8"))
            for name, formats in {
                "u2": (2, False, 8, True), "s4": (4, True, 4, False), "u8": (8, False, 8, False),
                "s8": (8, True, 16, True),
            }.items()
            for lanes in (1, 2)
        },
        "proof": proved_table(1), "proof of lanes": proved_table(2),
    },
    "InterpolatedTable": {
        **{
            name: interpolated(*formats, verilog=BOTH * (name == "s16 u16"))
            for name, formats in WIDE.items()
        },
        **{
            f"noise {name}": interpolated(*WIDE[name], noise=True)
            for name in ("u9 s8", "s16 u16", "u16 u8")
        },
        "lanes": interpolated(*WIDE["s10 u16"], lanes=3),
        "proof": Example(
            part=parts.InterpolatedTable(rise_bits=3, **SMALL),
            contents={"knots": [3, *([1, 2] * 128)]}, sizes=[2],
            proof=Proof(marks=[Marks(mark=3)], frame_bits=3),
        ),
    },
    "CorrectedTable": {
        **swept(corrected, dict([*WIDE.items()][:4]), {"smooth": True, "rough": False}),
        "verilog": corrected(*WIDE["s10 u16"], smooth=False, verilog=VERILATED),
        "proof": Example(
            part=parts.CorrectedTable(rise_bits=4, index_width=8, correction_bits=4, **SMALL),
            contents={"entries": [5, 2, 7, 1, *([0] * 508)]}, sizes=[2],
            proof=Proof(marks=[Marks(mark=3)], frame_bits=3),
        ),
    },
    "TableSum": {
        "signed": table_sum(), "unsigned": table_sum(in_signed=(False, False)),
        "unequal": table_sum((4, 6), (True, False)),
        "proof": Example(
            part=parts.TableSum(**TWO, acc_bits=5, ram=RAM), sizes=(2, 2), proof=PAIR,
            contents={"entries": ([1, 3, 5, 7], [-2, 2, 4, 0])},
        ),
    },
    "Lookup": {
        **swept(lookup, LOOKUPS, ["block", "logic"]),
        "verilog": lookup(5, 4, 3, 2, "block", verilog=VERILATED),
    },
}  # fmt: skip


FUNCTIONS_MEASURED = [
    (np.tanh, 4.0, 16, 16), (np.tanh, 1.0, 16, 16), (np.tanh, 4.0, 14, 14), (np.tanh, 4.0, 12, 12),
    (np.tanh, 4.0, 10, 10), (np.tanh, 4.0, 9, 16), (np.tanh, 8.0, 16, 8), (np.exp, 8.0, 16, 16),
    (np.sin, 300.0, 16, 16), (np.sin, 300.0, 12, 16),
]  # fmt: skip
LARGE_LOOKUPS = [
    (16, 16, 1, "block"), (27, 16, 1, "block"), (27, 27, 1, "block"), (200, 12, 4, "block"),
    (64, 64, 2, "block"), (16, 16, 1, "logic"), (27, 16, 1, "logic"), (27, 12, 2, "logic"),
    (8, 4, 1, "logic"),
]  # fmt: skip


def tables_of_noise(device):
    for bits in (4, 8):
        entries = np.random.default_rng(bits).integers(0, 1 << bits, 1 << bits)
        yield table(bits, False, bits, False, ram=device.ram, entries=entries)


def large_interpolated(device):
    for function, reach, in_bits, out_bits in FUNCTIONS_MEASURED:
        top = float(np.exp(reach)) if function is np.exp else 1.0
        yield interpolated(
            in_bits, True, out_bits, True, ram=device.ram, function=function, reach=reach, top=top
        )


def short_functions(device):
    for bits in (12, 14, 15):
        qtype = QType(bits, True, 1.0)
        codes = np.arange(qtype.lo, qtype.hi + 1) << (16 - bits)
        for integer_bits in (3, 4):
            entries = short_tanh(codes, integer_bits) >> (16 - bits)
            note = {"integer_bits": integer_bits}
            yield corrected_of(entries, qtype, qtype, device.ram, note=note)


def large_lookups(device):
    rng = np.random.default_rng(0)
    for rows, channels, lanes, style in LARGE_LOOKUPS:
        codes = rng.integers(-128, 128, (rows, channels))
        in_bits = (rows - 1).bit_length()
        yield lookup(rows, channels, in_bits, lanes, style, 8, device.ram, codes)


MEASURED: Measured = {
    "table": tables_of_noise, "interpolated table": large_interpolated,
    "corrected table": short_functions,
    "table sum": lambda device: [table_sum(acc_bits=30, ram=device.ram)],
    "lookup": large_lookups,
}  # fmt: skip
