"""What exporters write that the specification forbids: read by lenient rules, with a warning."""

from __future__ import annotations

import logging
from typing import Any

from nnef_hw.errors import Location
from nnef_hw.frontend.nnef.invocation import Invoked
from nnef_hw.frontend.nnef.syntax import PrimitiveType, TensorType, Type
from nnef_hw.ir import Tensor

__all__ = ["batch_normalization", "is_constant_number", "numbers_of_tensors"]

_log = logging.getLogger(__name__)


def is_constant_number(kind: Type, wanted: Type) -> bool:
    """Whether a tensor's type is that of the number that an attribute should be."""
    return (
        isinstance(kind, TensorType)
        and isinstance(wanted, PrimitiveType)
        and kind.item == wanted.name
    )


def numbers_of_tensors(call: Invoked) -> None:
    """Replace constant tensors of one element that stand for attributes by their numbers.

    Raises
    ------
    ModelError
        If such a tensor is computed, or has more elements.
    """
    for parameter in call.declaration.parameters:
        value = call.values[parameter.name]
        if parameter.is_tensor or not isinstance(value, Tensor):
            continue
        where = call.places.get(parameter.name, call.location)
        if value.data is None or value.data.size != 1:
            what = "computed" if value.data is None else f"of shape {list(value.shape)}"
            raise call.error(
                f"{parameter.name!r} must be {parameter.type}, not the tensor {value.name!r}, "
                f"which is {what}",
                "write a number",
                at=parameter.name,
            )
        call.values[parameter.name] = number = value.data.reshape(-1)[0].item()
        _warn(where, f"{parameter.name!r} is a tensor; write {parameter.name} = {number:g}")


def batch_normalization(call: Invoked) -> Any:
    """Normalize; parameters [1, ..., 1, C] of torch_to_nnef, behind the channels, are [1, C].

    Only with all of them along the last axis and as many elements as there are channels.
    """
    shape = call.tensor("input").shape
    names = ("mean", "variance", "offset", "scale")
    found = {name: call.values[name] for name in names}
    if len(shape) > 2 and all(_is_behind(value, shape) for value in found.values()):
        for name, value in found.items():
            assert isinstance(value, Tensor)
            call.values[name] = _along_channels(call, value)
        _warn(
            call.location,
            f"the parameters of batch_normalization {call.name!r} lie along the last axis; "
            "they are taken for those of the channels, [1, C]",
        )
    return call.node()


def _is_behind(value: Any, shape: tuple[int, ...]) -> bool:
    expected = (*[1] * (len(shape) - 1), shape[1])
    return isinstance(value, Tensor) and value.data is not None and value.shape == expected


def _along_channels(call: Invoked, value: Tensor) -> Tensor:
    assert value.data is not None
    builder = call.evaluator.builder
    return builder.constant(value.name, value.data.reshape(1, -1), location=call.location)


def _warn(where: Location, text: str) -> None:
    _log.warning("%s: %s", where, text)
