"""Networks that may be worth little, and samples that show little, are warned of with numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from doubtful_networks import doubtful_network, judge
from quantized_graphs import with_quants

from nnef_hw.flow.fixed import doubts, judge_model
from nnef_hw.frontend import load
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme
from nnef_hw.quantize.judgement import attempts, diagnosis
from nnef_hw.quantize.judgement.diagnosis import loss_warnings, with_remedies
from nnef_hw.quantize.judgement.measure import Measured, layer_noise
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.reference import run_float
from nnef_hw.report.model.conversion import from_json, to_json
from nnef_hw.samples.samples import Samples, load_samples
from nnef_hw.testing import GraphBuilder

NIGHTLY = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 100)]
ONE_SCALE = Scheme(feature_scales=False)
"""All features of an input share a format."""
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"


def perceptron(rng, inputs=8, bias=0.5, *, first=None):
    builder = GraphBuilder("mlp")
    builder.input("x", (1, inputs))
    weights = rng.normal(size=(6, inputs)) if first is None else first
    hidden = builder.op("relu", builder.op("linear", "x", weights, rng.normal(size=(1, 6)) * bias))
    last = rng.normal(size=(3, 6))
    builder.op("linear", hidden, last, rng.normal(size=(1, 3)) * bias, name="y")
    return builder.build()


def raw_features(rng):
    """A network whose scaler is inside, and features of very different ranges; with classes."""
    scales = 10.0 ** np.linspace(-1, 2, 8)
    network = perceptron(rng, first=rng.normal(size=(6, 8)) / scales)
    x = rng.normal(size=(120, 8)) * scales
    return network, x


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda x: x[:1], "1 sample calibrates: ranges that so few show"),
        (lambda x: x[:5], "5 samples calibrate: ranges"),
        (lambda x: x[[0] * 60], "all 48 samples are the same: they calibrate like one"),
        (lambda x: 0 * x, "all 384 numbers of input 'x' are 0: they show no range"),
        (lambda x: 0 * x + x[:, :1], "every one of 48 samples of input 'x' is one number repeated"),
    ],
    ids=["one", "few", "same", "zeros", "constant"],
)
def test_samples_that_show_little(change, text, rng):
    graph, x = perceptron(rng), rng.normal(size=(60, 8))
    assert doubts(graph, Samples({"x": x})) == []
    found = doubts(graph, Samples({"x": change(x)}))
    assert {warning.kind for warning in found} == {"samples"}
    assert any(text in str(warning).replace("\n    ", " ") for warning in found)
    assert all("give 50 or more representative inputs" in warning.remedy for warning in found)


def test_samples_of_what_the_author_quantized_only_measure(rng):
    graph, x = perceptron(rng), rng.normal(size=(1, 8))
    quant = Quantization(
        "zero_point_linear_quantize",
        {"zero_point": 128, "scale": 0.05, "bits": 8, "signed": False, "symmetric": False},
    )
    given = with_quants(graph, x=quant)
    assert doubts(graph, Samples({"x": x}))
    assert doubts(given, Samples({"x": x})) == []
    kinds = {warning.kind for warning in judge_model(given, Samples({"x": x})).warnings}
    assert kinds <= {"noise"}


def test_steps_of_a_sequence_count(rng):
    builder = GraphBuilder("steps")
    builder.input("x", (1, 3))
    state = builder.state("h", np.zeros((1, 3)))
    builder.update(state, builder.op("add", "x", builder.op("mul", state, 0.5), name="y"))
    graph = builder.build()
    assert doubts(graph, Samples({"x": rng.normal(size=(1, 40, 1, 3))})) == []
    (found,) = doubts(graph, Samples({"x": rng.normal(size=(1, 4, 1, 3))}))
    assert found.reason.startswith("1 sequence calibrates")


@pytest.mark.parametrize(
    ("factor", "text", "remedy"),
    [
        (255, "too large", "divide them by 255"), (500, "too large", "scale them"),
        (1 / 255, "too small", "scale them"),
    ],
)  # fmt: skip
def test_samples_of_another_range(factor, text, remedy, rng):
    graph, x = perceptron(rng), rng.random((60, 8))
    assert doubts(graph, Samples({"x": x})) == []
    (found,) = doubts(graph, Samples({"x": factor * x}))
    assert (found.kind, found.layer) == ("range", "x")
    assert text in found.reason
    assert found.remedy.startswith(remedy)
    assert found.figures["greatest"] == pytest.approx(factor * x[:50].max(), rel=0.1)


def test_layers_without_a_signal(rng):
    builder = GraphBuilder("dead")
    builder.input("x", (1, 4))
    dead = builder.op("relu", builder.op("linear", "x", rng.random((6, 4)), np.full((1, 6), -99.0)))
    builder.op("linear", dead, rng.random((3, 6)), np.zeros((1, 3)), name="y")
    (found,) = doubts(builder.build(), Samples({"x": rng.random((60, 4))}))
    assert found.kind == "dead"
    assert "gives 0 everywhere, for each of 32 samples" in found.reason


def test_a_network_without_a_batch_axis_is_compared_sample_by_sample(rng):
    """Its matrix product becomes a convolution, whose tensor has an axis of a batch."""
    builder = GraphBuilder("rows")
    builder.input("x", (5, 8))
    builder.op("linear", "x", rng.normal(size=(6, 8)), rng.normal(size=(1, 6)), name="y")
    made = judge_model(builder.build(), Samples({"x": rng.normal(size=(60, 5, 8))}))
    assert {warning.kind for warning in made.warnings} <= {"samples"}
    noise = layer_noise(made.canonical, made.fixed, {"x": rng.normal(size=(9, 5, 8))})
    assert noise
    assert min(noise.values()) > 30


TRAINED = (
    "digits_mlp", "jvowels_conv1d_tanh", "mlperf_ad_fcae", "mlperf_ic_resnet8",
    "mlperf_ic_resnet8_wide",
    "mlperf_kws_dscnn", "mlperf_kws_dscnn_savedmodel", "mlperf_sww_ds1d",
    "mlperf_vww_mobilenetv1", "mnist_lenet5",
    "mnist_tiny_cnn", "tflm_hello_world",
)  # fmt: skip
UNSEEN = {
    "tflm_hello_world": {255.0, 1 / 255},
    "mlperf_ad_fcae": {255.0},
    "mlperf_vww_mobilenetv1": {255.0},
}
"""What the first layer does not show."""


@pytest.mark.zoo
@pytest.mark.parametrize("name", TRAINED)
def test_trained_networks_know_their_range(name, zoo):
    graph = load(zoo / name / "model.nnef.tgz")
    samples = load_samples(zoo / name / "samples.npz", graph)
    samples = samples[:: max(1, len(samples) // 60)]
    assert doubts(graph, samples) == []
    for factor in (255.0, 1 / 255):
        scaled = Samples({key: x * factor for key, x in samples.inputs.items()})
        kinds = [warning.kind for warning in doubts(graph, scaled)]
        assert kinds == ([] if factor in UNSEEN.get(name, ()) else ["range"]), factor


def test_a_lost_signal_is_said_with_what_helps(rng):
    graph, x = raw_features(rng)
    made = judge_model(graph, Samples({"x": x}), ONE_SCALE)
    (found,) = made.warnings
    canonical = made.canonical
    assert found.kind == "noise"
    layers = [node.name for node in canonical.nodes]
    assert found.layer == layers[0]
    assert found.figures["layer_db"] < 10
    present, *others = found.attempts
    assert present.option == ""
    best = next(each for each in others if found.remedy == f"give {each.option}")
    assert best.results_db >= present.results_db + 1
    assert {"--calibration minmax", "--activation-bits 16"} < {each.option for each in others}
    lines = str(found).splitlines()
    assert lines[-1] == f"    {found.remedy}"
    assert max(map(len, lines[:2])) <= 100
    assert from_json(to_json(found), QualityWarning) == found


def test_a_good_network_is_not_warned_of():
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    samples = load_samples(EXAMPLE / "samples.npz", graph)
    assert judge_model(graph, samples).warnings == ()


def test_another_calibration_that_is_better_is_named():
    network = doubtful_network(90)
    (found,) = judge_model(network.graph, network.samples).warnings
    assert found.kind == "calibration"
    present, *others = found.attempts
    assert [each.option for each in others] == [
        "--calibration minmax", "--calibration percentile", "--calibration entropy",
    ]  # fmt: skip
    best = max(others, key=lambda each: each.results_db)
    assert found.remedy == f"give {best.option}"
    assert best.results_db >= present.results_db + 1.5
    scheme = Scheme(calibration=best.option.split()[1])
    assert judge_model(network.graph, network.samples, scheme).warnings == ()


def test_samples_that_calibrate_too_few_are_said():
    """Of 120 samples 48 calibrate, and rare ones are among the others."""
    network = doubtful_network(237)
    (found,) = judge_model(network.graph, network.samples).warnings
    assert (found.kind, found.remedy) == ("samples", "give 250 or more representative inputs")
    assert found.figures["best_db"] >= found.figures["results_db"] + 2
    few = {name: x[:20] for name, x in network.samples.inputs.items()}
    kinds = [each.kind for each in judge_model(network.graph, Samples(few)).warnings]
    assert kinds[0] == "samples"


@pytest.mark.parametrize(("labels", "kinds"), [(100, ["calibration"]), (10, [])])
def test_an_accuracy_that_is_kept_is_enough(labels, kinds, monkeypatch):
    monkeypatch.setattr(diagnosis, "MANY_LABELS", labels)
    network = doubtful_network(90)
    inputs = network.samples.inputs
    (name,) = network.graph.outputs
    real = run_float(network.graph, inputs)[name]
    classes = real.reshape(len(real), -1).argmax(axis=1)
    found = judge_model(network.graph, Samples(inputs, classes)).warnings
    assert [each.kind for each in found] == kinds


def test_advice_can_be_left_out_and_trials_say_nothing_else(rng, caplog):
    graph, x = raw_features(rng)
    (found,) = judge_model(graph, Samples({"x": x}), ONE_SCALE, advises=False).warnings
    assert (found.kind, found.attempts) == ("noise", ())
    judge_model(graph, Samples({"x": x}))
    assert not caplog.records


def test_results_behind_a_reshape_have_their_noise():
    graph = load(EXAMPLE / "digits_cnn.nnef.tgz")
    samples = load_samples(EXAMPLE / "samples.npz", graph)
    (found,) = judge_model(graph, samples, Scheme(weight_bits=2)).warnings
    assert found.figures["results_db"] is not None
    assert found.remedy == "give --weight-bits 8"
    assert all(each.results_db is not None for each in found.attempts)


def test_no_further_scheme_is_tried_after_a_time(rng, monkeypatch):
    graph, x = raw_features(rng)
    monkeypatch.setattr(attempts, "SECONDS", -1.0)
    (found,) = judge_model(graph, Samples({"x": x}), ONE_SCALE).warnings
    assert (found.kind, found.attempts) == ("noise", ())


def test_what_cannot_be_built_is_not_named(rng):
    graph, x = raw_features(rng)

    def narrow(fixed):
        if max(fixed.tensor(name).qtype.bits for name in fixed.inputs) > 8:
            raise UnsupportedForTest("too wide")

    (found,) = judge_model(graph, Samples({"x": x}), ONE_SCALE, check=narrow).warnings
    assert all("16" not in each.option for each in found.attempts)


class UnsupportedForTest(attempts.NnefHwError):
    """A refusal."""


def measured(real, fixed, labels, **noise):
    return Measured(noise or {"y": 20.0}, ("y",), 64, real, fixed, labels)


def test_a_point_of_accuracy_is_two_samples_at_least(rng):
    graph = simplify(perceptron(rng))
    assert measured(0.9, 0.88, 400).lost_points == pytest.approx(2)
    assert measured(0.9, 0.895, 400).lost_points == 0
    assert measured(1.0, 0.95, 20).lost_points == 0  # one of 20
    assert measured(1.0, 0.90, 20).lost_points == pytest.approx(10)
    (found,) = loss_warnings(graph, measured(0.9, 0.88, 400), None)
    assert found.kind == "accuracy"
    assert "costs 2.00 points: accuracy is 88.00% and in float 90.00% on 400" in found.reason
    assert loss_warnings(graph, measured(0.9, 0.895, 400), None) == []


def test_samples_that_the_real_network_does_not_know(rng):
    graph, labels = simplify(perceptron(rng)), np.repeat([0, 1, 2], [40, 10, 10])
    (found,) = loss_warnings(graph, measured(0.5, 0.5, 60), labels)
    assert found.kind == "range"
    assert "accuracy of 50.00% on 60 samples, of which 66.67% have the same label" in found.reason
    assert loss_warnings(graph, measured(0.7, 0.7, 60), labels) == []
    assert loss_warnings(graph, measured(0.5, 0.5, 30), labels[:30]) == []


def test_remedies_are_those_of_the_same_layer():
    attempt = attempts.Attempt("", 1.0, 1.0, None)
    known = QualityWarning("noise", "then", "give it", "a", attempts=(attempt,), samples=3)
    now = QualityWarning("accuracy", "now", layer="a")
    (found,) = with_remedies([now], [known])
    assert (found.reason, found.remedy, found.attempts) == ("now", "give it", (attempt,))
    assert with_remedies([QualityWarning("noise", "now", layer="b")], [known])[0].attempts == ()


@pytest.mark.parametrize(
    ("noise", "best"),
    [
        ({"minmax": 12.0, "entropy": 14.0, 16: 40.0}, "--calibration entropy"),
        ({"minmax": 9.0, 16: 40.0}, "--activation-bits 16"),
        ({"minmax": 8.0, "entropy": 9.0, 16: 8.5}, "--calibration entropy"),
        ({"minmax": 7.5, "entropy": 7.0, 16: 7.5}, None),
    ],
    ids=["cheapest", "only", "best", "none"],
)
def test_the_cheapest_scheme_that_helps_is_named(noise, best, rng, monkeypatch):
    """By default results have 7 dB; 16 bits for single layers change nothing."""
    monkeypatch.setattr(attempts, "quantize", lambda graph, inputs, scheme: scheme)

    def measure(graph, scheme, inputs, labels):
        found = noise.get(scheme.calibration, 7.0)
        if scheme.activation_bits == 16:
            found = noise[16]
        return Measured({"y": found}, ("y",), 64)

    monkeypatch.setattr(attempts, "measure", measure)
    inputs = {"x": rng.random((20, 8))}
    trials = attempts.try_others(simplify(perceptron(rng)), Scheme(), "y", inputs, (inputs, None))
    assert (None if trials.best is None else trials.best.option) == best


@pytest.mark.parametrize("scheme", [Scheme(symmetric=True), Scheme(weight_bits=2)], ids=str)
def test_attempts_undo_what_was_asked_for(scheme, rng):
    graph, x = raw_features(rng)
    scheme = replace(scheme, feature_scales=False)
    (found,) = judge_model(graph, Samples({"x": x}), scheme).warnings
    options = {each.option for each in found.attempts}
    assert ("--set symmetric=false" in options) == scheme.symmetric
    assert ("--weight-bits 8" in options) == (scheme.weight_bits == 2)


@pytest.mark.parametrize("seed", [*range(4), *NIGHTLY])
def test_random_networks_lose_nothing_in_silence(seed):
    assert not judge(doubtful_network(seed)).is_silent
