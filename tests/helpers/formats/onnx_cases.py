"""Test cases that the onnx wheel carries, run through the front end and the float reference."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np

from nnef_hw.frontend import load
from nnef_hw.reference import run_float

SHAPE_INPUTS = {
    "AffineGrid": [1], "BlackmanWindow": [0], "CenterCropPad": [1], "Compress": [1],
    "ConstantOfShape": [0], "CumSum": [1], "Dropout": [1, 2], "Expand": [1], "HammingWindow": [0],
    "HannWindow": [0], "If": [0], "Loop": [0, 1], "MaxUnpool": [2], "NonZero": [0], "OneHot": [1],
    "Pad": [1, 2, 3], "Range": [0, 1, 2], "Reshape": [1], "Resize": [1, 2, 3],
    "ReverseSequence": [1], "Slice": [1, 2, 3, 4], "Split": [1], "Squeeze": [1], "Tile": [1],
    "TopK": [1], "Trilu": [1], "Unsqueeze": [1], "Upsample": [1],
    "ConvInteger": [2, 3], "DequantizeLinear": [1, 2], "MatMulInteger": [2, 3],
    "QLinearConv": [1, 2, 4, 5, 6, 7], "QLinearMatMul": [1, 2, 4, 5, 6, 7],
    "QuantizeLinear": [1, 2],
}  # fmt: skip
"""Inputs that decide on shapes or quantization: the cases give them at run time, hardware needs
them before."""


@cache
def cases(kind):
    """Return the wheel's cases of a kind by name: ``node``, ``simple``, ``pytorch-operator``..."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind=kind)}


def read_case(case):
    """Return the model of a case and its pairs of inputs and outputs."""
    import onnx

    if case.model is not None:
        sets = [[[plain(x) for x in side] for side in pair] for pair in case.data_sets]
        return case.model, sets
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        sets.append([
            [
                onnx.numpy_helper.to_array(onnx.load_tensor(data / f"{side}_{index}.pb"))
                for index in range(len(list(data.glob(f"{side}_*.pb"))))
            ]
            for side in ("input", "output")
        ])
    return model, sets


def plain(value):
    """Return an array of NumPy's own types."""
    import onnx

    array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    odd = isinstance(array, np.ndarray) and array.dtype.isbuiltin != 1
    return array.astype(np.float64) if odd else array


def with_constant_shapes(model, inputs):
    """Return a model whose inputs that decide on shapes, or are empty, are initializers."""
    import onnx

    initialized = {item.name for item in model.graph.initializer}
    values = dict(
        zip((x.name for x in model.graph.input if x.name not in initialized), inputs, strict=True)
    )
    reductions = {node.op_type for node in model.graph.node if node.op_type.startswith("Reduce")}
    table = {**SHAPE_INPUTS, **{name: [1] for name in reductions}}
    wanted = {
        node.input[index]
        for node in model.graph.node
        for index in table.get(node.op_type, [])
        if index < len(node.input)
    }
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for item in list(fixed.graph.input):
        if item.name in wanted & values.keys():
            array, element = np.asarray(values.pop(item.name)), item.type.tensor_type.elem_type
            fixed.graph.initializer.append(
                onnx.helper.make_tensor(item.name, element, array.shape, array.reshape(-1))
            )
            fixed.graph.input.remove(item)
    return fixed, values


def run_case(case, folder):
    """Run every data set of a case and compare; raise what goes wrong."""
    model, sets = read_case(case)
    for inputs, outputs in sets:
        fixed, values = with_constant_shapes(model, inputs)
        path = folder / "model.onnx"
        path.write_bytes(fixed.SerializeToString())
        graph = load(path)
        arrays = dict(zip(graph.inputs, values.values(), strict=True))
        found = run_float(graph, {name: np.asarray(x) for name, x in arrays.items()})
        for name, expected in zip(graph.outputs, outputs, strict=True):
            assert graph.tensor(name).shape == np.shape(expected)
            result = found[name].reshape(np.shape(expected))
            np.testing.assert_allclose(result, expected, rtol=case.rtol, atol=case.atol)
