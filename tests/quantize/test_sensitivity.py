"""Widths of one layer alone, and what they do to the results."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.errors import UnsupportedError
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.quantize.calibration.quality import Judge
from nnef_hw.quantize.sensitivity import sensitivities
from nnef_hw.testing import GraphBuilder

# what a layer's neighbours do not take account of
PLAIN = Scheme(weight_rounding="nearest", correct_bias=False, feature_scales=False)


@pytest.fixture
def network(rng):
    """Two layers, and samples: those that calibrate, and 100 others."""
    builder = GraphBuilder()
    builder.input("x", (1, 32))
    y = builder.op("relu", builder.op("linear", "x", rng.standard_normal((64, 32)), 0.0, name="a"))
    builder.op("linear", y, rng.standard_normal((3, 64)), 0.0, name="b")
    graph = simplify(builder.build())
    names = [node.name for node in graph.nodes if node.op in {"conv", "linear"}]
    return graph, names, *({"x": rng.standard_normal((n, 32))} for n in (50, 100))


def decibels(graph, calibration, judged, scheme):
    """The signal to noise of a network that is quantized so."""
    cut = {name: x[:64] for name, x in judged.items()}
    return -10 * math.log10(Judge(graph, cut, None).noise(quantize(graph, calibration, scheme)))


def test_each_layer_is_quantized_alone(network):
    graph, names, calibration, judged = network
    found = sensitivities(graph, calibration, judged, PLAIN)
    assert found.samples == 64
    assert found.results_db == pytest.approx(decibels(graph, calibration, judged, PLAIN))
    assert [layer.name for layer in found.layers] == names
    for layer in found.layers:
        for value, key, bits in (
            (layer.narrow_db, "weight_bits", 4), (layer.wide_db, "activation_bits", 16),
        ):  # fmt: skip
            scheme = replace(PLAIN, layers={layer.name: {key: bits}})
            assert value == pytest.approx(decibels(graph, calibration, judged, scheme))
        assert layer.narrow_db < found.results_db
    assert found.cheapest == max(found.layers, key=lambda layer: layer.narrow_db)
    assert found.best == max(found.layers, key=lambda layer: layer.wide_db)


def test_widths_that_a_layer_has_are_not_tried(network):
    graph, names, calibration, judged = network
    first, last = names
    layers = {first: {"weight_bits": 4}, last: {"activation_bits": 16}}
    found = sensitivities(graph, calibration, judged, Scheme(layers=layers))
    assert [layer.narrow_db is None for layer in found.layers] == [True, False]
    assert [layer.wide_db is None for layer in found.layers] == [False, True]
    assert found.cheapest.name == last
    assert found.best is None or found.best.name == first


def test_widths_without_hardware_are_left_out(network):
    graph, _, calibration, judged = network

    def check(fixed):
        raise UnsupportedError("no hardware")

    found = sensitivities(graph, calibration, judged, PLAIN, check=check)
    assert all(layer.wide_db is None and layer.narrow_db for layer in found.layers)
    assert found.best is None


def test_nothing_gains_where_nothing_is_lost(network, monkeypatch):
    graph, _, calibration, judged = network
    monkeypatch.setattr(Judge, "noise", lambda *_: 0.0)
    found = sensitivities(graph, calibration, judged, PLAIN)
    assert (found.results_db, found.cheapest, found.best) == (None, None, None)
    assert np.all([layer.narrow_db is None for layer in found.layers])
