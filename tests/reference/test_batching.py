"""A batch gives what its samples give one at a time, whatever operators a graph has."""

import numpy as np
import pytest
from random_graphs import RandomGraph

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.shapes import SHAPE_RULES
from nnef_hw.ir import Quantization, State, Tensor
from nnef_hw.reference import run_float, trace_float
from nnef_hw.reference.batching import is_batchable

COUNT = 3
AT_ONCE = {
    "conv", "deconv", "separable_conv", "matmul", "max_pool", "avg_pool", "box", "relu",
    "add", "batch_normalization", "softmax", "mean_reduce", "reshape", "split", "slice",
    "pad", "transpose", "resize", "einsum", "gather", "multilinear_upsample",
}  # fmt: skip


def sample_inputs(graph, rng):
    inputs = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        shape = (COUNT, *tensor.shape)
        values = (
            rng.standard_normal(shape) if tensor.dtype == "scalar" else rng.integers(0, 2, shape)
        )
        inputs[name] = values.astype(bool) if tensor.dtype == "logical" else values
    return inputs


def assert_samples_are_independent(graph, rng):
    inputs = sample_inputs(graph, rng)
    together = trace_float(graph, inputs)
    for i in range(COUNT):
        alone = trace_float(graph, {name: x[i : i + 1] for name, x in inputs.items()})
        for name, values in alone.items():
            np.testing.assert_allclose(
                together[name][i], values[0], rtol=1e-9, atol=1e-12, err_msg=name
            )


def test_random_graphs(rng):
    at_once = set()
    for op in sorted(SHAPE_RULES.keys() - {"scan"}):
        for _ in range(12):
            net = RandomGraph(rng)
            net.apply(op)
            graph = net.build()
            assert_samples_are_independent(graph, rng)
            if is_batchable(graph) and graph.nodes[0].inputs[0] in graph.inputs:
                at_once.add(op)
    assert at_once >= AT_ONCE


def graph_of(op, attrs, *args, dtypes=("scalar",)):
    """Return one operator on inputs (shapes) and constants (arrays)."""
    builder = Builder("net")
    tensors = [
        builder.constant(f"x{i}", arg)
        if isinstance(arg, np.ndarray)
        else builder.input(Tensor(f"x{i}", arg))
        for i, arg in enumerate(args)
    ]
    results = builder.node(op, tensors, attrs, "y", dtypes)
    return builder.build([tensor.name for tensor in results])


WINDOW = {"border": "constant", "dilation": []}
PLAIN = {"transposeA": False, "transposeB": False}
SQUARE = np.arange(16.0).reshape(4, 4)
INDEX = np.zeros((1, 2), np.int64)
MIXING = {
    "product of two rows": ("matmul", {**PLAIN, "transposeB": True}, (1, 4), (1, 4)),
    "constant times input": ("matmul", PLAIN, np.ones((1, 1)), (1, 4)),
    "transposed input": ("matmul", {**PLAIN, "transposeA": True}, (1, 4), np.ones((1, 1))),
    "computed weights": ("linear", {}, (1, 4), (1, 4), np.zeros(())),
    "two gathered": ("gather", {"axis": 1}, (1, 4), INDEX),
    "gathered samples": ("gather", {"axis": 0}, (1, 4), INDEX),
    "sum of samples": ("sum_reduce", {"axes": [0], "normalize": False}, (1, 4)),
    "stack in front": ("stack", {"axis": 0}, (1, 4), (1, 4)),
    "join of a constant": ("concat", {"axis": 1}, (1, 4), np.ones((1, 2))),
    "transpose": ("transpose", {"axes": [1, 0]}, (1, 4)),
    "exchange of ones": ("transpose", {"axes": [1, 0, 2]}, (1, 1, 4)),
    "tile": ("tile", {"repeats": [2, 1]}, (1, 4)),
    "crop": ("pad", {"padding": [(1, 0), (0, 0)], "border": "replicate", "value": 0.0}, (1, 4)),
    "window": ("box", {**WINDOW, "size": [2, 1], "padding": [(0, 1), (0, 0)], "stride": [1, 1],
                       "normalize": False}, (1, 4)),
    "padding": ("box", {**WINDOW, "size": [1, 1], "padding": [(1, 0), (0, 0)], "stride": [2, 1],
                        "normalize": False}, (1, 4)),
    "shift": ("box", {**WINDOW, "size": [1, 1], "padding": [(1, -1), (0, 0)], "stride": [1, 1],
                      "normalize": False}, (1, 4)),
    "stride": ("box", {**WINDOW, "size": [1, 1], "padding": [(0, 0)] * 2, "stride": [2, 1],
                       "normalize": False}, (1, 4)),
    "trace": ("einsum", {"expr": "bi,bj->ij"}, (1, 4), (1, 4)),
    "batch of a constant": ("einsum", {"expr": "bi,bj->bj"}, np.ones((1, 4)), (1, 4)),
    "diagonal": ("einsum", {"expr": "bb->b"}, (1, 1)),
    "wide constant": ("add", {}, (1, 4), SQUARE),
    "triangle": ("trilu", {"k": 0, "upper": True}, (1, 4)),
    "running sum": ("cumsum", {"axis": 0}, (1, 4)),
    "first scatter": ("scatter_nd", {}, (1, 4), np.array([[0]]), np.ones((1, 4))),
    "drawn": ("gather_nd", {}, (1, 4), np.array([[0, 1]])),
}  # fmt: skip


KEEPING = {
    "row by matrix": ("matmul", PLAIN, (1, 4), SQUARE),
    "layer": ("linear", {}, (1, 4), SQUARE, np.zeros((1, 4))),
    "join": ("concat", {"axis": 1}, (1, 4), (1, 3)),
    "embedding": ("gather_nd", {}, SQUARE, (1, 1)),
}


@pytest.mark.parametrize("case", KEEPING.values(), ids=KEEPING)
def test_operators_that_keep_samples_apart_are_computed_at_once(case):
    assert is_batchable(graph_of(*case))


@pytest.mark.parametrize("case", MIXING.values(), ids=MIXING)
def test_operators_that_would_mix_samples(case, rng):
    assert_samples_are_independent(graph_of(*case), rng)


def test_a_quantization_of_each_row_is_no_batch(rng):
    quant = {"min": np.array([[0.0]]), "max": np.array([[1.0]]), "bits": 2}
    for shape in ((), (1, 1), (2, 1)):
        builder = Builder("net")
        x = builder.input(Tensor("x", (1, 4)))
        (y,) = builder.node("add", [x, builder.constant("k", np.zeros((1, 1)))], {}, ["y"])
        values = {
            key: np.broadcast_to(v[0, 0], shape) if key != "bits" else v for key, v in quant.items()
        }
        builder.tensors["y"] = Tensor("y", y.shape, quant=Quantization("linear_quantize", values))
        graph = builder.build(["y"])
        assert is_batchable(graph) == (shape[:1] != (2,))


def test_states_go_from_sample_to_sample_and_begin_anew_in_each_run():
    builder = Builder("net")
    x = builder.input(Tensor("x", (1, 2)))
    last = builder.add(Tensor("last", (1, 2)))
    builder.node("add", [x, last], {}, ["y"])
    builder.node("mul", [last, builder.constant("k", np.array(10.0))], {}, ["z"])
    builder.states["last"] = State(np.array([[1.0, 2.0]], np.float32), "y")
    graph = builder.build(["y", "z"])
    x = np.arange(6.0).reshape(3, 2)
    for _ in range(2):
        found = run_float(graph, {"x": x})
        assert found["y"].tolist() == [[1, 3], [3, 6], [7, 11]]
        assert found["z"].tolist() == [[10, 20], [10, 30], [30, 60]]


def test_states_may_be_swapped():
    builder = Builder("net")
    x = builder.input(Tensor("x", ()))
    for name, other, value in (("a", "b", 1.0), ("b", "a", 2.0)):
        builder.add(Tensor(name, ()))
        builder.states[name] = State(np.array(value), other)
    builder.node("add", [x, builder.tensors["a"]], {}, ["y"])
    found = run_float(builder.build(["y"]), {"x": np.zeros(4)})
    assert found["y"].tolist() == [1.0, 2.0, 1.0, 2.0]


def quantized_relu(dtype="scalar"):
    builder = Builder("net")
    quant = Quantization("linear_quantize", {"min": 0.0, "max": 3.0, "bits": 2})
    x = builder.input(Tensor("x", (1, 4), dtype, quant=quant))
    (y,) = builder.node("mul", [x, builder.constant("k", np.array(0.3))], {}, ["y"])
    builder.tensors["y"] = Tensor("y", y.shape, quant=quant)
    return builder.build(["y"])


def test_activations_are_rounded_as_the_author_quantized_them():
    trace = trace_float(quantized_relu(), {"x": np.array([[-1.0, 0.6, 2.2, 9.0]])})
    assert trace["x"].tolist() == [[0.0, 1.0, 2.0, 3.0]]
    assert trace["y"].tolist() == [[0.0, 0.0, 1.0, 1.0]]
