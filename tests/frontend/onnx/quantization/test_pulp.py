"""Integer networks of PULP's exporters, operator by operator, and those that they publish."""

import math

import numpy as np
import pytest

from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.samples.samples import Samples

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")
helper = onnx.helper


def tensor(value):
    return onnx.numpy_helper.from_array(np.float32(value))


def requant(name, source, result, mul, div, *, add=0, signed=1):
    """Return a RequantShift whose constants have its name."""
    return (
        helper.make_node(
            "RequantShift", [source, f"{name}_m", f"{name}_a"], [result], name, div=tensor(div),
            n_levels_out=tensor(256), signed=tensor(signed),
        ),
        {f"{name}_m": np.float32(mul), f"{name}_a": np.float32(add)},
    )  # fmt: skip


def model(node, constants=(), *, shape=(1, 3, 8), mul=None, div=1 << 10, domain=""):
    """Return a network: codes that are requantized, a node, and maybe another requantization."""
    node.domain = domain
    first, numbers = requant("first", "x", "c", 1, 1)
    numbers = {**numbers, **dict(constants)}
    nodes = [first, node]
    if mul is not None:
        last, more = requant("last", "n", "y", mul, div)
        nodes.append(last)
        numbers |= more
    info = [helper.make_tensor_value_info(name, 1, extents)
            for name, extents in (("x", shape), ("y", None))]  # fmt: skip
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in numbers.items()]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], tensors)
    opsets = [helper.make_opsetid("", 10), helper.make_opsetid("PACTOps", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def shift(value, mul, div):
    """A requantization of Deeploy's, halves up, to 8 signed bits."""
    return min(max((value * mul + div // 2) // div, -128), 127)


def c_quotient(dividend, divisor):
    return int(math.copysign(abs(dividend) // divisor, dividend))


def gelu(x, b, one):
    """Deeploy's kernel."""
    sign = (x > 0) - (x < 0)
    q = min(abs(x), -b)
    return x * ((one + sign * (one - (q + b) ** 2)) >> 1)


def hard_swish(x, three, six, sixth):
    return x * (min(max(x + three, 0), six) * sixth)


def of_each(function, *numbers):
    return lambda x: [shift(function(value, *numbers), 13, 1 << 14) for value in x]


def divided(x, numerator, divisor):
    """quantlib's module."""
    return math.floor((2 * x * numerator + divisor) / (2 * divisor))


def softmax_of_ita(row):
    shifts = [(max(row) - x + 16) >> 5 for x in row]
    inverse = 255 * 256 // sum(256 >> s for s in shifts)
    return [inverse >> s for s in shifts]


def softmax_of_parabolas(row, log2=64, a=1, b=86, c=3888, levels=256):
    e = []
    for x in row:
        z = (max(row) - x) // log2
        e.append((a * (x - max(row) + z * log2 + b) ** 2 + c) >> z)
    return [x * (levels - 1) // sum(e) for x in e]


WEIGHT = [90_000, -70_000, 123_456, 5, -1, 40_000, 80_000, -99_999]
BIAS = [1_000_000, -3, 70_000, -2_000_000, 0, 1, 16_384, -16_385]


def layer_norm(row):
    mean = c_quotient(sum(row), len(row))
    deviation = math.isqrt(sum((x - mean) ** 2 for x in row) // len(row) + 1)
    found = [(c_quotient((x - mean) * w, deviation) + b) >> 14
             for x, w, b in zip(row, WEIGHT, BIAS, strict=True)]  # fmt: skip
    return [min(max(y, -128), 127) for y in found]


def rms_norm(row):
    deviation = math.isqrt(sum(x * x for x in row) // len(row) + 1)
    found = [c_quotient(x * w, deviation) >> 10 for x, w in zip(row, WEIGHT, strict=True)]
    return [min(max(y, -128), 127) for y in found]


NUMBERS = {"w": np.float32(WEIGHT), "b": np.float32(BIAS)}
COEFFICIENTS = {"log2": 64, "coeffA": 1, "coeffB": 86, "coeffC": 3888, "n_levels": 256}


def node(op, inputs=("c",), result="y", **attrs):
    return helper.make_node(op, list(inputs), [result], "node", **attrs)


def tensors(**attrs):
    return {name: tensor(value) for name, value in attrs.items()}


ROWS = {
    "iGELU": (
        lambda: model(node("iGELU", result="n", b=-40, one=1743), mul=13, div=1 << 14),
        of_each(gelu, -40, 1743),
    ),
    "iHardswish": (
        lambda: model(
            node("iHardswish", result="n", three=122, six=244, one_over_six=42), mul=13, div=1 << 14
        ),
        of_each(hard_swish, 122, 244, 42),
    ),
    "TrueIntegerDiv": (
        lambda: model(
            node("TrueIntegerDiv", result="n", Delta=16384, eps=1, eta=200000, y=2), mul=4,
            div=1 << 16,
        ),
        lambda row: [shift(x * 8191, 4, 1 << 16) for x in row],
    ),
    "IntegerDiv": (
        lambda: model(
            node("IntegerDiv", ("c", "d"), "n", Delta=4, eps=1, eta=3), {"d": np.float32(2)},
            mul=3, div=4,
        ),
        lambda row: [shift(divided(x, 12, 7), 3, 4) for x in row],
    ),
    "ITAMax": (lambda: model(node("ITAMax", **tensors(n_levels=256))), softmax_of_ita),
    "iSoftmax": (
        lambda: model(node("iSoftmax", **tensors(**COEFFICIENTS))), softmax_of_parabolas
    ),
    "iLayerNorm": (
        lambda: model(
            node("iLayerNorm", ("c", "w", "b"), **tensors(D=1 << 14, n_levels=256)), NUMBERS
        ),
        layer_norm,
    ),
    "iRMSNorm": (
        lambda: model(node("iRMSNorm", ("c", "w"), D=1 << 10, n_levels=256),
                      {"w": NUMBERS["w"]}),
        rms_norm,
    ),
}  # fmt: skip
"""Networks of one operator, and what they make of a row of codes."""


def codes(rng, count=40, shape=(3, 8)):
    """Noise of all ranges, both ends, and constant rows."""
    found = rng.integers(-128, 128, (count, *shape))
    found[::3] //= 16
    found[1], found[2], found[4] = -128, 127, 3
    found[5, ..., ::2] = -128
    return found


def fixed_results(graph, name, x):
    fixed, _ = fix_model(graph, Samples({name: x.astype(float)}, None))
    given = quantize_inputs(fixed, {name: x.astype(float)})
    (found,) = dequantize_outputs(fixed, run_fixed(fixed, given)).values()
    return found


@pytest.mark.parametrize("domain", ["PACTOps", ""])
@pytest.mark.parametrize(("make", "expected"), ROWS.values(), ids=ROWS)
def test_operators_give_the_integers_of_their_authors(make, expected, domain, read, rng):
    proto = make()
    proto.graph.node[1].domain = domain
    graph, x = read(proto), codes(rng)
    wanted = np.array([[expected(row) for row in rows] for rows in x.tolist()])
    np.testing.assert_array_equal(run_float(graph, {"x": x.astype(float)})["y"], wanted)
    np.testing.assert_array_equal(fixed_results(graph, "x", x), wanted)
    assert len(np.unique(wanted)) > 20


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(("count", "axes"), [(8, [1]), (7, 1), (50, [1])])
def test_means_round_halves_up(count, axes, keepdims, read, rng):
    proto = model(node("IntegerMean", axes=axes, keepdims=keepdims), shape=(1, count, 3))
    x = codes(rng, 60, (count, 3))
    wanted = (2 * x.sum(1, keepdims=bool(keepdims)) + count) // (2 * count)
    graph = read(proto)
    np.testing.assert_array_equal(run_float(graph, {"x": x.astype(float)})["y"], wanted)
    np.testing.assert_array_equal(fixed_results(graph, "x", x), wanted)


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_sums_and_products_are_exact_in_front_of_a_requantization(op, read, rng):
    """They have more bits than 8, and none is lost."""
    first, numbers = requant("again", "c", "d", 3, 4)
    proto = model(node(op, ("c", "d"), "n"), numbers, mul=515, div=1 << 14 if op == "Mul" else 2048)
    proto.graph.node.insert(1, first)
    x = codes(rng)
    d = np.vectorize(lambda value: shift(value, 3, 4))(x)
    exact = x + d if op == "Add" else x * d
    div = 1 << 14 if op == "Mul" else 2048
    wanted = ((exact * 515 + div // 2) // div).clip(-128, 127)
    graph = read(proto)
    np.testing.assert_array_equal(run_float(graph, {"x": x.astype(float)})["y"], wanted)
    np.testing.assert_array_equal(fixed_results(graph, "x", x), wanted)
    assert len(np.unique(wanted)) > 50


HOSTILE = {
    "levels of ITA": (node("ITAMax", **tensors(n_levels=128)), "there are 128 levels"),
    "groups": (
        node("ITAPartialMax", group_width=16, **tensors(n_levels=256)), "sums of groups of 16 codes"
    ),
    "wide exponentials": (
        node("iSoftmax", **tensors(**{**COEFFICIENTS, "coeffB": 400})), "another number of bits"
    ),
    "no exponentials": (
        node("iSoftmax", **tensors(**{**COEFFICIENTS, "coeffB": 0, "coeffC": 0})), "of 0 it is 0"
    ),
    "log2": (node("iSoftmax", **tensors(**{**COEFFICIENTS, "log2": 0})), "log2 is 0"),
    "many levels": (
        node("iSoftmax", **tensors(**{**COEFFICIENTS, "n_levels": 512})), "there are 512 levels"
    ),
    "odd levels": (
        node("iSoftmax", **tensors(**{**COEFFICIENTS, "n_levels": 100})), "there are 100 levels"
    ),
    "divisor": (
        node("iLayerNorm", ("c", "w", "b"), **tensors(D=1000, n_levels=256)), "divides by 1000"
    ),
    "fraction": (
        node("iLayerNorm", ("c", "w", "b"), **tensors(D=2.5, n_levels=256)), "D is 2.5, no integer"
    ),
    "missing bias": (
        node("iLayerNorm", ("c", "w"), **tensors(D=1024, n_levels=256)), "has 2 inputs"
    ),
    "weights": (
        node("iRMSNorm", ("c", "short"), D=1024, n_levels=256), "the weight has 3 numbers for 8"
    ),
    "fractions": (
        node("iRMSNorm", ("c", "halves"), D=1024, n_levels=256), "has numbers that are no integers"
    ),
    "large weights": (
        node("iRMSNorm", ("c", "large"), D=1024, n_levels=256), "use numbers below 2147483648"
    ),
    "axis": (node("iRMSNorm", ("c", "w"), D=1024, n_levels=256, axis=1), "axis 1 of 3 is not"),
    "stash": (node("iRMSNorm", ("c", "w"), D=1024, n_levels=256, stash_type=10), "stash_type is"),
    "b": (node("iGELU", b=3, one=4), "b is 3"),
    "six": (node("iHardswish", three=1, six=-2, one_over_six=1), "six is -2"),
    "eta": (node("TrueIntegerDiv", Delta=4, eps=1, eta=0, y=2), "eta 0"),
    "zero": (node("TrueIntegerDiv", Delta=4, eps=0, eta=1, y=0), "the divisor y * eta + eps 0"),
    "computed": (
        node("IntegerDiv", ("c", "c"), Delta=4, eps=1, eta=1), "computed when the network runs"
    ),
    "keepdims": (node("IntegerMean", axes=[1], keepdims=2), "keepdims is 2"),
    "no integers": (node("IntegerMean", ("x",), axes=[1]), "is not known"),
}  # fmt: skip
ODD = {
    **NUMBERS, "short": np.float32([1, 2, 3]), "halves": np.float32([0.5] * 8),
    "large": np.float32([2.0**31] * 8),
}  # fmt: skip


@pytest.mark.parametrize(("made", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_not_computed_is_one_located_error(made, reason, check_refused):
    check_refused(model(made, ODD, domain="PACTOps"), f"PACTOps.{made.op_type}", reason)


def arrays(path):
    with np.load(path) as file:
        return dict(file)


def published(folder):
    """Return a network's inputs and golden outputs, in its own order, and its file."""
    given, golden = (
        list(arrays(folder / f"{name}.npz").values()) for name in ("inputs", "outputs")
    )
    return folder / "network.onnx", given, golden


def results(graph, given):
    """Return the results of the float reference and of the fixed network."""
    x = {name: values.astype(float) for name, values in zip(graph.inputs, given, strict=True)}
    fixed, _ = fix_model(graph, Samples(x, None))
    found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, x)))
    return run_float(graph, x), found


class TestPublished:
    """Networks of Deeploy's with golden outputs, code for code."""

    @pytest.mark.parametrize("name", ["ICCT", "INT8_microLlama1", "INT8_microLlama16"])
    def test_golden_outputs(self, name, attention):
        path, given, golden = published(attention / "deeploy" / name)
        graph = load(path)
        for found in results(graph, given):
            for output, expected in zip(graph.outputs, golden, strict=True):
                np.testing.assert_array_equal(found[output].reshape(expected.shape), expected)

    def test_golden_activations(self, attention):
        """Every one of them in real numbers, and those that are codes in the fixed network."""
        folder = attention / "deeploy" / "ICCT"
        path, given, _ = published(folder)
        golden = arrays(folder / "activations.npz")
        nodes = {
            one.name.strip("_").removesuffix(f"_{one.op_type}").lower().replace(".", "_"): one
            for one in onnx.load(path).graph.node
        }
        values, is_code = {}, {}
        for key, expected in golden.items():
            name = key[max(key.rfind("ql_replaced__"), 0) :].removeprefix("tokenizer_")
            found = nodes[name]
            values[found.output[0]] = expected
            is_code[found.output[0]] = found.op_type in {"RequantShift", "MaxPool", "iLayerNorm"}
        assert len(values) == len(golden) == 29
        assert sum(is_code.values()) == 20
        real, _ = results(load(path, outputs=list(values)), given)
        for found, expected in zip(real.values(), values.values(), strict=True):
            np.testing.assert_array_equal(found, expected)
        kept = [name for name in values if is_code[name]]
        _, fixed = results(load(path, outputs=kept), given)
        for found, name in zip(fixed.values(), kept, strict=True):
            np.testing.assert_array_equal(found.reshape(values[name].shape), values[name])
