"""Examples of functions of two codes: sums, products, extrema, quotients, masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from examples.example import RAM, Example, Marks, Measured, Proof, ends, swept
from examples.tables import PAIR, TWO
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import AddRequant, IntArray, QType, choose_add_requant
from nnef_hw.arithmetic.tflite.division import tflite_quotient

__all__ = ["FUNCTIONS", "MEASURED"]

Stimulus = Callable[[np.random.Generator], list[IntArray]]

CODES = {"u2": (2, False), "u4": (4, False), "s8": (8, True), "u8": (8, False), "s16": (16, True)}
VERILATED = ("verilator",)


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
    requant = AddRequant(mult, shift, zero_point, lo, hi)
    return total_of(requant, zeros, in_bits, in_signed, out_bits, out_signed, lanes, **more)


def total_of(requant, zeros, in_bits, in_signed, out_bits, out_signed, lanes=1, **more):
    part = parts.EltwiseSum(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed, lanes=lanes
    )
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


def extremum(bits, signed, greatest, lanes=1, **more):
    part = parts.EltwiseExtremum(greatest=greatest, bits=bits, signed=signed, lanes=lanes)
    return Example(
        part=part, frames=4, stimulus=pairs([(bits, signed)] * 2, (0, 0), lanes, noise=25), **more
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
    scales = (second.scale, first.scale) if inverts else (first.scale, second.scale)
    requant = tflite_quotient(scales, target, wraps=name != "nothing")
    return quotient_of(formats, target, requant, digit_bits, inverts=inverts, **more)


def quotient_of(formats, target, requant, digit_bits, *, inverts=False, ram=RAM, **more):
    first, second = formats
    part = parts.Quotient(
        in_bits=(first.bits, second.bits), in_signed=(first.signed, second.signed),
        out_bits=target.bits, out_signed=target.signed, digit_bits=digit_bits, inverts=inverts,
        ram=ram,
    )  # fmt: skip
    zeros = first.zero_point, second.zero_point
    return Example(
        part=part, contents={"requant": requant, "in_zero_points": zeros}, frames=5,
        stimulus=quotient_pairs((first, second), target), **more,
    )  # fmt: skip


def mask(channels, pixels, signed, bits=4, place_bits=3, lanes=1, **more):
    part = parts.CausalMask(
        channels=channels, pixels=pixels, bits=bits, signed=signed, place_bits=place_bits,
        lanes=lanes,
    )  # fmt: skip

    def stimulus(rng):
        """Every place, those behind the last channel as well; the first code is the lowest."""
        lo, hi = ends(bits, signed)
        codes = rng.integers(lo, hi + 1, (8, pixels, channels))
        codes[:, 0, 0] = lo
        return [codes.reshape(-1, lanes), np.arange(8).reshape(-1, 1)]

    return Example(part=part, stimulus=stimulus, frames=8, **more)


FUNCTIONS: Mapping[str, Mapping[str, Example]] = {
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
    "CausalMask": {
        **swept(
            mask, {"one": (1, 1), "pixels": (4, 3), "odd": (5, 2)},
            {"signed": True, "unsigned": False},
        ),
        "verilog": mask(5, 2, signed=True, verilog=VERILATED),
        **swept(
            lambda channels, pixels, lanes, signed: mask(channels, pixels, signed, lanes=lanes),
            {"two": (4, 3, 2), "whole pixels": (4, 2, 4), "four": (8, 1, 4), "odd": (6, 2, 3)},
            {"signed": True, "unsigned": False}, prefix="wide ",
        ),
        "wide verilog": mask(6, 3, signed=False, lanes=2, verilog=VERILATED),
    },
    "Quotient": {
        **swept(quotient, QUOTIENTS.keys(), [1, 2, 4]),
        "inverted": quotient("signed", 4, inverts=True),
        "inverted, unequal": quotient("unequal", 4, inverts=True),
    },
}  # fmt: skip

ADDED = ((8, 8), (8, 4), (4, 4), (16, 8), (16, 16), (6, 6))
MULTIPLIED = (
    ((8, 8), (0, 0)), ((8, 8), (3, -7)), ((8, 4), (3, 1)), ((4, 4), (1, -2)), ((6, 8), (5, 5)),
    ((16, 8), (100, 3)),
)  # fmt: skip
SIGNED = (True, True)


def chosen_sums(device):
    del device
    rng = np.random.default_rng(0)
    for bits in ADDED:
        for sign in (1.0, -1.0):
            factors = (float(rng.uniform(0.3, 0.9)), sign * float(rng.uniform(0.3, 0.9)))
            requant = choose_add_requant(
                factors, QType(bits[0], True, 1.0), operand_bits=max(bits) + 1
            )
            yield total_of(requant, (3, -2), bits, SIGNED, bits[0], True)


def quotients(device):
    formats = QType(8, True, 0.05, 3), QType(8, True, 0.04, -20)
    target = QType(8, True, 0.07, -20)
    requant = tflite_quotient((0.05, 0.04), target)
    for digit_bits in (1, 2, 4):
        yield quotient_of(formats, target, requant, digit_bits, ram=device.ram)


MEASURED: Measured = {
    "sum": chosen_sums,
    # Without zero points nothing is subtracted, which a plan does not know.
    "product": lambda _: [product(zeros, bits, typical=any(zeros)) for bits, zeros in MULTIPLIED],
    "extremum": lambda _: [
        extremum(bits, greatest, greatest) for bits in (4, 8, 16) for greatest in (False, True)
    ],
    "quotient": quotients,
    "causal mask": lambda _: [
        mask(channels, 4, True, bits, (channels - 1).bit_length())
        for channels in (8, 16, 50, 256)
        for bits in (4, 8)
    ],
}  # fmt: skip
