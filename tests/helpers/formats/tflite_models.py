"""Networks of the zoo with the integers of their TensorFlow Lite models."""

import dataclasses
import json

import numpy as np

from nnef_hw.frontend import load
from nnef_hw.ir import Quantization
from nnef_hw.reference.real.quantize import decode

__all__ = ["with_tflite_parameters"]


def with_tflite_parameters(folder):
    """Return a network's graph with the scales and integers of its TensorFlow Lite model."""
    graph = load(folder / "model.nnef.tgz")
    stored = json.loads((folder / "int8_quant.json").read_text())["tensors"]
    integers = np.load(folder / "int8_weights.npz")
    labels = {tensor.label: name for name, tensor in graph.tensors.items() if tensor.label}
    tensors = dict(graph.tensors)
    for item in stored:
        name = labels.get(item["nnef"], item["nnef"])
        if name not in tensors:
            continue
        # the scales are single precision numbers
        scale = np.array(item["scale"], np.float32).astype(np.float64)
        tensor, bits = tensors[name], 32 if item["role"] == "bias" else 8
        if tensor.data is None:
            args = {"scale": float(scale[0]), "zero_point": item["zero_point"][0]}
        else:
            rank = len(tensor.shape)
            shape = (1, -1) if item["role"] == "bias" else (-1, *[1] * (rank - 1))
            args = {"scale": scale.reshape(shape), "zero_point": 0}
        args = {**args, "bits": bits, "signed": True, "symmetric": item["role"] == "filter"}
        quant = Quantization("zero_point_linear_quantize", args)
        data = tensor.data
        if data is not None:
            data = decode(integers[item["nnef"]].astype(np.int64).reshape(tensor.shape), quant)
        tensors[name] = dataclasses.replace(tensor, quant=quant, data=data)
    return graph.replaced(tensors=tensors), np.load(folder / "int8_ref.npz")
