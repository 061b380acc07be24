"""Variables: what a network keeps from one inference to the next."""

import numpy as np
import pytest
from tflite_cases import operator_cases
from tflite_file import TfliteFile
from tflite_quantized_cases import lstm

from nnef_hw.engine.architecture import SharedArray
from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.passes import rewrite
from nnef_hw.reference import run_float
from nnef_hw.streaming.architecture import Streaming


def window(initial=None):
    """Return the sum of the last three inputs, kept in a variable [1, 3]."""
    model = TfliteFile()
    x = model.input("x", [1, 1])
    options = ("VarHandleOptions", {"SharedName": "frames"})
    if initial is not None:
        model.begins_with("frames", np.asarray(initial, np.float32))
        model.ops("CALL_ONCE", [], [], ("CallOnceOptions", {"InitSubgraphIndex": 1}))
    handle = model.op("VAR_HANDLE", [], "handle", [], "resource", options)
    old = model.op("READ_VARIABLE", [handle], "old", [1, 3])
    both = model.op("CONCATENATION", [old, x], "both", [1, 4],
                    options=("ConcatenationOptions", {"Axis": 1}))  # fmt: skip
    ends = [model.constant(name, np.array([0, n], np.int32)) for name, n in (("b", 1), ("e", 4))]
    steps = model.constant("s", np.array([1, 1], np.int32))
    new = model.op("STRIDED_SLICE", [both, *ends, steps], "new", [1, 3],
                   options=("StridedSliceOptions", {"BeginMask": 1, "EndMask": 1}))  # fmt: skip
    model.ops("ASSIGN_VARIABLE", [handle, new], [])
    axis = model.constant("axis", np.array([1], np.int32))
    total = model.op("SUM", [new, axis], "y", [1, 1], options=("ReducerOptions", {"KeepDims": 1}))
    model.output(total)
    return model


@pytest.mark.parametrize("initial", [None, [[10, 20, 30]]])
def test_variables_are_states(initial, read):
    graph = read(window(initial))
    x = np.arange(1.0, 7.0).reshape(6, 1)
    before = np.zeros(3) if initial is None else np.ravel(initial)
    values = np.concatenate([before, x.ravel()])
    expected = [values[n + 1 : n + 4].sum() for n in range(6)]
    assert list(graph.states) == ["frames_state"]
    np.testing.assert_allclose(run_float(graph, {"x": x})["y"].ravel(), expected)


def test_computed_first_values_are_refused(read):
    model = window([[10, 20, 30]])
    model.computes_initial = True
    reason = "the first value of the variable 'frames', 'computed', is computed"
    with pytest.raises(UnsupportedError, match=reason):
        read(model)


def test_a_window_of_inputs_can_be_built(read):
    graph, errors = rewrite(read(window()))
    assert not errors
    assert not Streaming().problems(graph)
    (error, *_) = SharedArray().problems(graph)
    assert "concat 'both': channels of an operand before others are no multiple of 4" in str(error)


@pytest.mark.parametrize("key", ["scale", "zero"])
def test_an_lstm_whose_result_has_another_format_inside_is_refused(key, read):
    model = lstm("LSTM").model
    [between] = [operator[5] for operator in model.operators if operator[5]]
    model.tensors[between[4]][key] = [3]
    with pytest.raises(UnsupportedError, match="result has another format inside of it than its"):
        read(model)


def test_recurrent_layers_go_on_where_they_were(read):
    """Two inferences of three steps are one of six."""
    case = operator_cases()["UNIDIRECTIONAL_SEQUENCE_LSTM-False"]
    graph = read(case.model)
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    name = graph.outputs[0]
    both = run_float(graph, {graph.inputs[0]: x})[name]
    first, second = (run_float(graph, {graph.inputs[0]: part[None]})[name] for part in x)
    np.testing.assert_allclose(both[0], first[0])
    assert np.abs(both[1] - second[0]).max() > 0.01


def test_handles_are_no_numbers(read):
    model = TfliteFile()
    x = model.input("x", [1, 1])
    handle = model.op("VAR_HANDLE", [], "handle", [], "resource", ("VarHandleOptions", {}))
    model.output(model.op("ADD", [x, handle], "y", [1, 1], options=("AddOptions", {})))
    with pytest.raises(ModelError, match="operator 1, ADD 'y': an argument is a variable"):
        read(model)
    model = TfliteFile()
    model.output(model.op("READ_VARIABLE", [model.input("x", [1, 1])], "y", [1, 1]))
    with pytest.raises(ModelError, match="its first argument is no variable"):
        read(model)


def test_filters_over_time_keep_what_features_were(read, rng):
    """What ``reference_ops::SVDF`` says, step by step; the rank is 2, the memory 4."""
    case = operator_cases()["SVDF"]
    graph = read(case.model)
    features, times, bias = (
        np.frombuffer(case.model.buffers[n], np.float32).reshape(shape)
        for n, shape in ((1, (6, 5)), (2, (6, 4)), (3, (3,)))
    )
    x, kept, expected = rng.normal(size=(7, 5)), np.zeros((6, 4)), []
    for row in x:
        kept = np.concatenate([kept[:, 1:], (features @ row)[:, None]], axis=1)
        total = (kept * times).sum(axis=1).reshape(3, 2).sum(axis=1) + bias
        expected.append(np.maximum(total, 0))
    [name] = graph.inputs
    found = run_float(graph, {name: x[:, None]})[graph.outputs[0]]
    np.testing.assert_allclose(found.reshape(7, 3), expected, atol=1e-6)
    assert not rewrite(graph)[1]


def test_filters_over_time_of_codes_are_refused(read):
    model = TfliteFile()
    x = model.input("x", [1, 5], "int8", scale=0.1)
    arguments = [
        x, model.constant("f", np.ones((2, 5), np.int8), scale=0.1),
        model.constant("t", np.ones((2, 3), np.int16), scale=0.01), -1,
        model.tensor("kept", [1, 6], "int16", scale=0.05, is_variable=True),
    ]  # fmt: skip
    y = model.op("SVDF", arguments, "y", [1, 2], "int8", ("SVDFOptions", {"Rank": 1}), scale=0.1)
    model.output(y)
    [error, *_] = rewrite(read(model))[1]
    assert "its kernel keeps states and multiplies weights of 16 bits" in str(error)
