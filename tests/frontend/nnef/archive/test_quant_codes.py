"""Codes of quantized variables: what goes into the tensor file, and what comes back."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.errors import Location
from nnef_hw.frontend.nnef import load_nnef, save_nnef
from nnef_hw.frontend.nnef.archive.quant_codes import quantized_codes
from nnef_hw.frontend.nnef.archive.tensor_file import ItemType, read_tensor
from nnef_hw.ir import Graph, Node, Quantization, Stage, Tensor

FLAGS = [(signed, symmetric) for signed in (False, True) for symmetric in (False, True)]


def zero_point(bits, signed, symmetric, scale=0.1, offset=3):
    args = {"zero_point": offset, "scale": scale, "bits": bits}
    flags = {"signed": signed, "symmetric": symmetric}
    return Quantization("zero_point_linear_quantize", {**args, **flags})


def min_max(bits, signed, symmetric):
    args = {"min": -1.0, "max": 1.5, "bits": bits, "signed": signed, "symmetric": symmetric}
    return Quantization("min_max_linear_quantize", args)


def model(values, quantization):
    weights = Tensor("w", values.shape, data=values, label="w", quant=quantization)
    tensors = {"x": Tensor("x", values.shape), "w": weights, "y": Tensor("y", values.shape)}
    return Graph("net", ("x",), ("y",), tensors, (Node("add", ("x", "w"), ("y",)),))


@pytest.mark.parametrize("bits", [2, 4, 8, 13, 16])
@pytest.mark.parametrize(("signed", "symmetric"), FLAGS)
def test_zero_point_codes_are_the_integers_of_the_scheme(bits, signed, symmetric):
    highest = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    lowest = -highest - (not symmetric) if signed else 0
    codes = np.linspace(lowest, highest, 7).round().astype(np.int64)
    scheme = zero_point(bits, signed, symmetric)
    found = quantized_codes((codes - 3) * 0.1, scheme)
    assert found is not None
    np.testing.assert_array_equal(found[0], codes)
    assert found[1] == signed
    for outside in (lowest - 1, highest + 1):
        assert quantized_codes(np.array([(outside - 3) * 0.1]), scheme) is None


@pytest.mark.parametrize("bits", [2, 8, 16])
@pytest.mark.parametrize(("signed", "symmetric"), FLAGS)
def test_min_max_codes_span_the_range(bits, signed, symmetric):
    found = quantized_codes(np.array([-1.0, 1.5]), min_max(bits, signed, symmetric))
    assert found is not None
    lowest = (-(1 << (bits - 1)) + symmetric) if signed else 0
    steps = (1 << bits) - 1 - (signed and symmetric)
    assert found[0].tolist() == [lowest, lowest + steps]


@pytest.mark.parametrize(
    "quantization",
    [
        *(zero_point(8, *flags) for flags in FLAGS),
        *(min_max(8, *flags) for flags in FLAGS),
        Quantization("linear_quantize", {"min": -1.0, "max": 1.5, "bits": 5}),
        zero_point(8, True, False, scale=np.array([[0.1], [0.25]])),
        zero_point(8, True, False, scale=np.array([0.1, 0.25]), offset=np.array([3, -1])),
        Quantization("logarithmic_quantize", {"max": 4.0, "bits": 4}),
    ],
    ids=lambda quantization: quantization.op,
)
def test_quantized_variable_comes_back(quantization, tmp_path, rng):
    save_nnef(model(rng.uniform(-1, 1, (2, 3)), quantization), tmp_path / "float")
    first = load_nnef(tmp_path / "float")
    save_nnef(first, tmp_path / "codes")
    again = load_nnef(tmp_path / "codes")

    np.testing.assert_array_equal(again.constant("w"), first.constant("w"))
    quant = again.tensor("w").quant
    assert quant.op == quantization.op
    for key, value in quantization.args.items():
        np.testing.assert_array_equal(quant.args[key], value)


@pytest.mark.parametrize(
    ("quantization", "item_type", "bits"),
    [
        (zero_point(8, True, False), ItemType.QUANTIZED_SIGNED, 8),
        (zero_point(8, False, False), ItemType.QUANTIZED_UNSIGNED, 8),
        (zero_point(4, True, False), ItemType.QUANTIZED_SIGNED, 8),
        (zero_point(32, True, False), ItemType.QUANTIZED_SIGNED, 32),
        (min_max(12, False, False), ItemType.QUANTIZED_UNSIGNED, 16),
    ],
)
def test_codes_have_the_width_of_the_scheme_in_whole_bytes(quantization, item_type, bits, tmp_path):
    values = np.zeros(2) if quantization.op.startswith("zero") else np.array([-1.0, 1.5])
    save_nnef(model(values, quantization), tmp_path / "m")
    file = read_tensor((tmp_path / "m" / "w.dat").read_bytes(), Location("w.dat"))
    assert (file.item_type, file.bits) == (item_type, bits)


def test_numbers_between_codes_are_stored_as_they_are(tmp_path):
    values = np.array([0.1, 0.15])
    save_nnef(model(values, zero_point(8, True, False)), tmp_path / "m")
    file = read_tensor((tmp_path / "m" / "w.dat").read_bytes(), Location("w.dat"))
    assert file.item_type == ItemType.FLOAT
    np.testing.assert_array_equal(file.array, values)


def test_canonical_graph_keeps_quantization(tmp_path):
    quantization = zero_point(8, True, False, scale=np.array([0.1, 0.25]))
    relu = Node("relu", ("x",), ("y",))
    graph = replace(model(np.full((2, 1), 0.5), quantization), nodes=(relu,), stage=Stage.CANONICAL)
    save_nnef(graph, tmp_path / "m")
    quant = load_nnef(tmp_path / "m").tensor("w").quant
    assert quant.op == quantization.op
    assert quant.args["scale"].tolist() == [0.1, 0.25]
    assert quant.args["bits"] == 8
