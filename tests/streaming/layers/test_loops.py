"""Loops of several steps within an inference: codes and cycles of whole accelerators."""

import numpy as np
import pytest
from recurrent_graphs import attending, looped, onnx_layer, random_loop
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.frontend import load
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.named_states import name_states
from nnef_hw.ir import Tensor
from nnef_hw.ir.batch import sample_extents
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_float
from nnef_hw.streaming.search.solver import schedule

FRAMES = 3


def begun(net):
    return net.input(Tensor("begin", (1, 1, 3)))


def cell_that_goes_on():
    """Return a loop with two states that begin where the inference before has ended."""
    body = Builder("body")
    x, h, c = (body.input(Tensor(name, (1, 3))) for name in "xhc")
    (total,) = body.node("add", [x, h], {}, ["total"])
    (gate,) = body.node("sigmoid", [total], {}, ["gate"])
    (kept,) = body.node("mul", [gate, c], {}, ["kept"])
    (memory,) = body.node("add", [kept, total], {}, ["memory"])
    body.node("tanh", [memory], {}, ["next"])
    net = Builder("goes_on")
    inputs = [net.input(Tensor("x", (4, 3))), *(net.input(Tensor(n, (1, 3))) for n in "hc")]
    attrs = {
        "body": body.build(["next", "memory"]),
        "scans": [(0, 1)],
        "full": 0,
        "states": ["next", "memory"],
        "outputs": [("next", "full", 0, 1), ("next", "last", 0, 1), ("memory", "last", 0, 1)],
    }
    results = net.node("scan", inputs, attrs, ["y", "hn", "cn"], ["scalar"] * 3)
    graph = net.build([result.name for result in results])
    return name_states(graph, {"h": "hn", "c": "cn"}, "goes_on")


LOOPS = {
    "all steps": lambda: looped(5),
    "last step": lambda: looped(4, last=True),
    "backwards": lambda: looped(5, step=-1),
    "last step backwards": lambda: looped(3, step=-1, last=True),
    "computed first value": lambda: looped(4, initial=begun),
    "something read whole": attending,
    "one that goes on": lambda: name_states(looped(3), "loops", "looped"),
    "two states that go on": cell_that_goes_on,
    "first value of a state": lambda: name_states(
        looped(3, initial=begun, last=True), {"begin": "y"}, "looped"
    ),
}


def planned(graph, rng, board="ulx3s_85f"):
    """Return the plan of a network, and the network fixed."""
    graph = simplify(graph)
    count = (6, 4) if graph.is_sequential else (10,)
    samples = {
        name: rng.normal(size=(*count, *sample_extents(graph.tensor(name).shape)))
        for name in graph.inputs
    }
    fixed = quantize(graph, samples)
    return schedule(fixed, find_board(board)), fixed


@pytest.mark.parametrize("name", LOOPS)
def test_codes_and_cycles(name, simulate, rng):
    simulate(*planned(LOOPS[name](), rng)).check(FRAMES)


def test_cells_of_16_bits(simulate, rng):
    """Where that is asked for; all else keeps 8."""
    graph = simplify(cell_that_goes_on())
    scheme = Scheme(layers={"y_memory": {"activation_bits": 16}})
    fixed = quantize(graph, {"x": rng.normal(size=(6, 5, 4, 3))}, scheme)
    bits = {name: fixed.tensor(name).qtype.bits for name in fixed.states}
    assert sorted(bits.values()) == [8, 8, 16, 16]
    simulate(schedule(fixed, find_board("ulx3s_85f")), fixed).check(FRAMES)


FORMS = [
    ("bidirectional", ("Y", "Y_h"), True), ("forward", ("Y",), False),
    ("reverse", ("Y", "Y_h"), False), ("bidirectional", ("Y",), False),
    ("bidirectional", ("Y_h",), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "direction", "outputs", "is_begun"),
    few(
        [(kind, *form) for kind in ("LSTM", "GRU", "RNN") for form in FORMS],
        [("LSTM", *FORMS[1]), ("RNN", *FORMS[0])],
    ),
)
def test_layers_of_onnx(kind, direction, outputs, is_begun, simulate, rng, tmp_path):
    pytest.importorskip("onnx")
    path = onnx_layer(
        kind, tmp_path / "layer.onnx", steps=3, size=3, direction=direction, outputs=outputs,
        begun=is_begun,
    )  # fmt: skip
    simulate(*planned(load(path), rng)).check(FRAMES)


NIGHTLY = (
    "lstm/lstm.onnx", "lstm/lstm.tract.nnef.tgz", "lstm/lstm.tract-opl.nnef.tgz", "gru/gru.onnx",
    "gru/gru.tract.nnef.tgz", "gru/gru.tract-opl.nnef.tgz", "rnn/rnn.onnx",
)  # fmt: skip
LONG = (pytest.mark.nightly, pytest.mark.verilator)


@pytest.mark.parametrize(
    ("path", "frames"),
    [
        ("rnn/rnn.tract.nnef.tgz", FRAMES),
        *(pytest.param(path, 200, marks=LONG) for path in NIGHTLY),
    ],
)
def test_exports(path, frames, exports, simulate, rng):
    """Networks of PyTorch, by tract and as ONNX files, on sequences with random stalls.

    Long runs are compiled first.
    """
    if path.endswith("onnx"):
        pytest.importorskip("onnx")
    file = exports / path
    samples = np.load(file.parent / "input.npy")
    fixed = quantize(simplify(load(file)), {"input": samples})
    engine = "verilator" if frames > FRAMES else None
    simulate(schedule(fixed, find_board("ulx3s_85f")), fixed, engine).check(frames)


@pytest.mark.nightly
@pytest.mark.verilator
@pytest.mark.parametrize("operators", [None, ["LSTM", "Gemm", "Transpose", "Squeeze", "Gather"]])
def test_networks_that_onnxruntime_quantized(operators, exports, simulate, tmp_path):
    """With codes around the LSTM, or only behind it; its inside is calibrated."""
    tools = pytest.importorskip("onnxruntime.quantization")
    samples = np.load(exports / "lstm" / "input.npy")

    class Reader(tools.CalibrationDataReader):
        rest = iter([{"input": x.astype(np.float32)} for x in samples])

        def get_next(self):
            return next(self.rest, None)

    path = tmp_path / "lstm.onnx"
    tools.quantize_static(
        exports / "lstm" / "lstm.onnx", path, Reader(), quant_format=tools.QuantFormat.QDQ,
        op_types_to_quantize=operators,
    )  # fmt: skip
    fixed = quantize(simplify(load(path)), {"input": samples})
    simulate(schedule(fixed, find_board("ulx3s_85f")), fixed, "verilator").check(200)


@pytest.mark.parametrize(
    "shard", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 100))]
)
def test_random_loops(shard, force, simulate, rng):
    """Two of them at a time: codes and cycles, with stalls, of foldings that are forced."""
    target = find_board("ecp5")
    for seed in range(2 * shard, 2 * shard + 2):
        graph = random_loop(seed)
        canonical = simplify(graph)
        samples = {
            name: rng.normal(size=(6, *sample_extents(graph.tensor(name).shape)))
            for name in graph.inputs
        }
        real, rewritten = run_float(graph, samples), run_float(canonical, samples)
        for name in graph.outputs:
            np.testing.assert_allclose(rewritten[name], real[name], atol=1e-9)
        fixed = quantize(canonical, samples)
        plan = force(schedule(fixed, target), fixed, target)
        simulate(plan, fixed).check(3)
