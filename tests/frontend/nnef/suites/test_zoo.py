import numpy as np
import pytest

from nnef_hw.frontend.nnef import graph_hash, load_nnef, save_nnef
from nnef_hw.ir import verify

MODELS = {
    "digits_mlp": 2_048 + 320,
    "jvowels_conv1d_tanh": 16 * 60 + 24 * 48 + 216,
    "mlperf_ic_resnet8": 77_360,
    "mlperf_kws_dscnn": 22_016,
    "mlperf_sww_ds1d": 46_040,
    "mnist_lenet5": 150 + 2_400 + 48_000 + 10_080 + 840,
    "mnist_tiny_cnn": 72 + 1_152 + 4_608 + 2_880,
    "tflm_hello_world": 16 + 256 + 16,
}


@pytest.mark.zoo
@pytest.mark.parametrize("name", MODELS)
def test_trained_networks_load(zoo, name, tmp_path, assert_same):
    graph = load_nnef(zoo / name / "model.nnef.tgz")
    verify(graph)

    samples = np.load(zoo / name / "samples.npz")["inputs"]
    shape = graph.tensor(graph.inputs[0]).shape
    assert shape[1:] == samples.shape[1:]
    filters = [node.inputs[1] for node in graph.nodes if node.op in {"conv", "linear"}]
    weights = sum(graph.tensor(name).volume for name in filters)
    assert weights == MODELS[name]

    save_nnef(graph, tmp_path / "m.nnef.tgz")
    again = load_nnef(tmp_path / "m.nnef.tgz")
    assert_same(graph, again)
    assert graph_hash(graph) == graph_hash(again)


@pytest.mark.zoo
def test_folder_and_archive_are_the_same_model(zoo):
    folder = load_nnef(zoo / "digits_mlp" / "nnef")

    assert graph_hash(folder) == graph_hash(load_nnef(zoo / "digits_mlp" / "model.nnef.tgz"))
    assert folder.nodes[0].location.file == str(zoo / "digits_mlp" / "nnef" / "graph.nnef")
