"""Examples of functions of codes: tables, sums and products, softmax, normalization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from examples.example import RAM, Example, Marks, Proof, ends, swept
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import (
    AddRequant,
    IntArray,
    QType,
    signed_bits,
)  # fmt: skip
from nnef_hw.arithmetic.tables import table_size, unary_table
from nnef_hw.arithmetic.tflite.division import tflite_quotient
from nnef_hw.parts.functions.corrected_table import corrected_table

__all__ = ["FUNCTIONS"]

Stimulus = Callable[[np.random.Generator], list[IntArray]]

CODES = {"u2": (2, False), "u4": (4, False), "s8": (8, True), "u8": (8, False), "s16": (16, True)}
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


def table(in_bits, in_signed, out_bits, out_signed, lanes, **more):
    source = QType(in_bits, in_signed, 0.05)
    entries = unary_table(np.tanh, source, QType(out_bits, out_signed, 2.0 ** (1 - out_bits)))
    part = parts.Table(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed,
        lanes=lanes, ram=RAM,
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


def interpolated(in_bits, in_signed, out_bits, out_signed, lanes=1, *, noise=False, **more):
    source = QType(in_bits, in_signed, 12.0 / (1 << in_bits))
    target = QType(out_bits, out_signed, 2.0 ** (1 - out_bits))
    knots = unary_table(np.tanh, source, target)
    if noise:  # differences of both signs and of the full width
        rng = np.random.default_rng(in_bits)
        knots = rng.integers(target.lo, target.hi + 1, table_size(in_bits))
        knots[:4] = target.lo, target.hi, target.lo, target.lo
    rises = np.diff(knots)
    part = parts.InterpolatedTable(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed,
        rise_bits=signed_bits(int(rises.min()), int(rises.max())), lanes=lanes, ram=RAM,
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
    part = corrected_table(entries, source, target, RAM)
    return Example(
        part=part, contents={"entries": entries.tolist()}, stimulus=sampled(source), **more
    )


SMALL = {"in_bits": 9, "out_bits": 4, "in_signed": False, "out_signed": False, "ram": RAM}
TABLES = {
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
}  # fmt: skip


def pairs(formats, zeros, lanes, *, noise=60) -> Stimulus:
    """Ends of the ranges and zero points in all pairs, then noise, each with a neighbour."""

    def stimulus(rng):
        ranges = [ends(*fmt) for fmt in formats]
        special = [
            sorted(
                {lo, min(lo + 1, hi), max(hi - 1, lo), hi} | ({0, zero} & set(range(lo, hi + 1)))
            )
            for (lo, hi), zero in zip(ranges, zeros, strict=True)
        ]
        found = [(a, b) for a in special[0] for b in special[1]]
        for _ in range(noise):
            a, b = (int(rng.integers(lo, hi + 1)) for lo, hi in ranges)
            found += [(a, b), (min(a + 1, ranges[0][1]), b)]
        beats = np.array(found)[: len(found) // (4 * lanes) * 4 * lanes].reshape(-1, lanes, 2)
        return [beats[..., 0], beats[..., 1]]

    return stimulus


def total(
    mult, shift, zeros, zero_point, lo, hi, in_bits=(8, 8), in_signed=(True, True), out_bits=8,
    out_signed=True, lanes=1, **more,
):  # fmt: skip
    part = parts.EltwiseSum(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed, lanes=lanes
    )
    requant = AddRequant(mult, shift, zero_point, lo, hi)
    formats = [*zip(in_bits, in_signed, strict=True)]
    return Example(
        part=part, contents={"requant": requant, "in_zero_points": zeros}, frames=4,
        stimulus=pairs(formats, zeros, lanes), **more,
    )  # fmt: skip


SUMS = {
    "typical": partial(total, (31007, 40503), 16, (-3, 5), 11, -128, 127),
    "difference": partial(total, (31007, -40503), 16, (-3, 5), 4, -128, 127),
    "both negative": partial(total, (-65535, -3), 17, (0, -128), 0, -128, 127),
    "relu": partial(total, (20011, 9973), 14, (10, -20), -100, -100, 127),
    "unsigned": partial(total, (65535, 40003), 16, (128, 7), 130, 0, 255,
                        in_signed=(False, False), out_signed=False),
    "one of each sign": partial(total, (777, -65535), 14, (0, 3), 0, -128, 127,
                                in_signed=(False, True), verilog=VERILATED),
    "least shift": partial(total, (1, 1), 1, (0, 0), 0, -128, 127),
    "halves": partial(total, (1 << 15, -(1 << 15)), 16, (0, 0), -1, -128, 127),
    "greatest shift": partial(total, (65535, 40000), 46, (1, 2), 5, -128, 127),
    "powers of two": partial(total, (1 << 14, 1 << 15), 15, (-128, 127), 0, -128, 127),
    "one stream is ignored": partial(total, (40000, 0), 15, (1, 99), 0, -128, 127),
    "narrow": partial(total, (11, 13), 4, (1, 2), 1, 0, 3, (2, 2), (False, False), 2, False),
    "unequal widths": partial(total, (3001, 60001), 16, (7, 1), -2, -8, 7, (8, 3), (True, False),
                              4),
    "odd widths": partial(total, (501, -77), 9, (0, 0), 0, -16, 15, (5, 5), out_bits=5),
    "sixteen bits": partial(total, (65535, 51234), 17, (-30000, 123), 9, -32768, 32767, (16, 16),
                            out_bits=16),
    "one code is left": partial(total, (333, 444), 6, (0, 0), 3, 3, 3),
}  # fmt: skip


def product(zeros, bits=(8, 8), signed=(True, True), **more):
    return Example(
        part=parts.EltwiseProduct(in_bits=bits, in_signed=signed), frames=4,
        contents={"in_zero_points": zeros},
        stimulus=pairs([*zip(bits, signed, strict=True)], zeros, 1, noise=25), **more,
    )  # fmt: skip


def extremum(bits, signed, greatest, lanes, **more):
    part = parts.EltwiseExtremum(greatest=greatest, bits=bits, signed=signed, lanes=lanes)
    return Example(
        part=part, frames=4, stimulus=pairs([(bits, signed)] * 2, (0, 0), lanes, noise=25), **more
    )


def table_sum(in_bits=(8, 8), in_signed=(True, True), acc_bits=29, **more):
    """Tables of noise, with the extremes that the sum may have."""
    limit, rng = 1 << acc_bits - 2, np.random.default_rng(in_bits)
    tables = [rng.integers(-limit, limit, 1 << bits) for bits in in_bits]
    for each in tables:
        each[0], each[-1] = -limit, limit - 1
    part = parts.TableSum(in_bits=in_bits, in_signed=in_signed, acc_bits=acc_bits, ram=RAM)
    return Example(
        part=part, contents={"entries": [each.tolist() for each in tables]}, sizes=(12, 12), **more
    )


QUOTIENTS = {
    "signed": (QType(8, True, 0.05, 3), QType(8, True, 0.04, -20), QType(8, True, 0.05, 0)),
    "unsigned": (QType(8, False, 0.05, 131), QType(8, False, 0.05, 0), QType(8, False, 1.0, 128)),
    "ties": (QType(8, True, 0.3, -12), QType(8, True, 0.1, -128), QType(8, True, 0.25, 0)),
    "unequal": (QType(4, True, 0.5, 0), QType(6, False, 0.1, 5), QType(7, True, 0.3, 1)),
    "far": (QType(8, True, 2.0**-20, 0), QType(8, True, 4.0, 0), QType(8, True, 4.0, 5)),
    "nothing": (QType(8, True, 2.0**-12, 0), QType(8, True, 4.0, 0), QType(8, True, 4.0, 5)),
    "near": (QType(8, True, 300.0, 0), QType(8, True, 0.02, 0), QType(8, True, 0.02, 5)),
}  # fmt: skip


def quotient_pairs(formats: tuple[QType, QType], target: QType) -> Stimulus:
    """Limits of both, those around 0, ties if there are any, and noise."""

    def stimulus(rng):
        every = np.meshgrid(*(np.arange(q.lo, q.hi + 1) for q in formats), indexing="ij")
        first, second = (x - q.zero_point for x, q in zip(every, formats, strict=True))
        ratio = formats[0].scale / (formats[1].scale * target.scale)
        quotients = ratio * first / np.where(second == 0, 1, second)
        tied = (np.abs(quotients) < 1 << target.bits) & (np.abs(quotients % 1 - 0.5) < 1e-6)
        limits = [
            np.array([q.lo, q.hi, q.zero_point, q.zero_point + 1, q.zero_point - 1]).clip(
                q.lo, q.hi
            )
            for q in formats
        ]
        found = [np.array(np.meshgrid(*limits)).reshape(2, -1)]
        if tied.any():
            found.append(rng.choice(np.array([x[tied] for x in every]), 30, axis=1))
        found.append(np.array([rng.integers(q.lo, q.hi + 1, 30) for q in formats]))
        return [codes.reshape(-1, 1) for codes in np.concatenate(found, axis=1)]

    return stimulus


def quotient(name, digit_bits, *, inverts=False, **more):
    *formats, target = QUOTIENTS[name]
    first, second = formats
    part = parts.Quotient(
        in_bits=(first.bits, second.bits), in_signed=(first.signed, second.signed),
        out_bits=target.bits, out_signed=target.signed, digit_bits=digit_bits, inverts=inverts,
        ram=RAM,
    )  # fmt: skip
    scales = (second.scale, first.scale) if inverts else (first.scale, second.scale)
    requant = tflite_quotient(scales, target, wraps=name != "nothing")
    zeros = first.zero_point, second.zero_point
    return Example(
        part=part, contents={"requant": requant, "in_zero_points": zeros}, frames=5,
        stimulus=quotient_pairs((first, second), target), **more,
    )  # fmt: skip


def lookup(rows, channels, in_bits, lanes, style, **more):
    part = parts.Lookup(
        rows=rows, channels=channels, in_bits=in_bits, bits=5, signed=True, lanes=lanes, ram=RAM,
        style=style,
    )  # fmt: skip
    table = np.random.default_rng([rows, channels]).integers(-16, 16, (rows, channels))

    def stimulus(rng):
        """Every integer, those beyond the last row as well."""
        return [rng.permutation(np.arange(1 << in_bits)).reshape(-1, 1)]

    return Example(
        part=part, contents={"codes": table.tolist()}, stimulus=stimulus,
        frames=min(2, 1 << in_bits), **more,
    )  # fmt: skip


LOOKUPS = {
    "one": (1, 1, 1, 1), "whole": (4, 3, 2, 1), "beyond": (5, 4, 3, 2), "wide": (27, 6, 5, 6),
}  # fmt: skip


def mask(channels, pixels, signed, **more):
    part = parts.CausalMask(channels=channels, pixels=pixels, bits=4, signed=signed, place_bits=3)

    def stimulus(rng):
        """Every place, those behind the last channel as well; the first code is the lowest."""
        lo, hi = ends(4, signed)
        codes = rng.integers(lo, hi + 1, (8, pixels, channels))
        codes[:, 0, 0] = lo
        return [codes.reshape(-1, 1), np.arange(8).reshape(-1, 1)]

    return Example(part=part, stimulus=stimulus, frames=8, **more)


TWO = {"in_bits": (2, 2), "in_signed": (False, False)}
PAIR = Proof(frame_bits=4, patience=8)
FUNCTIONS: Mapping[str, Mapping[str, Example]] = {
    **TABLES,
    "EltwiseSum": {
        **swept(lambda make, lanes: make(lanes=lanes), SUMS, [1, 3]),
        "proof": Example(
            part=parts.EltwiseSum(**TWO, out_bits=3, out_signed=False), sizes=(2, 2), proof=PAIR,
            contents={"requant": AddRequant((3, -5), 2, 4, 0, 7, mult_bits=4),
                      "in_zero_points": (1, 0)},
        ),
    },
    "EltwiseProduct": {
        "signed": product((-3, 5), verilog=VERILATED), "no zero point": product((0, 0)),
        "far zero points": product((127, -128)),
        "unsigned": product((128, 255), signed=(False, False)),
        "one of each sign": product((0, 7), (8, 5), (False, True)),
        "narrow": product((1, 0), (2, 2), (False, False)),
        "one never negative": product((-5, -128), verilog=VERILATED),
        "neither ever negative": product((0, -128), (8, 8), (False, True), verilog=VERILATED),
        "sixteen bits": product((-20000, 9), (16, 8), (True, False)),
        "proof": Example(
            part=parts.EltwiseProduct(**TWO), contents={"in_zero_points": (2, 1)}, sizes=(2, 2),
            proof=PAIR,
        ),
    },
    "EltwiseExtremum": {
        **swept(extremum, CODES, {"least": False, "most": True}, [1, 4]),
        "verilog": extremum(8, True, greatest=False, lanes=2, verilog=VERILATED),
        **{
            f"proof {greatest}": Example(
                part=parts.EltwiseExtremum(bits=2, signed=False, greatest=greatest), sizes=(2, 2),
                proof=Proof(marks=[Marks(base=base, mark=3 - base)], frame_bits=4, patience=8),
            )
            for greatest, base in ((True, 1), (False, 2))
        },
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
    "CausalMask": {
        **swept(
            mask, {"one": (1, 1), "pixels": (4, 3), "odd": (5, 2)},
            {"signed": True, "unsigned": False},
        ),
        "verilog": mask(5, 2, signed=True, verilog=VERILATED),
    },
    "Quotient": {
        **swept(quotient, QUOTIENTS.keys(), [1, 2, 4]),
        "inverted": quotient("signed", 4, inverts=True),
        "inverted, unequal": quotient("unequal", 4, inverts=True),
    },
}  # fmt: skip
