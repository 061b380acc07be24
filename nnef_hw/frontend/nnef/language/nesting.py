"""A limit on the depth of trees, so that functions may recurse into them."""

from __future__ import annotations

from typing import Any

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.language.scanner import SourceText

__all__ = ["MAX_DEPTH", "check_depth"]

MAX_DEPTH = 100


def check_depth(tree: Any, source: SourceText, where: Location) -> None:
    """Add an error to the source if an expression or a type is nested too deeply.

    Parameters
    ----------
    tree
        A node of the syntax tree.
    where
        Location for nodes that have none.
    """
    pending = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            source.errors.append(
                ModelError(
                    f"more than {MAX_DEPTH} levels are nested in each other",
                    remedy="assign a part of it to a name of its own",
                    location=getattr(node, "location", where),
                )
            )
            return
        if isinstance(node, tuple):
            pending += [(item, depth) for item in node]
        elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Location):
            pending += [(getattr(node, name), depth + 1) for name in node.__slots__]
