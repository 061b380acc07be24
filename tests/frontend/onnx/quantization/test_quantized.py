"""Quantized values: which tensors have which quantization, and when there are integers."""

import logging

import numpy as np
import pytest
from onnx_runtime import run_onnxruntime
from quantized_graphs import ties_up
from quantized_text import message, net

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.errors import SampleError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load, save
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float
from nnef_hw.reference.real.quantize import encode
from nnef_hw.report.inspection import inspect_file

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")

S, T = (3, 0.5, 8, False, False), (7, 0.25, 8, False, False)


PAIRS = {
    "result": ("a = Relu(x) q = Q(a) y = D(q)", ["relu"], {"y": S}),
    "input": ("q = Q(x) d = D(q) y = Relu(d)", ["relu"], {"x": S}),
    "between": ("a = Relu(x) q = Q(a) d = D(q) y = Neg(d)", ["relu", "neg"], {"a": S}),
    "read-twice": ("q = Q(x) d = D(q) e = D(q) y = Add(d, e)", ["add"], {"x": S}),
    "made-twice": ("q = Q(x) d = D(q) p = Q(x) e = D(p) y = Add(d, e)", ["add"], {"x": S}),
    "repeated": ("q = Q(x) d = D(q) p = Q(d) e = D(p) y = Neg(e)", ["neg"], {"x": S}),
    "nothing-else": ("q = Q(x) y = D(q)", ["copy"], {"x": S, "y": S}),
    "requantized": (
        "a = Relu(x) q = Q(a) d = D(q) p = P(d) y = E(p)", ["relu", "copy"], {"a": S, "y": T}
    ),
    "two-quantizations": (
        "a = Relu(x) q = Q(a) d = D(q) p = P(a) e = E(p) y = Add(d, e)",
        ["relu", "copy", "copy", "add"],
        {"q": S, "p": T},
    ),
    "also-unquantized": (
        "a = Relu(x) q = Q(a) d = D(q) p = Q(a) e = D(p) f = Add(d, e) y = Add(f, a)",
        ["relu", "copy", "add", "add"],
        {"q": S},
    ),
}  # fmt: skip

MOVES = {
    "max-pool": ("r = MaxPool <kernel_shape = [2, 2]> (q)", "1,2,3,3"),
    "transpose": ("r = Transpose <perm = [0, 2, 3, 1]> (q)", "1,4,4,2"),
    "flatten": ("r = Flatten (q)", "1,32"),
    "reshape": ("r = Reshape (q, to)", "1,8,2,2"),
    "concat": ("r = Concat <axis = 1> (q, q)", "1,4,4,4"),
    "slice": ("r = Slice (q, from, until)", "1,1,4,4"),
    "pad": ("r = Pad (q, pads, odd)", "1,2,6,4"),
    "pad-with-code-0": ("r = Pad (q, pads)", "1,2,6,4"),
    "resize": ('r = Resize <mode = "nearest"> (q, , scales)', "1,2,8,8"),
    "gather": ("r = Gather <axis = 1> (q, one)", "1,1,4,4"),
    "split": ("a, r = Split <axis = 1, num_outputs = 2> (q)", "1,1,4,4"),
}

SUMS = {
    "sum": ("q = Q(x) c = Cast <to = 6> (q) d = Add(c, c) y = Cast <to = 1> (d)", [6, 8, 10, 510]),
    "other-steps": ("q = Q(x) y = E(q)", [-1.0, -0.75, -0.5, 62.0]),
    "beside-other-codes": (
        "q = Q(x) c = Concat <axis = 0> (q, z4) a, b = Split <num_outputs = 2> (c) y = E(b)",
        [-1.0, -0.75, -0.75, -0.75],
    ),
    "branch": (
        """q = Q(x) r = If <then_branch = g () => (p) { p = Identity(q) },
        else_branch = h () => (p) { p = Identity(z4) }> (yes) y = D(r)""",
        [0.0, 0.5, 1.0, 126.0],
    ),
    "loop": (
        """q = Q(x) r = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
        body = g (v) => (w) { c = Cast <to = 6> (q) d = ReduceMin <keepdims = 0> (c)
        e = Cast <to = 1> (d) w = Add(v, e) }> (x) y = Identity(r)""",
        [3.0, 3.5, 4.0, 1002.0],
    ),
}


def quantizations(graph):
    """Return (zero point, scale, bits, signed, symmetric) of each quantized activation."""
    keys = ("zero_point", "scale", "bits", "signed", "symmetric")
    return {
        name: tuple(tensor.quant.args[key] for key in keys)
        for name, tensor in graph.tensors.items()
        if tensor.quant is not None and tensor.data is None
    }


def weights(graph):
    """Return the only quantized constant of a graph."""
    found = [x for x in graph.tensors.values() if x.quant is not None and x.data is not None]
    (tensor,) = found
    return tensor


def ops(graph):
    return [node.op for node in graph.nodes]


class TestActivations:
    @pytest.mark.parametrize(("body", "nodes", "expected"), PAIRS.values(), ids=PAIRS)
    def test_a_tensor_is_quantized_if_nothing_reads_it_otherwise(self, read, body, nodes, expected):
        graph = read(net(body))
        assert ops(graph) == nodes
        assert quantizations(graph) == expected

    def test_results_that_are_one_quantized_tensor_keep_their_names(self, read, rng):
        results = "float[1,4] y, float[1,4] w"
        graph = read(net("a = Relu(x) q = Q(a) y = D(q) w = D(q)", results=results))
        assert graph.outputs == ("y", "w")
        found = run_float(graph, {"x": rng.normal(size=(5, 4))})
        np.testing.assert_array_equal(found["y"], found["w"])

    @pytest.mark.parametrize(
        ("least", "most", "expected"),
        [
            (-8, 7, (-4, 0.5, 4, True, False)),
            (-7, 7, (-4, 0.5, 4, True, True)),
            (0, 7, (-4, 0.5, 3, False, False)),
            (-128, 127, (-4, 0.5, 8, True, False)),
        ],
        ids=["signed", "symmetric", "unsigned", "whole"],
    )
    def test_a_clip_of_codes_says_how_many_bits_there_are(self, read, rng, least, most, expected):
        body = """a = Neg(x) q = QuantizeLinear(a, s, n) c = Clip(q, lo, hi)
            y = DequantizeLinear(c, s, n)"""
        extra = f", int8 n = {{-4}}, int8 lo = {{{least}}}, int8 hi = {{{most}}}"
        graph = read(net(body, extra))
        assert quantizations(graph) == {"y": expected}
        x = rng.uniform(-9, 9, (50, 4))
        codes = np.clip(np.rint(-x / 0.5) - 4, least, most)
        np.testing.assert_allclose(run_float(graph, {"x": x})["y"], (codes + 4) * 0.5)

    @pytest.mark.parametrize(
        ("least", "most", "expected"),
        [(0, 9, [3.0, -1.5, 2.0, 0.0]), (5, 5, [1.0] * 4), (9, 5, [1.0] * 4)],
        ids=["odd", "one-code", "crossed"],
    )
    def test_a_clip_to_no_number_of_bits_clamps(self, read, least, most, expected):
        body = "a = Neg(x) q = Q(a) c = Clip(q, lo, hi) y = D(c)"
        graph = read(net(body, f", uint8 lo = {{{least}}}, uint8 hi = {{{most}}}"))
        assert ops(graph) == ["neg", "clamp"]
        found = run_float(graph, {"x": np.array([[-9.0, 9.0, -2.0, 0.0]])})["y"]
        assert found.tolist() == [expected]

    def test_limits_of_codes_add_up(self, read):
        body = """q = Q(x) c = Clip(q, lo, hi) b = Clip(c, none, top)
            a = Concat <axis = 0> (b, q) y = D(a)"""
        extra = ", uint8 lo = {0}, uint8 hi = {15}, uint8 none = {0}, uint8 top = {63}"
        graph = read(net(body, extra, results="float[2,4] y"))
        found = run_float(graph, {"x": np.array([[-9.0, 9.0, 99.0, 0.0]])})["y"]
        assert found[0].tolist() == [[-1.5, 6.0, 6.0, 0.0], [-1.5, 9.0, 99.0, 0.0]]

    def test_codes_beside_clipped_ones_are_not_clipped(self, read):
        body = "q = Q(x) c = Clip(q, lo, hi) y = Concat <axis = 0> (c, q)"
        graph = read(net(body, ", uint8 lo = {0}, uint8 hi = {15}", results="uint8[2,4] y"))
        found = run_float(graph, {"x": np.array([[-9.0, 9.0, 99.0, 0.0]])})["y"]
        assert found[0].tolist() == [[0, 15, 15, 3], [0, 21, 201, 3]]

    def test_channels_may_have_scales_of_their_own(self, read):
        extra = ", float[4] cs = {0.5, 1.0, 2.0, 4.0}, int8[4] cz = {0, 1, 2, 3}"
        body = "q = QuantizeLinear(x, cs, cz) y = DequantizeLinear(q, cs, cz)"
        found = run_float(read(net(body, extra)), {"x": np.array([[0.6, 1.6, 999.0, -999.0]])})
        assert found["y"].tolist() == [[0.5, 2.0, 250.0, -524.0]]


class TestCodes:
    @pytest.mark.parametrize(
        "body",
        ["y = Q(x)", "q = Q(x) y = Identity(q)", "q = Q(x) d = D(q) y = Q(d)"],
        ids=["at-once", "moved", "again"],
    )
    def test_codes_can_be_results(self, read, body):
        graph = read(net(body, results="uint8[1,4] y"))
        assert graph.outputs == ("y",)
        found = run_float(graph, {"x": np.array([[-9.0, 0.1, 1.0, 900.0]])})["y"]
        assert found.tolist() == [[0, 3, 5, 255]]
        assert found.dtype.kind == "i"

    def test_codes_can_be_a_result_and_read_on(self, read):
        graph = read(net("q = Q(x) y = D(q)", results="float[1,4] y, uint8[1,4] q"))
        assert graph.outputs == ("y", "q")
        found = run_float(graph, {"x": np.array([[-9.0, 0.1, 1.0, 900.0]])})
        assert found["q"].tolist() == [[0, 3, 5, 255]]
        assert found["y"].tolist() == [[-1.5, 0.0, 1.0, 126.0]]

    @pytest.mark.parametrize(
        ("body", "result", "expected"),
        [
            ("y = Q(x)", "uint8[1,4] y", [3, 5, 3, 5]),
            ("q = Q(x) y = D(q)", "float[1,4] y", [0.0, 1.0, 0.0, 1.0]),
        ],
        ids=["codes", "numbers"],
    )
    def test_halves_round_to_even(self, read, body, result, expected):
        found = run_float(read(net(body, results=result)), {"x": [[0.25, 0.75, -0.25, 1.25]]})
        assert found["y"].tolist() == [expected]

    def test_converting_warns_that_nnef_rounds_them_up(self, read, tmp_path, caplog):
        graph = read(net("q = Q(x) d = D(q) y = Relu(d)", results="float[1,4] y"))
        with caplog.at_level(logging.WARNING):
            save(graph, tmp_path / "net.nnef.tgz")
        [text] = [record.getMessage() for record in caplog.records]
        assert "exact halves to even in 1 of 1 quantized activations" in text
        again = load(tmp_path / "net.nnef.tgz")
        assert run_float(again, {"x": [[0.25, 0.75, 0.0, 1.25]]})["y"].tolist() == [
            [0.5, 1, 0, 1.5]
        ]

    @pytest.mark.parametrize(("body", "expected"), SUMS.values(), ids=SUMS)
    def test_operators_that_calculate_with_codes_get_integers(self, read, body, expected):
        graph = read(net(body, ", uint8[1,4] z4 = {3, 4, 4, 4}, bool yes = {1}, int64 two = {2}"))
        found = run_float(graph, {"x": np.array([[0.0, 0.5, 1.0, 999.0]])})["y"]
        assert found.tolist() == [expected]

    def test_what_lies_between_two_codes_is_cut_off(self, read, rng):
        pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
        model = net(
            'q = Q(x) r = Resize <mode = "linear"> (q, , scales) y = D(r)',
            ", float[4] scales = {1, 1, 2, 2}",
            shape="1,2,4,4",
            results="float[1,2,8,8] y",
        )
        x = rng.uniform(-9, 99, (3, 2, 4, 4)).astype(np.float32)
        found = run_float(read(model), {"x": x})["y"]
        np.testing.assert_array_equal(found, run_onnxruntime(model, [x])["y"])

    def test_indices_of_the_greatest_code(self, read, rng):
        graph = read(net("q = Q(x) y = ArgMax <axis = 1> (q)", results="int64[1,1] y"))
        assert ops(graph) == ["argmax_reduce"]
        x = rng.uniform(-1, 50, (9, 4))
        codes = np.clip(np.rint(x / 0.5) + 3, 0, 255)
        assert (run_float(graph, {"x": x})["y"][:, 0] == codes.argmax(1)).all()

    @pytest.mark.parametrize(("moves", "shape"), MOVES.values(), ids=MOVES)
    def test_operators_that_move_codes_move_numbers(self, read, rng, moves, shape):
        pytest.importorskip("onnxruntime", reason="pip install nnef-hw[crosscheck]")
        extra = """, int64[4] to = {1, 8, 2, 2}, int64[2] from = {0, 1}, int64[2] until = {1, 2},
            int64[8] pads = {0, 0, 1, 0, 0, 0, 1, 0}, float[4] scales = {1, 1, 2, 2},
            int64[1] one = {1}, uint8 odd = {9}"""
        result = f"float[{shape}] y"
        model = net(f"q = Q(x) {moves} y = D(r)", extra, shape="1,2,4,4", results=result)
        graph = read(model)
        assert "cast" not in ops(graph)
        assert quantizations(graph)["x"] == S
        x = rng.uniform(-9, 99, (3, 2, 4, 4)).astype(np.float32)
        expected = run_onnxruntime(model, [x])["y"]
        np.testing.assert_allclose(run_float(graph, {"x": x})["y"], expected, rtol=1e-6)


class TestWeights:
    CONV = """net (float[1,2,4,4] x) => (float[1,3,4,4] y) <float s = {0.5}, uint8 z = {3},
        int8[3,2,1,1] w = {1, 2, 3, 4, 5, 6}, float[3] ws = {0.5, 0.25, 0.125},
        int8[3] wz = {0, 0, 0}, int32[3] b = {-3, 100000000, 5},
        float[3] bs = {0.25, 0.125, 0.0625}> {
        q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        v = DequantizeLinear <axis = 0> (w, ws, wz) c = DequantizeLinear <axis = 0> (b, bs)
        y = Conv (d, v, c)
    }"""

    @pytest.mark.parametrize(
        ("kind", "codes", "zeros", "bits", "signed", "kept"),
        [
            ("int8", [-128, 127, 0, 5, -6, 7], [0, 0, 0], 8, True, [0, 0, 0]),
            ("uint8", [0, 255, 128, 133, 122, 135], [128, 128, 128], 8, True, [0, 0, 0]),
            ("uint8", [0, 255, 128, 133, 122, 135], [1, 2, 3], 8, False, [1, 2, 3]),
            ("int4", [-8, 7, 0, 1, -2, 3], [0, 0, 0], 4, True, [0, 0, 0]),
            ("uint4", [0, 15, 8, 9, 6, 11], [8, 8, 8], 4, True, [0, 0, 0]),
            ("int16", [-32768, 32767, 0, 1, -2, 3], [0, 0, 0], 16, True, [0, 0, 0]),
        ],
        ids=["int8", "uint8-middle", "uint8-others", "int4", "uint4-middle", "int16"],
    )
    def test_codes_become_a_variable(self, read, kind, codes, zeros, bits, signed, kept):
        model = message(self.CONV)
        stored = {item.name: item for item in model.graph.initializer}
        element = onnx.TensorProto.DataType.Value(kind.upper())
        for name, values in (("w", codes), ("wz", zeros)):
            shape = stored[name].dims
            stored[name].CopyFrom(onnx.helper.make_tensor(name, element, shape, values))
        (node,) = (graph := read(model)).nodes
        filters = graph.tensor(node.inputs[1])
        assert filters.label == "w"
        scale = np.array([0.5, 0.25, 0.125])
        steps = np.reshape(codes, (3, 2)) - np.reshape(zeros, (3, 1))
        np.testing.assert_array_equal(filters.data[:, :, 0, 0], steps * scale[:, None])
        args = filters.quant.args
        assert (args["bits"], args["signed"], args["symmetric"]) == (bits, signed, False)
        assert np.broadcast_to(args["zero_point"], 3).tolist() == kept
        np.testing.assert_array_equal(args["scale"], scale)

    def test_a_bias_has_32_bits_and_keeps_its_codes(self, read):
        (node,) = (graph := read(message(self.CONV))).nodes
        bias = graph.tensor(node.inputs[2])
        assert (bias.label, bias.shape, bias.quant.args["bits"]) == ("b", (1, 3), 32)
        np.testing.assert_array_equal(bias.quant.args["scale"], [[0.25, 0.125, 0.0625]])
        assert encode(bias.data, bias.quant).tolist() == [[-3, 100_000_000, 5]]

    @pytest.mark.parametrize("transposed", [0, 1])
    def test_scales_of_a_transposed_filter_move_along(self, read, transposed):
        shape, axis = ("3,4", 0) if transposed else ("4,3", 1)
        listed = ", ".join(map(str, range(-6, 6)))
        graph = read(net(
            f"q = Q(x) d = D(q) v = DequantizeLinear <axis = {axis}> (w, ws)"
            f" y = Gemm <transB = {transposed}> (d, v)",
            f", int8[{shape}] w = {{{listed}}}, float[3] ws = {{0.5, 0.25, 2.0}}",
            results="float[1,3] y",
        ))  # fmt: skip
        filters = weights(graph)
        codes = np.arange(-6, 6).reshape((3, 4) if transposed else (4, 3))
        codes = codes if transposed else codes.T
        assert (ops(graph), filters.label, filters.shape) == (["linear"], "w", (3, 4))
        np.testing.assert_array_equal(encode(filters.data, filters.quant), codes)
        np.testing.assert_array_equal(filters.data, codes * np.array([[0.5], [0.25], [2.0]]))

    @pytest.mark.parametrize(
        ("lowest", "bits", "symmetric", "kept"),
        [
            (None, 8, False, [-128, 127, -8, 6]),
            (-8, 4, False, [-8, 7, -8, 6]),
            (-7, 4, True, [-7, 7, -7, 6]),
        ],
        ids=["whole", "four-bits", "four-bits-symmetric"],
    )
    def test_real_weights_are_rounded_and_clipped(self, read, lowest, bits, symmetric, kept):
        clip = "" if lowest is None else "c = Clip(q, lo, hi)"
        name = "c" if clip else "q"
        graph = read(net(
            f"q = QuantizeLinear(w, t, none) {clip} d = DequantizeLinear({name}, t, none)"
            " y = Mul(x, d)",
            f""", float[1,4] w = {{-99.0, 99.0, -2.125, 1.375}}, int8 none = {{0}},
            int8 lo = {{{lowest or 0}}}, int8 hi = {{7}}""",
        ))  # fmt: skip
        filters = weights(graph)
        assert filters.label == "w"
        assert (filters.quant.args["bits"], filters.quant.args["symmetric"]) == (bits, symmetric)
        np.testing.assert_array_equal(filters.data, [np.array(kept) * 0.25])

    @pytest.mark.parametrize(
        ("least", "most", "bits"), [(120, 135, 4), (121, 135, 4), (100, 140, 8)]
    )
    def test_unsigned_codes_may_be_clipped_around_the_middle(self, read, least, most, bits):
        graph = read(net(
            "c = Clip(w, lo, hi) d = DequantizeLinear(c, t, h) y = Mul(x, d)",
            f""", uint8[1,4] w = {{0, 255, 126, 129}}, uint8 h = {{128}},
            uint8 lo = {{{least}}}, uint8 hi = {{{most}}}""",
        ))  # fmt: skip
        filters = weights(graph)
        assert (filters.quant.args["bits"], filters.quant.args["signed"]) == (bits, True)
        codes = [least - 128, most - 128, -2, 1]
        assert encode(filters.data, filters.quant).tolist() == [codes]
        np.testing.assert_array_equal(filters.data, [np.array(codes) * 0.25])

    def test_blocks_have_a_scale_each(self, read):
        body = "d = DequantizeLinear <axis = 1, block_size = 2> (w, bs) y = Mul(x, d)"
        extra = ", int8[1,4] w = {1, 2, 3, 4}, float[1,2] bs = {0.5, 2.0}"
        filters = weights(read(net(body, extra)))
        np.testing.assert_array_equal(filters.data, [[0.5, 1.0, 6.0, 8.0]])
        np.testing.assert_array_equal(encode(filters.data, filters.quant), [[1, 2, 3, 4]])

    def test_a_range_that_is_known_beforehand_is_constant(self, read):
        body = "q, qs, qz = DynamicQuantizeLinear(w) d = DequantizeLinear(q, qs, qz) y = Mul(x, d)"
        filters = weights(read(net(body, ", float[1,4] w = {-1.0, 0.0, 0.5, 1.55}")))
        np.testing.assert_allclose(filters.data, [[-1.0, 0.0, 0.5, 1.55]])


class TestBuilding:
    NARROW = """net (float[1,6] x) => (float[1,3] y) <
        float s = {0.125}, int8 n = {0}, float t = {0.25}, uint8 z = {0}, float r = {0.5},
        int8[4,6] w1 = {
            -9, 7, 3, -2, 0, 1, 5, -5, 2, 2, -3, 7, 1, 1, -7, 4, 0, -1, 6, -6, 3, 2, 1, 0
        },
        int8[3,4] w2 = {1, -2, 3, -4, 5, -6, 7, -8, 7, 6, -5, 4}, int32[4] b1 = {3, -40, 0, 9},
        float u = {0.0625}, float us = {0.0078125}, int8 lo = {-8}, int8 low = {-7}, int8 hi = {7},
        uint8 nil = {0}, uint8 top = {15}> {
        xq = QuantizeLinear (x, s, n) xc = Clip (xq, lo, hi) xd = DequantizeLinear (xc, s, n)
        wc = Clip (w1, low, hi) wd = DequantizeLinear (wc, u, n)
        bd = DequantizeLinear (b1, us)
        h = Gemm <transB = 1> (xd, wd, bd) a = Relu (h)
        aq = QuantizeLinear (a, t, z) ac = Clip (aq, nil, top) ad = DequantizeLinear (ac, t, z)
        vc = Clip (w2, lo, hi) vd = DequantizeLinear (vc, u, n)
        o = Gemm <transB = 1> (ad, vd)
        oq = QuantizeLinear (o, r, n) y = DequantizeLinear (oq, r, n)
    }"""

    def test_narrow_formats_reach_the_fixed_network(self, read, rng):
        graph = read(message(self.NARROW))
        fixed, _ = fix_model(graph, None)
        formats = [fixed.tensor(name).qtype for name in ("x", "a", "y")]
        assert formats == [QType(4, True, 0.125), QType(4, False, 0.25), QType(8, True, 0.5)]
        filters = [fixed.tensor(node.inputs[1]) for node in fixed.nodes]
        assert [(x.qtype.bits, x.qtype.narrow) for x in filters] == [(4, True), (4, False)]
        assert filters[0].data[0, :2].tolist() == [-7, 7]
        biases = [fixed.constant(node.inputs[2]).tolist() for node in fixed.nodes]
        assert biases == [[[3, -40, 0, 9]], [[0, 0, 0]]]

        x = rng.uniform(-1.2, 1.2, (200, 6))
        codes = run_fixed(fixed, quantize_inputs(fixed, {"x": x}))
        real = run_float(ties_up(graph), {"x": x})["y"]
        # Steps that are powers of 2 have exact multipliers.
        np.testing.assert_array_equal(dequantize_outputs(fixed, codes)["y"], real)

    def test_results_without_quantization_need_samples(self, read):
        graph = read(
            message(self.NARROW.replace("o = Gemm", "y = Gemm").partition("oq =")[0] + "}")
        )
        with pytest.raises(SampleError, match="does not say how to quantize y and no samples"):
            fix_model(graph, None)


def test_inspect_says_where_halves_go(tmp_path):
    onnx.save(net(PAIRS["result"][0]), tmp_path / "m.onnx")
    assert "in fixed point up" in inspect_file(tmp_path / "m.onnx").rounding
    onnx.save(net("y = Relu(x)"), tmp_path / "m.onnx")
    assert inspect_file(tmp_path / "m.onnx").rounding == ""
