"""Formats of states, and the error that builds up in them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recurrent_graphs import delay_line, gru, looped

from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.ir import Quantization, format_graph, parse_graph
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import (
    Drift,
    dequantize_outputs,
    quantize_inputs,
    run_fixed,
    trace_fixed,
    trace_float,
)
from nnef_hw.report.quantization import describe_quantization
from nnef_hw.samples.samples import Samples, load_samples
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def sequences(rng):
    return {"x": rng.normal(size=(30, 12, 3))}


def drift(canonical, fixed, samples, name):
    """Decibels of a tensor at each step."""
    steps = samples["x"].shape[1]
    found = Drift(fixed, steps)
    codes = trace_fixed(fixed, quantize_inputs(fixed, samples))
    found.add(trace_float(canonical, samples), dequantize_outputs(fixed, codes))
    rows = found.rows()
    assert [row["step"] for row in rows] == list(range(1, steps + 1))
    return [row[f"{name} dB"] for row in rows]


def test_a_state_and_its_next_value_have_one_format(sequences):
    initial = np.array([[3.0, 0.0, 0.0, -1.0]])
    fixed = quantize(simplify(gru(initial=initial)), sequences)
    h, after = (fixed.tensor(name).qtype for name in ("h", "h_next"))
    assert h == after
    assert h.hi * h.scale - h.zero_point * h.scale >= 3.0 - h.scale
    np.testing.assert_array_equal(fixed.states["h"].initial, h.quantize(initial))


def test_wider_states_keep_more(rng):
    """A slow mean: with 8 bits, what a step adds is mostly lost."""
    net = GraphBuilder("mean")
    net.input("x", (1, 2))
    net.state("s", np.zeros((1, 2)))
    net.op("mul", net.op("sub", "x", "s"), 1 / 64, name="change")
    net.update("s", net.op("add", "s", "change", name="mean"))
    net.op("relu", "mean", name="y")
    canonical = simplify(net.build())
    samples = {"x": np.broadcast_to(rng.uniform(size=(10, 1, 2)), (10, 200, 2))}
    narrow = quantize(canonical, samples)
    wide = quantize(canonical, samples, Scheme(layers={"mean": {"activation_bits": 16}}))
    assert [wide.tensor(name).qtype.bits for name in ("s", "mean", "x")] == [16, 16, 8]
    assert drift(canonical, narrow, samples, "y")[-1] < 25
    assert drift(canonical, wide, samples, "y")[-1] > 35


def test_a_shift_register_never_rounds(rng):
    x = rng.normal(size=(20, 9, 2, 1))
    fixed = quantize(simplify(delay_line()), {"x": x})
    assert "requantize" not in {node.op for node in fixed.nodes}
    codes = quantize_inputs(fixed, {"x": x})
    old = trace_fixed(fixed, codes)["old"]
    np.testing.assert_array_equal(old[:, 2:, :, 1], codes["x"][:, 1:-1, :, 0])
    np.testing.assert_array_equal(old[:, 2:, :, 0], codes["x"][:, :-2, :, 0])


def test_a_delayed_input_keeps_its_format(rng):
    net = GraphBuilder("delta")
    x = net.input("x", (1, 3))
    net.state("before", np.zeros((1, 3)))
    net.update("before", x)
    net.op("sub", x, "before", name="y")
    samples = {"x": rng.normal(size=(20, 6, 3))}
    fixed = quantize(simplify(net.build()), samples)
    codes = quantize_inputs(fixed, samples)
    qtype = fixed.tensor("x").qtype
    assert fixed.tensor("before").qtype == qtype
    found = dequantize_outputs(fixed, run_fixed(fixed, codes))["y"]
    expected = np.diff(qtype.dequantize(codes["x"]), axis=1, prepend=0.0)
    assert np.abs(found - expected).max() <= fixed.tensor("y").qtype.scale


def test_formats_of_the_author_may_differ(sequences):
    """The state is stored in its own, behind a table between them."""
    canonical = simplify(gru())
    quants = {
        name: Quantization(
            "zero_point_linear_quantize",
            {"zero_point": 128, "scale": scale, "bits": 8, "signed": False, "symmetric": False},
        )
        for name, scale in (("h", 1 / 64), ("h_next", 1 / 100))
    }
    tensors = {
        name: replace(tensor, quant=quants.get(name)) for name, tensor in canonical.tensors.items()
    }
    fixed = quantize(canonical.replaced(tensors=tensors), sequences)
    assert fixed.tensor("h").qtype.scale == 1 / 64
    assert fixed.tensor("h_next").qtype.scale == 1 / 100
    assert fixed.producer(fixed.states["h"].result).op == "requantize"


def test_fixed_networks_with_loops_are_stored(tmp_path, rng):
    samples = {"x": rng.normal(size=(8, 3, 3))}
    fixed = quantize(simplify(looped(3, step=-1)), samples)
    save(fixed, tmp_path / "fixed.nnef.tgz")
    again = load(tmp_path / "fixed.nnef.tgz")
    assert graph_hash(again) == graph_hash(fixed)
    assert [state.steps for state in again.states.values()] == [3]
    codes = quantize_inputs(fixed, samples)
    np.testing.assert_array_equal(run_fixed(again, codes)["y"], run_fixed(fixed, codes)["y"])
    assert format_graph(parse_graph(format_graph(fixed))) == format_graph(fixed)


def test_fixed_networks_with_states_are_stored(sequences, tmp_path):
    fixed = quantize(simplify(gru(initial=[[0.5, 0.0, 0.0, 0.25]])), sequences)
    save(fixed, tmp_path / "fixed.nnef.tgz")
    again = load(tmp_path / "fixed.nnef.tgz")
    assert graph_hash(again) == graph_hash(fixed)
    np.testing.assert_array_equal(again.states["h"].initial, fixed.states["h"].initial)


def test_the_report_follows_the_steps(sequences):
    canonical = simplify(gru())
    labels = np.arange(30) % 2
    described = describe_quantization(
        canonical, quantize(canonical, sequences), Samples(sequences, labels)
    )
    assert len(described.steps) == 12
    assert described.steps[0]["h dB"] is None  # all begin with zeros
    assert described.steps[-1]["y dB"] > 20
    assert np.sum(described.confusion) == 30
    assert {layer.name: layer.op for layer in described.layers}["h"] == "state"


def test_the_example_loses_no_accuracy():
    """Digits read row by row: within half a point of float, and no worse at the last step."""
    folder = Path(__file__).parents[2] / "examples" / "digits_gru"
    graph = load(folder / "digits_gru.nnef.tgz")
    used, others = load_samples(folder / "samples.npz", graph).split()
    canonical = simplify(graph)
    described = describe_quantization(canonical, quantize(canonical, used.inputs), others)
    accuracy = described.accuracy
    assert accuracy.float > 0.98
    assert accuracy.fixed > accuracy.float - 0.005
    assert described.steps[-1]["h dB"] > 30
