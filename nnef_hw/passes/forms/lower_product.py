"""Write products with several constant matrices out as products of numbers and sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.tflite.numerics import TFLITE_SOFTMAX_QTYPE
from nnef_hw.ir import Graph, Node, Quantization, Trait
from nnef_hw.passes.forms.lower_matmul import LowerMatmul
from nnef_hw.passes.rewriting.editor import Editor, Step, emit_steps, pixel_conv_node, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["LowerProduct"]

_BITS = 16
_KEYS = ("transposeA", "transposeB")


@dataclass(frozen=True, slots=True)
class LowerProduct(Pass):
    """Rewrite ``matmul`` of [..., M, K] and constant [..., K, N] that no filter can be made of.

    * B products -> images of B * K channels, the first with a pixel for each of M rows, the second
      with one for each of N columns; their product, which repeats both; a ``conv`` that adds K
      channels each up

    Of codes that TensorFlow Lite multiplies, the products have 16 bits, in which they are exact.

    Left alone: products with one constant matrix, which are
    :class:`.LowerMatmul`'s, and of two computed ones, which are :class:`.LowerContraction`'s; such
    codes if 16 bits do not hold their products.
    """

    after: ClassVar[Reasons] = {
        LowerMatmul: (
            "A product with one constant matrix is a layer; LowerProduct would multiply its "
            "elements one by one."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            is_computed = all(editor.data(name) is None for name in node.inputs)
            if node.op != "matmul" or is_computed or min(_ranks(editor, node)) < 2:
                editor.keep(node)
                continue
            is_exact = graph.rounding == "tflite" and editor.tensors[node.name].quant is not None
            quant = _exact_products(editor, node) if is_exact else None
            if is_exact and quant is None:
                editor.keep(node)
            else:
                _lower(editor, node, quant)
        return editor.finish()


def _exact_products(editor: Editor, node: Node) -> Quantization | None:
    """Return 16 bits for products of codes less their zero points; None if they are too few."""
    scale, ranges = np.float32(1.0), []
    for name in node.inputs:
        quant = editor.quantization(name) or _probabilities(editor, name)
        if quant is None:
            return None
        signed, bits, zero_point = (quant.args[key] for key in ("signed", "bits", "zero_point"))
        low = -(1 << (bits - 1)) if signed else 0
        ranges.append((low - zero_point, low + (1 << bits) - 1 - zero_point))
        scale *= np.float32(quant.args["scale"])
    products, half = [a * b for a in ranges[0] for b in ranges[1]], 1 << (_BITS - 1)
    low, high = min(products), max(products)
    zero_point = 0 if -half <= low and high < half else -half - low
    return _steps(float(scale), _BITS, zero_point) if high + zero_point < half else None


def _probabilities(editor: Editor, name: str) -> Quantization | None:
    """Return the format that the hardware fixes, if a tensor is that of a softmax."""
    node = editor.emitted(editor.resolve(name))
    while node is not None and node.has(Trait.KEEPS_FORMAT):
        node = editor.emitted(editor.resolve(node.inputs[0]))
    if node is None or node.op != "softmax":
        return None
    qtype = TFLITE_SOFTMAX_QTYPE
    assert isinstance(qtype.scale, float), "activations have one scale"
    return _steps(qtype.scale, qtype.bits, qtype.zero_point)


def _steps(scale: float, bits: int, zero_point: int = 0) -> Quantization:
    args = {"zero_point": zero_point, "scale": scale, "bits": bits, "signed": True,
            "symmetric": False}  # fmt: skip
    return Quantization("zero_point_linear_quantize", args)


def _ranks(editor: Editor, node: Node) -> list[int]:
    return [len(editor.shape(name)) for name in node.inputs]


def _lower(editor: Editor, node: Node, quant: Quantization | None) -> None:
    like = editor.tensors[node.name]
    *several, rows, columns = like.shape
    count = prod(several)
    inner = editor.shape(node.inputs[0])[-2 if node.attrs.get(_KEYS[0], False) else -1]
    images = [
        _image(editor, node, place, (1, count * inner, *pixels))
        for place, pixels in enumerate(((rows, 1), (1, columns)))
    ]
    shape = (1, count * inner, rows, columns)
    products = editor.activation(f"{node.name}_products", shape, replace(like, quant=quant))
    editor.emit(Node("mul", tuple(images), (products,), {}, node.location))
    inputs = (
        products,
        editor.constant(f"{node.name}_ones", np.ones((count, inner, 1, 1))),
        editor.constant(f"{node.name}_bias", np.zeros((1, count))),
    )
    attrs: dict[str, object] = {"groups": count}
    if quant is not None:
        editor.tensors[inputs[1]] = replace(editor.tensors[inputs[1]], quant=_steps(1.0, 8))
        attrs["is_product"] = True  # of 8 bits, whose sums have 32
    sums = editor.activation(f"{node.name}_sums", (1, count, rows, columns), like)
    editor.emit(
        pixel_conv_node(inputs, sums, 2, node).with_attrs(**attrs),
        reshape_node(sums, node.name, like.shape, node),
    )


def _image(editor: Editor, node: Node, place: int, shape: tuple[int, ...]) -> str:
    """Return an operand as matrices with K rows, one for each product, that are an image."""
    name, rank = node.inputs[place], len(editor.shape(node.name))
    is_turned = bool(node.attrs.get(_KEYS[place], False)) != (place == 0)
    axes = [*range(rank - 2), rank - 1, rank - 2] if is_turned else [*range(rank)]
    source = editor.tensors[editor.resolve(name)]
    whole = (1,) * (rank - len(source.shape)) + source.shape
    several = editor.shape(node.name)[:-2]
    repeats = [new // old for new, old in zip(several, whole, strict=False)] + [1, 1]
    if source.data is not None:
        return editor.rearranged(
            f"{node.name}_{source.name}",
            source,
            lambda data: _moved(data, whole, repeats, axes, shape),
        )
    steps: list[Step] = []
    if whole != source.shape:
        steps.append(("reshape", whole, {}))
    if max(repeats) > 1:
        whole = (*several, *whole[-2:])
        steps.append(("tile", whole, {"repeats": repeats}))
    if is_turned:
        whole = tuple(whole[axis] for axis in axes)
        steps.append(("transpose", whole, {"axes": axes}))
    steps.append(("reshape", shape, {}))
    return emit_steps(editor, node, name, f"{node.name}_operand", steps)


def _moved(
    data: NDArray[np.generic],
    whole: tuple[int, ...],
    repeats: list[int],
    axes: list[int],
    shape: tuple[int, ...],
) -> NDArray[np.generic]:
    return np.tile(data.reshape(whole), repeats).transpose(axes).reshape(shape)
