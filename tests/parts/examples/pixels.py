"""Examples of functions of the channels of a pixel: extrema, softmax, normalization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from examples import shared
from examples.example import RAM, Example, Marks, Measured, Proof, ends, swept
from nnef_hw import parts
from nnef_hw.arithmetic.integer_functions import (
    IntegerNormalizeRequant,
    integer_exponentials,
    shift_exponentials,
)
from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import IntArray, signed_bits
from nnef_hw.arithmetic.softmax import exp_table
from nnef_hw.arithmetic.tflite.numerics import tflite_exp_table
from nnef_hw.parts.functions.normalize import SPACINGS

__all__ = ["MEASURED", "PIXELS"]

Stimulus = Callable[[np.random.Generator], list[IntArray]]

CODES = {"u2": (2, False), "u4": (4, False), "s8": (8, True), "u8": (8, False), "s16": (16, True)}
VERILATED = ("verilator",)
BOTH = ("verilator", "cocotb")


def argmax(bits, signed, channels, greatest=True, lanes=1, **more):
    def stimulus(rng):
        """All equal, every code the only or a double extremum, then noise with many ties."""
        lo, hi = ends(bits, signed)
        single = np.where(np.eye(channels, dtype=bool), hi, lo)
        double = np.where(np.arange(channels) >= np.arange(channels)[:, None], lo + 1, lo)
        equal = np.array([[lo] * channels, [hi] * channels])
        noise = rng.integers(lo, hi + 1, (9, channels))
        pixels = [
            equal,
            single,
            hi + lo - single,
            double,
            hi + lo - double,
            noise,
            noise.clip(-1, 1),
        ]
        codes = np.concatenate(pixels)
        return [codes[: len(codes) // 4 * 4].reshape(-1, lanes)]

    part = parts.Argmax(channels=channels, bits=bits, signed=signed, greatest=greatest, lanes=lanes)
    return Example(part=part, stimulus=stimulus, frames=4, **more)


def proved_argmax(channels, *, greatest):
    part = parts.Argmax(channels=channels, bits=2, signed=False, greatest=greatest)
    proof = Proof(
        marks=[Marks(base=1, mark=2 if greatest else 0)], needs=[channels - 1, 2 * channels - 1]
    )
    return Example(part=part, sizes=[2 * channels], proof=proof)


def pixels_of(
    channels: int, bits: int, signed: bool, *, count: int = 8, lanes: int = 1
) -> Stimulus:
    """All equal, one far above, one step apart, then pixels of few codes and of many."""

    def stimulus(rng):
        lo, hi = ends(bits, signed)
        codes = rng.integers(lo, hi + 1, (count, channels))
        codes[3::3] = lo + (codes[3::3] - lo) // 8
        codes[0] = codes[1] = lo
        codes[1, -1] = codes[2] = hi
        codes[2, 0] = hi - 1
        codes[4, : channels // 2], codes[4, channels // 2 :] = lo, hi
        return [codes.reshape(-1, lanes)]

    return stimulus


def softmax(
    channels, stages, bits=8, signed=True, *, scale=0.05, out=(8, 8), rounds_down=False,
    stimulus=None, ram=RAM, lanes=1, **more,
):  # fmt: skip
    fields = {"channels": channels, "bits": bits, "signed": signed, "ram": ram}
    fields |= {"out_bits": out[0], "places": out[1], "rounds_down": rounds_down}
    if stages:
        part = parts.PipelinedSoftmax(stages=stages, lanes=lanes, **fields)
    else:
        part = parts.Softmax(**fields)
    contents = {"table": exp_table(scale, 1 << bits).tolist(), **more.pop("contents", {})}
    return Example(
        part=part, contents=contents, frames=4,
        stimulus=stimulus or pixels_of(channels, bits, signed, lanes=lanes), **more,
    )  # fmt: skip


def behind_masks(channels: int, bits: int, signed: bool, lanes: int = 1) -> Stimulus:
    """Some of the lowest code among others, none but that, and one beside it."""

    def stimulus(rng):
        codes = rng.integers(1, 1 << bits, (8, channels))
        codes[rng.random(codes.shape) < 0.4] = 0
        codes[2] = codes[3] = 0
        codes[3, 0] = 1
        return [(codes + ends(bits, signed)[0]).reshape(-1, lanes)]

    return stimulus


def masked(channels, stages, signed, lanes=1, **more):
    stimulus = behind_masks(channels, 8, signed, lanes)
    return softmax(
        channels, stages, 8, signed, scale=1e-3, stimulus=stimulus, contents={"is_masked": True},
        lanes=lanes, **more,
    )  # fmt: skip


def rounded_down(channels, stages, places, table, lanes=1):
    """Those of integer networks: at most ``2**places - 1`` in all."""
    return softmax(
        channels, stages, out=(places, places), contents={"table": table.tolist()},
        rounds_down=True, lanes=lanes,
    )  # fmt: skip


def wide_softmax(channels, lanes, stages, bits=8, signed=True, **more):
    """Several pixels, so that both banks are full."""
    stimulus = pixels_of(channels, bits, signed, count=16, lanes=lanes)
    return softmax(channels, stages, bits, signed, stimulus=stimulus, lanes=lanes, **more)


def tflite_softmax(channels, bits, signed, scale, ram=RAM, **more):
    part = parts.TfliteSoftmax(channels=channels, bits=bits, signed=signed, ram=ram)
    contents = {"table": tflite_exp_table(scale, 1 << bits).tolist()}
    stimulus = pixels_of(channels, bits, signed, count=6)
    return Example(part=part, contents=contents, frames=3, stimulus=stimulus, **more)


STAGES = (1, 2, 3, 5, 9)
"""Of the division; 0 is the softmax of one pixel at a time."""
FORMATS = {"u4": (4, False), "s8": (8, True), "u8": (8, False)}
FINER = [(8, 11), (8, 16), (12, 14), (16, 16)]
SCALES = [1e-4, 0.05, 3.0]


def softmaxes(stages):
    """Formats and scales, numbers of channels, finer probabilities, masks."""
    return {
        **swept(
            lambda bits, signed, scale, n: softmax(4, n, bits, signed, scale=scale),
            FORMATS, SCALES, stages,
        ),
        **swept(softmax, [1, 2, 10], stages, prefix="channels "),
        **swept(
            lambda bits, places, n: softmax(9, n, out=(bits, places), scale=0.002),
            {str(out): out for out in FINER}, [stages[0], stages[-1]], prefix="finer ",
        ),
        **swept(partial(masked, 6), stages[:2], [False, True], prefix="masked "),
        **swept(
            rounded_down, [1, 5, 16], [stages[0], stages[-1]], [4, 8],
            {"parabola": integer_exponentials(20, 1, 40, 700), "shifts": shift_exponentials()},
            prefix="rounded down ",
        ),
    }  # fmt: skip


WIDE = {
    f"{lanes} of {channels}": (channels, lanes)
    for channels, lanes in ((2, 2), (6, 2), (10, 5), (12, 4), (8, 8), (40, 8), (32, 16), (9, 3))
}
"""Channels, codes of a beat: whole pixels, trees of one stage and of two."""

SOFTMAXES = {
    "Softmax": {
        **softmaxes([0]),
        "verilog": softmax(5, 0, verilog=BOTH),
        "proof": Example(
            part=parts.Softmax(channels=2, bits=2, signed=False, ram=RAM),
            contents={"table": exp_table(0.7, 4).tolist()}, sizes=[2],
            proof=Proof(marks=[Marks(mark=2)], needs=[1, 1], frame_bits=3, patience=22),
        ),
    },
    "PipelinedSoftmax": {
        **softmaxes(STAGES),
        **swept(
            lambda channels, n: softmax(
                channels, n, stimulus=pixels_of(channels, 8, True, count=40), verilog=VERILATED
            ),
            [1, 3, 6], [1, 2, 9], prefix="many pixels ",
        ),
        "verilog": softmax(5, 2, verilog=BOTH),
        **swept(wide_softmax, WIDE, STAGES, FORMATS, prefix="wide "),
        **swept(
            lambda channels, lanes, n, signed: masked(channels, n, signed, lanes),
            WIDE, STAGES[:2], [False, True], prefix="wide masked ",
        ),
        **swept(
            lambda channels, lanes, n, places: rounded_down(
                channels, n, places, shift_exponentials(), lanes
            ),
            WIDE, [1, 9], [4, 8], prefix="wide rounded down ",
        ),
        "wide verilog": wide_softmax(12, 4, 3, verilog=BOTH),
        "wide finer": wide_softmax(8, 2, 4, out=(12, 14), verilog=VERILATED),
        **shared.SOFTMAX,
    },
    "TfliteSoftmax": {
        **swept(lambda *fmt: tflite_softmax(4, *fmt), dict([*FORMATS.items()][:2]), SCALES),
        **{f"{n} channels": tflite_softmax(n, 8, False, 0.05) for n in (1, 2, 3, 10)},
        "verilog": tflite_softmax(5, 8, True, 0.05, verilog=BOTH),
        "many channels": tflite_softmax(130, 8, True, 0.05, verilog=VERILATED, nightly=True),
    },
}  # fmt: skip


def normalize(
    channels, spacing, *, bits=8, signed=False, out=(8, True), centered=True, zero_point=0,
    epsilon=5, fraction=10, varies=(True, True), count=8, digits=1, lanes=1, **more,
):  # fmt: skip
    rng = np.random.default_rng([channels, spacing, bits])
    lo, hi = ends(*out)
    requant = NormalizeRequant(
        channels=channels, centered=centered, epsilon=epsilon, shift=out[0] + 13,
        fraction=fraction, zero_point=int(rng.integers(lo, hi + 1)), lo=lo, hi=hi - 1,
    )  # fmt: skip
    scales, offsets = (channels if each else 1 for each in varies)
    mult = rng.integers(-65535, 65536, scales)
    mult[0] = -65535
    offset = rng.integers(-1 << 15, 1 << 15, offsets)
    half = 512 + (requant.zero_point << 10)
    return normalize_by(
        requant, mult, offset, spacing, bits, signed, out, zero_point, RAM, count,
        signed_bits(int(offset.min()) + half, int(offset.max()) + half), digits, lanes, **more,
    )  # fmt: skip


def normalize_by(
    requant, mult, offset, spacing, bits, signed, out, zero_point, ram, count, offset_bits,
    digits=1, lanes=1, **more,
):  # fmt: skip
    channels = requant.channels
    part = parts.Normalize(
        channels=channels, bits=bits, signed=signed, out_bits=out[0], out_signed=out[1],
        centered=requant.centered, epsilon_bits=requant.epsilon.bit_length(),
        fraction=requant.fraction, offset_bits=offset_bits, scales=mult.size, offsets=offset.size,
        spacing=spacing, digits=digits, lanes=lanes, ram=ram,
    )  # fmt: skip
    contents = {"mult": mult.tolist(), "offset": offset.tolist(), "zero_point": zero_point}
    return Example(
        part=part, contents={"requant": requant, **contents}, frames=4,
        stimulus=pixels_of(channels, bits, signed, count=count, lanes=lanes), **more,
    )  # fmt: skip


def integer_normalize(
    channels, *, bits=8, signed=True, out=(8, True), centered=True, shift=14, varies=(True, True),
    count=8, **more,
):  # fmt: skip
    """Scales and offsets of both signs, as far as results go."""
    rng = np.random.default_rng([channels, bits, shift])
    lo, hi = ends(*out)
    requant = IntegerNormalizeRequant(
        channels=channels, centered=centered, shift=shift, lo=lo, hi=hi
    )
    reach = 1 << shift + out[0] - 2
    scale, offset = (rng.integers(-reach, reach, channels if each else 1) for each in varies)
    widths = (signed_bits(int(x.min()), int(x.max())) for x in (scale, offset))
    return integer_normalize_by(requant, scale, offset, *widths, bits, signed, out, count, **more)


def integer_normalize_by(
    requant, scale, offset, scale_bits, offset_bits, bits=8, signed=True, out=(8, True), count=8,
    ram=RAM, **more,
):  # fmt: skip
    channels = requant.channels
    part = parts.IntegerNormalize(
        channels=channels, bits=bits, signed=signed, out_bits=out[0], out_signed=out[1],
        centered=requant.centered, scale_bits=scale_bits, offset_bits=offset_bits,
        scales=scale.size, offsets=offset.size, ram=ram,
    )  # fmt: skip
    contents = {"requant": requant, "scale": scale.tolist(), "offset": offset.tolist()}
    return Example(
        part=part, contents=contents, frames=4,
        stimulus=pixels_of(channels, bits, signed, count=count), **more,
    )  # fmt: skip


MEANS = {"centered": True, "plain": False}
INTEGER_NORMALIZATIONS = {
    **swept(
        lambda bits, signed, centered: integer_normalize(
            4, bits=bits, signed=signed, centered=centered
        ),
        {"u4": (4, False), "s4": (4, True), "s8": (8, True), "u8": (8, False), "s12": (12, True)},
        MEANS,
    ),
    **swept(
        lambda channels, centered: integer_normalize(channels, centered=centered),
        [1, 2, 3, 16, 70], MEANS, prefix="channels ",
    ),
    **swept(
        lambda bits, signed, shift: integer_normalize(6, out=(bits, signed), shift=shift),
        {"s8": (8, True), "u8": (8, False), "s4": (4, True), "s12": (12, True)}, [0, 1, 7, 16],
        prefix="results ",
    ),
    **{
        f"constants {varies}": integer_normalize(5, varies=varies)
        for varies in [(False, False), (False, True), (True, False)]
    },
    **swept(
        lambda channels, centered: integer_normalize(
            channels, centered=centered, count=12, verilog=VERILATED
        ),
        [1, 3, 40, 90], MEANS, prefix="many pixels ", large=[90],
    ),
}  # fmt: skip


ZERO_POINTS = {"u4": (4, False, 0), "s8": (8, True, 0), "u8": (8, False, 100),
               "s8 low": (8, True, -128), "s12": (12, True, 77)}  # fmt: skip
NORMALIZATIONS = {
    **swept(
        lambda bits, signed, zero, centered, spacing: normalize(
            4, spacing, bits=bits, signed=signed, zero_point=zero, centered=centered
        ),
        ZERO_POINTS, {"centered": True, "plain": False}, SPACINGS,
    ),
    **swept(normalize, [1, 2, 3, 16, 70], SPACINGS, prefix="channels ", large=[70]),
    **swept(
        lambda bits, signed, fraction, epsilon: normalize(
            6, 2, out=(bits, signed), fraction=fraction, epsilon=epsilon
        ),
        {"u8": (8, False), "s4": (4, True), "s16": (16, True)}, [0, 7, 16],
        [0, 1, 1 << 20, 1 << 40], prefix="results ",
    ),
    **{
        f"constants {varies}": normalize(5, 1, varies=varies)
        for varies in [(False, False), (False, True), (True, False)]
    },
    **swept(
        lambda channels, spacing: normalize(
            channels, spacing, signed=True, count=12, verilog=VERILATED
        ),
        [1, 3, 40, 90], SPACINGS, prefix="many pixels ", large=[90],
    ),
    **swept(
        lambda channels, lanes, digits, centered: normalize(
            channels, 1, lanes=lanes, digits=digits, centered=centered, signed=True, count=12,
            zero_point=-3,
        ),
        [16, 32], [2, 4, 16], [1, 2], {"centered": True, "plain": False}, prefix="beats ",
    ),
    **swept(
        lambda spacing, bits, digits: normalize(24, spacing, bits=bits, lanes=3, digits=digits),
        [1, 2, 4], [4, 8, 12], [1, 2], prefix="beats of 3 ",
    ),
    **{
        f"beats, constants {varies}": normalize(6, 2, varies=varies, lanes=2, digits=2,
                                                verilog=VERILATED)
        for varies in [(False, False), (False, True), (True, False)]
    },
}  # fmt: skip
PIXELS: Mapping[str, Mapping[str, Example]] = {
    **SOFTMAXES, "Normalize": NORMALIZATIONS, "IntegerNormalize": INTEGER_NORMALIZATIONS,
    "Argmax": {
        **swept(argmax, CODES, [16, 1, 2, 7], {"most": True, "least": False}),
        "largest": proved_argmax(3, greatest=True), "smallest": proved_argmax(2, greatest=False),
        "one channel": proved_argmax(1, greatest=True),
        **{
            f"{lanes} of {channels} codes": argmax(8, True, channels, most, lanes, verilog=BOTH)
            for lanes, channels, most in [(2, 6, True), (3, 3, False), (5, 10, False)]
        },
        **{f"{lanes} codes": argmax(4, False, lanes, lanes=lanes) for lanes in (2, 4, 7, 16, 17)},
    },
}  # fmt: skip


NORMALIZED = [
    (8, 8, 16, 1, True), (16, 8, 8, 16, True), (64, 8, 8, 64, True), (64, 8, 4, 1, True),
    (64, 8, 1, 64, False), (128, 8, 2, 128, True), (192, 8, 16, 1, False), (32, 16, 4, 32, True),
]  # fmt: skip
"""Channels, bits, cycles per code, number of scales, whether there is a mean."""
INTEGER_NORMALIZED = [
    (8, 8, 24, 1, True), (16, 8, 20, 16, True), (64, 8, 22, 64, False), (64, 8, 22, 1, False),
    (64, 4, 18, 64, True), (128, 8, 22, 128, True), (192, 8, 24, 1, True), (32, 12, 28, 32, True),
]  # fmt: skip
"""Channels, bits, bits of scales and offsets, number of scales, whether there is a mean."""


def exponentials(entries=256):
    return {"table": np.random.default_rng(1).integers(0, 1 << 16, entries).tolist()}


def softmaxes_of(stages):
    """Return those of few and many channels on a device, and one of finer probabilities."""

    def measured(device):
        fields = {"contents": exponentials(), "ram": device.ram}
        for channels in (2, 10, 100):
            for n in stages if channels == 10 else stages[::2]:
                # Of two channels an ECP5's subtractors become LUTs without carry chains.
                yield softmax(channels, n, typical=n == 0 or channels > 2, **fields)
        for n in (0,) if stages == (0,) else (1, 4):
            yield softmax(64, n, out=(12, 15) if n else (8, 13), **fields)

    return measured


def large_normalizations(device):
    rng = np.random.default_rng(1)
    for channels, bits, spacing, count, centered in NORMALIZED:
        requant = NormalizeRequant(
            channels=channels, centered=centered, epsilon=channels, shift=21, fraction=10,
            zero_point=-3, lo=-128, hi=127,
        )  # fmt: skip
        mult = rng.integers(1 << 14, 1 << 16, count) * rng.choice([-1, 1], count)
        offset = rng.integers(-1 << 16, 1 << 16, count)
        yield normalize_by(
            requant, mult, offset, spacing, bits, True, (8, True), 5, device.ram, 8, 18
        )


def large_integer_normalizations(device):
    rng = np.random.default_rng(1)
    for channels, bits, wide, count, centered in INTEGER_NORMALIZED:
        requant = IntegerNormalizeRequant(
            channels=channels, centered=centered, shift=14, lo=-128, hi=127
        )
        scale, offset = (rng.integers(-1 << wide - 1, 1 << wide - 1, count) for _ in range(2))
        yield integer_normalize_by(requant, scale, offset, wide, wide, bits, ram=device.ram)


MEASURED: Measured = {
    "argmax": lambda _: [
        argmax(bits, True, channels) for channels in (2, 9, 10, 100) for bits in (4, 8)
    ],
    "softmax": softmaxes_of((0,)), "pipelined softmax": softmaxes_of(STAGES),
    "tflite softmax": lambda device: [
        tflite_softmax(channels, 8, True, 0.1, device.ram) for channels in (2, 10, 100)
    ],
    "normalize": large_normalizations, "integer normalize": large_integer_normalizations,
}  # fmt: skip
