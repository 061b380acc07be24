"""Model files of tools whose formats are not read, and the way from there to one that is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nnef_hw.errors import UnsupportedError

__all__ = ["refuse_foreign"]

_SAVED_MODEL = "saved_model.pb"


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A program that writes files of some suffixes, and how it exports a model that is read."""

    writer: str
    suffixes: tuple[str, ...]
    way: str


_KERAS = _Foreign(
    "Keras", (".h5", ".hdf5", ".keras"),
    "load it in Keras and model.export('model.onnx', format='onnx'), or convert it with "
    "tf.lite.TFLiteConverter.from_keras_model",
)  # fmt: skip
_TENSORFLOW = _Foreign(
    "TensorFlow", (".ckpt", ".pb"),
    "python -m tf2onnx.convert --saved-model FOLDER --output model.onnx, or "
    "tf.lite.TFLiteConverter.from_saved_model",
)  # fmt: skip
_FORMATS = (
    _KERAS,
    _TENSORFLOW,
    _Foreign(
        "PyTorch", (".pt", ".pt2", ".pth"),
        "load it in PyTorch and torch.onnx.export(model.eval(), example, 'model.onnx')",
    ),
    _Foreign(
        "scikit-learn or another Python library", (".joblib", ".pickle", ".pkl"),
        "load it in Python; skl2onnx.to_onnx(model, X[:1]) makes scikit-learn's models ONNX",
    ),
    _Foreign("SkriptND (NNEF 2)", (".sknd",), "convert it to ONNX with Khronos' NNEF-Tools"),
    _Foreign("onnxruntime", (".ort",), "use the ONNX file that it was made from"),
    _Foreign(
        "Caffe", (".caffemodel", ".prototxt"), "convert it with Khronos' NNEF-Tools, or to ONNX"
    ),
)  # fmt: skip
_ARRAYS = {".npz", ".npy"}
_BY_SUFFIX = {suffix: row for row in _FORMATS for suffix in row.suffixes}


def refuse_foreign(path: Path) -> None:
    """Refuse a model of a known other format, or samples, by its name.

    Raises
    ------
    UnsupportedError
        If it is one.
    """
    if path.suffix.lower() in _ARRAYS and path.is_file():
        raise UnsupportedError(
            f"{path} holds arrays of NumPy, no model",
            remedy="samples go behind an option: --calibrate, --samples or --input",
        )
    row = _BY_SUFFIX.get(path.suffix.lower()) if path.is_file() else None
    if row is None and (path / _SAVED_MODEL).is_file():
        row = _TENSORFLOW
    if row is None and path.is_dir() and any(path.glob("*.sknd")):
        row = _BY_SUFFIX[".sknd"]
    if row is not None:
        raise UnsupportedError(
            f"{path} is a model of {row.writer}, not a model format nnef-hw reads",
            remedy=f"it reads ONNX, TensorFlow Lite and NNEF: {row.way}",
        )
