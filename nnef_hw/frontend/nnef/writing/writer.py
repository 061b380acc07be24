"""Write a model; deterministic, so that equal graphs give equal files."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.frontend.nnef.archive.archive import GRAPH_FILE
from nnef_hw.frontend.nnef.archive.output import write_model
from nnef_hw.frontend.nnef.archive.quant_codes import quantized_codes
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.frontend.nnef.language.literals import fits_literals, identifiers
from nnef_hw.frontend.nnef.writing.conform import conform
from nnef_hw.frontend.nnef.writing.digest import graph_hash
from nnef_hw.frontend.nnef.writing.fixed import FEATURES_FORMAT, FIXED_FILE, FIXED_FORMAT
from nnef_hw.frontend.nnef.writing.graph_json import encode_graph
from nnef_hw.frontend.nnef.writing.text import format_document, format_quantization, inline_literals
from nnef_hw.ir import Graph, Node, Stage, Tensor
from nnef_hw.ir.bodies import with_bodies_inline

__all__ = ["save_nnef"]

_log = logging.getLogger(__name__)
_MAX_LITERALS = 1024


def save_nnef(graph: Graph, path: Path | str) -> None:
    """Write a graph as an NNEF archive or folder; :func:`load_nnef` gives it back.

    A float graph is plain, flat NNEF; a warning tells of rounding that NNEF has no words for.
    Later stages add ``fixed.json``, which holds all of the graph; ``graph.nnef`` and
    ``graph.quant`` then tell other tools the same as well as NNEF can.

    Parameters
    ----------
    path
        ``NAME.nnef.tgz``, ``NAME.nnef.tar`` or a folder: ``NAME/``.

    Raises
    ------
    UsageError
        If the name tells no format, or the files cannot be written.
    UnsupportedError, ErrorGroup
        If a float graph has something that NNEF cannot express.
    """
    members = _Packer(conform(graph) if graph.stage == Stage.FLOAT else graph).pack()
    write_model(path, members)
    if graph.stage == Stage.FLOAT:
        _warn_of_rounding(graph, path)


def _warn_of_rounding(graph: Graph, path: Path | str) -> None:
    """Warn of roundings that a reader of a float model computes otherwise."""
    is_even = [
        tensor.quant.ties_to_even
        for tensor in graph.tensors.values()
        if tensor.quant is not None and tensor.data is None
    ]
    if any(is_even):
        _log.warning(
            "%s: the model rounds exact halves to even in %d of %d quantized activations; NNEF "
            "cannot say so, and whoever reads it rounds them up",
            path, sum(is_even), len(is_even),
        )  # fmt: skip
    if graph.rounding is not None:
        _log.warning(
            "%s: NNEF cannot say how the model rounds sums; quantize and build it with a --scheme "
            'that has rounding = "%s"',
            path, graph.rounding,
        )  # fmt: skip


class _Packer:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._members: dict[str, bytes] = {}
        self._labels: dict[str, str] = {}
        self._spelling: dict[str, str] = {}
        self._shown = with_bodies_inline(graph)
        self._names = identifiers(self._shown.tensors)

    def pack(self) -> dict[str, bytes]:
        graph = self._graph
        inline = inline_literals(graph)
        for name, tensor in graph.tensors.items():
            if tensor.data is not None and name not in inline and not self._is_literal(tensor):
                self._store(tensor, tensor.data)
        for name, state in graph.states.items():
            self._store(replace(graph.tensor(name), label=state.label), state.initial)
        text = format_document(self._shown, self._labels, self._names).encode()
        self._members[GRAPH_FILE] = text
        quantization = format_quantization(graph, self._names)
        if quantization:
            self._members["graph.quant"] = quantization.encode()
        if graph.stage != Stage.FLOAT:
            value = {
                "format": FEATURES_FORMAT if graph.features else FIXED_FORMAT,
                "graph_nnef_sha256": hashlib.sha256(text).hexdigest(),
                "graph_hash": graph_hash(graph),
                "graph": encode_graph(graph, self._tensor_file, self._attr_file, locations=True),
            }
            self._members[FIXED_FILE] = (json.dumps(value, indent=1) + "\n").encode()
        return self._members

    def _is_literal(self, tensor: Tensor) -> bool:
        return (
            self._graph.stage == Stage.FLOAT
            and tensor.label is None
            and tensor.quant is None
            and tensor.data is not None
            and tensor.data.size <= _MAX_LITERALS
            and fits_literals(tensor.data)
        )

    def _store(self, tensor: Tensor, data: Array) -> None:
        content = self._content(tensor, data)
        wanted = re.sub(r"[^A-Za-z0-9_\-./]", "_", tensor.label or self._names[tensor.name])
        wanted = "/".join(part for part in wanted.split("/") if part not in {"", ".", ".."}) or "_"
        label, count = wanted, 0
        # Labels that differ in upper and lower case only are the same file on some systems.
        while (
            self._spelling.setdefault(label.lower(), label) != label
            or self._members.get(f"{label}.dat", content) != content
        ):
            count += 1
            label = f"{wanted}_{count}"
        self._members[f"{label}.dat"] = content
        self._labels[tensor.name] = label

    def _content(self, tensor: Tensor, data: Array) -> bytes:
        is_float = self._graph.stage == Stage.FLOAT
        if tensor.quant is not None and is_float:
            coded = quantized_codes(data, tensor.quant)
            if coded is not None:
                codes, signed = coded
                bits = tensor.quant.args["bits"]
                return _write_integers(codes, signed=signed, quantized=True, least=bits)
        if data.dtype.kind not in "iu":
            return write_tensor(data.astype(np.float32) if is_float and _is_single(data) else data)
        if tensor.dtype == "integer" and tensor.qtype is None:
            return write_tensor(data)
        signed = tensor.qtype is None or tensor.qtype.signed
        return _write_integers(data, signed=signed, quantized=tensor.dtype == "scalar")

    def _tensor_file(self, tensor: Tensor, data: Array) -> dict[str, str]:
        return {"file": f"{self._labels[tensor.name]}.dat", "dtype": data.dtype.name}

    def _attr_file(self, node: Node, key: str, data: Array) -> dict[str, str]:
        base = f"fixed/{self._names[node.name]}.{key}"
        name, count = f"{base}.dat", 0
        while name in self._members:
            count += 1
            name = f"{base}_{count}.dat"
        integers = data.dtype.kind in "iu"
        self._members[name] = (
            _write_integers(data, signed=True, quantized=False) if integers else write_tensor(data)
        )
        return {"file": name, "dtype": data.dtype.name}


def _write_integers(data: Array, *, signed: bool, quantized: bool, least: int = 1) -> bytes:
    """Store integers in the least of 8, 16, 32 or 64 bits that holds them: all tools read those.

    Parameters
    ----------
    least
        Least width of an item in bits.
    """
    lo, hi = (int(data.min()), int(data.max())) if data.size else (0, 0)
    needed = max(signed_bits(lo, hi) if signed else hi.bit_length(), least)
    bits = next(bits for bits in (8, 16, 32, 64) if bits >= needed)
    return write_tensor(
        data.astype(np.int64 if signed else np.uint64), bits=bits, quantized=quantized
    )


def _is_single(data: Array) -> bool:
    """Whether 32-bit floats hold the same numbers."""
    if data.dtype != np.float64:
        return False
    with np.errstate(over="ignore"):
        return np.array_equal(data.astype(np.float32), data, equal_nan=True)
