"""Runtimes of other people without the rounding that is theirs alone.

onnxruntime computes in 32 bits, in which the error of a deep network may exceed any fixed bound;
TensorFlow Lite's kernels of real activations and filters of 8 bits round the activations to
8 bits, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["run_in_double", "with_real_filters"]


def run_in_double(model: Any, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Compute an ONNX model by the ``onnx`` package's reference, in 64 bits."""
    import onnx
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    double = onnx.ModelProto()
    double.CopyFrom(model)
    graph = double.graph
    constants = [*graph.initializer]
    for node in graph.node:
        constants += [item.t for item in node.attribute if item.type == onnx.AttributeProto.TENSOR]
    for tensor in constants:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for item in (*graph.input, *graph.output, *graph.value_info):
        if item.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            item.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    wide = {
        name: value.astype(np.float64) if value.dtype == np.float32 else value
        for name, value in feed.items()
    }
    return ReferenceEvaluator(double, new_ops=[_upsample()]).run(None, wide)


def _upsample() -> type:
    """Return Upsample of opset 9, whose linear mode the reference lacks."""
    from onnx.reference.op_run import OpRun

    class Upsample(OpRun):
        op_domain = ""

        def _run(self, x: np.ndarray, scale: np.ndarray, mode: str = "") -> tuple[np.ndarray]:
            for axis, factor in enumerate(scale):
                place = np.arange(int(x.shape[axis] * factor)) / float(factor)
                low = np.floor(place).astype(np.int64)
                high = np.minimum(low + 1, x.shape[axis] - 1)
                share = (place - low if mode == "linear" else 0 * place).reshape(
                    -1, *[1] * (x.ndim - axis - 1)
                )
                x = np.take(x, low, axis) * (1 - share) + np.take(x, high, axis) * share
            return (x,)

    return Upsample


_FILTERED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}


def with_real_filters(content: bytes) -> bytes:
    """Return a TensorFlow Lite file in which filters of 8 bits behind real numbers are real."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    kinds = schema.TensorType
    for graph in model.subgraphs:
        for operator in graph.operators:
            kind = model.operatorCodes[operator.opcodeIndex]
            code = max(kind.builtinCode, kind.deprecatedBuiltinCode)
            if (
                names[code] not in _FILTERED
                or graph.tensors[operator.inputs[0]].type != kinds.FLOAT32
            ):
                continue
            weights = graph.tensors[operator.inputs[1]]
            if weights.type != kinds.INT8:
                continue
            codes = np.asarray(model.buffers[weights.buffer].data, np.uint8).view(np.int8)
            quantization = weights.quantization
            extents = [1] * len(weights.shape)
            extents[quantization.quantizedDimension] = -1
            scale, zero = np.asarray(quantization.scale), np.asarray(quantization.zeroPoint)
            real = (codes.reshape(weights.shape) - zero.reshape(extents)) * scale.reshape(extents)
            model.buffers.append(schema.BufferT())
            model.buffers[-1].data = np.frombuffer(real.astype(np.float32).tobytes(), np.uint8)
            weights.type, weights.quantization = kinds.FLOAT32, None
            weights.buffer = len(model.buffers) - 1
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
