"""Data of ``variable``: found by its label, checked against the graph."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.frontend.nnef.archive import Archive
from nnef_hw.frontend.nnef.tensor_file import ItemType, TensorFile, read_tensor
from nnef_hw.frontend.shapes import Call
from nnef_hw.ir import Tensor

__all__ = ["VariableReader"]

_LABEL = re.compile(r"[A-Za-z0-9_\-./\\]+")
_QUANTIZED = {ItemType.QUANTIZED_UNSIGNED, ItemType.QUANTIZED_SIGNED}
_ITEM_TYPES = {
    "scalar": {ItemType.FLOAT, *_QUANTIZED},
    "integer": {ItemType.UNSIGNED, ItemType.SIGNED, *_QUANTIZED},
    "logical": {ItemType.BOOL},
}


class VariableReader:
    """Reads each label once."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._files: dict[str, TensorFile] = {}

    def read(self, call: Call, tensor: Tensor) -> Tensor:
        """Return the tensor with its data and label.

        Raises
        ------
        ModelError
            If there is no file, or it does not fit the declaration, or holds NaN or infinity.
        """
        label = call.attrs["label"]
        file = self._load(call, label)
        data = file.array
        if data.shape != tensor.shape:
            raise call.error(
                f"the graph says shape {list(tensor.shape)}, but {label}.dat has "
                f"{list(data.shape)}",
                at="shape",
            )
        if file.item_type not in _ITEM_TYPES[tensor.dtype]:
            raise call.error(
                f"the graph says {tensor.dtype}, but {label}.dat holds items of type "
                f"{file.item_type.name.lower()}"
            )
        if tensor.dtype == "scalar" and file.item_type in _QUANTIZED:
            raise UnsupportedError(
                f"variable {tensor.name!r}: {label}.dat is quantized",
                remedy="load the float model; models quantized by other tools cannot be read yet",
                location=call.location,
            )
        wrong = np.argwhere(~np.isfinite(data))
        if len(wrong):
            first = tuple(map(int, wrong[0]))
            raise call.error(
                f"{label}.dat holds {data[first]} at {list(first)}"
                + (f" and {len(wrong) - 1} more NaN or infinities" if len(wrong) > 1 else ""),
                "train or export the model again",
            )
        return replace(tensor, data=data, label=label)

    def _load(self, call: Call, label: str) -> TensorFile:
        if not _LABEL.fullmatch(label):
            raise call.error(
                f"the label {label!r} is no valid name",
                "use letters, digits and _ - . / only",
                at="label",
            )
        if label not in self._files:
            name = f"{label}.dat".replace("\\", "/")
            if name not in self._archive:
                raise call.error(
                    f"the model has no file {name!r}", "is the archive complete?", at="label"
                )
            where = self._archive.location(name)
            try:
                self._files[label] = read_tensor(self._archive.read(name), where)
            except ModelError as error:
                raise type(error)(
                    f"variable {call.name!r}: {error.reason}", remedy=error.remedy, location=where
                ) from None
        return self._files[label]
