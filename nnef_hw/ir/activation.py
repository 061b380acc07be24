"""Functions that an operator of sums applies to its result at no cost: ``relu`` and ``clamp``.

Such a node has the attribute ``activation``, the function's name, and with it those of the
function: ``a`` and ``b`` of a ``clamp``.
"""

from __future__ import annotations

import math

from nnef_hw.ir.graph import Node

__all__ = ["activation_attrs", "activation_limits", "with_limits"]

_KEYS = ("activation", "a", "b")


def activation_attrs(node: Node) -> dict[str, object]:
    """Return the attributes of a node that say what it applies; ``activation`` is always there."""
    return {"activation": None} | {key: node.attrs[key] for key in _KEYS if key in node.attrs}


def activation_limits(node: Node) -> tuple[float, float]:
    """Return the least and the greatest result that a node's activation, if any, leaves."""
    name = node.attrs.get("activation")
    if name == "relu":
        return 0.0, math.inf
    if name == "clamp":
        return node.attrs["a"], node.attrs["b"]
    assert name is None, f"{node.name}: activation {name}"
    return -math.inf, math.inf


def with_limits(node: Node, lo: float, hi: float) -> Node:
    """Return a node that keeps its result, limited by its activation before, in ``lo..hi``."""
    least, most = (min(max(limit, lo), hi) for limit in activation_limits(node))
    if (least, most) == (0.0, math.inf):
        return node.with_attrs(activation="relu")
    return node.with_attrs(activation="clamp", a=least, b=most)
