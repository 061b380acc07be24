# amaranth: UnusedElaboratable=no
"""Rows by matrices of a second stream: values, the half that is written meanwhile, cycles."""

from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
import pytest
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.parts.base.timing import Kernel
from nnef_hw.sim.pysim import run_streams

X, W = {"bits": 8, "signed": True}, {"bits": 8, "signed": True}


@dataclass(frozen=True)
class Shape:
    """A product and the array it runs on."""

    inner: int
    columns: int
    matrices: int = 1
    repeats: int = 1
    turns: int = 2
    rows: int = 1
    lanes: int = 1
    group_rows: int = 1
    kept_passes: int = 1
    out_lanes: int = 1
    x: dict = field(default_factory=lambda: X)
    w: dict = field(default_factory=lambda: W)
    zero_points: tuple[int, int] = (0, 0)
    gain: int = 0
    weight_delay: int = 0
    style: str = "block"

    def part(self, ram, order):
        product = Contraction(
            sets=1, matrices=self.matrices, repeats=self.repeats, turns=self.turns,
            inner=self.inner, columns=self.columns, order=order,
        )  # fmt: skip
        ranges = [
            (lo - zero, lo + (1 << form["bits"]) - 1 - zero)
            for form, zero in zip((self.x, self.w), self.zero_points, strict=True)
            for lo in [-(1 << form["bits"] - 1) if form["signed"] else 0]
        ]
        w_bits = signed_bits(*ranges[1])
        x_signed = ranges[0][0] < 0
        x_bits = signed_bits(*ranges[0]) - (not x_signed)
        corners = [self.inner * a * b for a in ranges[0] for b in ranges[1]]
        memory = parts.WeightMemory(
            ram=ram, product=product, rows=self.rows, group_rows=self.group_rows,
            lanes=self.lanes, bits=w_bits, style=self.style,
        )  # fmt: skip
        array = parts.SystolicArray(
            channels=self.columns, lanes=self.lanes, kept_passes=self.kept_passes, x_bits=x_bits,
            x_signed=x_signed, w_bits=w_bits, acc_bits=signed_bits(min(corners), max(corners)),
            in_dsp=0, weights=memory, weight_delay=self.weight_delay, out_lanes=self.out_lanes,
            words=memory.words, rows=self.rows, group_rows=self.group_rows,
        )  # fmt: skip
        writer = parts.WeightWriter(
            memory=memory, in_bits=self.w["bits"], in_signed=self.w["signed"],
            zero_point=self.zero_points[1],
        )  # fmt: skip
        return parts.ContractionArray(
            array=array, writer=writer, in_bits=self.x["bits"], in_signed=self.x["signed"],
            zero_point=self.zero_points[0], gain=self.gain,
        )  # fmt: skip


UNSIGNED = {"bits": 8, "signed": False}
SHAPES = {
    "one": Shape(1, 1),
    "dot": Shape(5, 1, turns=3, lanes=2),
    "passes": Shape(3, 7, rows=2, lanes=2, group_rows=2, turns=3),
    "heads": Shape(5, 6, matrices=3, rows=4, lanes=3, group_rows=2, kept_passes=2),
    "rows_of_a_head": Shape(4, 3, matrices=2, repeats=3, turns=1, rows=3, lanes=4, group_rows=2),
    "groups_of_one": Shape(4, 5, matrices=2, turns=2, rows=5, lanes=1),
    "wide": Shape(6, 8, matrices=2, rows=4, lanes=6, group_rows=2, out_lanes=2, kept_passes=2),
    "zero_points": Shape(5, 4, rows=2, lanes=2, group_rows=2, zero_points=(-20, 7), gain=2),
    "unsigned": Shape(
        7, 5, rows=3, lanes=2, group_rows=3, x=UNSIGNED, w=UNSIGNED, zero_points=(0, 3)
    ),
    "lut_ram": Shape(
        6, 5, matrices=3, rows=3, lanes=2, group_rows=2, kept_passes=2, style="distributed"
    ),
    "late": Shape(4, 6, matrices=2, rows=3, lanes=2, group_rows=1, weight_delay=1),
    "narrow": Shape(
        3, 4, rows=2, lanes=1, group_rows=1, x={"bits": 4, "signed": False},
        w={"bits": 2, "signed": True},
    ),
}  # fmt: skip


def items_of(shape, part, x, w):
    """Return the payloads of both streams, of codes [set, row, K] and [set, codes in order]."""
    array, words = part.array, []
    padded = np.zeros((*x.shape[:2], array.words * shape.lanes), int)
    padded[..., : shape.inner] = x
    for rows in padded:
        for number, row in enumerate(rows):
            for n in range(array.passes):
                ends = number == len(rows) - 1 and n == array.passes - 1
                beats = row.reshape(array.words, shape.lanes).tolist()
                words += [
                    {"data": beat, "last": t == array.words - 1, "end": ends}
                    for t, beat in enumerate(beats)
                ]
    codes = [{"data": [code], "last": 0} for code in w.reshape(-1).tolist()]
    return words, codes


def golden(shape, order, x, w):
    """Return sums [set, row, N], straight from what a contraction is."""
    extents = {"m": shape.matrices, "k": shape.inner, "n": shape.columns}
    stream = w.reshape(len(w), *(extents[axis] for axis in order))
    matrices = stream.transpose(0, *(1 + order.index(axis) for axis in "mkn"))
    result = np.zeros((*x.shape[:2], shape.columns), np.int64)
    for number in range(len(x)):
        for row in range(x.shape[1]):
            which = row // shape.repeats % shape.matrices
            differences = matrices[number, which] - shape.zero_points[1]
            result[number, row] = (x[number, row] - shape.zero_points[0]) @ differences
    return result << shape.gain


def codes_of(rng, form, shape):
    low = -(1 << form["bits"] - 1) if form["signed"] else 0
    found = rng.integers(low, low + (1 << form["bits"]), shape)
    found.flat[0], found.flat[-1] = low, low + (1 << form["bits"]) - 1
    return found


def predicted(part, words, codes, sums):
    """Return when words and codes are taken and sums leave if nothing pauses."""
    kernel = Kernel()
    rows, matrices = kernel.stream(), kernel.stream()
    kernel.start(_source(rows, words, part.array.words))
    kernel.start(_source(matrices, codes, 1))
    times = []
    kernel.start(_sink(part.start(kernel, rows, matrices), times))
    kernel.run()
    assert len(times) == sums
    return list(rows.times), list(matrices.times), times


def _source(target, count, words):
    time = -1
    for _ in range(count // words):
        time = yield target, time + words
    while True:
        yield kernel_end, 0


kernel_end = Kernel().stream()


def _sink(origin, times):
    while True:
        time = yield origin
        origin.accept(time)
        times.append(time)


@pytest.mark.parametrize(
    ("name", "order"), covering([*SHAPES], ["".join(axes) for axes in permutations("mkn")])
)
def test_sums_and_cycles(name, order, stall, rng, ram):
    shape, frames = SHAPES[name], 6
    part = shape.part(ram, order)
    product = part.writer.memory.product
    x = codes_of(rng, shape.x, (frames, product.rows_of_set, shape.inner))
    w = codes_of(rng, shape.w, (frames, shape.matrices * shape.inner * shape.columns))
    words, codes = items_of(shape, part, x, w)
    sums = golden(shape, order, x, w).reshape(-1, shape.out_lanes)
    run = run_streams(
        part.build(), {"i": words, "w": codes}, {"o": len(sums)}, rng=rng, stall=stall
    )
    assert [list(item.acc) for item in run.items["o"]] == sums.tolist()
    ends = [item.last for item in run.items["o"]]
    assert [n + 1 for n, end in enumerate(ends) if end] == [
        len(sums) // frames * (n + 1) for n in range(frames)
    ]
    taken, written, left = predicted(part, len(words), len(codes), len(sums))
    assert run.in_cycles["i"][part.array.words - 1 :: part.array.words] == taken
    assert run.in_cycles["w"] == written
    assert run.out_cycles["o"] == left
