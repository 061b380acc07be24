# amaranth: UnusedElaboratable=no
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.sim.pysim import run_streams


@dataclass(frozen=True)
class Shape:
    """An array and the formats it works on."""

    channels: int
    positions: int
    lanes: int = 1
    taps: int = 1
    kept_passes: int = 2
    x_bits: int = 8
    x_signed: bool = False
    w_bits: int = 8
    acc_bits: int = 22
    lut_ram: bool = False
    weight_style: str = "block"
    weight_delay: int = 0
    out_lanes: int = 1

    def build(self, weights, ram, *, in_dsp=0):
        fields = dict(vars(self))
        store = parts.WeightRom(ram=ram, style=fields.pop("weight_style"))
        part = parts.DepthwiseArray(**fields, in_dsp=in_dsp, weights=store)
        return part.build(weights=weights)

    def random(self, rng, pixels):
        """Weights [channel, position] and codes [pixel, channel, position], extremes first."""
        top = (1 << self.w_bits - 1) - 1
        lo = -(1 << self.x_bits - 1) if self.x_signed else 0
        hi = lo + (1 << self.x_bits) - 1
        weights = rng.integers(-top - 1, top + 1, (self.channels, self.positions))
        codes = rng.integers(lo, hi + 1, (pixels, self.channels, self.positions))
        weights[0], weights[-1] = top, -top - 1
        codes[0], codes[1] = hi, lo
        return weights, codes

    @property
    def blocks(self):
        return -(-self.channels // self.lanes)

    @property
    def words(self):
        return -(-self.positions // self.taps)

    def items(self, codes, frame, filling):
        """Words of all passes; ``filling`` stands in absent channels and positions."""
        pixels = len(codes)
        padded = np.full(
            (pixels, self.blocks * self.lanes, self.words * self.taps), filling, codes.dtype
        )
        padded[:, : self.channels, : self.positions] = codes
        order = padded.reshape(pixels, self.blocks, self.lanes, self.words, self.taps)
        return [
            {
                "data": order[pixel, block, :, word].T.reshape(-1).tolist(),
                "last": word == self.words - 1,
                "end": word == self.words - 1 and block == self.blocks - 1
                and pixel % frame == frame - 1,
            }
            for pixel, block, word in np.ndindex(pixels, self.blocks, self.words)
        ]  # fmt: skip


SHAPES = {
    "one_lane": Shape(5, 9),
    "one_channel": Shape(1, 4),
    "several_lanes": Shape(6, 9, lanes=3, x_signed=True),
    "absent_lanes": Shape(7, 4, lanes=3),
    "one_block": Shape(4, 9, lanes=4, w_bits=5),
    "parallel_taps": Shape(4, 9, lanes=2, taps=3),
    "absent_taps": Shape(5, 9, lanes=2, taps=4, x_signed=True),
    "whole_window": Shape(6, 9, taps=9, kept_passes=12),
    "whole_window_of_all_lanes": Shape(3, 4, lanes=3, taps=4, kept_passes=9),
    "point": Shape(5, 1, lanes=2),
    "two_blocks": Shape(8, 3, lanes=4, kept_passes=4),
    "one_kept_pass": Shape(6, 3, lanes=2, kept_passes=1),
    "narrow": Shape(4, 4, lanes=2, x_bits=2, w_bits=2, acc_bits=7),
    "wide_codes": Shape(3, 5, lanes=3, x_bits=16, acc_bits=30),
    "wrapping_sums": Shape(4, 20, lanes=2, acc_bits=12),
    "weights_in_logic": Shape(6, 5, lanes=2, weight_style="logic"),
    "weights_over_several_rams": Shape(12, 11, lanes=3),
    "delayed_weights": Shape(5, 4, lanes=2, taps=2, weight_delay=1),
    "pairs_of_sums": Shape(10, 9, lanes=4, x_signed=True, out_lanes=2),
    "sums_of_a_pass_at_once": Shape(6, 9, lanes=3, taps=9, kept_passes=9, out_lanes=3),
    "twice_delayed_weights": Shape(6, 9, taps=9, kept_passes=12, weight_delay=2),
}


def golden(shape, weights, codes):
    """Sums [pixel, channel]."""
    half = 1 << shape.acc_bits - 1
    return ((codes * weights).sum(axis=2) + half) % (2 * half) - half


def check(shape, ram, rng, *, pixels=4, frame=2, stall=0.0):
    """Drive frames of ``frame`` pixels and compare sums and framing."""
    weights, codes = shape.random(rng, pixels)
    array = shape.build(weights, ram)
    sums = golden(shape, weights, codes).reshape(-1).tolist()
    items = shape.items(codes, frame, filling=codes.max())
    count = len(sums) // shape.out_lanes
    run = run_streams(array, {"i": items}, {"o": count}, rng=rng, stall=stall)
    assert [acc for item in run.items["o"] for acc in item.acc] == sums
    ends = [n for n, item in enumerate(run.items["o"]) if item.last]
    per_frame = frame * shape.channels // shape.out_lanes
    assert ends == list(range(per_frame - 1, count, per_frame))
    return array.part, run


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_sums_of_products(shape, stall, ram, rng):
    check(shape, ram, rng, stall=stall)


@pytest.mark.parametrize(
    ("name", "kept_passes"), covering(["absent_lanes", "two_blocks", "point"], [1, 2, 3, 4])
)
def test_any_number_of_kept_passes(name, kept_passes, stall, ram, rng):
    check(replace(SHAPES[name], kept_passes=kept_passes), ram, rng, pixels=9, stall=stall)


def test_wrapping_sums_do_wrap(rng):
    shape = SHAPES["wrapping_sums"]
    weights, codes = shape.random(rng, 4)
    assert np.abs((codes * weights).sum(axis=2)).max() >= 1 << shape.acc_bits - 1


def predict(shape, latency, pixels):
    """Cycles in which words are taken and sums are given while nothing else stalls."""
    in_cycles, out_cycles, ends = [], [], []
    cycle = -1
    for index in range(pixels * shape.blocks):
        for word in range(shape.words):
            cycle += 1
            if word == shape.words - 1 and index >= shape.kept_passes:
                cycle = max(cycle, ends[index - shape.kept_passes] + 1)
            in_cycles.append(cycle)
        present = min(shape.lanes, shape.channels - index % shape.blocks * shape.lanes)
        present //= shape.out_lanes
        start = max(cycle + latency, ends[-1] + 1 if ends else 0)
        out_cycles += range(start, start + present)
        ends.append(out_cycles[-1])
    return in_cycles, out_cycles


@pytest.mark.parametrize(("name", "kept_passes"), covering(list(SHAPES), [1, 2, 3, 12]))
def test_cycles(name, kept_passes, ram, rng):
    shape = SHAPES[name]
    shape = replace(shape, kept_passes=kept_passes)
    array, run = check(shape, ram, rng, pixels=6)
    in_cycles, out_cycles = predict(shape, array.latency, 6)
    assert run.in_cycles["i"] == in_cycles
    assert run.out_cycles["o"] == out_cycles


@pytest.mark.parametrize(
    "name",
    ["several_lanes", "one_block", "whole_window", "twice_delayed_weights"],
)  # fmt: skip
def test_takes_a_word_in_every_cycle(name, ram, rng):
    _, run = check(SHAPES[name], ram, rng, pixels=20)
    assert (np.diff(run.in_cycles["i"]) == 1).all()


@pytest.mark.parametrize(("kept_passes", "period"), [(10, 1), (9, 10 / 9), (5, 2), (1, 9)])
def test_the_period_of_a_pass_follows_from_the_kept_ones(kept_passes, period, ram, rng):
    shape = replace(SHAPES["whole_window"], kept_passes=kept_passes)
    array, run = check(shape, ram, rng, pixels=30)
    assert array.latency == (9 if kept_passes > 1 else 8)
    steady = run.in_cycles["i"][-1] - run.in_cycles["i"][-1 - 9 * kept_passes]
    assert steady == 9 * kept_passes * period


class Chain(wiring.Component):
    """Components one after the other."""

    def __init__(self, *parts):
        self.parts = parts
        self.head, self.tail = parts[0], parts[-1]
        super().__init__({
            "i": In(self.head.i.signature.flip()),
            "o": Out(self.tail.o.signature),
        })

    def elaborate(self, platform):
        m = Module()
        for n, part in enumerate(self.parts):
            m.submodules[f"part{n}"] = part
        wiring.connect(m, wiring.flipped(self.i), self.head.i)
        for before, after in zip(self.parts, self.parts[1:], strict=False):
            wiring.connect(m, before.o, after.i)
        wiring.connect(m, self.tail.o, wiring.flipped(self.o))
        return m


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "in_dsp", "engine"),
    [
        pytest.param("absent_taps", 1, "cocotb", marks=pytest.mark.nightly),
        ("absent_lanes", 0, "verilator"),
        ("whole_window", True, "verilator"),
        ("delayed_weights", 8, "verilator"),
    ],
)
def test_verilog(name, in_dsp, engine, drive, ram, rng):
    shape = SHAPES[name]
    weights, codes = shape.random(rng, 6)
    array = Chain(shape.build(weights, ram, in_dsp=in_dsp))
    sums = golden(shape, weights, codes).reshape(-1)
    items = shape.items(codes, 2, filling=codes.max())
    run = drive(array, items, len(sums), stall=0.5, engine=engine)
    assert [item.acc[0] for item in run.items] == sums.tolist()


def image_beats(images, lanes):
    """Beats of images [frame, row, column, channel]."""
    frame = images[0].size // lanes
    return [
        {"data": beat, "last": n % frame == frame - 1}
        for n, beat in enumerate(images.reshape(-1, lanes).tolist())
    ]


def convolve(images, weights, window, zero_point):
    """Depthwise convolution, straight from its definition: sums [frame * row * column, channel]."""
    padded = np.pad(
        images, ((0, 0), *window.padding, (0, 0)), constant_values=zero_point
    )  # fmt: skip
    height, width = window.kernel
    rows, columns = window.stride
    return np.array([
        [(image[y : y + height, x : x + width, c].reshape(-1) * weights[c]).sum()
         for c in range(len(weights))]
        for image in padded
        for y in range(0, window.out_height * rows, rows)
        for x in range(0, window.out_width * columns, columns)
    ])  # fmt: skip


@pytest.mark.parametrize("parallel", [False, True], ids=["serial", "parallel"])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1)])
def test_convolves_what_line_buffers_give(parallel, stride, stall, drive, ram, rng):
    channels, lanes = (2, 2) if parallel else (6, 2)
    blocks = channels // lanes
    window = Window(4, 3, blocks, (3, 3), stride, padding=((1, 1), (1, 1)), passes=blocks,
                    by_channel=not parallel)  # fmt: skip
    shape = Shape(channels, 9, lanes=lanes, taps=9 if parallel else 1)
    weights, _ = shape.random(rng, 2)
    images = rng.integers(0, 256, (2, 4, 3, channels))
    options = {"window": window, "bits": 8, "signed": False, "lanes": lanes, "pad_code": 9}
    buffer = (
        parts.ParallelLineBuffer(**options, ram=ram)
        if parallel
        else parts.LineBuffer(**options, depth=64, ram=ram)
    )
    sums = convolve(images, weights, window, 9).reshape(-1)
    chain = Chain(buffer.build(), shape.build(weights, ram))
    run = drive(chain, image_beats(images, lanes), len(sums), stall=stall)
    assert [item.acc[0] for item in run.items] == sums.tolist()
    assert [n for n, item in enumerate(run.items) if item.last] == [
        len(sums) // 2 - 1, len(sums) - 1,
    ]  # fmt: skip


def test_full_use_in_front_of_a_requantizer(drive, ram, rng):
    shape = Shape(6, 9, lanes=3, kept_passes=2)
    weights, codes = shape.random(rng, 20)
    requantizer = parts.Requantizer(
        channels=1, acc_bits=22, factor_bits=3, digit_bits=1, stages=1, bits=8, signed=False
    )
    requant = Requant((5,), 16, 0, 0, 255, mult_bits=3)
    assert shape.lanes * requantizer.interval == shape.words
    chain = Chain(shape.build(weights, ram), requantizer.build(requant=requant, bias=[0]))
    items = shape.items(codes, 2, filling=0)
    run = drive(chain, items, codes.shape[0] * shape.channels)
    assert (np.diff(run.in_cycles) == 1).all()


@pytest.mark.parametrize(("lut_ram", "style"), [(True, "distributed"), (False, "logic")])
def test_sums_wait_in_lut_ram_if_there_is_any(lut_ram, style, ram):
    array = Shape(6, 9, taps=9, kept_passes=12, lut_ram=lut_ram).build(np.ones((6, 9), int), ram)
    text = to_verilog(array)
    assert re.findall(r'ram_style = "(\w+)" \*\)\n *reg \[.*\] waiting ', text) == [style]


def test_refuses_weights_of_another_shape(ram):
    message = "DepthwiseArray needs weights of shape (6, 9), not (9, 6)"
    with pytest.raises(ValueError, match=re.escape(message)):
        Shape(6, 9, lanes=3).build(np.zeros((9, 6), int), ram)
