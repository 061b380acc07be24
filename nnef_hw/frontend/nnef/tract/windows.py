"""Sliding windows: where tract's filters, biases and borders differ from the specification's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.ir import Quantization, Tensor

__all__ = ["WINDOWS"]


def _conv(call: Invoked) -> object:
    call.values["bias"] = _bias(call)
    return call.node()


def _bias(call: Invoked) -> Tensor:
    """Return the bias; tract removes all its dimensions of extent 1."""
    bias = call.tensor("bias")
    flat = tuple(extent for extent in bias.shape if extent != 1)
    if len(flat) != 1 or bias.shape in {flat, (1, *flat)}:
        return bias
    result: Tensor = call.call("reshape", bias, shape=[1, -1])
    return result


def _deconv(call: Invoked) -> object:
    """Transpose the filter: tract's has the shape [outputs, inputs / groups, ...]."""
    source, kernel = call.tensor("input"), call.tensor("filter")
    if len(kernel.shape) != len(source.shape) or len(kernel.shape) < 3:
        raise call.error(
            f"the filter {kernel.name!r} has rank {len(kernel.shape)}, the input {source.name!r} "
            f"has rank {len(source.shape)}",
            "both have batch, channels and spatial dimensions",
            at="filter",
        )
    channels = kernel.shape[0]
    groups = call.values["groups"] or channels
    if groups < 0 or channels % groups:
        raise call.error(f"groups = {groups} does not divide {channels} channels", at="groups")
    call.values["filter"] = _inputs_first(call, kernel, groups)
    call.values["bias"] = _bias(call)
    spatial = call.values["output_shape"]
    if len(spatial) == len(source.shape) - 2:
        call.values["output_shape"] = [source.shape[0], channels, *spatial]
    return call.node()


def _inputs_first(call: Invoked, kernel: Tensor, groups: int) -> Tensor:
    """Return a filter [outputs, inputs / groups, ...] as [inputs, outputs / groups, ...]."""
    outputs, inputs, *spatial = kernel.shape
    grouped = [groups, outputs // groups, inputs, *spatial]
    shape = [groups * inputs, outputs // groups, *spatial]
    if kernel.data is not None:
        data = np.ascontiguousarray(kernel.data.reshape(grouped).swapaxes(1, 2).reshape(shape))
        builder = call.evaluator.builder
        constant = builder.constant(f"{kernel.name}_inputs_first", data, location=call.location)
        return builder.add(replace(constant, quant=_moved(call, kernel.quant, groups)))
    parts = call.call("reshape", kernel, shape=grouped)
    swapped = call.call("transpose", parts, axes=[0, 2, 1])
    result: Tensor = call.call("reshape", swapped, shape=shape)
    return result


def _moved(call: Invoked, quant: Quantization | None, groups: int) -> Quantization | None:
    """Return the quantization of a filter whose output channels became its second dimension."""
    if quant is None or all(np.ndim(value) == 0 for value in quant.args.values()):
        return quant
    if groups != 1:
        raise UnsupportedError(
            f"{call.op} {call.name!r}: a grouped filter with a scale for each channel is not "
            "supported",
            remedy="quantize the filter with one scale",
            location=call.location,
        )
    args = {
        key: np.reshape(value, (1, -1)) if np.ndim(value) else value
        for key, value in quant.args.items()
    }
    return replace(quant, args=args)


def _max_pool(call: Invoked) -> object:
    """Leave out the border, where the specification lets zeros take part."""
    padded = any(map(any, call.values["padding"])) or not call.values["padding"]
    if call.values["border"] == "constant" and padded and math.prod(call.values["size"]) > 1:
        call.values["border"] = "ignore"
    return call.node()


WINDOWS: Mapping[str, Callable[[Invoked], object]] = {
    "conv": _conv,
    "deconv": _deconv,
    "max_pool": _max_pool,
    "max_pool_with_index": _max_pool,
    "argmax_pool": _max_pool,
}
"""Lowerings by operator."""
