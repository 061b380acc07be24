from itertools import product

import numpy as np
import pytest
from sweeps import few

from nnef_hw.errors import UsageError
from nnef_hw.frontend import load, save
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_float
from nnef_hw.run.executors import make_executor

pytestmark = pytest.mark.system

BOARDS = ("ulx3s_85f", "icebreaker")
PLAIN = {"image", "softmax"}
HARDWARE = {"rtl": {}, "device": {"port": "sim"}}


HEADS = ("image", "linear", "softmax", "argmax", "ports")


@pytest.fixture(params=HEADS)
def built(request, make_build):
    """The build of a network."""
    return make_build(request.param)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("head", "on"),
    few(
        list(product(HEADS, HARDWARE)),
        # Behind a link all that differs is what it carries: codes, a choice, several tensors.
        [*((head, "rtl") for head in HEADS), *((x, "device") for x in HEADS if x not in PLAIN)],
    ),
)
def test_hardware_computes_the_integers_of_the_model(head, on, make_build):
    built = make_build(head)
    expected = make_executor(built.path, "fixed").run(built.inputs)
    executor = make_executor(built.path, on, **HARDWARE[on])
    assert executor.graph.stage == "fixed"
    found = executor.run(built.inputs)
    assert found.keys() == expected.keys() == set(built.graph.outputs)
    for name, codes in expected.items():
        np.testing.assert_array_equal(found[name], codes)


@pytest.mark.synth
@pytest.mark.verilator
@pytest.mark.parametrize(
    ("head", "board"),
    few(list(product(["conv", "ports"], BOARDS)), [("conv", board) for board in BOARDS]),
)
def test_mapped_cells_compute_the_integers_of_the_model(head, board, make_build):
    built = make_build(head, board, target_fps=20_000)
    expected = make_executor(built.path, "fixed").run(built.inputs)
    found = make_executor(built.path, "netlist").run(built.inputs)
    for name, codes in expected.items():
        np.testing.assert_array_equal(found[name], codes)


@pytest.mark.verilator
def test_fixed_model_is_close_to_the_float_one(built):
    results = {on: make_executor(built.path, on).run(built.inputs) for on in ("float", "fixed")}
    shape = (40, *built.graph.tensor(built.output).shape[1:])
    for result in results.values():
        assert result[built.output].shape == shape
    real = run_float(built.graph, built.inputs)[built.output]
    np.testing.assert_allclose(results["float"][built.output], real, rtol=1e-12, atol=1e-12)
    found = results["fixed"][built.output]
    if built.graph.name == "argmax":
        assert (found == real).mean() >= 0.8
    else:
        assert np.abs(found - real).mean() < 0.05 * np.abs(real).max()


@pytest.mark.verilator
def test_build_gives_the_graph_of_each_executor(make_build):
    path = make_build("linear").path
    assert make_executor(path, "float").graph.stage == "canonical"
    assert make_executor(path, "fixed").graph.stage == "fixed"


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("on", "port", "match"),
    [("device", None, "a device needs --port; name"), ("rtl", "sim", "--port sim is for --on dev")],
)
def test_port_belongs_to_the_device(on, port, match, make_build):
    with pytest.raises(UsageError, match=match):
        make_executor(make_build("linear").path, on, port=port)


@pytest.mark.verilator
def test_float_and_fixed_models_without_a_build(make_build, tmp_path, rng):
    graph = make_build("linear").graph
    inputs = {"image": rng.uniform(-1, 1, (10, 2, 5, 5))}
    fixed = quantize(simplify(graph), inputs)
    save(graph, tmp_path / "float.nnef.tgz")
    save(fixed, tmp_path / "fixed.nnef.tgz")

    real = make_executor(tmp_path / "float.nnef.tgz", "float").run(inputs)["scores"]
    found = make_executor(tmp_path / "fixed.nnef.tgz", "fixed").run(inputs)["scores"]
    qtype = load(tmp_path / "fixed.nnef.tgz").tensor(fixed.outputs[0]).qtype
    np.testing.assert_array_equal(found, qtype.dequantize(qtype.quantize(found)))
    assert np.abs(found - real).max() < 0.1 * np.abs(real).max()

    with pytest.raises(UsageError, match=r"float\.nnef\.tgz' is not quantized; run nnef-hw quant"):
        make_executor(tmp_path / "float.nnef.tgz", "fixed")
    with pytest.raises(UsageError, match="holds only a quantized model; run it with --on fixed"):
        make_executor(tmp_path / "fixed.nnef.tgz", "float")
    with pytest.raises(UsageError, match="is not a build, so there is no hardware to run"):
        make_executor(tmp_path / "fixed.nnef.tgz", "rtl")
