"""Read ``fixed.json``: the whole of a canonical or fixed graph."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import ModelError
from nnef_hw.frontend.nnef.archive.archive import Archive
from nnef_hw.frontend.nnef.archive.tensor_file import read_tensor
from nnef_hw.frontend.nnef.writing.digest import graph_hash
from nnef_hw.frontend.nnef.writing.graph_json import decode_graph
from nnef_hw.ir import Graph, verify

__all__ = ["FEATURES_FORMAT", "FIXED_FILE", "FIXED_FORMAT", "read_fixed"]

FIXED_FILE = "fixed.json"
_DAMAGES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_REMEDY = "quantize the model again with this version of nnef-hw"

FIXED_FORMAT = 1
"""Raised whenever an older reader would misunderstand the file."""

FEATURES_FORMAT = 2
"""Of a graph whose inputs have scales for each feature."""


def read_fixed(archive: Archive) -> Graph:
    """Return the graph that ``fixed.json`` and the tensor files hold.

    Raises
    ------
    ModelError
        If they are damaged, or ``graph.nnef`` was changed since.
    """
    where = archive.location(FIXED_FILE)

    def array(value: AttributeValue) -> Array:
        file = value["file"]
        data = read_tensor(archive.read(file), archive.location(file)).array
        data = data.astype(np.dtype(value["dtype"]))
        data.flags.writeable = False
        return data

    try:
        value = json.loads(archive.read(FIXED_FILE))
        if value["format"] not in {FIXED_FORMAT, FEATURES_FORMAT}:
            raise ModelError(
                f"format {value['format']!r} is not known, only {FIXED_FORMAT} and "
                f"{FEATURES_FORMAT}",
                remedy=_REMEDY,
                location=where,
            )
        graph = decode_graph(value["graph"], array)
        verify(graph)
        is_undamaged = value["graph_hash"] == graph_hash(graph)
        text = archive.read(archive.graph_file)
        is_unchanged = value["graph_nnef_sha256"] == hashlib.sha256(text).hexdigest()
    except _DAMAGES as error:
        raise ModelError(
            f"the file is damaged: {type(error).__name__}: {error}",
            remedy=_REMEDY,
            location=where,
        ) from None
    if not is_unchanged:
        raise ModelError(
            f"{archive.graph_file} was changed after the model was quantized",
            remedy="change the float model and quantize it again",
            location=where,
        )
    if not is_undamaged:
        raise ModelError(
            "the graph does not match the hash that was stored with it",
            remedy=_REMEDY,
            location=where,
        )
    return graph
