"""Data of ``variable``: found by its label, checked against the graph, decoded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.frontend.nnef.archive.archive import Archive
from nnef_hw.frontend.nnef.archive.safetensors import read_safetensors
from nnef_hw.frontend.nnef.archive.tensor_file import ItemType, TensorFile, read_tensor
from nnef_hw.frontend.nnef.evaluation.quant_file import QuantizationLine
from nnef_hw.frontend.shapes import Call
from nnef_hw.ir import Quantization, Tensor
from nnef_hw.reference.real.quantize import code_range, decode, fake_quantize

__all__ = ["VariableReader"]

_LABEL = re.compile(r"[A-Za-z0-9_\-./\\]+")
_DTYPES = {
    ItemType.FLOAT: {"scalar"},
    ItemType.UNSIGNED: {"integer"},
    ItemType.SIGNED: {"integer"},
    ItemType.QUANTIZED_UNSIGNED: {"scalar", "integer"},
    ItemType.QUANTIZED_SIGNED: {"scalar", "integer"},
    ItemType.BOOL: {"logical"},
}
_ITEM_TYPES = {"f": ItemType.FLOAT, "i": ItemType.SIGNED, "u": ItemType.UNSIGNED}
_NO_LINES: Mapping[str, QuantizationLine] = MappingProxyType({})


class VariableReader:
    """Reads each label once.

    Parameters
    ----------
    archive
        Holds ``LABEL.dat``, or the label's tensor in a ``.safetensors`` file.
    lines
        Lines of the quantization file by tensor name.
    tract
        Whether the model is of tract's dialect: the file decides on the data-type, codes without
        a quantization are plain integers, labels hold any character, numbers may be infinite.
    """

    def __init__(
        self,
        archive: Archive,
        lines: Mapping[str, QuantizationLine] = _NO_LINES,
        *,
        tract: bool = False,
    ) -> None:
        self._archive = archive
        self._lines = lines
        self._tract = tract
        self._files: dict[str, TensorFile] = {}

    def read(self, call: Call, tensor: Tensor) -> Tensor:
        """Return the tensor with its data and label; codes as the real numbers they stand for.

        Raises
        ------
        ModelError
            If there is no file, or it does not fit the declaration or the quantization file, or
            holds NaN. Infinity is a number that masks are made of.
        """
        label = call.attrs["label"]
        file = self._load(call, label)
        if file.array.shape != tensor.shape:
            raise call.error(
                f"the graph says shape {list(tensor.shape)}, but {label}.dat has "
                f"{list(file.array.shape)}",
                at="shape",
            )
        line = self._lines.get(tensor.name)
        quant = None if line is None else line.of_shape(tensor.shape)
        dtype = self._dtype(call, tensor, file, line)
        data = file.array
        if dtype == "scalar" and file.item_type != ItemType.FLOAT:
            stored = file.quant or quant
            assert stored is not None, tensor.name
            data = _decoded(call, file, stored)
            quant = quant or stored
            if file.quant is not None and line is not None:
                data = fake_quantize(data, quant)
        elif dtype == "scalar":
            _check_numbers(call, data)
            data = data if quant is None else fake_quantize(data, quant)
        elif dtype == "integer":
            data = _integers(data, call)
        return replace(tensor, dtype=dtype, data=data, label=label, quant=quant)

    def _dtype(
        self, call: Call, tensor: Tensor, file: TensorFile, line: QuantizationLine | None
    ) -> str:
        """Return the data-type of the tensor; refuse what the file's items cannot be."""
        label, kind = call.attrs["label"], file.item_type
        is_coded = line is not None or file.quant is not None
        if self._tract:
            if kind in {ItemType.FLOAT, ItemType.BOOL}:
                return "logical" if kind == ItemType.BOOL else "scalar"
            return "scalar" if is_coded else "integer"
        if tensor.dtype not in _DTYPES[kind]:
            raise call.error(
                f"the graph says {tensor.dtype}, but {label}.dat holds items of type "
                f"{kind.name.lower()}"
            )
        if tensor.dtype == "scalar" and kind.is_quantized and not is_coded:
            raise call.error(
                f"{label}.dat holds codes, but nothing says which numbers they stand for",
                f'add a line to graph.quant: "{tensor.name}": zero_point_linear_quantize(...);',
            )
        if tensor.dtype != "scalar" and line is not None:
            raise ModelError(
                f"{tensor.name!r} is quantized, but it is a tensor<{tensor.dtype}>",
                remedy=f"only scalars are quantized; write {tensor.name} = variable<scalar>(...)",
                location=line.location,
            )
        return tensor.dtype

    def _load(self, call: Call, label: str) -> TensorFile:
        if not self._tract and not _LABEL.fullmatch(label):
            raise call.error(
                f"the label {label!r} is not a valid name",
                "use letters, digits and _ - . / only",
                at="label",
            )
        if label not in self._files:
            name = f"{label}.dat".replace("\\", "/").lstrip("/")
            if name in self._archive:
                self._files[label] = self._read(call, name)
            elif label in self._safetensors:
                array = self._safetensors[label]
                kind = _ITEM_TYPES.get(array.dtype.kind, ItemType.BOOL)
                self._files[label] = TensorFile(array, kind, array.dtype.itemsize * 8)
            else:
                raise call.error(
                    f"the model has no file {name!r}", "is the archive complete?", at="label"
                )
        return self._files[label]

    def _read(self, call: Call, name: str) -> TensorFile:
        where = self._archive.location(name)
        try:
            return read_tensor(self._archive.view(name), where)
        except ModelError as error:
            raise type(error)(
                f"variable {call.name!r}: {error.reason}", remedy=error.remedy, location=where
            ) from None

    @cached_property
    def _safetensors(self) -> dict[str, Array]:
        tensors: dict[str, Array] = {}
        for name in self._archive.names(".safetensors"):
            where = self._archive.location(name)
            tensors.update(read_safetensors(self._archive.view(name), where))
        return tensors


def _check_numbers(call: Call, data: Array) -> None:
    is_wrong = np.isnan(data)
    if is_wrong.any():
        wrong = np.argwhere(is_wrong)
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise call.error(
            f"{call.attrs['label']}.dat holds nan at {wrong[0].tolist()}{more}",
            "train or export the model again",
        )


def _decoded(call: Call, file: TensorFile, quant: Quantization) -> NDArray[np.float64]:
    """Return the real numbers of codes, if all of them are codes of this quantization."""
    codes = file.array
    lo, hi = code_range(quant)
    is_signed = file.item_type in {ItemType.QUANTIZED_SIGNED, ItemType.SIGNED}
    if quant.op == "logarithmic_quantize" and is_signed:
        lo, hi = -((hi + 1) >> 1), hi
    for code in (int(codes.min()), int(codes.max())) if codes.size else ():
        if not lo <= code <= hi:
            raise call.error(
                f"{call.attrs['label']}.dat holds the code {code}, but its quantization has "
                f"{lo}..{hi}",
                "are bits, signed and symmetric right?",
            )
    return decode(codes, quant, sign_bit=is_signed)


def _integers(data: Array, call: Call) -> NDArray[np.int64]:
    if data.dtype == np.uint64 and data.size and int(data.max()) >= 1 << 63:
        raise UnsupportedError(
            f"variable {call.name!r}: an integer is above 2**63 - 1",
            remedy="export the model with 64-bit signed integers",
            location=call.location,
        )
    return data.astype(np.int64)
