# amaranth: UnusedElaboratable=no
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sweeps import covering, few

from nnef_hw import parts


@dataclass(frozen=True)
class Shape:
    """An array and the formats it works on."""

    channels: int
    words: int
    lanes: int = 1
    rows: int = 1
    group_rows: int = 1
    kept_passes: int = 1
    x_bits: int = 8
    x_signed: bool = False
    w_bits: int = 8
    acc_bits: int = 24
    weight_style: str = "block"
    weight_delay: int = 0
    out_lanes: int = 1

    def build(self, weights, ram, *, kind=parts.SystolicArray, in_dsp=0):
        fields = dict(vars(self))
        store = parts.WeightRom(ram=ram, style=fields.pop("weight_style"))
        part = kind(**fields, in_dsp=in_dsp, weights=store)
        return part.build(weights=weights)

    def random(self, rng, pixels):
        """Weights and codes: extremes in the first channels and pixels, then noise."""
        top = (1 << self.w_bits - 1) - 1
        lo = -(1 << self.x_bits - 1) if self.x_signed else 0
        hi = lo + (1 << self.x_bits) - 1
        weights = rng.integers(-top - 1, top + 1, (self.channels, self.words, self.lanes))
        codes = rng.integers(lo, hi + 1, (pixels, self.words, self.lanes))
        weights[0], weights[-1] = top, -top - 1
        if self.w_bits == 1:
            weights = 2 * weights + 1
        codes[0], codes[1] = hi, lo
        return weights, codes


SHAPES = {
    "one_row": Shape(5, 9),
    "one_group": Shape(5, 9, rows=2, group_rows=2),
    "partial_pass_and_group": Shape(8, 6, lanes=2, rows=5, group_rows=2, x_signed=True),
    "groups_of_one": Shape(7, 3, lanes=3, rows=3),
    "linear_at_once": Shape(4, 1, rows=4, group_rows=2),
    "linear_one_weight": Shape(1, 1),
    "wide_tree": Shape(3, 2, lanes=5, rows=3, group_rows=2, w_bits=3),
    "uneven_tree": Shape(2, 3, lanes=7, rows=2, group_rows=1, x_signed=True, w_bits=5),
    "narrow": Shape(4, 4, rows=2, group_rows=2, x_bits=2, w_bits=2, acc_bits=7),
    "wide_codes": Shape(3, 5, lanes=2, rows=3, group_rows=3, x_bits=16, acc_bits=30),
    "binary_codes": Shape(6, 4, rows=3, group_rows=1, x_bits=1, w_bits=4, acc_bits=9),
    "wrapping_sums": Shape(6, 20, rows=3, group_rows=2, acc_bits=12),
    "weights_in_logic": Shape(6, 5, lanes=2, rows=3, group_rows=2, weight_style="logic"),
    "weights_far_away": Shape(8, 6, lanes=2, rows=5, group_rows=2, kept_passes=2, weight_delay=1),
    "weights_very_far_away": Shape(5, 9, rows=2, group_rows=2, weight_delay=3),
    "weights_over_several_rams": Shape(9, 11, rows=2, group_rows=2),
    "pairs_of_sums": Shape(8, 6, lanes=2, rows=6, group_rows=2, x_signed=True, out_lanes=2),
    "sums_of_a_pass_at_once": Shape(6, 4, lanes=2, rows=3, group_rows=3, out_lanes=3),
    "groups_of_several_beats": Shape(
        14, 9, lanes=3, rows=10, group_rows=4, weight_delay=1, out_lanes=2
    ),
}


def check(
    drive, ram, rng, shape, *, kind=parts.SystolicArray, in_dsp=0, pixels=4, frame=2, **options
):
    """Drive frames of ``frame`` pixels and compare sums and framing."""
    weights, codes = shape.random(rng, pixels)
    array = shape.build(weights, ram, kind=kind, in_dsp=in_dsp)
    passes = array.part.passes
    items = [
        {
            "data": word.tolist(),
            "last": n == shape.words - 1,
            "end": n == shape.words - 1 and p == passes - 1 and pixel % frame == frame - 1,
        }
        for pixel, window in enumerate(codes)
        for p in range(passes)
        for n, word in enumerate(window)
    ]
    count = pixels * shape.channels // shape.out_lanes
    run = drive(array, items, count, **options)
    sums = np.einsum("pwl,cwl->pc", codes, weights)
    if kind is parts.FastArray:
        sums += parts.fast_offsets(weights, x_bits=shape.x_bits, x_signed=shape.x_signed)
    sums = sums.reshape(-1)
    half = 1 << shape.acc_bits - 1
    expected = (sums + half) % (2 * half) - half
    assert [acc for item in run.items for acc in item.acc] == expected.tolist()
    beats = frame * shape.channels // shape.out_lanes
    position = np.arange(count) % beats
    assert [item.last for item in run.items] == (position == beats - 1).tolist()
    return array.part, run


FAST_SHAPES = {
    name: shape for name, shape in SHAPES.items() if shape.lanes > 1 and shape.x_bits <= 8
} | {
    "pairs": Shape(7, 5, lanes=2, rows=3, group_rows=3),
    "odd_lanes_signed": Shape(5, 4, lanes=3, rows=5, group_rows=2, x_signed=True, weight_delay=1),
    "signs": Shape(6, 3, lanes=5, rows=3, group_rows=1, w_bits=1, acc_bits=14),
    "wrapping_pairs": Shape(6, 20, lanes=4, rows=3, group_rows=2, acc_bits=10),
    "bits": Shape(4, 3, lanes=6, rows=2, group_rows=2, x_bits=1, w_bits=4, acc_bits=9),
}  # fmt: skip


@pytest.mark.parametrize(("name", "kept_passes"), covering([*FAST_SHAPES], [1, 2]))
def test_fast_inner_products(name, kept_passes, stall, drive, ram, rng):
    """They give the same sums but for offsets, in the same cycles, stalls or none."""
    shape = replace(FAST_SHAPES[name], kept_passes=kept_passes)
    in_dsp = int(rng.integers(2 * shape.rows))
    _, plain = check(drive, ram, rng, shape)
    _, fast = check(drive, ram, rng, shape, kind=parts.FastArray, in_dsp=in_dsp, stall=stall)
    assert (fast.in_cycles == plain.in_cycles).all()
    assert (fast.out_cycles == plain.out_cycles).all()


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "in_dsp", "kept_passes"),
    few(
        [("odd_lanes_signed", 11, 1), ("wrapping_pairs", 7, 2), ("signs", 0, 1)],
        [("odd_lanes_signed", 11, 1), ("wrapping_pairs", 7, 2)],
    ),
)
def test_verilog_of_fast_inner_products(name, in_dsp, kept_passes, drive, ram, rng):
    shape = replace(FAST_SHAPES[name], kept_passes=kept_passes)
    check(
        drive, ram, rng, shape, kind=parts.FastArray, in_dsp=in_dsp, stall=0.5, engine="verilator"
    )


def test_wrapping_sums_do_wrap(rng):
    shape = SHAPES["wrapping_sums"]
    weights, codes = shape.random(rng, 4)
    assert np.abs(np.einsum("pwl,cwl->pc", codes, weights)).max() >= 1 << shape.acc_bits - 1


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "in_dsp", "kept_passes", "engine"),
    [
        ("partial_pass_and_group", 10, 1, "cocotb"),
        ("partial_pass_and_group", 3, 2, "verilator"),
        ("wide_tree", 15, 1, "verilator"),
        ("wide_codes", 0, 2, "verilator"),
    ],
)
def test_verilog(name, in_dsp, kept_passes, engine, drive, ram, rng):
    shape = replace(SHAPES[name], kept_passes=kept_passes)
    check(drive, ram, rng, shape, in_dsp=in_dsp, stall=0.5, engine=engine)


@pytest.mark.parametrize(("name", "kept_passes"), covering([*SHAPES], [1, 2]))
def test_sums_and_cycles(name, kept_passes, stall, drive, ram, rng):
    shape = replace(SHAPES[name], kept_passes=kept_passes)
    array, run = check(drive, ram, rng, shape, stall=stall)
    words, beats = shape.words, shape.rows // shape.out_lanes
    assert run.out_cycles[0] - run.in_cycles[words - 1] == array.latency

    flight = array.latency + beats
    period = max(words, flight) if kept_passes == 1 else max(words, beats, flight / 2)
    if shape.channels % shape.rows == 0 and period == int(period):
        ends = run.in_cycles[words - 1 :: words]
        assert ((ends[4:] - ends[2:-2]) == 2 * period).all()


@pytest.mark.parametrize(("words", "group_rows"), [(12, 12), (12, 5), (9, 1)])
def test_a_sum_per_cycle_without_a_bubble(words, group_rows, drive, ram, rng):
    shape = Shape(24, words, rows=12, group_rows=group_rows, kept_passes=2, weight_delay=1)
    _, run = check(drive, ram, rng, shape)
    assert (np.diff(run.out_cycles[12:]) == 1).all()


def test_refuses_weights_of_another_shape(ram):
    message = "SystolicArray needs weights of shape (4, 1, 1), not (4, 2, 1)"
    with pytest.raises(ValueError, match=re.escape(message)):
        Shape(4, 1).build(np.zeros((4, 2, 1), int), ram)
