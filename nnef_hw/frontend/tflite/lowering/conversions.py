"""Tensors in another order of axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnef_hw.errors import Location
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.tflite.lowering.values import (
    Value,
    channels_first,
    channels_last,
    moved_quantization,
)
from nnef_hw.ir import Tensor

__all__ = ["Conversions", "transposed"]


class Conversions:
    """Tensors of a graph in the other order of axes, each made once."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._found: dict[tuple[str, bool], Tensor] = {}

    def image(self, value: Value, location: Location) -> Value:
        """Return [N, spatial..., C] as the tensor [N, C, spatial...]."""
        return value if value.is_image else self._moved(value, True, location)

    def plain(self, value: Value, location: Location) -> Value:
        """Return a value whose tensor has TensorFlow Lite's order of axes."""
        return self._moved(value, False, location) if value.is_image else value

    def _moved(self, value: Value, to_image: bool, location: Location) -> Value:
        axes = channels_first(value.rank) if to_image else channels_last(value.rank)
        key = (value.tensor.name, to_image)
        if key not in self._found:
            self._found[key] = transposed(
                self._builder, value.tensor, axes, "image" if to_image else "nhwc", location
            )
            self._found[self._found[key].name, not to_image] = value.tensor
        return Value(self._found[key], value.type, to_image)

    def renamed(self, old: str, new: Tensor) -> None:
        """Take note that a tensor has another name."""
        for key in [key for key in self._found if key[0] == old]:
            self._found[new.name, key[1]] = self._found.pop(key)
        for key, tensor in self._found.items():
            if tensor.name == old:
                self._found[key] = new


def transposed(
    builder: Builder, tensor: Tensor, axes: list[int], what: str, location: Location
) -> Tensor:
    """Return a tensor with permuted axes; constants are moved at once."""
    name = f"{tensor.name}_{what}"
    if tensor.data is not None:
        data = np.ascontiguousarray(tensor.data.transpose(axes))
        made = builder.constant(name, data, location=location)
        quant = moved_quantization(tensor.quant, axes)
        return builder.add(replace(made, dtype=tensor.dtype, label=tensor.label, quant=quant))
    [made] = builder.node(
        "transpose", [tensor], {"axes": list(axes)}, name, [tensor.dtype], location=location
    )
    return builder.add(replace(made, quant=tensor.quant))
