"""TensorFlow Lite's rounding on the engine: narrower factors, the same codes."""

from dataclasses import replace

import numpy as np
import pytest
from engine_graphs import grown, planned
from tflite_quantized_cases import quantized_cases

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tflite.numerics import TfliteAverage, tflite_add_requant, tflite_requant
from nnef_hw.engine.layers.scale import Scale, channel_sums
from nnef_hw.engine.layers.sum_factors import sum_factors
from nnef_hw.frontend import load
from nnef_hw.parts.engine.requantizer import SecondRounding
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.testing import GraphBuilder

QUANTIZED = quantized_cases()
S8 = QType(8, signed=True, scale=0.1, zero_point=-7)


def engine_codes(scale, sums, bits, channel):
    """What the requantizer makes of sums: a bit is left to round with, the rest falls off."""
    mult, shifts = scale.factors(bits)
    mult, shift = (x[channel if len(x) > 1 else 0] for x in (mult, shifts))
    halves = sums * mult >> (bits - 1)
    if scale.twice:
        halves = (halves + np.where((halves < 0) & (shift > 0), -1, 1)) & ~1
    codes = ((halves >> shift) + 2 * scale.zero_point + 1) >> 1
    return codes.clip(scale.low, scale.high)


@pytest.mark.parametrize("rounds_once", [False, True])
@pytest.mark.parametrize("top", [0, -20])
def test_factors_are_narrower(rng, rounds_once, top):
    """Of every sum within reach: around all thresholds and at the ends; with channels that idle."""
    factors = 2.0 ** rng.uniform(top - 12, top + 1, 12)
    requant = tflite_requant(factors, S8, lo=-60, rounds_once=rounds_once)
    reach = [(int(low), int(high)) for low, high in rng.integers(-30_000, 30_000, (12, 2))]
    reach = [(min(pair), max(pair)) for pair in reach]
    scale = Scale.of(requant, -128, reach)
    assert scale.fraction_bits < 31
    for channel, (low, high) in enumerate(reach):
        sums = np.arange(low, high + 1)
        one = replace(requant, mult=requant.mult[channel:][:1], shift=requant.shift[channel:][:1])
        found = engine_codes(scale, sums, scale.fraction_bits, channel)
        assert (found - 128 == one.apply(sums[:, None])[:, 0]).all(), channel


def test_large_shifts_have_smaller_ones():
    """Where no sum within reach comes near to a threshold."""
    requant = tflite_requant([2.0**-29], S8)
    assert requant.right_shifts == (28,)
    scale = Scale.of(requant, 0, [(-4000, 4000)])
    assert scale.shifts == (15,)
    assert engine_codes(scale, np.arange(-4000, 4001), 8, 0).tolist() == [-7] * 8001


@pytest.mark.parametrize("taps", [4, 9, 125])
def test_averages(taps):
    """They round once, by factors as large as those of others."""
    average = TfliteAverage(taps, -3, -128, 127)
    scale = Scale.of(average.as_requant(), 0).weighted(6)
    for total in range(-128 * taps, 127 * taps + 1, max(1, taps // 7)):
        expected = average.apply([total + 3 * taps])[0]
        assert engine_codes(scale, np.array(64 * total), 27, 0) == expected


def test_ranges_of_sums(rng):
    filters, biases = rng.integers(-5, 6, (3, 2, 4)), rng.integers(-9, 10, 3)
    codes = rng.integers(0, 2, (2000, 8)) * 11
    sums = codes @ filters.reshape(3, 8).T + biases
    ranges = channel_sums(filters, biases, 11)
    assert ranges == list(zip(sums.min(axis=0), sums.max(axis=0), strict=True))


@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.05, 0.1), (0.0373, 0.0117), (0.002, 0.3)])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_sums_of_all_pairs(scales, signs):
    """Halves too, which go away from 0: of equal scales half of the sums are some."""
    requant = tflite_add_requant(scales, replace(S8, scale=0.2), signs=signs, lo=-100)
    a, b = np.meshgrid(np.arange(-130, 126), np.arange(-3, 253), indexing="ij")
    mult, shift, offset = sum_factors(requant, (-130, 125), (-3, 252))
    found = (a * mult[0] + b * mult[1] + offset) >> shift
    assert (found.clip(-100, 127) == requant.apply(a, b)).all()
    assert max(map(abs, mult)) < 1 << 26


def network(rng, size):
    builder = GraphBuilder()
    x = builder.input("x", (1, 3, 5, 4))
    conv = [rng.normal(size=(6, n, size, size)) * scale for n, scale in ((3, 1), (6, 0.1))]
    bias = rng.normal(size=(1, 6))
    first = builder.op("relu", builder.conv(x, conv[0], bias, padding=size // 2))
    second = builder.conv(first, conv[1], bias, padding=size // 2)
    total = builder.op("relu", builder.op("add", first, second))
    third = builder.conv(total, rng.normal(size=(6, 1, 3, 3)), bias, padding=1, groups=6)
    mean = builder.op("mean_reduce", third, axes=[2, 3])
    flat = builder.reshape(mean, [1, 6])
    scores = builder.op("linear", flat, rng.normal(size=(4, 6)), rng.normal(size=(1, 4)))
    builder.op("softmax", scores, axes=[1])
    return builder.build().replaced(rounding="tflite")


@pytest.mark.parametrize(
    ("size", "ring_words", "cycles"), [(1, 0, 1), (3, 32, 1), (1, 0, 8)],
    ids=["memory", "stream", "slow"],
)  # fmt: skip
def test_a_network(fix, run_engine, rng, size, ring_words, cycles):
    """Convolutions round twice, linear layers once; sums, means and averages in their ways."""
    graph = fix(network(rng, size), rounding="tflite")
    plan = planned(graph, ring_words=ring_words, result_cycles=cycles)
    engine = plan.design.engine
    assert engine.has(SecondRounding)
    assert "rounds_once" in engine.fields
    run_engine(plan, graph)


@pytest.mark.parametrize("rounds_once", [False, True])
def test_both_roundings(fix, run_engine, rng, rounds_once):
    """Of sums above and below 0, with shifts so small that halves are frequent, and with none."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 1, 16, 12))
    builder.conv(x, np.linspace(-1, 1, 8).reshape(8, 1, 1, 1), name="y")
    graph = fix(builder.build(), rounding="tflite")
    [node] = graph.nodes
    requant = node.attrs["requant"]
    shift = tuple(range(-7, 1))
    mult = tuple(rng.integers(1 << 30, 1 << 31, 8).tolist())
    requant = replace(requant, mult=mult, shift=shift, rounds_once=rounds_once)
    weights = graph.tensor(node.inputs[1])
    codes = [(-1) ** n << -exponent for n, exponent in enumerate(shift)]
    weights = replace(weights, data=np.array(codes).reshape(8, 1, 1, 1).clip(-127, 127))
    graph = graph.replaced(
        nodes=(node.with_attrs(requant=requant),),
        tensors={**graph.tensors, weights.name: weights},
    )
    for cycles in (1, 8):
        plan = planned(graph, result_cycles=cycles)
        assert plan.design.engine.find(SecondRounding).more_shift_bits == 3
        run_engine(plan, graph, frames=1)


@pytest.mark.parametrize("name", ["network", "AVERAGE_POOL_2D-1-int8", "AVERAGE_POOL_2D-0-uint8"])
def test_models_of_codes(run_engine, tmp_path, name):
    QUANTIZED[name].model.save(tmp_path / "net.tflite")
    graph = quantize(simplify(load(tmp_path / "net.tflite")), None)
    run_engine(planned(graph), graph)


@pytest.mark.parametrize(
    "seed", [501, *(pytest.param(n, marks=pytest.mark.nightly) for n in (503, *range(510, 540)))]
)
def test_random_networks(fix, run_engine, seed):
    rng = np.random.default_rng(seed)
    graph = fix(grown(rng, 4), calibration="minmax", rounding="tflite")
    run_engine(planned(graph, *[(4, 4), (8, 4), (8, 8)][int(rng.integers(3))]), graph)
