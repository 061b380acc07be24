"""The hash that names a graph, wherever and however it is stored."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.frontend.nnef.graph_json import encode_graph
from nnef_hw.ir import Graph

__all__ = ["graph_hash"]

_CANONICAL = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|u1"}


def graph_hash(graph: Graph) -> str:
    """Return the SHA-256 of a graph's canonical bytes, in hex.

    It covers the name, the stage, inputs, outputs, nodes in order with all attributes, and tensors
    with shapes, labels, QTypes and values; not source locations, the order of the tensor table or
    the width that values are stored in.
    """
    value = encode_graph(
        graph, lambda _, data: _digest(data), lambda _, __, data: _digest(data), locations=False
    )
    value["tensors"].sort(key=lambda tensor: tensor["name"])
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(data: NDArray[Any]) -> list[Any]:
    canonical = np.ascontiguousarray(data, _CANONICAL[data.dtype.kind])
    kind = "i" if data.dtype.kind == "u" else data.dtype.kind
    return [kind, list(data.shape), hashlib.sha256(canonical.tobytes()).hexdigest()]
