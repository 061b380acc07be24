"""Which interpolations are of codes as TensorFlow Lite computes them, and which hardware has."""

from __future__ import annotations

from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.ir import Node, Quantization
from nnef_hw.passes.rewriting.editor import Editor

__all__ = ["are_codes", "interpolate_node", "why_not_interpolated"]

_REMEDY = "quantize the model to int8, or resize by 2, 4 or 8"


def are_codes(editor: Editor, node: Node) -> bool:
    """Whether TensorFlow Lite computes codes from codes of the same format."""
    result = editor.tensors[node.name].quant
    source = editor.tensors[editor.resolve(node.inputs[0])].quant
    is_tflite = editor.graph.rounding == "tflite"
    return is_tflite and result is not None and (source is None or source.args == result.args)


def interpolate_node(node: Node) -> Node:
    """Return the ``interpolate`` that computes a linear ``resize`` of rows and columns."""
    attrs = {"size": node.attrs["size"][2:], "coordinates": node.attrs["coordinates"]}
    return Node("interpolate", node.inputs, node.outputs, attrs, node.location)


def why_not_interpolated(
    node: Node, source: tuple[int, ...], quant: Quantization | None
) -> tuple[str, str] | None:
    """Return why a linear ``resize`` of codes has no hardware, and what helps; None if it has.

    Parameters
    ----------
    source
        Shape of the image.
    quant
        Format of the codes.
    """
    if quant is not None and not quant.args.get("signed"):
        reason = (
            "TensorFlow Lite interpolates unsigned codes in single precision, whose roundings "
            "have no hardware but by factors of 2, 4 and 8"
        )
        return reason, _REMEDY
    for what, old, new in zip(("rows", "columns"), source[2:], node.attrs["size"][2:], strict=True):
        if not Places.of(old, new, node.attrs["coordinates"]).is_inside:
            reason = f"steps of 1/1024 from {old} to {new} {what} lead its kernel behind the image"
            return reason, "enlarge it in two steps"
    return None
