"""Biases of convolutions and linear layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.values import Value
from nnef_hw.ir import Quantization
from nnef_hw.reference.real.quantize import decode

__all__ = ["bias_of"]

_BITS = 32


def bias_of(call: TfliteCall, index: int, axis: int, source: int = 0) -> Value:
    """Return a bias as [1, channels]; 0 if there is none.

    Integers are steps of a product of codes, as the kernels take them: what the file says of the
    bias's own scale is of no account.

    Parameters
    ----------
    index
        Number of the argument; the filter is argument 1.
    axis
        The filter's axis of output channels.
    source
        Number of the layer's input.
    """
    bias = call.input(index)
    if bias is None:
        return call.number(0.0, replace(call.required(source)))
    stored, weights, x = call.source(index), call.source(1), call.source(source)
    if bias.rank != 1:
        raise call.error(f"the bias has shape {list(bias.shape)}, not of one dimension")
    row = (1, bias.volume)
    if stored.type is None or stored.type.dtype != "integer":
        return call.reshaped(bias, row)
    if stored.data is None or x.scale is None or weights.scale is None or not x.is_quantized:
        raise call.unsupported(
            f"the bias {stored.name!r} is of {stored.kind}, but input and filter have no scales",
            "quantize all of the layer, or nothing",
        )
    if weights.scale.size > 1 and weights.axis != axis:
        raise call.unsupported(
            f"the filter has scales along dimension {weights.axis}, not along its outputs",
            "quantize it per tensor, or per output channel",
        )
    if int(np.abs(stored.data).max(initial=0)) >= 1 << (_BITS - 1):
        raise call.unsupported("the bias has over 32 bits", "quantize the model with other scales")
    scale = (x.scale * weights.scale).reshape(1, -1)
    if scale.size not in {1, bias.volume}:
        raise call.error(f"{scale.size} scales do not fit a bias of {bias.volume}")
    quant = Quantization(
        "zero_point_linear_quantize",
        {
            "zero_point": 0,
            "scale": scale if scale.size > 1 else scale.item(),
            "bits": _BITS,
            "signed": True,
            "symmetric": False,
        },
    )
    tensor = call.builder.constant(
        bias.tensor.name, decode(stored.data.reshape(row), quant), location=call.location
    )
    tensor = call.builder.add(replace(tensor, label=bias.tensor.label, quant=quant))
    return Value(tensor, bias.type)
