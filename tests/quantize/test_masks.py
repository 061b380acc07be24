"""Numbers that no result can show, such as those of attention masks, take no codes from others."""

from functools import cache

import numpy as np
import pytest
from step_graphs import step
from sweeps import covering

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend import load, save
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, observe, quantize
from nnef_hw.quantize.calibration.scheme import CALIBRATIONS
from nnef_hw.quantize.judgement.suspicion import suspect_samples
from nnef_hw.reference import (
    dequantize_outputs,
    quantize_inputs,
    run_fixed,
    run_float,
    trace_fixed,
)
from nnef_hw.reference.visible import SOFTMAX_DEPTH, Interval, are_masked, visible_intervals
from nnef_hw.report.model.conversion import to_json
from nnef_hw.report.quantization import describe_quantization
from nnef_hw.run.simulate import layer_quality
from nnef_hw.samples.samples import Samples
from nnef_hw.testing import GraphBuilder

LEAST = float(np.finfo(np.float32).min)
USUAL = (-16.0, -32.0)
MASKS = (-100.0, -1e4, LEAST, -np.inf)
TOKENS, SIZE = 5, 6


def sqnr(graph, inputs, scheme=None):
    """Return the signal-to-noise ratio of the first output in dB; every 2nd sample calibrates."""
    fixed = quantize(graph, {name: x[::2] for name, x in inputs.items()}, scheme or Scheme())
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, inputs)))
    name = graph.outputs[0]
    real = run_float(graph, inputs)[name]
    assert np.isfinite(real).all()
    return 10 * np.log10((real**2).sum() / ((real - found[name]) ** 2).sum())


def added(builder, scores, blocked, value):
    return builder.op("add", scores, np.where(blocked, value, 0.0)[None])


def selected(builder, scores, blocked, value):
    return builder.op("select", blocked[None], value, scores)


def computed(builder, scores, blocked, value):
    """Multiply 1 - m of an input m, as BERT does."""
    builder.input("m", (1, TOKENS, TOKENS))
    return builder.op("add", scores, builder.op("mul", builder.op("sub", 1.0, "m"), value))


def compared(builder, scores, blocked, value):
    """Select where an input is small."""
    builder.input("m", (1, TOKENS, TOKENS))
    return builder.op("select", builder.op("lt", "m", 0.5), value, scores)


def given(builder, scores, blocked, value):
    """Add an input that holds the mask itself."""
    return builder.op("add", scores, builder.input("m", (1, TOKENS, TOKENS)))


KINDS = (added, selected, computed, compared, given)


@cache
def head(mask, value, seed):
    """Return an attention head with random weights, and samples."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    builder.input("x", (1, TOKENS, SIZE))
    weights = rng.standard_normal((4, SIZE, SIZE)) / SIZE**0.5 * rng.uniform(0.8, 1.5)
    q, k, v = (builder.op("matmul", "x", w[None], transposeA=False, transposeB=False)
               for w in weights[:3])  # fmt: skip
    scores = builder.op("matmul", q, k, transposeA=False, transposeB=True)
    blocked = np.triu(np.ones((TOKENS, TOKENS), bool), 1)
    masked = mask(builder, builder.op("mul", scores, SIZE**-0.5), blocked, value)
    shares = builder.op("softmax", masked, axes=[2])
    y = builder.op("matmul", shares, v, transposeA=False, transposeB=False)
    y = builder.op("matmul", y, weights[3][None], transposeA=False, transposeB=False)
    samples = {"x": rng.standard_normal((40, TOKENS, SIZE))}
    keys = rng.integers(1, TOKENS + 1, 40)
    seen = np.arange(TOKENS) < keys[:, None]
    seen = ~blocked & seen[:, None]
    seen[:, np.arange(TOKENS), np.arange(TOKENS)] = True
    if mask is given:
        samples["m"] = np.where(seen, 0.0, value)
    elif mask in (computed, compared):
        samples["m"] = seen.astype(float)
    return simplify(builder.build(y)), samples


@pytest.mark.parametrize(
    ("calibration", "seed", "kind"),
    covering([*((calibration, 0) for calibration in CALIBRATIONS), ("mse", 1)], KINDS),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_mask_of_any_size_is_as_good_as_the_best(seed, kind, calibration):
    scheme = Scheme(calibration=calibration)
    best = max(sqnr(*head(kind, value, seed), scheme) for value in USUAL)
    for value in MASKS:
        if np.isinf(value) and kind in (computed, given):
            continue  # 0 times infinity, infinite samples
        assert sqnr(*head(kind, value, seed), scheme) > best - 1.0, value


@pytest.mark.parametrize(
    "scheme",
    [Scheme(power_of_two=True), Scheme(per_channel=False), Scheme(symmetric=True),
     Scheme(mult_bits=8), Scheme(weight_rounding="nearest", correct_bias=False)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_other_schemes(kind, scheme):
    best = max(sqnr(*head(kind, value, 0), scheme) for value in USUAL)
    assert sqnr(*head(kind, -1e9, 0), scheme) > best - 1.5


def places(value):
    """Return a softmax of masked places, of which the last is masked whole."""
    builder = GraphBuilder()
    mask = np.triu(np.full((4, 4), value), 1)
    mask[3] = value
    scores = builder.op("add", builder.input("x", (1, 4, 4)), mask[None], name="s")
    return simplify(builder.build(builder.op("softmax", scores, axes=[2])))


@pytest.mark.parametrize("value", [-1e4, -1e9, -np.inf])
def test_a_place_that_is_masked_whole_has_equal_weights_and_harms_no_other(value, rng):
    graph, x = places(value), {"x": rng.standard_normal((50, 4, 4))}
    fixed = quantize(graph, x)
    [name] = graph.outputs
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))[name]
    real = run_float(graph, x)[name]
    assert np.isnan(real[:, 3]).all() == np.isinf(value)
    assert np.abs(found - real)[:, :3].max() < 0.02
    assert (found[:, 3] == 0.25).all()


@pytest.mark.parametrize("value", [-1e4, -1e9, -np.inf])
def test_places_that_are_masked_whole_are_told(value, rng):
    graph, x = places(value), {"x": rng.standard_normal((30, 4, 4))}
    [found] = [warning for warning in suspect_samples(graph, x) if warning.kind == "masked"]
    assert "hides all 4 numbers of 30 of 120 places of softmax" in found.reason
    assert "gives each of them 1/4" in found.reason
    assert found.figures == {"places": 120, "masked": 30}


def test_places_of_which_something_is_seen_are_not_told(rng):
    builder = GraphBuilder()
    mask = np.triu(np.full((4, 4), -1e9), 1)
    scores = builder.op("add", builder.input("x", (1, 4, 4)), mask[None], name="s")
    graph = simplify(builder.build(builder.op("softmax", scores, axes=[2])))
    found = suspect_samples(graph, {"x": 50 * rng.standard_normal((30, 4, 4))})
    assert not [warning for warning in found if warning.kind == "masked"]


def test_large_scores_are_no_masked_ones(rng):
    builder = GraphBuilder()
    graph = simplify(builder.build(builder.op("softmax", builder.input("x", (1, 4, 4)), axes=[2])))
    x = {"x": 1e5 * rng.standard_normal((30, 4, 4))}
    assert are_masked(x["x"].max(axis=2)).any()
    assert not [warning for warning in suspect_samples(graph, x) if warning.kind == "masked"]


def test_hidden_numbers_have_the_lowest_code_and_no_weight(rng):
    graph, x = places(-1e9), {"x": rng.standard_normal((50, 4, 4))}
    fixed = quantize(graph, x)
    codes = trace_fixed(fixed, quantize_inputs(fixed, x))
    softmax = next(node for node in fixed.nodes if node.op == "softmax")
    hidden = np.triu(np.ones((4, 4), bool), 1)
    hidden[3] = True
    scores = codes[softmax.inputs[0]].reshape(50, 4, 4).swapaxes(1, 2)
    assert (scores[:, hidden] == 0).all()
    assert (codes[softmax.name].reshape(50, 4, 4).swapaxes(1, 2)[:, np.triu(hidden, 1)] == 0).all()


def masked_image(builder, value, *, sign=1.0):
    inside = np.zeros((1, 3, 8, 8))
    inside[:, 1, ::2, 1::3] = value * sign
    return builder.op("add", builder.op("sin", builder.input("x", (1, 3, 8, 8))), inside)


READERS = {
    "relu": lambda b, y: b.op("relu", y),
    "relu6": lambda b, y: b.op("clamp", y, 0.0, 6.0),
    "sigmoid": lambda b, y: b.op("sigmoid", y),
    "tanh": lambda b, y: b.op("tanh", y),
    "hard_sigmoid": lambda b, y: b.op("hard_sigmoid", y),
    "exp": lambda b, y: b.op("exp", y),
    "max": lambda b, y: b.op("max", y, b.op("cos", "x")),
    "max of a number": lambda b, y: b.op("max", y, -0.5),
    "max_pool": lambda b, y: b.pool("max_pool", y, 3, stride=1),
    "max_reduce": lambda b, y: b.op("max_reduce", y, axes=[2, 3]),
    "softmax": lambda b, y: b.op("softmax", y, axes=[1]),
    "softmax of a product": lambda b, y: b.op("softmax", b.op("mul", y, 0.5), axes=[1]),
    "moves": lambda b, y: b.op("softmax", b.op("transpose", y, axes=[0, 2, 3, 1]), axes=[3]),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("calibration", ["minmax", "mse"])
@pytest.mark.parametrize("value", [-1e9, -np.inf])
def test_readers_that_hide_small_numbers(value, calibration, reader, rng):
    x, results = {"x": rng.standard_normal((40, 3, 8, 8))}, []
    for number in (-32.0, value):
        builder = GraphBuilder()
        graph = simplify(builder.build(READERS[reader](builder, masked_image(builder, number))))
        results.append(sqnr(graph, x, Scheme(calibration=calibration)))
    assert results[1] > results[0] - 1.0


READERS_OF_LARGE = {
    "min": lambda b, y: b.op("min", y, b.op("cos", "x")),
    "argmin": lambda b, y: b.op("argmin_reduce", y, axes=[1]),
}


@pytest.mark.parametrize("op", READERS_OF_LARGE)
@pytest.mark.parametrize("value", [1e4, 1e9, np.inf])
def test_readers_that_hide_large_numbers(value, op, rng):
    x = {"x": rng.standard_normal((40, 3, 8, 8))}
    builder = GraphBuilder()
    y = masked_image(builder, value)
    y = READERS_OF_LARGE[op](builder, y)
    assert sqnr(simplify(builder.build(y)), x) > 19


@pytest.mark.parametrize("value", [-1e4, -1e9, -np.inf])
def test_padding_that_a_pool_hides(value, rng):
    builder = GraphBuilder()
    y = builder.op("sin", builder.input("x", (1, 3, 8, 8)))
    around = [(0, 0), (0, 0), (1, 1), (1, 1)]
    y = builder.op("pad", y, padding=around, border="constant", value=value)
    y = builder.op("add", builder.pool("max_pool", y, 3, stride=1), 0.25)
    assert sqnr(simplify(builder.build(y)), {"x": rng.standard_normal((40, 3, 8, 8))}) > 35


def test_padding_that_a_sum_shows_keeps_its_codes(rng):
    builder = GraphBuilder()
    y = builder.op("pad", builder.input("x", (1, 3, 8, 8)), border="constant", value=-50.0,
                   padding=[(0, 0), (0, 0), (1, 1), (1, 1)])  # fmt: skip
    graph = simplify(builder.build(builder.op("neg", y)))
    x = {"x": rng.standard_normal((40, 3, 8, 8))}
    fixed = quantize(graph, x)
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))
    np.testing.assert_allclose(found[graph.outputs[0]][:, :, 0], 50.0, atol=0.3)


def test_what_an_output_shows_keeps_its_range(rng):
    builder = GraphBuilder()
    y = added(builder, builder.input("x", (1, 4, 4)), np.eye(4, dtype=bool), -1e4)
    graph = simplify(builder.build(y, builder.op("softmax", y, axes=[2])))
    found = observe(graph, {"x": rng.standard_normal((20, 4, 4))})
    producer = graph.producer(graph.outputs[0])
    assert producer is not None
    observation = found[producer.inputs[0] if producer.op == "reshape" else producer.name]
    assert observation.lo < -9990
    assert not observation.cut_below


def test_ordinary_ranges_are_left_to_the_calibration_method(rng):
    builder = GraphBuilder()
    graph = simplify(builder.build(builder.op("softmax", builder.input("x", (1, 8)), axes=[1])))
    x = {"x": 4 * rng.standard_normal((50, 8))}
    found = observe(graph, x)["x"]
    assert (found.lo, found.hi) == (x["x"].min(), x["x"].max())
    assert (found.cut_below, found.cut_above) == (False, False)


def test_infinity_that_is_seen_on_samples_alone_is_refused_then(rng):
    builder = GraphBuilder()
    y = builder.op("add", builder.input("x", (1, 4)), np.full((1, 4), -np.inf))
    graph = simplify(builder.build(builder.op("softmax", y, axes=[1])))
    with pytest.raises(UnsupportedError, match="holds -inf"):
        quantize(graph, {"x": rng.standard_normal((20, 4))})


def test_masks_of_quantized_networks_saturate_in_the_authors_formats(rng):
    builder = GraphBuilder()
    builder.input("x", (1, 4))
    scores = builder.op("add", "x", np.array([[0.0, -np.inf, 0.0, 0.0]]), name="s")
    graph = builder.build(builder.op("softmax", scores, axes=[1], name="y"))
    steps = {"zero_point": 128, "scale": 0.05, "bits": 8, "signed": False, "symmetric": False}
    tensors = dict(graph.tensors)
    for name in ("x", "s"):
        quant = Quantization("zero_point_linear_quantize", steps)
        tensors[name] = tensors[name].__class__(
            name, tensors[name].shape, location=tensors[name].location, quant=quant
        )
    fixed = quantize(simplify(graph.replaced(tensors=tensors)), None)
    x = {"x": rng.uniform(-2, 2, (20, 4))}
    found = run_fixed(fixed, quantize_inputs(fixed, x))["y"]
    assert (found[:, 1] == 0).all()
    assert (found[:, [0, 2, 3]] > 0).all()


def test_what_each_operator_hands_back():
    """The interval of a clamp goes back through a product, a difference, and a sum."""
    builder = GraphBuilder()
    a, b = (builder.op("sin", builder.input(name, (1, 2)), name=f"s{name}") for name in "ab")
    total = builder.op("add", a, b, name="sum")
    low = builder.op("sub", total, builder.op("cos", "a", name="ca"), name="low")
    graph = builder.build(builder.op("sigmoid", low, name="y"))
    graph = simplify(graph)
    values = {
        "a": [0.0, 1.0],
        "b": [0.0, 1.0],
        "sa": [-1.0, 2.0],
        "sb": [-3.0, 4.0],
        "sum": [-4.0, 6.0],
        "ca": [-0.5, 0.25],
        "low": [-4.5, 6.0],
        "y": [0.0, 1.0],
    }
    seen = visible_intervals(graph, {name: np.array([x]) for name, x in values.items()})
    top = seen["low"].hi
    assert 10 < top < 14
    assert seen["low"] == Interval(-top, top)
    assert seen["sum"] == Interval(-top - 0.5, top + 0.25)
    assert seen["sa"] == Interval(seen["sum"].lo - 4, seen["sum"].hi + 3)
    assert seen["ca"] == Interval(-4 - top, 6 + top)
    assert seen["a"] == Interval(-np.inf, np.inf)


def test_depth_of_a_softmax_is_where_its_table_ends():
    assert np.floor(65535 * np.exp(-SOFTMAX_DEPTH - 1e-9) + 0.5) == 0
    assert np.floor(65535 * np.exp(-SOFTMAX_DEPTH + 1e-3) + 0.5) == 1


@pytest.mark.parametrize("value", [-1e9, LEAST, -np.inf])
def test_reports_leave_out_what_no_result_shows(value):
    graph, inputs = head(added, value, 0)
    fixed, samples = quantize(graph, inputs), Samples(inputs)
    found = describe_quantization(graph, fixed, samples)
    rows = [row for row in found.layers if row.sqnr_db is not None]
    assert min(row.sqnr_db for row in rows) > 15
    assert max(row.clipped for row in rows) < 0.05
    to_json(found)
    compared = layer_quality(graph, fixed, samples)
    assert min(row.sqnr_db for row in compared) > 15


def test_inputs_that_hold_a_mask_are_no_reason_to_warn(caplog):
    graph, inputs = head(given, -1e9, 0)
    fixed = quantize(graph, inputs)
    quantize_inputs(fixed, inputs)
    assert not caplog.records
    quantize_inputs(fixed, {**inputs, "x": 100 * inputs["x"]})
    assert "are outside of" in caplog.text


def test_what_a_scale_hands_back():
    builder = GraphBuilder()
    x = builder.op("cos", builder.input("x", (1, 3, 2, 2)), name="c")
    y = builder.conv(x, np.array([4.0, -2.0, 0.0]).reshape(3, 1, 1, 1), np.ones(3), groups=3)
    graph = simplify(builder.build(builder.op("relu", y)))
    assert len(graph.nodes) == 2
    ones = {node.name: np.ones((1, 3, 2, 2)) for node in graph.nodes}
    assert visible_intervals(graph, ones)["c"] == Interval(-np.inf, np.inf)
    graph = simplify(builder.build(builder.op("clamp", y, -7.0, 9.0)))
    ones = {node.name: np.ones((1, 3, 2, 2)) for node in graph.nodes}
    assert visible_intervals(graph, ones)["c"] == Interval(-4.0, 4.0)


@pytest.mark.parametrize("value", [-1e4, -1e9, -np.inf])
def test_hidden_places_have_no_weight_whatever_the_others_are(value, rng, tmp_path):
    """Scores of other samples may all be far below those that formats were chosen for."""
    tokens = 12
    builder = GraphBuilder()
    visible = np.tril(np.ones((1, tokens, tokens), bool))
    scores = builder.op(
        "add", builder.input("x", (1, tokens, tokens)), np.where(visible, 0.0, value)
    )
    graph = simplify(builder.build(builder.op("softmax", scores, name="p", axes=[2])))
    fixed = quantize(graph, {"x": rng.normal(3, 1, (32, tokens, tokens))})
    [node] = [node for node in fixed.nodes if node.op == "softmax"]
    assert node.attrs["masked"] is True
    save(fixed, tmp_path / "fixed.nnef.tgz")
    fixed = load(tmp_path / "fixed.nnef.tgz")
    for mean in (3, -5, -9):
        x = {"x": rng.normal(mean, 1, (20, tokens, tokens))}
        found = run_fixed(fixed, quantize_inputs(fixed, x, warns=False))
        weights = found[fixed.outputs[0]]
        assert not weights[:, ~visible[0]].any()
        assert (weights[:, 0, 0] == 255).all()


def test_without_a_mask_no_code_is_hidden(rng):
    builder = GraphBuilder()
    x = builder.op("linear", builder.input("x", (1, 6)), rng.normal(size=(5, 6)), np.zeros((1, 5)))
    graph = simplify(builder.build(builder.op("softmax", x, name="p", axes=[1])))
    fixed = quantize(graph, {"x": rng.normal(size=(32, 6))})
    assert all("masked" not in node.attrs for node in fixed.nodes)


def test_steps_are_no_places_of_a_mask(rng):
    """A sequence need not come to the last places of a cache."""
    graph = simplify(step(rng, tokens=5))
    positions = np.tile(np.arange(5), (4, 1))[..., None]
    x = {"token": rng.integers(0, 5, positions.shape), "position": positions}
    assert not [warning for warning in suspect_samples(graph, x) if warning.kind == "masked"]
