"""MLPerf Tiny's own files: every code of TensorFlow Lite's reference kernels, with no samples."""

import json
import re

import numpy as np
import pytest

from nnef_hw.cli import main
from nnef_hw.frontend import load
from nnef_hw.frontend.tflite.file.flatbuffer import read_model
from nnef_hw.ir import Trait
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_float, trace_fixed

FILES = {
    "mlperf_ad_fcae": "ad01_int8",
    "mlperf_ic_resnet8": "pretrainedResnet_quant",
    "mlperf_ic_resnet8_wide": "pretrainedResnet_large_int8",
    "mlperf_kws_dscnn": "kws_ref_model",
    "mlperf_sww_ds1d": "str_ww_ref_model",
    "mlperf_vww_mobilenetv1": "vww_96_int8",
}
FLOAT = ["mlperf_ic_resnet8", "mlperf_sww_ds1d", "mlperf_vww_mobilenetv1", "tflm_hello_world"]


def channels_last(array):
    return np.moveaxis(array, 1, -1) if array.ndim > 2 else array


def activations(zoo, name):
    """Return TensorFlow Lite's codes of four samples by number of tensor, and the input's."""
    stored = np.load(zoo / name / "int8_ref.npz")
    numbers = {
        item["nnef"]: item["tflite_index"]
        for item in json.loads((zoo / name / "int8_quant.json").read_text())["tensors"]
    }
    found = {}
    for key in stored:
        if key.startswith("act_tflite/"):
            found[int(key.partition("/")[2])] = stored[key]
        elif key.startswith("act/") and key[4:] in numbers:
            found[numbers[key[4:]]] = stored[key]
    return found, channels_last(stored["input_q_first"]), stored["output_q"][:4]


@pytest.mark.zoo
@pytest.mark.parametrize("name", FILES)
def test_every_activation_has_tensorflow_lites_codes(name, zoo):
    path = zoo / "upstream_int8" / f"{FILES[name]}.tflite"
    operators = read_model(path).subgraphs[0].operators
    expected, codes, results = activations(zoo, name)
    fixed = quantize(simplify(load(path)), None)
    [source], [result] = fixed.inputs, fixed.outputs
    found = trace_fixed(fixed, {source: codes.astype(np.int64)})
    np.testing.assert_array_equal(found[result], results)
    compared = set()
    for node in fixed.nodes:
        number = re.match(r"operator (\d+), ", node.location.text if node.location else "")
        tensor = operators[int(number[1])].outputs[0] if number else None
        if tensor not in expected or (node.op != "reshape" and node.has(Trait.MOVES)):
            continue
        if found[node.name].size == expected[tensor].size:
            np.testing.assert_array_equal(
                found[node.name].reshape(expected[tensor].shape), expected[tensor], node.name
            )
            compared.add(tensor)
    inputs = {number for number in expected if number not in {
        output for operator in operators for output in operator.outputs}}  # fmt: skip
    assert compared == expected.keys() - inputs


@pytest.mark.zoo
@pytest.mark.parametrize("name", FLOAT)
def test_float_models_give_tensorflow_lites_results(name, zoo):
    graph = load(zoo / name / "original_float.tflite")
    samples = np.load(zoo / name / "samples.npz")["inputs"][:8]
    expected = np.load(zoo / name / "expected.npz")["output"][:8]
    [source], [result] = graph.inputs, graph.outputs
    found = run_float(graph, {source: channels_last(samples)})[result]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.zoo
def test_the_commands_read_int8_files_without_samples(zoo, tmp_path, capsys):
    path = str(zoo / "upstream_int8" / "vww_96_int8.tflite")
    assert main(["check", path]) == 0
    assert "valid TensorFlow Lite; can be built" in capsys.readouterr().out
    assert main(["quantize", path, "-o", str(tmp_path / "q.nnef.tgz")]) == 0
    again, fixed = load(tmp_path / "q.nnef.tgz"), quantize(simplify(load(path)), None)
    assert [node.attrs.get("requant") for node in again.nodes] == [
        node.attrs.get("requant") for node in fixed.nodes
    ]
