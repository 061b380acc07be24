import pytest

from nnef_hw.errors import UnsupportedError, UsageError
from nnef_hw.frontend import graph_hash, load, save

DOCUMENT = "version 1.0;\ngraph g(x) -> (y) { x = external(shape = [1]); y = relu(x); }\n"


def test_models_are_loaded_and_saved_by_any_path_type(tmp_path):
    (tmp_path / "graph.nnef").write_text(DOCUMENT)
    graph = load(str(tmp_path / "graph.nnef"))
    save(graph, str(tmp_path / "m.nnef.tgz"))

    assert graph_hash(load(tmp_path / "m.nnef.tgz")) == graph_hash(load(tmp_path))


def test_onnx_is_not_written(tmp_path):
    (tmp_path / "graph.nnef").write_text(DOCUMENT)
    with pytest.raises(UnsupportedError, match="ONNX models cannot be written"):
        save(load(tmp_path), tmp_path / "out.onnx")


def test_missing_models_are_the_users_mistake(tmp_path):
    with pytest.raises(UsageError, match="does not exist") as info:
        load(tmp_path / "none.nnef.tgz")
    assert info.value.exit_status == 2


@pytest.mark.parametrize("suffix", [".keras", ".h5", ".pt"])
def test_formats_of_others_are_named(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"PK")
    with pytest.raises(UnsupportedError, match="not a model format nnef-hw reads; convert it to"):
        load(path)
