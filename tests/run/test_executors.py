import numpy as np
import pytest

from nnef_hw.build.pipeline import BuildOptions, build
from nnef_hw.errors import UsageError
from nnef_hw.frontend import load, save
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_float
from nnef_hw.run.executors import FixedExecutor, FloatExecutor, RtlExecutor, make_executor
from nnef_hw.testing import GraphBuilder


def network(head):
    """Return a network on 2x5x5 images that ends in ``head``."""
    rng = np.random.default_rng(3)
    net = GraphBuilder(head)
    y = net.input("image", [1, 2, 5, 5])
    y = net.conv(y, rng.normal(size=(4, 2, 3, 3)), rng.normal(size=(1, 4)), padding=1)
    y = net.pool("max_pool", net.op("relu", y), 3, stride=2)
    if head == "image":
        return net.build(net.op("tanh", y, name="out"))
    y = net.reshape(y, [1, 16])
    y = net.op("linear", y, rng.normal(size=(5, 16)) / 4, rng.normal(size=(1, 5)), name="scores")
    if head == "softmax":
        net.op("softmax", y, axes=[1], name="out")
    elif head == "argmax":
        net.op("argmax_reduce", y, axes=[1], name="out")
    return net.build()


@pytest.fixture(scope="module", params=["image", "linear", "softmax", "argmax"])
def built(request, tmp_path_factory):
    """Float graph, inputs, and the build of a network."""
    folder = tmp_path_factory.mktemp("executors")
    graph = network(request.param)
    save(graph, folder / "float.nnef.tgz")
    inputs = np.random.default_rng(4).uniform(-1, 1, (40, 2, 5, 5))
    np.savez(folder / "samples.npz", inputs=inputs)
    build(
        BuildOptions(
            folder / "float.nnef.tgz", "icebreaker", folder / "build",
            calibrate=folder / "samples.npz", bitstream=False,
        )
    )  # fmt: skip
    return graph, {"image": inputs}, folder


@pytest.mark.verilator
def test_executors_agree(built):
    graph, inputs, folder = built
    (output,) = graph.outputs
    executors = {on: make_executor(folder / "build", on) for on in ("float", "fixed", "rtl")}
    assert [type(e) for e in executors.values()] == [FloatExecutor, FixedExecutor, RtlExecutor]
    results = {on: executor.run(inputs) for on, executor in executors.items()}
    shape = (40, *graph.tensor(output).shape[1:])
    for result in results.values():
        assert result.keys() == {output}
        assert result[output].shape == shape
    np.testing.assert_array_equal(results["rtl"][output], results["fixed"][output])

    real = run_float(graph, inputs)[output]
    np.testing.assert_allclose(results["float"][output], real, rtol=1e-12, atol=1e-12)
    found = results["fixed"][output]
    if graph.name == "argmax":
        assert (found == real).mean() >= 0.8
    else:
        assert np.abs(found - real).mean() < 0.05 * np.abs(real).max()


@pytest.mark.verilator
def test_build_gives_the_graph_of_each_executor(built):
    _, _, folder = built
    assert make_executor(folder / "build", "float").graph.stage == "canonical"
    for on in ("fixed", "rtl"):
        assert make_executor(folder / "build", on).graph.stage == "fixed"


def test_float_and_fixed_models_without_a_build(tmp_path, rng):
    graph = network("linear")
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
    with pytest.raises(UsageError, match="is no build, so there is no Verilog to run"):
        make_executor(tmp_path / "fixed.nnef.tgz", "rtl")
