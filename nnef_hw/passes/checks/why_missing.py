"""Say why there is no hardware for an operator that the passes have left."""

from __future__ import annotations

from collections.abc import Callable

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.checks.supported_part import BY_HOST, OTHER_OPERATORS
from nnef_hw.passes.forms.lower_gather import MOST_PARTS
from nnef_hw.passes.forms.lower_scatter import why_not_joined
from nnef_hw.passes.images.interpolated_codes import why_not_interpolated
from nnef_hw.passes.loops.lower_scan import obstacle
from nnef_hw.passes.rewriting.names import authors_name

__all__ = ["CONTENTS", "why_missing"]

Problem = tuple[str, str]

CONTENTS = {"integer": "integers", "logical": "logical values"}
"""What tensors hold that are not of real numbers, in messages."""

_REMEDIES = {
    "l2_normalization": BY_HOST,
    "matmul": BY_HOST,
    "batch_normalization": "use constant parameters, one for each channel",
    "deconv": "use a constant filter, border = 'constant', and one scale per output channel",
    **dict.fromkeys(
        (
            "linear_quantize",
            "logarithmic_quantize",
            "min_max_linear_quantize",
            "zero_point_linear_quantize",
        ),
        "quantize by ranges that are constant",
    ),
}


def why_missing(graph: Graph, node: Node) -> Problem:
    """Return the reason, with the numbers that decide, and the remedy."""
    found = _WHY[node.op](graph, node) if node.op in _WHY else None
    default = "this operator is not supported", _REMEDIES.get(node.op, OTHER_OPERATORS)
    return found or default


def _why_not_resized(graph: Graph, node: Node) -> Problem | None:
    source, quant = graph.tensor(node.inputs[0]), graph.tensor(node.name).quant
    if graph.rounding != "tflite" or quant is None:
        return None
    return why_not_interpolated(node, source.shape, quant)


def _why_not_sorted(graph: Graph, node: Node) -> Problem | None:
    axis, k = node.attrs["axis"], node.attrs["k"]
    extent = graph.tensor(node.inputs[0]).shape[axis]
    which = "greatest" if node.attrs.get("largest", True) else "least"
    return f"it sorts out the {k} {which} of {extent}, hardware only one", BY_HOST


def _why_not_gathered(graph: Graph, node: Node) -> Problem | None:
    name = node.inputs[1]
    if graph.tensor(name).data is None:
        return f"its indices {authors_name(graph, name)!r} are computed", BY_HOST
    return f"it takes more than {MOST_PARTS} parts along an axis", "take slices of neighbours"


def _why_not_cast(graph: Graph, node: Node) -> Problem | None:
    if graph.tensor(node.name).dtype == "scalar":
        return None
    return (
        f"it makes {CONTENTS[graph.tensor(node.name).dtype]}",
        "let them compute with real numbers, dequantized if they were quantized",
    )


_WHY: dict[str, Callable[[Graph, Node], Problem | None]] = {
    **dict.fromkeys(("gather", "gather_elements", "gather_nd"), _why_not_gathered),
    **dict.fromkeys(("scatter_elements", "scatter_nd"), why_not_joined),
    "cast": _why_not_cast,
    "resize": _why_not_resized,
    "scan": obstacle,
    "topk": _why_not_sorted,
}
