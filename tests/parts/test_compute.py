"""What parts compute one behind the other is what their layer is; and examples show the ends."""

from dataclasses import replace

import numpy as np
import pytest
from examples.example import RAM

from examples import EXAMPLES
from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window


def convolve(images, weights, window, zero_point):
    """Depthwise convolution, straight from its definition: sums [pixels, channels]."""
    padded = np.pad(images, ((0, 0), *window.padding, (0, 0)), constant_values=zero_point)
    (height, width), (rows, columns) = window.kernel, window.stride
    return np.array([
        [(image[y : y + height, x : x + width, c].reshape(-1) * weights[c]).sum()
         for c in range(len(weights))]
        for image in padded
        for y in range(0, window.out_height * rows, rows)
        for x in range(0, window.out_width * columns, columns)
    ])  # fmt: skip


@pytest.mark.parametrize("kind", ["serial", "parallel", "banked"])
@pytest.mark.parametrize("stride", [(1, 1), (2, 1)])
def test_an_array_convolves_what_a_line_buffer_gives(kind, stride, rng):
    lanes, channels = 2, 2 if kind == "parallel" else 6
    blocks = channels // lanes
    window = Window(
        4, 3, blocks, (3, 3), stride, padding=((1, 1), (1, 1)), passes=blocks,
        by_channel=kind != "parallel",
    )  # fmt: skip
    fields = {"window": window, "bits": 8, "signed": False, "lanes": lanes, "pad_code": 9}
    buffer = {
        "serial": lambda: parts.LineBuffer(**fields, depth=64, ram=RAM),
        "parallel": lambda: parts.ParallelLineBuffer(**fields, ram=RAM),
        "banked": lambda: parts.BankedLineBuffer(**fields, lines=4, ram=RAM),
    }[kind]()
    array = parts.DepthwiseArray(
        channels=channels, positions=9, lanes=lanes, taps=1 if kind == "serial" else 9,
        kept_passes=2, x_bits=8, x_signed=False, w_bits=8, acc_bits=22, in_dsp=0, lut_ram=False,
        weights=parts.WeightRom(ram=RAM), weight_delay=0,
    )  # fmt: skip
    images, weights = (
        rng.integers(0, 256, (2, 4, 3, channels)),
        rng.integers(-128, 128, (channels, 9)),
    )
    sums = array.compute(buffer.compute(images.reshape(-1, lanes)), weights=weights)
    assert (sums.reshape(-1, channels) == convolve(images, weights, window, 9)).all()


def test_rows_are_multiplied_by_matrices_of_the_other_operand(rng):
    """Straight from what a contraction is; columns are those of each pass."""
    for example in EXAMPLES["ContractionArray"].values():
        if example.stimulus is None or example.part.is_cached:
            continue
        part, product = example.part, example.part.writer.memory.product
        words, codes = example.stimulus(rng)
        lines = words.reshape(-1, part.array.passes, words.shape[1] * words.shape[2])[:, 0]
        rows = lines[:, : product.inner].reshape(-1, product.rows_of_set, product.inner)
        extents = {"m": product.matrices, "k": product.inner, "n": product.columns}
        stream = codes.reshape(len(rows), *(extents[axis] for axis in product.order))
        matrices = stream.transpose(0, *(1 + product.order.index(axis) for axis in "mkn"))
        sums = [
            (rows[n, r] - part.zero_point)
            @ (matrices[n, r // product.repeats % product.matrices] - part.writer.zero_point)
            for n, r in np.ndindex(rows.shape[:2])
        ]
        expected = (np.array(sums) << part.gain).reshape(-1, part.array.out_lanes)
        assert (part.compute(words, codes) == expected).all()


def test_rows_are_multiplied_by_what_was_written_into_a_cache(rng):
    """A cache is a matrix whose last row at each place is kept, and that is written anew."""
    for example in EXAMPLES["ContractionArray"].values():
        if not example.part.is_cached:
            continue
        part = example.part
        writer = part.writer
        words, codes, places = example.stimulus(rng)
        cache = np.full((example.frames, writer.rows, writer.codes), writer.zero_point)
        for n, place in enumerate(places[:, 0].tolist()):
            cache[n:, min(place, writer.rows - 1)] = codes.reshape(len(places), -1)[n]
        assert (cache[-1] == writer.zero_point).all(axis=1).any() or writer.rows == 1
        memory = replace(writer.memory, halves=2)
        usual = parts.WeightWriter(
            memory=memory, in_bits=writer.in_bits, in_signed=writer.in_signed,
            zero_point=writer.zero_point,
        )  # fmt: skip
        whole = replace(part, array=replace(part.array, weights=memory), writer=usual)
        expected = whole.compute(words, cache.reshape(-1, 1))
        assert (part.compute(words, codes, places) == expected).all()


@pytest.mark.parametrize("array", ["SystolicArray", "DepthwiseArray"])
def test_wrapping_sums_do_wrap(array, rng):
    example = next(x for name, x in EXAMPLES[array].items() if name.startswith("wrapping sums"))
    operands = example.stimulus(rng)
    sums = replace(example.part, acc_bits=40).compute(*operands, **example.contents)
    assert (sums != example.part.compute(*operands, **example.contents)).any()


@pytest.mark.parametrize(
    ("part", "name"),
    [("Requantizer", "typical"), ("Requantizer", "wide sum"), ("Requantizer", "mult beyond shift"),
     ("EltwiseSum", "typical, 1"), ("EltwiseSum", "unsigned, 1"), ("EltwiseSum", "halves, 1"),
     ("EltwiseSum", "relu, 1")],
)  # fmt: skip
def test_stimulus_meets_both_limits(part, name, rng):
    example = EXAMPLES[part][name]
    codes = example.part.compute(*example.stimulus(rng), **example.contents)
    requant = example.contents["requant"]
    assert {requant.lo, requant.hi} < set(codes.reshape(-1).tolist())


@pytest.mark.parametrize("name", ["typical", "halves", "rounded once"])
def test_stimulus_meets_halves_on_both_sides(name, rng):
    example = EXAMPLES["TfliteRequantizer"][name]
    codes = example.part.compute(*example.stimulus(rng), **example.contents)
    zero_point = example.contents["requant"].zero_point
    assert {-1, 0, 1} <= set((codes - zero_point).reshape(-1).tolist())
