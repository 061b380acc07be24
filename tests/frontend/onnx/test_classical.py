"""Models as scikit-learn's exporter writes them: scalers, linear models, names of classes."""

import numpy as np
import pytest

from nnef_hw.architectures import ARCHITECTURES
from nnef_hw.errors import ErrorGroup, NnefHwError
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import quantize_inputs, run_fixed, run_float
from nnef_hw.report.check import check_model

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

ML = "ai.onnx.ml"
OFFSET, SCALE = [0.5, -1.0, 2.0], [2.0, 0.25, 1.0]
FILTER = np.array([[1.0, -2.0, 0.5], [0.25, 1.0, -1.0], [-1.0, 0.5, 2.0], [0.0, 1.0, 1.0]], "f4")
BIAS = np.array([0.1, -0.2, 0.3, 0.0], "f4")


def model(*nodes, outputs, classes=None, **arrays):
    """Return a model of three features; nodes are (operator, inputs, outputs, attributes)."""
    own = {"Scaler", "LinearClassifier", "LinearRegressor", "Normalizer", "ZipMap",
           "ArrayFeatureExtractor"}  # fmt: skip
    made = [
        onnx.helper.make_node(
            op, ins.split(), outs.split(), domain=ML if op in own else "", **attrs
        )
        for op, ins, outs, attrs in nodes
    ]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    if classes is not None:
        kind = onnx.TensorProto.STRING if isinstance(classes[0], str) else onnx.TensorProto.INT64
        tensors.append(onnx.helper.make_tensor("classes", kind, [len(classes)], classes))
    x = onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, 3])
    results = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(ML, 1)]
    graph = onnx.helper.make_graph(made, "net", [x], results, tensors)
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def linear_classifier(**attrs):
    return (
        "LinearClassifier", "scaled", "label scores",
        {"coefficients": FILTER.ravel(), "intercepts": BIAS, **attrs},
    )  # fmt: skip


SCALER = ("Scaler", "X", "scaled", {"offset": OFFSET, "scale": SCALE})
PERCEPTRON = (
    SCALER,
    ("MatMul", "scaled w", "product", {}),
    ("Add", "product b", "sums", {}),
    ("Softmax", "sums", "probabilities", {}),
    ("ArgMax", "probabilities", "index", {"axis": 1}),
    ("ArrayFeatureExtractor", "classes index", "taken", {}),
    ("Reshape", "taken shape", "label", {}),
    ("ZipMap", "probabilities", "output_probability", {"classlabels_int64s": [0, 1, 2, 3]}),
)


@pytest.fixture
def x(rng):
    return rng.normal(size=(40, 3)) * 2


@pytest.fixture
def scores(x):
    return (x - OFFSET) * SCALE @ FILTER.T + BIAS


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"post_transform": "SOFTMAX"}, softmax),
        ({"post_transform": "LOGISTIC"}, lambda y: 1 / (1 + np.exp(-y))),
        ({"post_transform": "NONE"}, lambda y: y),
    ],
    ids=["softmax", "logistic", "none"],
)
def test_classifier(read, x, scores, attrs, expected):
    node = linear_classifier(classlabels_ints=[0, 1, 2, 3], **attrs)
    graph = read(model(SCALER, node, outputs=["label", "scores"]))
    found = run_float(graph, {"X": x})
    np.testing.assert_allclose(found["scores"], expected(scores), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found["label"].ravel(), scores.argmax(axis=1))


def test_probabilities_need_no_norm(read):
    node = linear_classifier(classlabels_ints=[0, 1, 2, 3], post_transform="SOFTMAX")
    norm = ("Normalizer", "scores", "shares", {"norm": "L1"})
    graph = read(model(SCALER, node, norm, outputs=["shares"]))
    assert [node.op for node in graph.nodes][-1] == "softmax"


@pytest.mark.parametrize(
    ("norm", "function"),
    [
        ("L1", lambda x: np.abs(x).sum(axis=1)),
        ("L2", lambda x: np.sqrt((x**2).sum(axis=1))),
        ("MAX", lambda x: x.max(axis=1)),
    ],
)
def test_norms(read, x, norm, function):
    graph = read(model(("Normalizer", "X", "y", {"norm": norm}), outputs=["y"]))
    np.testing.assert_allclose(run_float(graph, {"X": x})["y"], x / function(x)[:, None])


def test_regressor(read, x, scores):
    attrs = {"coefficients": FILTER.ravel(), "intercepts": BIAS, "targets": 4}
    node = ("LinearRegressor", "scaled", "y", attrs)
    found = run_float(read(model(SCALER, node, outputs=["y"])), {"X": x})["y"]
    np.testing.assert_allclose(found, scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("classes", "labels"),
    [([0, 1, 2, 3], [0, 1, 2, 3]), ([7, 5, 3, 11], [7, 5, 3, 11]), (list("abcd"), [0, 1, 2, 3])],
    ids=["positions", "numbers", "names"],
)
def test_labels(read, x, scores, classes, labels):
    graph = read(perceptron(classes))
    found = run_float(graph, {"X": x})
    assert graph.outputs == ("label", "output_probability")
    np.testing.assert_array_equal(found["label"].ravel(), np.array(labels)[scores.argmax(axis=1)])
    np.testing.assert_allclose(found["output_probability"], softmax(scores), atol=1e-6)


def perceptron(classes):
    return model(
        *PERCEPTRON, outputs=["label", "output_probability"], classes=classes, w=FILTER.T.copy(),
        b=BIAS, shape=np.array([-1]),
    )  # fmt: skip


def test_a_classifier_can_be_built(read, x):
    graph = read(perceptron(list("abcd")))
    assert check_model(graph, ARCHITECTURES[0]) == []
    fixed = quantize(simplify(graph), {"X": x})
    assert "sub" not in {node.op for node in fixed.nodes}  # the scaler is in the filter
    codes = run_fixed(fixed, quantize_inputs(fixed, {"X": x}))
    best = codes["output_probability"].reshape(40, 4).argmax(axis=1)
    np.testing.assert_array_equal(codes["label"].ravel(), best)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([linear_classifier(classlabels_ints=[0, 1])], "there are 12 coefficients for 3 features"),
        ([linear_classifier()], "exactly one of classlabels_ints and classlabels_strings"),
        (
            [linear_classifier(classlabels_ints=[0, 1, 2, 3], post_transform="PROBIT")],
            "the function 'PROBIT' of the scores is not supported",
        ),
        ([("Normalizer", "X", "label", {"norm": "L3"})], "norm is 'L3'"),
        (
            [("Scaler", "X", "label", {"offset": [1.0, 2.0], "scale": [1.0]})],
            "offset has 2 numbers for 3 features",
        ),
        ([("Scaler", "X", "label", {"offset": [np.inf], "scale": [1.0]})], "not finite"),
    ],
)
def test_what_makes_no_sense_is_refused(read, nodes, message):
    with pytest.raises((NnefHwError, ErrorGroup), match=message):
        read(model(("Scaler", "X", "scaled", {"offset": [0.0], "scale": [1.0]}), *nodes,
                   outputs=["label"]))  # fmt: skip


def test_names_that_something_else_reads_are_refused(read):
    nodes = (*PERCEPTRON, ("Identity", "classes", "copy", {}))
    proto = model(*nodes, outputs=["label", "copy"], classes=list("abcd"), w=FILTER.T.copy(),
                  b=BIAS, shape=np.array([-1]))  # fmt: skip
    with pytest.raises(NnefHwError, match="element type string"):
        read(proto)
