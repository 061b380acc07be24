"""Models that are not files: bytes, and objects of the libraries that models are made with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from nnef_hw.api.torch_export import write_torch
from nnef_hw.errors import UsageError

__all__ = ["as_file", "write_source"]

T = TypeVar("T")
Foreign: TypeAlias = Any
"""A model of a library that is not imported here."""


def write_source(source: object, folder: Path, example: object) -> Path:
    """Write a model that is not a file yet into a folder, and return the file.

    Parameters
    ----------
    source
        Contents of an ONNX, TensorFlow Lite or NNEF file; an ``onnx.ModelProto``; a
        ``torch.nn.Module``; a Keras model.
    example
        Inputs of a module of PyTorch, a tensor, an array or a tuple of them: it is exported by
        running it.

    Raises
    ------
    UsageError
        If it is none of these, or a module comes without an example, or cannot be exported.
    """
    if isinstance(source, bytes | bytearray):
        return _write_bytes(bytes(source), folder)
    for kind in _KINDS:
        if kind.matches(source):
            path = folder / f"{type(source).__name__}.onnx"
            kind.write(source, path, example)
            return path
    raise UsageError(
        f"{type(source).__name__} objects are not models",
        remedy="give a file, its bytes, an onnx.ModelProto, a torch.nn.Module or a Keras model",
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """Objects of another library: the class that they derive from, and how they become ONNX."""

    module: str
    base: str
    write: Callable[[Foreign, Path, object], None]

    def matches(self, source: object) -> bool:
        """Whether an object is one; its library need not be there to tell."""
        return any(
            found.__name__ == self.base and found.__module__.partition(".")[0] == self.module
            for found in type(source).__mro__
        )


def _write_bytes(content: bytes, folder: Path) -> Path:
    suffix = ".onnx"
    if content[4:8] == b"TFL3":
        suffix = ".tflite"
    elif content[:2] == b"\x1f\x8b":
        suffix = ".nnef.tgz"
    elif content[257:262] == b"ustar":
        suffix = ".nnef.tar"
    path = folder / f"model{suffix}"
    path.write_bytes(content)
    return path


def _write_proto(model: Foreign, path: Path, example: object) -> None:
    path.write_bytes(model.SerializeToString())


def _write_keras(model: Foreign, path: Path, example: object) -> None:
    try:
        model.export(str(path), format="onnx", verbose=False)
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"Keras cannot export {type(model).__name__}: {error}",
            remedy="see that the model has run once on inputs, or export it to a file yourself",
        ) from error


_KINDS = (
    _Kind("onnx", "ModelProto", _write_proto),
    # On PyTorch's backend a model of Keras is a module, too, and knows its inputs.
    _Kind("keras", "Model", _write_keras),
    _Kind("torch", "Module", write_torch),
)


def as_file(source: object, example: object, use: Callable[[Path], T]) -> T:
    """Call a function with a model as a file, which is there only meanwhile; return its result."""
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as folder:
        return use(write_source(source, Path(folder), example))
