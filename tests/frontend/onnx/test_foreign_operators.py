"""Operators that other tools join or write in integers: what onnxruntime and NumPy compute."""

import numpy as np
import pytest
from onnx_runtime import run_onnxruntime

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.reference.real.quantize import encode
from nnef_hw.samples.samples import Samples

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

helper = onnx.helper


def build(nodes, shape, constants, opset=13):
    """Return a model of some nodes from x to y with float constants."""
    info = [helper.make_tensor_value_info("x", 1, shape),
            helper.make_tensor_value_info("y", 1, None)]  # fmt: skip
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


ACTIVATIONS = {
    "none": ("", []), "relu": ("Relu", []), "sigmoid": ("Sigmoid", []), "tanh": ("Tanh", []),
    "leaky": ("LeakyRelu", [0.2]), "clip": ("Clip", [-0.5, 0.75]),
    "hard-sigmoid": ("HardSigmoid", [0.3, 0.4]),
}  # fmt: skip


class TestFused:
    @pytest.mark.parametrize(("name", "parameters"), ACTIVATIONS.values(), ids=ACTIVATIONS)
    @pytest.mark.parametrize("added", [False, True], ids=["", "sum"])
    def test_conv(self, read, rng, name, parameters, added):
        arrays = {"w": rng.normal(size=(4, 2, 3, 3)), "b": rng.normal(size=4),
                  "z": rng.normal(size=(1, 4, 5, 5))}  # fmt: skip
        arrays = {key: value.astype(np.float32) for key, value in arrays.items()}
        attrs = {"activation": name} if name else {}
        attrs |= {"activation_params": parameters} if parameters else {}
        inputs = ["x", "w", "b", "z"] if added else ["x", "w", "b"]
        node = helper.make_node("FusedConv", inputs, ["y"], pads=[1, 1, 1, 1],
                                domain="com.microsoft", **attrs)  # fmt: skip
        proto = build([node], [1, 2, 5, 5], arrays)
        x = rng.normal(size=(3, 2, 5, 5)).astype(np.float32)
        pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
        expected = run_onnxruntime(proto, [x])["y"]
        found = run_float(read(proto), {"x": x})["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("attrs", [
        {}, {"transA": 1}, {"transB": 1}, {"alpha": 0.5, "transA": 1, "transB": 1},
        {"transBatchA": 1}, {"transBatchA": 1, "transA": 1}, {"transBatchB": 1, "transB": 1},
    ])  # fmt: skip
    def test_matmul(self, read, rng, attrs):
        shapes = {"A": [2, 3, 4], "B": [2, 4, 5]}
        for name, shape in shapes.items():
            if attrs.get(f"trans{name}"):
                shape[-2:] = shape[:-3:-1]
            if attrs.get(f"transBatch{name}"):
                shape[:-1] = [*shape[1:-1], shape[0]]
        b = rng.normal(size=shapes["B"]).astype(np.float32)
        node = helper.make_node("FusedMatMul", ["x", "b"], ["y"], domain="com.microsoft", **attrs)
        proto = build([node], shapes["A"], {"b": b})
        x = rng.normal(size=shapes["A"]).astype(np.float32)
        pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
        import onnxruntime

        session = onnxruntime.InferenceSession(proto.SerializeToString())
        (expected,) = session.run(None, {"x": x})
        found = run_float(read(proto), {"x": x[None]})["y"][0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    def test_gemm(self, read, rng):
        b, c = rng.normal(size=(5, 4)).astype(np.float32), rng.normal(size=5).astype(np.float32)
        node = helper.make_node(
            "FusedGemm", ["x", "b", "c"], ["y"], domain="com.microsoft", transB=1, alpha=0.5,
            activation="LeakyRelu", activation_alpha=0.25,
        )  # fmt: skip
        x = rng.normal(size=(6, 1, 4))
        found = run_float(read(build([node], [1, 4], {"b": b, "c": c})), {"x": x})["y"]
        plain = 0.5 * x @ b.T + c
        np.testing.assert_allclose(found, np.where(plain < 0, 0.25 * plain, plain), rtol=1e-6)

    @pytest.mark.parametrize(
        ("attrs", "reason"),
        [
            ({"activation": "Softmax"}, "the activation 'Softmax' is not supported"),
            ({"activation": "Clip"}, "the activation Clip has 0 parameters, not 2"),
            ({"activation_params": [1]}, "'activation_params' is not of type FLOATS"),
        ],
    )
    def test_other_activations_are_refused(self, check_refused, attrs, reason):
        node = helper.make_node("FusedConv", ["x", "w"], ["y"], "node", domain="com.microsoft",
                                **attrs)  # fmt: skip
        proto = build([node], [1, 1, 3, 3], {"w": np.ones((1, 1, 1, 1), np.float32)})
        check_refused(proto, "com.microsoft.FusedConv", reason)


W = np.random.default_rng(3).integers(-8, 8, (3, 2, 3, 3)).astype(np.float32)
MUL = np.array([7.0, -5.0, 9.0], np.float32).reshape(1, 3, 1, 1)
ADD = np.array([1000.0, -300.0, 55.0], np.float32).reshape(1, 3, 1, 1)


def tensor(value):
    return onnx.numpy_helper.from_array(np.float32(value))


def requant_shift(domain="PACTOps", **attrs):
    """Return an integer convolution and its requantization."""
    attrs = {"div": 64.0, "n_levels_out": 256.0, "signed": 0.0, **attrs}
    attrs = {key: value if isinstance(value, int) else tensor(value)
             for key, value in attrs.items() if value is not None}  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("RequantShift", ["c", "m", "a"], ["y"], "node", domain=domain, **attrs),
    ]
    return build(nodes, [1, 2, 6, 6], {"w": W, "m": MUL, "a": ADD}, opset=10)


def chain(form, lo=0.0, hi=255.0, middle=3, divisor=200):
    """Return an integer convolution and its requantization, as NEMO writes it."""
    constants = {"w": W, "m": MUL, "a": ADD, "t": np.array([middle]), "d": np.array(divisor),
                 "f": np.array(divisor, np.float32)}  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Mul", ["m", "c"], ["n"]),
        helper.make_node("Add", ["n", "a"], ["o"]),
    ]
    if form == "floor":
        nodes += [
            helper.make_node("Div", ["o", "f"], ["q"]),
            helper.make_node("Floor", ["q"], ["r"]),
        ]
    else:
        nodes += [
            helper.make_node("Cast", ["o"], ["i"], to=7),
            helper.make_node("Mul", ["i", "t"], ["j"]),
            helper.make_node("Div", ["j", "d"], ["q"]),
            helper.make_node("Cast", ["q"], ["k"], to=7),
            helper.make_node("Cast", ["k"], ["r"], to=1),
        ]  # fmt: skip
    nodes.append(helper.make_node("Clip", ["r"], ["y"], min=lo, max=hi))
    return build(nodes, [1, 2, 6, 6], constants, opset=10)


def sums(x):
    """Return the integer convolution."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return np.einsum("ncijkl,ockl->noij", windows, W.astype(np.int64))


FORMS = {
    "quotient": ("cast", 0.0, 255.0), "floor": ("floor", 0.0, 15.0),
    "signed-floor": ("floor", -8.0, 7.0),
}  # fmt: skip


UNLIKE = {
    "negative-quotient": ("cast", -8.0, 7.0, 3, 200),
    "no-number-of-bits": ("cast", 0.0, 9.0, 3, 200),
    "fraction": ("floor", 0.0, 255.0, 3, 0.5),
}  # fmt: skip


HOSTILE = {
    "div-0": ({"div": 0.0}, "div is 0"),
    "div-nan": ({"div": np.nan}, "div is nan, no integer"),
    "div-list": ({"div": [2.0, 4.0]}, "div has 2 elements, not 1"),
    "div-type": ({"div": 3}, "'div' is not of type TENSOR"),
    "levels": ({"n_levels_out": 1e30}, "there are 1e+30 levels"),
    "no-levels": ({"n_levels_out": None}, "exactly one of the attributes"),
    "signed": ({"signed": 2.0}, "signed is 2"),
    "unknown": ({"shift": 3}, "there is no attribute 'shift'"),
}  # fmt: skip


class TestIntegers:
    @pytest.mark.parametrize("domain", ["PACTOps", ""])
    @pytest.mark.parametrize("signed", [0, 1])
    @pytest.mark.parametrize("levels", [256, 16])
    def test_requant_shift(self, read, rng, domain, signed, levels):
        graph = read(requant_shift(domain, signed=float(signed), n_levels_out=float(levels)))
        x = rng.integers(0, 64, (20, 2, 6, 6))
        wanted = np.floor_divide(sums(x) * MUL.astype(int) + ADD.astype(int) + 32, 64)
        lo = -levels // 2 if signed else 0
        found = run_float(graph, {"x": x})["y"]
        np.testing.assert_array_equal(found, np.clip(wanted, lo, lo + levels - 1))
        assert 5 < len(np.unique(found)) <= levels

    @pytest.mark.parametrize(("form", "lo", "hi"), FORMS.values(), ids=FORMS)
    def test_chains_of_operators(self, read, rng, form, lo, hi):
        graph = read(chain(form, lo, hi))
        assert {node.op for node in graph.nodes} == {"conv", "mul", "add"}
        x = rng.integers(0, 64, (20, 2, 6, 6))
        numerator = sums(x) * MUL.astype(int) + ADD.astype(int)
        wanted = np.floor_divide(numerator * (3 if form == "cast" else 1), 200)
        np.testing.assert_array_equal(run_float(graph, {"x": x})["y"], np.clip(wanted, lo, hi))

    def test_rounded_and_clipped_numbers_are_codes(self, read, rng):
        constants = {
            "s": np.float32(0.25), "z": np.float32(3), "u": np.float32(0.125), "lo": np.float32(0),
            "hi": np.float32(15), "low": np.float32(-8), "high": np.float32(7),
            "w": rng.normal(size=(4, 3)).astype(np.float32), "t": np.float32(0.03125),
        }  # fmt: skip
        steps = [
            ("Div", "x", "s", "a"), ("Add", "a", "z", "b"), ("Round", "b", "c"),
            ("Clip", "c", "lo", "hi", "d"), ("Div", "w", "u", "e"), ("Round", "e", "f"),
            ("Clip", "f", "low", "high", "g"), ("Sub", "d", "z", "h"), ("MatMul", "h", "g", "i"),
            ("Mul", "i", "t", "y"),
        ]  # fmt: skip
        nodes = [helper.make_node(op, names[:-1], names[-1:]) for op, *names in steps]
        proto = build(nodes, [1, 4], constants)
        graph = read(proto)
        quants = {t.quant.args["bits"] for t in graph.tensors.values() if t.quant}
        assert quants == {4}
        assert not {"round_even", "clamp"} & {node.op for node in graph.nodes}
        pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
        x = rng.uniform(-3, 6, (40, 1, 4)).astype(np.float32)
        expected = run_onnxruntime(proto, [x[:, 0]])["y"]
        found = run_float(graph, {"x": x[:, 0]})["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize("options", UNLIKE.values(), ids=UNLIKE)
    def test_other_chains_stay_as_they_are(self, read, rng, options):
        pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
        proto = chain(*options)
        graph = read(proto)
        assert {"cast", "floor"} & {node.op for node in graph.nodes}
        x = rng.integers(0, 64, (5, 2, 6, 6)).astype(np.float32)
        expected = run_onnxruntime(proto, [x])["y"]
        np.testing.assert_array_equal(run_float(graph, {"x": x})["y"], expected)

    @pytest.mark.parametrize("divisor", [7, 49, 127, 1000, 2**21 - 1])
    def test_whole_quotients_do_not_fall_below_themselves(self, read, divisor):
        x = np.arange(256 * 3)[:, None] * divisor
        attrs = {"div": tensor(divisor), "n_levels_out": tensor(256), "signed": tensor(0)}
        node = helper.make_node("RequantShift", ["x", "m", "a"], ["y"], **attrs)
        constants = {"m": np.float32(1), "a": np.float32(-divisor)}
        found = run_float(read(build([node], [1, 1], constants)), {"x": x})["y"]
        np.testing.assert_array_equal(found, np.clip(np.arange(256 * 3)[:, None] - 1, 0, 255))
        node = helper.make_node("RequantShift", ["x", "m", "a"], ["y"], **attrs)
        constants = {"m": np.float32(3), "a": np.float32(0)}
        found = run_float(read(build([node], [1, 1], constants)), {"x": x})["y"]
        np.testing.assert_array_equal(found, np.clip(np.arange(256 * 3)[:, None] * 3, 0, 255))

    @pytest.mark.parametrize("proto", [requant_shift(), chain("cast")], ids=["operator", "chain"])
    def test_the_network_has_the_authors_codes(self, read, rng, proto):
        graph = read(proto)
        x = rng.integers(0, 256, (30, 2, 6, 6)).astype(float)
        x[0, 0, 0, :2] = 0, 255
        fixed, _ = fix_model(graph, Samples({"x": x}, None))
        (layer,) = fixed.nodes
        assert fixed.tensor("y").qtype == QType(8, False, 1.0)
        weights = fixed.tensor(layer.inputs[1])
        source = graph.tensor(graph.nodes[0].inputs[1])
        assert source.quant.args["scale"] == 1.0
        np.testing.assert_array_equal(encode(source.data, source.quant), W)
        np.testing.assert_array_equal(weights.data, W * np.sign(MUL).reshape(3, 1, 1, 1))
        real = run_float(graph, {"x": x})["y"]
        found = dequantize_outputs(fixed, run_fixed(fixed, quantize_inputs(fixed, {"x": x})))["y"]
        is_exact = proto.graph.node[1].op_type == "RequantShift"  # its divisor is a power of two
        np.testing.assert_allclose(found, real, atol=0 if is_exact else 1)

    def test_a_transformer_gives_the_golden_outputs_of_its_authors(self, attention, rng):
        """Deeploy's EEGFormer, code for code."""
        folder = attention / "deeploy" / "EEGFormer"
        graph = load(folder / "network.onnx")
        (name,) = graph.inputs
        given = np.load(folder / "inputs.npz")["input_0"].astype(float)
        golden = np.load(folder / "outputs.npz")["output_0"]
        (real,) = run_float(graph, {name: given}).values()
        np.testing.assert_array_equal(real, golden)
        others = rng.integers(0, 255, (63, *given.shape[1:])).astype(float)
        fixed, _ = fix_model(graph, Samples({name: np.concatenate([given, others])}, None))
        codes = run_fixed(fixed, quantize_inputs(fixed, {name: given}))
        (found,) = dequantize_outputs(fixed, codes).values()
        np.testing.assert_array_equal(found.reshape(golden.shape), golden)

    @pytest.mark.parametrize(("attrs", "reason"), HOSTILE.values(), ids=HOSTILE)
    def test_hostile_attributes_are_one_located_error(self, check_refused, attrs, reason):
        check_refused(requant_shift(**attrs), "PACTOps.RequantShift", reason)

    def test_widths_are_no_attributes_of_their_own(self, read, rng):
        proto = chain("floor", 0.0, 15.0)
        for node, name in zip(
            proto.graph.node, ("weight_bits", "mult_bits", "add_bits"), strict=False
        ):
            node.attribute.append(helper.make_attribute(name, 8))
        x = rng.integers(0, 64, (3, 2, 6, 6))
        expected = run_float(read(chain("floor", 0.0, 15.0)), {"x": x})["y"]
        np.testing.assert_array_equal(run_float(read(proto), {"x": x})["y"], expected)
