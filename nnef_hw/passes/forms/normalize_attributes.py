"""Give windows, filters and biases one explicit form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.lower_normalization import LowerNormalization
from nnef_hw.passes.rewriting.editor import Editor, is_trivial
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["NormalizeAttributes"]


@dataclass(frozen=True, slots=True)
class NormalizeAttributes(Pass):
    """Fill in attributes of ``conv``, ``linear`` and the pools.

    * automatic (empty) padding, stride and dilation -> explicit ones
    * ``groups = 0`` -> the number of input channels; ``activation`` is None unless set
    * a constant bias of shape [], [1], [C] or [1, C] -> [1, C]
    * windows without padding, ``conv`` and sums that ignore their border -> border ``constant``
    * ``box(normalize = true)`` -> ``avg_pool``; ``area_downsample`` -> ``avg_pool``
    * ``nearest_downsample`` -> ``max_pool`` of one pixel

    Left alone: filters and biases that are computed.
    """

    after: ClassVar[Reasons] = {
        LowerNormalization: (
            "Operators that a normalization consists of leave attributes to their defaults."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            new = _normalize(editor, node)
            if new.op == node.op and new.inputs == node.inputs and new.attrs == node.attrs:
                editor.keep(node)
            else:
                editor.emit(new)
        return editor.finish()


def _normalize(editor: Editor, node: Node) -> Node:
    if node.has(Trait.WEIGHTS):
        node = _with_bias(editor, node.with_attrs(activation=node.attrs.get("activation")))
    if node.op == "conv":
        shape, kernel = editor.shape(node.inputs[0]), editor.shape(node.inputs[1])
        groups = node.attrs.get("groups", 1) or shape[1]
        return _with_window(node.with_attrs(groups=groups), shape[2:], kernel[2:])
    if node.op in {"area_downsample", "nearest_downsample"}:
        factor = [1, 1, *node.attrs["factor"]]
        is_area = node.op == "area_downsample"
        size = factor if is_area else [1] * len(factor)
        attrs = {"size": size, "stride": factor, "padding": [(0, 0)] * len(factor)}
        op = "avg_pool" if is_area else "max_pool"
        node = Node(op, node.inputs, node.outputs, attrs, node.location)
    if node.op == "box" and node.attrs.get("normalize", False):
        attrs = {key: value for key, value in node.attrs.items() if key != "normalize"}
        node = replace(node, op="avg_pool", attrs=attrs)
    if node.has(Trait.POOL):
        return _with_window(node, editor.shape(node.inputs[0]), node.attrs["size"])
    return node


def _with_window(node: Node, extents: tuple[int, ...], size: AttributeValue) -> Node:
    stride = [int(s) for s in node.attrs.get("stride") or [1] * len(size)]
    dilation = [int(d) for d in node.attrs.get("dilation") or [1] * len(size)]
    padding = [(int(p), int(q)) for p, q in node.attrs.get("padding") or ()]
    if not padding:
        for n, k, s, d in zip(extents, size, stride, dilation, strict=True):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            padding.append((total // 2, total - total // 2))
    border = node.attrs.get("border", "constant")
    if is_trivial(padding, (0, 0)) or (node.has(Trait.SUMS) and border == "ignore"):
        border = "constant"
    dilation = [1 if k == 1 else d for k, d in zip(size, dilation, strict=True)]
    return node.with_attrs(stride=stride, dilation=dilation, padding=padding, border=border)


def _with_bias(editor: Editor, node: Node) -> Node:
    bias = editor.data(node.inputs[2])
    channels = editor.shape(node.inputs[1])[-2 if node.op == "linear" else 0]
    if bias is None or bias.shape == (1, channels) or bias.size not in {1, channels}:
        return node
    like = editor.tensors[editor.resolve(node.inputs[2])]
    name = editor.rearranged(
        f"{like.name}_row",
        like,
        lambda array: np.broadcast_to(array.reshape(1, -1), (1, channels)),
    )
    return replace(node, inputs=(*node.inputs[:2], name))
