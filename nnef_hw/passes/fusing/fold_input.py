"""Fold constant scales and offsets of inputs into the layers that read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.input_readers import InputReader, feature_axes, input_readers
from nnef_hw.passes.fusing.fold_affine import FoldAffine, pixel_affine
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["FoldInput"]

FloatArray = NDArray[np.float64]

_EVEN = 4.0
"""Factor between scales of channels that costs a weight at most two of its bits."""


@dataclass(frozen=True, slots=True)
class FoldInput(Pass):
    """Fold a scale and an offset of each channel of an input into the layers that read it.

    The input then has the numbers that the host gives: bytes of a camera, raw features. Weights are
    multiplied with the scale of their channel, and biases take what the offset adds.

    Left alone: an offset in front of padding, which is 0 behind it; results that other operators
    read as well; layers, scales and results that the model's author quantized. So are scales that
    differ by more than a factor of 4, unless all that reads the input are layers that tell its
    features apart: then each can have a scale of its own in the input's format, in place of one
    in a layer (:mod:`nnef_hw.quantize.calibration.feature_scales`).
    """

    after: ClassVar[Reasons] = {
        FoldAffine: (
            "FoldAffine joins affine operators behind an input under the last one's name; "
            "FoldInput would join them under the first one's."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        readers: dict[str, tuple[InputReader, FloatArray, FloatArray]] = {}
        dropped: dict[str, str] = {}
        for node in graph.nodes:
            found = _foldable(editor, node)
            if found:
                dropped[node.name] = node.inputs[0]
                readers.update(found)
        for node in graph.nodes:
            if node.name in dropped:
                editor.alias(node.name, dropped[node.name])
            elif node.name in readers:
                _emit_folded(editor, *readers[node.name])
            else:
                editor.keep(node)
        return editor.finish()


def _foldable(
    editor: Editor, node: Node
) -> dict[str, tuple[InputReader, FloatArray, FloatArray]] | None:
    """Return the layers that can take over a node's scale and offset, with those of their operand.

    None if it has none, or others read it.
    """
    graph = editor.graph
    if node.op != "conv" or node.attrs.get("activation") is not None:
        return None
    source, affine = _origin(graph, node), pixel_affine(editor, node)
    names = (node.name, *node.inputs[1:])
    if affine is None or any(graph.tensor(name).quant is not None for name in names):
        return None
    _, scale, offset = affine
    if source not in graph.inputs or not (_is_even(scale) or _has_features(graph, source)):
        return None
    shape = graph.tensor(node.name).shape
    found = input_readers(graph, node.name)
    if found is None:
        return None
    column = (1, -1, *[1] * (len(shape) - 2))
    scales, offsets = (np.broadcast_to(x.reshape(column), shape) for x in (scale, offset))
    result = {}
    for reader in found:
        scale_read, offset_read = reader.read(scales), reader.read(offsets)
        if scale_read is None or offset_read is None or (offset.any() and reader.is_padded):
            return None
        result[reader.node.name] = reader, scale_read, offset_read
    return result


def _origin(graph: Graph, node: Node) -> str:
    """Return the tensor that a node's operand is moved from."""
    name = node.inputs[0]
    producer = graph.producer(name)
    while producer is not None and producer.has(Trait.MOVES):
        name = producer.inputs[0]
        producer = graph.producer(name)
    return name


def _is_even(scale: FloatArray) -> bool:
    """Whether weights with these factors have like ranges."""
    sizes = np.abs(scale)
    return bool(sizes.max() <= _EVEN * sizes.min())


def _has_features(graph: Graph, name: str) -> bool:
    """Whether an input may have a scale for each feature."""
    readers = input_readers(graph, name)
    return readers is not None and bool(feature_axes(graph.tensor(name).shape, readers))


def _emit_folded(
    editor: Editor, reader: InputReader, scale: FloatArray, offset: FloatArray
) -> None:
    """Emit a layer of unscaled numbers."""
    node = reader.node
    weights, bias = (editor.tensors[name] for name in node.inputs[1:])
    kernel = np.asarray(weights.data, np.float64)
    columns = np.broadcast_to(offset, kernel.shape)
    new_bias = np.asarray(bias.data, np.float64) + (kernel * columns).reshape(
        len(kernel), prod(kernel.shape[1:])
    ).sum(axis=1)
    filter_name = editor.constant(f"{weights.name}_folded", kernel * scale, weights)
    bias_name = editor.constant(f"{bias.name}_folded", new_bias.reshape(1, -1), bias)
    editor.emit(replace(node, inputs=(node.inputs[0], filter_name, bias_name)))
