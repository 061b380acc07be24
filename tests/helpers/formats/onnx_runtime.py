"""What onnxruntime computes, and the models that its static quantization makes."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from nnef_hw.frontend.building.builder import identifier
from nnef_hw.reference.real.program import Step, as_array
from nnef_hw.reference.real.quantize import decode


def run_onnxruntime(model, inputs, *, fused=True):
    """Return the outputs by name of a model, which is a path or a message.

    Parameters
    ----------
    inputs
        Samples [N, ...] of each input; they are run one after the other.
    fused
        Whether operators between quantizations become operators on integers, as by default;
        otherwise they are computed in float32.
    """
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # A MatMul of real activations computes in float32, not with activations of 8 bits.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    if not fused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = _exact_session(content, options)
    names = [item.name for item in session.get_inputs()]
    results = [
        session.run(None, {n: x[np.newaxis] for n, x in zip(names, sample, strict=True)})
        for sample in zip(*inputs, strict=True)
    ]
    outputs = [item.name for item in session.get_outputs()]
    return {
        name: np.concatenate(values)
        for name, values in zip(outputs, zip(*results, strict=True), strict=True)
    }


def _exact_session(content, options):
    """Return a session whose sums of products of codes are exact on every processor.

    Processors with AVX2 but no VNNI add pairs of products of uint8 and int8 in 16 bits, saturated,
    unless int8 weights become uint8 first; there is no such way, nor need, for int8 activations.
    """
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

    try:
        options.add_session_config_entry("session.x64quantprecision", "1")
        return InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except NoKernel:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return InferenceSession(content, options, providers=["CPUExecutionProvider"])


def quantize(source, path, samples, *, style="QDQ", activations="QUInt8", **options):
    """Quantize a model of one input with samples [N, ...]; return the path of the result."""
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    name = onnx.load(source).graph.input[0].name
    weights = QuantType[options.pop("weights", "QInt8")]
    logging.disable(logging.WARNING)
    try:
        quantize_static(
            source,
            path,
            _Samples(name, samples),
            quant_format=QuantFormat[style],
            activation_type=QuantType[activations],
            weight_type=weights,
            **options,
        )
    finally:
        logging.disable(logging.NOTSET)
    return path


class _Samples:
    """A ``CalibrationDataReader``."""

    def __init__(self, name, samples):
        self._feeds = iter([{name: sample[np.newaxis]} for sample in samples])

    def get_next(self):
        return next(self._feeds, None)


def compare_layers(graph, path, x, *, fused=True):
    """Yield what each quantized layer computes from the codes that onnxruntime has before it.

    Yields
    ------
    (node, exact, codes)
        The layer's exact results in steps of its quantization, and onnxruntime's codes.
    """
    import onnx

    model = onnx.load(path)
    tensors = _quantized_tensors(graph, model)
    for name in tensors.keys() - {item.name for item in model.graph.output}:
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    results = run_onnxruntime(model, [x], fused=fused)
    found = {tensors[name]: results[name].astype(np.int64) for name in tensors}
    exact = {name: replace(tensor, quant=None) for name, tensor in graph.tensors.items()}
    plain = graph.replaced(tensors=exact)
    values = {
        name: as_array(tensor.data, tensor.dtype)
        for name, tensor in graph.tensors.items()
        if tensor.data is not None
    }
    for node in (None, *graph.nodes):
        new = dict.fromkeys(graph.inputs, x)
        if node is not None:
            new = Step.of(plain, node).run(values, batch=len(x))
        for name, value in new.items():
            quant = graph.tensor(name).quant
            if name in found:
                codes = found[name].reshape(value.shape)
                yield node, value / quant.args["scale"] + quant.args["zero_point"], codes
                value = decode(codes, quant)
            values[name] = value


def _quantized_tensors(graph, model):
    """Return the Graph's name of each value of codes in a model that the Graph quantizes."""
    quantized = {name for name, x in graph.tensors.items() if x.quant and x.data is None}
    names = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" or node.op_type.startswith(("QLinear", "QGemm")):
            (code,) = node.output
            around = [code, node.input[0]] if node.op_type == "QuantizeLinear" else [code]
            around += [
                reader.output[0]
                for reader in model.graph.node
                if code in reader.input and reader.op_type == "DequantizeLinear"
            ]
            for name in quantized.intersection(map(identifier, around)):
                names[code] = name
    assert quantized == set(names.values())
    return names
