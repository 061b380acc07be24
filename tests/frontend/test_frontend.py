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


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("model.keras", r"model.export\('model.onnx', format='onnx'\)"),
        ("model.H5", r"model.export\('model.onnx', format='onnx'\)"),
        ("model.pt", r"torch.onnx.export\("),
        ("model.pth", r"torch.onnx.export\("),
        ("model.joblib", "skl2onnx.to_onnx"),
        ("model/saved_model.pb", "python -m tf2onnx.convert --saved-model"),
    ],
)
def test_formats_of_others_are_answered_with_the_way_in(tmp_path, name, way):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PK")
    model = path.parent if path.parent != tmp_path else path
    with pytest.raises(UnsupportedError, match=f"not a model format nnef-hw reads; .*{way}"):
        load(model)
