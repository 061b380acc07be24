"""Cutting graphs at tensors, and inputs that are constants."""

import numpy as np
import pytest
from tflite_file import TfliteFile

from nnef_hw.errors import UnsupportedError, UsageError
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float


@pytest.fixture
def detector():
    """Two heads, and an operator of its own behind them that chooses boxes."""
    model = TfliteFile()
    x = model.input("image", [1, 4])
    gain = model.input("gain", [1, 1], "int8", scale=0.5, zero=-2)
    scaled = model.op("MUL", [x, model.op("DEQUANTIZE", [gain], "real", [1, 1])], "scaled", [1, 4],
                      options=("MulOptions", {}))  # fmt: skip
    boxes = model.op("TANH", [scaled], "head/boxes;Tanh", [1, 4])
    scores = model.op("LOGISTIC", [x], "head/scores", [1, 4])
    model.output(model.op("TFLite_Detection_PostProcess", [boxes, scores], "found", [1, 4]))
    return model


X = np.array([[-1.0, 2.0, -3.0, 4.0]])


def test_an_unknown_operator_says_how_to_do_without_it(read, detector):
    with pytest.raises(UnsupportedError, match=r"TFLite_Detection_PostProcess .*\(--outputs\)"):
        read(detector)


@pytest.mark.parametrize("name", ["head_boxes", "head/boxes;Tanh"])
def test_results_in_front_of_it(name, read, detector):
    graph = read(detector, outputs=["head_scores", name], bind={"gain": 1.5})
    assert graph.inputs == ("image",)
    assert graph.outputs == ("head_scores", "head_boxes")
    found = run_float(simplify(graph), {"image": X})
    np.testing.assert_allclose(found["head_boxes"], np.tanh(1.5 * X))
    np.testing.assert_allclose(found["head_scores"], 1 / (1 + np.exp(-X)))


@pytest.fixture
def front():
    """A front end that no operator here computes, and a network behind it."""
    model = TfliteFile()
    x = model.input("audio", [1, 8])
    y = model.op("TFLite_Spectrogram", [x], "front/bands", [1, 4])
    y = model.op("TANH", [y], "front/levels;Tanh", [1, 4])
    model.output(model.op("LOGISTIC", [y], "scores", [1, 4]))
    return model


@pytest.mark.parametrize(("name", "ops"), [("front_bands", 2), ("front/levels;Tanh", 1)])
def test_a_network_behind_what_the_host_computes(name, ops, read, front):
    graph = read(front, inputs=[name])
    assert len(graph.nodes) == ops
    assert graph.outputs == ("scores",)
    (source,) = graph.inputs
    assert graph.tensor(source).shape == (1, 4)
    levels = X if ops == 1 else np.tanh(X)
    found = run_float(simplify(graph), {source: X})
    np.testing.assert_allclose(found["scores"], 1 / (1 + np.exp(-levels)))


def test_a_beginning_that_nothing_reads_is_refused(read, front):
    with pytest.raises(UsageError, match="no result needs 'front/bands', where the graph should"):
        read(front, inputs=["front_bands", "front_levels"])
    with pytest.raises(UsageError, match="there is no value 'bands' to begin the graph at"):
        read(front, inputs=["bands"])


def test_keyword_transformer_as_published(attention, rng):
    """Its audio front end frames by indices of two axes; what is behind can be left alone."""
    path = attention / "kwt1" / "kwt1.tflite"
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(str(path))
    interpreter.allocate_tensors()
    x = rng.normal(0, 0.1, (1, 16000)).astype(np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    found = run_float(simplify(load(path)), {"input_1": x})
    np.testing.assert_allclose(*found.values(), expected, atol=1e-4)
    behind = simplify(load(path, inputs=["speech_features_normalizer_truediv"]))
    assert sum(node.op == "normalize" for node in behind.nodes) == 24
    assert [behind.tensor(name).shape for name in behind.inputs] == [(98, 40)]


@pytest.fixture
def strips():
    """Two results of one name, as networks have them that are computed strip by strip."""
    model = TfliteFile()
    x = model.input("x", [1, 4])
    y = model.op("TANH", [x], "head/y", [1, 4])
    y = model.op("RELU", [y], "head/y", [1, 4])
    model.output(model.op("LOGISTIC", [y], "z", [1, 4]))
    return model


@pytest.mark.parametrize(("name", "ops"), [("head_y", ["tanh"]), ("head_y_1", ["tanh", "relu"])])
def test_values_of_one_name_have_their_own_in_the_graph(name, ops, read, strips):
    assert name in {node.name for node in read(strips).nodes}
    graph = read(strips, outputs=[name])
    assert [node.op for node in graph.nodes] == ops
    assert graph.outputs == (name,)


def test_a_name_of_several_values_is_refused(read, strips):
    reason = r"2 values are named 'head/y'; give one as the graph has them: head_y, head_y_1"
    with pytest.raises(UsageError, match=reason):
        read(strips, outputs=["head/y"])


def test_what_the_results_do_not_need_is_left_out(read, detector):
    graph = read(detector, outputs=["head_scores"])
    assert (graph.inputs, [node.op for node in graph.nodes]) == (("image",), ["sigmoid"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": ["head_score"]}, "no value 'head_score' to cut .* such as 'head_scores'"),
        ({"bind": {"gains": 1}}, "no input 'gains' to bind"),
        ({"bind": {"gain": 1e6}}, "the input 'gain' is int8, which has no 1e\\+06"),
    ],
)
def test_names_and_numbers_that_are_not_there(options, message, read, detector):
    with pytest.raises(UsageError, match=message):
        read(detector, **options)


def test_pixels_that_are_cast_are_real_numbers(read):
    model = TfliteFile()
    x = model.input("x", [1, 2, 2, 3], "uint8")
    options = ("CastOptions", {"InDataType": 3, "OutDataType": 0})
    real = model.op("CAST", [x], "real", [1, 2, 2, 3], options=options)
    model.output(model.op("TANH", [real], "y", [1, 2, 2, 3]))
    graph = read(model)
    args = graph.tensor("x").quant.args
    assert (args["scale"], args["zero_point"], args["bits"], args["signed"]) == (1.0, 0, 8, False)
    assert [node.op for node in simplify(graph).nodes] == ["tanh"]
    model.output(x)
    assert read(model).tensor("x").dtype == "integer"
