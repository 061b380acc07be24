"""Quantization of any width: QONNX's operators as their documents state them, and as qonnx runs."""

import logging

import numpy as np
import pytest

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.errors import NnefHwError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.reference.real.quantize import encode

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

GENERAL, BREVITAS, FINN = "qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"

ROUNDING = {
    "ROUND": np.round, "HALF_EVEN": np.round, "FLOOR": np.floor, "CEIL": np.ceil, "DOWN": np.trunc,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5),
}  # fmt: skip


def model(op, x, *constants, domain=GENERAL, imported=True, opset=13, **attrs):
    """Return ``y = op(x, constants)``; an array x is constant, and then added to an input."""
    names = [f"p{index}" for index in range(len(constants))]
    is_constant = isinstance(x, np.ndarray)
    shape = x.shape if is_constant else x
    helper = onnx.helper
    nodes = [helper.make_node(op, ["w" if is_constant else "x", *names], ["q"], name="node",
                              domain=domain, **attrs)]  # fmt: skip
    nodes.append(helper.make_node("Add", ["q", "x"] if is_constant else ["q", "nil"], ["y"]))
    tensors = [onnx.numpy_helper.from_array(np.float32(c), n)
               for n, c in zip(names, constants, strict=True)]  # fmt: skip
    tensors.append(onnx.numpy_helper.from_array(np.float32(0), "nil"))
    if is_constant:
        tensors.append(onnx.numpy_helper.from_array(x.astype(np.float32), "w"))
    info = [helper.make_tensor_value_info(n, 1, shape) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], tensors)
    opsets = [helper.make_opsetid("", opset)]
    if imported and domain:
        opsets.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def expected_quant(x, scale, zero, bits, signed=1, narrow=0, rounding_mode="ROUND"):
    """``(round(clip(x / scale + zero)) - zero) * scale``."""
    lo, hi = (-(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1) if signed else (
        0, 2**bits - 1 - narrow)  # fmt: skip
    codes = ROUNDING[rounding_mode](np.clip(x / scale + zero, lo, hi))
    return (codes - zero) * scale


def noise(rng, shape, scale):
    """Return numbers of which none lies halfway between two codes."""
    x = rng.normal(size=shape) * scale
    return x + 0.01 * np.min(scale) * (np.abs(x / scale % 1 - 0.5) < 0.005)


FORMATS = {
    "signed-8": (8, 1, 0, 0), "narrow-8": (8, 1, 1, 0), "signed-2": (2, 1, 0, 0),
    "ternary": (2, 1, 1, 0), "unsigned-3": (3, 0, 0, 0), "unsigned-1": (1, 0, 0, 0),
    "zero-point": (4, 0, 0, 5), "signed-zero-point": (6, 1, 0, -3), "narrow-unsigned": (4, 0, 1, 0),
    "wide": (12, 1, 0, 0),
}  # fmt: skip


HOSTILE = {
    "scale-0": ("Quant", (0.0, 0, 4), {}, "a scale is 0"),
    "scale-nan": ("Quant", (np.nan, 0, 4), {}, "a scale is nan"),
    "scale-negative": ("BipolarQuant", (-1.0,), {}, "a scale is -1"),
    "scale-shape": ("Quant", (np.ones(3), 0, 4), {}, "the scale of shape [3] does not fit"),
    "zero-point": ("Quant", (1.0, 0.5, 4), {}, "a zero point is 0.5, no integer"),
    "zero-point-infinite": ("Quant", (1.0, np.inf, 4), {}, "a zero point is inf"),
    "bits-0": ("Quant", (1.0, 0, 0), {}, "the number of bits is 0"),
    "bits-fraction": ("Quant", (1.0, 0, 2.5), {}, "the number of bits is 2.5"),
    "bits-nan": ("Quant", (1.0, 0, np.nan), {}, "the number of bits is nan"),
    "bits-many": ("Quant", (1.0, 0, 1e9), {}, "the number of bits is 1e+09"),
    "bits-list": ("Quant", (1.0, 0, [4, 4]), {}, "the number of bits has 2 elements"),
    "mode": ("Quant", (1.0, 0, 4), {"rounding_mode": "NEAREST"}, "no rounding mode 'NEAREST'"),
    "mode-of-activation": ("Quant", (1.0, 0, 4), {"rounding_mode": "CEIL"}, "the mode CEIL"),
    "flag": ("Quant", (1.0, 0, 4), {"signed": 7}, "signed is 7, not 0 or 1"),
    "type": ("Quant", (1.0, 0, 4), {"signed": "yes"}, "'signed' is not of type INT"),
    "unknown": ("Quant", (1.0, 0, 4), {"exponent": 3}, "there is no attribute 'exponent'"),
    "arity": ("Quant", (1.0,), {}, "it has 2 inputs, but takes 4"),
    "trunc-more": ("Trunc", (1.0, 0, 4, 6), {}, "4 bits are cut to 6"),
    "thresholds": ("MultiThreshold", (np.zeros((3, 2)),), {}, "thresholds of shape [3, 2]"),
    "threshold-nan": ("MultiThreshold", (np.full((1, 2), np.nan),), {}, "is not finite"),
    "layout": ("MultiThreshold", (np.zeros((1, 2)),), {"data_layout": "NCHW"}, "data_layout"),
    "no-steps": ("MultiThreshold", (np.zeros((1, 0)),), {}, "thresholds of shape [1, 0]"),
    "out-scale": ("MultiThreshold", (np.zeros((1, 2)),), {"out_scale": -1.0}, "out_scale -1"),
}  # fmt: skip


class TestQuant:
    @pytest.mark.parametrize("domain", [GENERAL, BREVITAS, FINN, "finn", "qonnx", ""])
    @pytest.mark.parametrize("imported", [True, False])
    def test_any_name_of_the_domain_is_read(self, read, rng, domain, imported):
        graph = read(model("Quant", [1, 4], 0.5, 0, 4, domain=domain, imported=imported))
        x = noise(rng, (20, 4), 2.0)
        np.testing.assert_allclose(
            run_float(graph, {"x": x})["y"], expected_quant(x, 0.5, 0, 4), atol=1e-9
        )

    @pytest.mark.parametrize(("bits", "signed", "narrow", "zero"), FORMATS.values(), ids=FORMATS)
    @pytest.mark.parametrize("constant", [False, True], ids=["activation", "constant"])
    def test_formats(self, read, rng, bits, signed, narrow, zero, constant):
        scale = np.float32(0.3)
        x = noise(rng, (3, 4), scale * 2**bits).astype(np.float32)
        source = x if constant else [3, 4]
        graph = read(model("Quant", source, scale, zero, bits, signed=signed, narrow=narrow))
        given = np.zeros_like(x) if constant else x
        expected = expected_quant(x, scale, zero, bits, signed, narrow)
        found = run_float(graph, {"x": given[None]})["y"][0]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        (quant,) = [tensor.quant for tensor in graph.tensors.values() if tensor.quant]
        assert quant.args["bits"] == bits
        assert (quant.args["signed"], quant.args["zero_point"]) == (bool(signed), zero)
        assert quant.args["symmetric"] == bool(signed and narrow)

    @pytest.mark.parametrize("mode", ["ROUND", "HALF_EVEN", "FLOOR"])
    def test_halves_of_activations_round_as_the_mode_says(self, read, mode):
        x = np.array([[-2.5, -2.0, -1.5, -0.5, 0.5, 1.5, 2.5, 3.0]])
        graph = read(model("Quant", [1, 8], 1.0, 0, 4, rounding_mode=mode))
        np.testing.assert_array_equal(run_float(graph, {"x": x})["y"], ROUNDING[mode](x))

    @pytest.mark.parametrize("mode", ROUNDING)
    def test_constants_round_in_every_mode(self, read, mode):
        x = np.array([[-2.5, -1.75, -0.5, -0.25], [0.5, 1.5, 1.75, 2.25]])
        graph = read(model("Quant", x, 1.0, 0, 4, rounding_mode=mode))
        found = run_float(graph, {"x": np.zeros((1, 2, 4))})["y"][0]
        np.testing.assert_array_equal(found, ROUNDING[mode](x))

    @pytest.mark.parametrize("mode", ["ROUND", "round", "FLOOR", "HALF_UP"])
    def test_activations_round_to_the_nearest_or_down(self, read, rng, mode):
        graph = read(model("Quant", [1, 40], 0.25, 0, 5, rounding_mode=mode))
        x = np.concatenate([noise(rng, (1, 20), 1.0), np.arange(-10, 10)[None] / 4], 1)
        expected = expected_quant(x, 0.25, 0, 5, rounding_mode=mode.upper())
        np.testing.assert_allclose(run_float(graph, {"x": x})["y"], expected, atol=1e-9)

    @pytest.mark.parametrize("scale", [0.1, 0.3, 0.7, 1.9])
    def test_codes_that_are_rounded_down_stay(self, read, scale):
        codes = np.arange(-128, 128)[None]
        graph = read(model("Quant", [1, 256], scale, 0, 8, rounding_mode="FLOOR"))
        x = codes * float(np.float32(scale))
        np.testing.assert_allclose(run_float(graph, {"x": x})["y"], x, rtol=1e-6)

    def test_channels_have_scales_of_their_own(self, read, rng):
        scale = np.array([0.5, 0.25, 2.0]).reshape(3, 1)
        x = noise(rng, (3, 8), scale).astype(np.float32)
        graph = read(model("Quant", x, scale, 0, 4, narrow=1))
        (weights,) = [tensor for tensor in graph.tensors.values() if tensor.quant]
        np.testing.assert_array_equal(weights.data, expected_quant(x, scale, 0, 4, narrow=1))
        np.testing.assert_array_equal(
            encode(weights.data, weights.quant), np.rint(np.clip(x / scale, -7, 7))
        )

    @pytest.mark.parametrize(("op", "constants", "attrs", "reason"), HOSTILE.values(), ids=HOSTILE)
    def test_hostile_attributes_are_one_located_error(
        self, check_refused, op, constants, attrs, reason
    ):
        check_refused(model(op, [1, 4], *constants, **attrs), f"{GENERAL}.{op}", reason)

    def test_steps_that_are_computed_are_refused(self, read):
        proto = model("Quant", [1, 4], 0.5, 0, 4)
        proto.graph.node[0].input[1] = "x"
        with pytest.raises(NnefHwError, match="the scale 'x' is computed when the network runs"):
            read(proto)


class TestBipolar:
    @pytest.mark.parametrize(
        ("op", "constants"), [("BipolarQuant", (0.5,)), ("Quant", (0.5, 0, 1))]
    )
    def test_the_sign_of_zero_is_positive(self, read, op, constants):
        graph = read(model(op, [1, 4], *constants))
        x = np.array([[0.0, -0.0, -1e-3, 7.0]])
        assert run_float(graph, {"x": x})["y"].tolist() == [[0.5, 0.5, -0.5, 0.5]]

    def test_weights_are_of_one_bit(self, read, rng):
        scale = np.array([[0.5], [2.0]])
        x = rng.normal(size=(2, 5))
        (weights,) = [
            tensor
            for tensor in read(model("BipolarQuant", x, scale)).tensors.values()
            if tensor.quant
        ]
        np.testing.assert_array_equal(weights.data, np.where(x >= 0, scale, -scale))
        assert weights.quant.args["bits"] == 1
        np.testing.assert_array_equal(encode(weights.data, weights.quant), x >= 0)


class TestTrunc:
    @pytest.mark.parametrize("mode", ["FLOOR", "ROUND"])
    @pytest.mark.parametrize("quantized", [True, False])
    def test_low_bits_are_dropped(self, read, mode, quantized):
        codes = np.arange(-120, 121)[None]
        proto = model("Trunc", [1, 241], 0.3, 0, 8, 1.2, 6, rounding_mode=mode)
        if quantized:
            node = onnx.helper.make_node("Quant", ["x", "p0", "p1", "p2"], ["c"], domain=GENERAL)
            proto.graph.node[0].input[0] = "c"
            proto.graph.node.insert(0, node)
        kept = codes % 4 != 2 if mode == "ROUND" else codes > -999
        scale = np.float32(0.3)
        found = run_float(read(proto), {"x": codes * scale})["y"]
        expected = ROUNDING[mode](codes / 4) * np.float32(1.2)
        np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-6)

    @pytest.mark.parametrize("scale", [0.41, 0.37, 0.43, 0.39])
    def test_whole_codes_stay_in_other_steps(self, read, scale):
        codes = np.arange(-128, 128, 4)[None]
        proto = model("Trunc", [1, 64], 0.1, 0, 8, scale, 6, rounding_mode="FLOOR")
        found = run_float(read(proto), {"x": codes * float(np.float32(0.1))})["y"]
        np.testing.assert_allclose(found, codes / 4 * np.float32(scale), rtol=1e-6)

    @pytest.mark.parametrize("cut", [(4,), (1.6, 4)])
    def test_averages_of_codes_are_exact(self, read, cut):
        """Brevitas' average pools: a mean, times the number of pixels, without the low bits."""
        proto = model("Trunc", [1, 2, 4, 8], 0.1, 0, 8, *cut, rounding_mode="FLOOR", signed=0)
        helper = onnx.helper
        nodes = [
            helper.make_node("Quant", ["x", "p0", "p1", "four"], ["c"], domain=GENERAL, signed=0),
            helper.make_node("AveragePool", ["c"], ["m"], kernel_shape=[4, 4], strides=[4, 4]),
            helper.make_node("Mul", ["m", "count"], ["s"]),
        ]
        proto.graph.node.pop()
        proto.graph.node[0].input[0], proto.graph.node[0].output[0] = "s", "y"
        for node in reversed(nodes):
            proto.graph.node.insert(0, node)
        constants = {"four": 4.0, "count": 16.0}
        proto.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.float32(value), name)
            for name, value in constants.items()
        )
        graph = quantize(simplify(read(proto)), None)
        codes = np.random.default_rng(1).integers(0, 16, (400, 2, 4, 8))
        sums = codes.reshape(400, 2, 4, 2, 4).sum(axis=(2, 4))
        found = run_fixed(graph, {"x": codes})["y"]
        np.testing.assert_array_equal(found.reshape(sums.shape), sums // 16)

    def test_older_files_keep_the_scale(self, read):
        codes = np.arange(0, 256)[None]
        found = run_float(read(model("Trunc", [1, 256], 0.5, 0, 8, 4)), {"x": codes * 0.5})["y"]
        np.testing.assert_allclose(found, codes // 16 * 0.5)


THRESHOLDS = {
    "equal": ([[-1.0, 0.0, 1.0]], {"out_scale": 0.5}),
    "signed": ([[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]], {"out_scale": 0.5, "out_bias": -2.0}),
    "channels": ([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [0.5, 1.0, 1.5]], {}),
    "bipolar": ([[-1.0], [0.0], [0.5]], {"out_scale": 2.0, "out_bias": -1.0}),
    "uneven": ([[-1.0, 0.0, 7.0], [-2.0, 0.0, 2.0], [2.5, 1.0, 1.5]], {"out_bias": 0.5}),
    "last": ([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.5]], {"data_layout": "NHWC"}),
}


class TestMultiThreshold:
    @pytest.mark.parametrize(("thresholds", "attrs"), THRESHOLDS.values(), ids=THRESHOLDS)
    def test_thresholds_reached_are_counted(self, read, rng, thresholds, attrs):
        last = attrs.get("data_layout") == "NHWC"
        x = rng.integers(-8, 9, (50, 3, 4, 2)) / 2
        graph = read(model("MultiThreshold", [1, 3, 4, 2], thresholds, out_dtype="INT4", **attrs))
        table = np.array(thresholds)
        table = table if last else table[:, None, None]
        count = (x[..., None] >= table).sum(-1)
        expected = count * attrs.get("out_scale", 1.0) + attrs.get("out_bias", 0.0)
        np.testing.assert_array_equal(run_float(graph, {"x": x})["y"], expected)

    def test_equal_steps_are_a_format(self, read):
        thresholds, attrs = THRESHOLDS["signed"]
        graph = read(model("MultiThreshold", [1, 4], thresholds, **attrs))
        (quant,) = [tensor.quant for tensor in graph.tensors.values() if tensor.quant]
        args = quant.args
        assert (args["bits"], args["signed"], args["scale"]) == (3, True, 0.5)


def layered(domain=BREVITAS, batch_norm=True):
    """Return Quant -> Conv with quantized weights -> BatchNormalization -> Relu -> Quant."""
    rng = np.random.default_rng(5)
    helper = onnx.helper
    values = {
        "s": 0.125, "z": 0.0, "b4": 4.0, "b3": 3.0, "t": 0.5,
        "w": rng.normal(size=(3, 2, 3, 3)) * 0.5,
        "ws": np.reshape([0.25, 0.125, 0.5], (3, 1, 1, 1)),
        "g": np.array([1.5, -0.75, 1.0]), "b": np.array([0.1, 0.2, -0.3]),
        "m": np.array([0.5, -0.25, 0.0]), "v": np.ones(3),
    }  # fmt: skip
    nodes = [
        helper.make_node("Quant", ["x", "s", "z", "b4"], ["xq"], domain=domain),
        helper.make_node("Quant", ["w", "ws", "z", "b3"], ["wq"], domain=domain, narrow=1),
        helper.make_node("Conv", ["xq", "wq"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["n"], epsilon=0.0),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Quant", ["r", "t", "z", "b3"], ["y"], domain=domain, signed=0),
    ]
    tensors = [onnx.numpy_helper.from_array(np.float32(v), n) for n, v in values.items()]
    info = [helper.make_tensor_value_info("x", 1, [1, 2, 6, 6]),
            helper.make_tensor_value_info("y", 1, [1, 3, 6, 6])]  # fmt: skip
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


class TestBuilding:
    def test_the_formats_of_the_author_are_the_networks(self, read, rng):
        graph = read(layered())
        fixed, canonical = fix_model(graph, None)
        (layer,) = fixed.nodes
        assert layer.op == "conv"
        assert fixed.tensor("x").qtype == QType(4, True, 0.125)
        assert fixed.tensor("y").qtype == QType(3, False, 0.5)
        weights = fixed.tensor(layer.inputs[1])
        assert (weights.qtype.bits, weights.qtype.narrow) == (3, True)
        # batch normalization scales the steps; a negative scale turns codes around
        np.testing.assert_allclose(weights.qtype.scale, [0.375, 0.09375, 0.5], rtol=1e-6)
        source = graph.tensor(graph.nodes[0].inputs[1])
        codes = encode(source.data, source.quant)
        codes[1] *= -1
        np.testing.assert_array_equal(weights.data, codes)
        x = rng.normal(size=(40, 2, 6, 6))
        found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, {"x": x})))["y"]
        real = run_float(graph, {"x": x})["y"]
        np.testing.assert_allclose(found, real, atol=0.5)
        assert (found == real).mean() > 0.97
        np.testing.assert_allclose(run_float(canonical, {"x": x})["y"], real, atol=1e-9)


class TestBipolarNetwork:
    def test_comparisons_are_exact_in_integers(self, read, rng):
        values = {
            "s": 0.25, "z": 0.0, "b": 4.0, "one": 0.5,
            "v": rng.normal(size=(6, 5)), "w": rng.normal(size=(3, 6)),
            "g": rng.uniform(-2, 2, 6), "o": rng.normal(size=6), "m": rng.normal(size=6),
            "r": rng.uniform(1, 2, 6), "c": rng.normal(size=3),
        }  # fmt: skip
        helper = onnx.helper
        nodes = [
            helper.make_node("Quant", ["x", "s", "z", "b"], ["xq"], domain=FINN),
            helper.make_node("BipolarQuant", ["v", "one"], ["vq"], domain=FINN),
            helper.make_node("Gemm", ["xq", "vq"], ["h"], transB=1),
            helper.make_node("BatchNormalization", ["h", "g", "o", "m", "r"], ["n"]),
            helper.make_node("BipolarQuant", ["n", "one"], ["a"], domain=FINN),
            helper.make_node("BipolarQuant", ["w", "one"], ["wq"], domain=FINN),
            helper.make_node("Gemm", ["a", "wq", "c"], ["k"], transB=1),
            helper.make_node("BipolarQuant", ["k", "s"], ["y"], domain=FINN),
        ]
        tensors = [onnx.numpy_helper.from_array(np.float32(v), n) for n, v in values.items()]
        info = [helper.make_tensor_value_info("x", 1, [1, 5]),
                helper.make_tensor_value_info("y", 1, [1, 3])]  # fmt: skip
        graph = helper.make_graph(nodes, "net", info[:1], info[1:], tensors)
        opsets = [helper.make_opsetid("", 13)]
        loaded = read(helper.make_model(graph, opset_imports=opsets, ir_version=8))
        fixed, _ = fix_model(loaded, None)
        x = rng.normal(size=(500, 5))
        real = run_float(loaded, {"x": x})["y"]
        found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, {"x": x})))["y"]
        np.testing.assert_array_equal(found, real)
        assert set(np.unique(real)) == {-0.25, 0.25}
        filters = [fixed.tensor(node.inputs[1]).qtype for node in fixed.nodes
                   if node.op == "linear"]  # fmt: skip
        assert [qtype.is_binary for qtype in filters] == [True, True]


@pytest.fixture
def run_qonnx(tmp_path):
    """Return a function that runs a model in the executor of the ``qonnx`` package."""
    pytest.importorskip("qonnx", reason="pip install nnef-hw[crosscheck]")
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core.onnx_exec import execute_onnx

    def run(proto, x):
        logging.disable(logging.WARNING)
        try:
            wrapped = ModelWrapper(proto)
            for info in (*proto.graph.input, *proto.graph.output):
                wrapped.set_tensor_shape(info.name, list(x.shape))
            for node in proto.graph.node:
                wrapped.set_tensor_shape(node.output[0], list(x.shape))
            return execute_onnx(wrapped, {"x": x.astype(np.float32)})["y"]
        finally:
            logging.disable(logging.NOTSET)

    return run


CROSSCHECKED = {
    "quant": ("Quant", (0.3, 0, 4), {"narrow": 1}),
    "quant-unsigned": ("Quant", (0.3, 3, 3), {"signed": 0}),
    "quant-floor": ("Quant", (0.3, 0, 8), {"rounding_mode": "FLOOR"}),
    "bipolar": ("BipolarQuant", (0.7,), {}),
    "trunc": ("Trunc", (0.25, 0, 8, 1.0, 6), {"rounding_mode": "FLOOR"}),
    "thresholds": ("MultiThreshold", ([[-1.0, 0.25, 0.5]],), {"out_scale": 0.5, "out_bias": -1.0,
                                                               "out_dtype": "INT2"}),
}  # fmt: skip


@pytest.mark.parametrize(("op", "constants", "attrs"), CROSSCHECKED.values(), ids=CROSSCHECKED)
def test_results_are_those_of_qonnx(read, run_qonnx, rng, op, constants, attrs):
    levels = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"} if op == "Quant" else {}
    proto = model(op, [4, 5], *constants, **{**levels, **attrs})
    if op == "Trunc":
        del proto.opset_import[1:]
        proto.opset_import.append(onnx.helper.make_opsetid(GENERAL, 2))
    x = noise(rng, (4, 5), 0.3)
    if op == "Trunc":
        x = np.rint(x / 0.25) * 0.25
    found = run_float(read(proto), {"x": x[None]})["y"][0]
    np.testing.assert_allclose(found, run_qonnx(proto, x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("op", ["Conv", "MaxPool", "BatchNormalization"])
def test_channels_may_be_last(read, rng, op):
    x, weights = rng.normal(size=(1, 5, 5, 2)), rng.normal(size=(3, 3, 3, 2)).astype(np.float32)
    parameters = rng.uniform(0.5, 2, (4, 2)).astype(np.float32)
    inputs, attrs = {
        "Conv": ([weights], {"kernel_shape": [3, 3], "strides": [2, 2]}),
        "MaxPool": ([], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        "BatchNormalization": (list(parameters), {}),
    }[op]
    helper, names = onnx.helper, [f"p{index}" for index in range(len(inputs))]
    outputs, protos = [], []
    for domain in ("qonnx.custom_op.channels_last", ""):
        last = bool(domain)
        moved = [p if last or op != "Conv" else p.transpose(0, 3, 1, 2) for p in inputs]
        tensors = [onnx.numpy_helper.from_array(p, n) for n, p in zip(names, moved, strict=True)]
        shape = [1, 5, 5, 2] if last else [1, 2, 5, 5]
        info = [helper.make_tensor_value_info("x", 1, shape),
                helper.make_tensor_value_info("y", 1, None)]  # fmt: skip
        node = helper.make_node(op, ["x", *names], ["y"], domain=domain, **attrs)
        graph = helper.make_graph([node], "net", info[:1], info[1:], tensors)
        opsets = [helper.make_opsetid("", 13)]
        protos.append(helper.make_model(graph, opset_imports=opsets, ir_version=8))
        given = x if last else x.transpose(0, 3, 1, 2)
        found = run_float(read(protos[-1]), {"x": given})["y"]
        outputs.append(found if last else found.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(*outputs)
