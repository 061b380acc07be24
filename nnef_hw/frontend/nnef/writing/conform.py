"""Conversion of float graphs to what an NNEF document can express."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import NnefHwError, UnsupportedError, raise_all
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.language.literals import unique
from nnef_hw.frontend.nnef.language.syntax import ArrayType, Declaration, Parameter, TensorType
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.reference.real.registry import NUMPY_DTYPES

__all__ = ["conform", "declaration_of"]

_MAX_RANK = 8


@cache
def declaration_of(op: str) -> Declaration | None:
    """Return the declaration of an operator of the standard or beyond it; None if unknown."""
    for library in map(load_library, ("standard", "extended", "steps")):
        if op in library:
            return library[op]
    return None


def conform(graph: Graph) -> Graph:
    """Return a graph of the same function that obeys the types and the syntax of NNEF.

    * Where a graph computes with integers (``add`` of indices) and the operator is declared for
      scalars only, ``cast`` stands before and behind it.
    * An output that is an input, or that is listed twice, becomes a ``copy``.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If NNEF cannot express the graph: one error for each reason.
    """
    raise_all(list(_problems(graph)))
    return _Conforming(graph).graph()


def _problems(graph: Graph) -> Iterator[NnefHwError]:
    if not graph.inputs:
        yield UnsupportedError(
            f"the graph {graph.name!r} has no inputs", remedy="NNEF graphs have at least one"
        )
    for node in graph.nodes:
        if declaration_of(node.op) is None:
            remedy = "nnef-hw convert unrolls it" if node.op == "scan" else None
            yield UnsupportedError(
                f"{node.op} {node.name!r} cannot be written: NNEF has no such operator",
                remedy=remedy,
                location=node.location,
            )
        for key, value in node.attrs.items():
            if isinstance(value, float) and not np.isfinite(value):
                yield UnsupportedError(
                    f"{node.op} {node.name!r} cannot be written: NNEF has no literal for its "
                    f"{key} {value}",
                    remedy="replace it by a large number",
                    location=node.location,
                )
    sources = {*graph.inputs, *graph.states}
    for name, tensor in graph.tensors.items():
        is_source = tensor.data is not None or name in sources
        if is_source and len(tensor.shape) > _MAX_RANK:
            yield UnsupportedError(
                f"tensor {name!r} of rank {len(tensor.shape)} cannot be written: "
                f"tensor files have at most {_MAX_RANK} dimensions",
                remedy="reshape it where it is used",
                location=tensor.location,
            )
        if is_source and 0 in tensor.shape:
            yield UnsupportedError(
                f"tensor {name!r} of shape {list(tensor.shape)} cannot be written: "
                "shapes in NNEF are positive",
                remedy="remove it from the model",
                location=tensor.location,
            )


class _Conforming:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors = dict(graph.tensors)
        self._nodes: list[Node] = []
        self._casts: dict[tuple[str, str], str] = {}
        self._uses: dict[str, int] = dict.fromkeys(graph.outputs, 2)
        for node in graph.nodes:
            for name in node.inputs:
                self._uses[name] = self._uses.get(name, 0) + 1

    def graph(self) -> Graph:
        for node in self._graph.nodes:
            declaration = declaration_of(node.op)
            assert declaration is not None
            self._node(node, declaration)
        outputs: list[str] = []
        for name in self._graph.outputs:
            is_free = name not in outputs and name not in self._graph.inputs
            outputs.append(name if is_free else self._copy(name))
        return replace(
            self._graph,
            nodes=tuple(self._nodes),
            tensors=self._tensors,
            outputs=tuple(outputs),
        )

    def _node(self, node: Node, declaration: Declaration) -> None:
        kinds = list(_input_kinds(node, declaration))
        generic = self._generic(node, declaration, kinds)
        wanted = [generic if kind == "?" else kind for kind in kinds]
        inputs = tuple(
            name if kind in {None, self._tensors[name].dtype} else self._cast(name, kind)
            for name, kind in zip(node.inputs, wanted, strict=True)
        )
        outputs: list[str] = []
        casts: list[Node] = []
        for name, kind in zip(node.outputs, _result_kinds(node, declaration), strict=True):
            kind = generic if kind == "?" else kind
            tensor = self._tensors[name]
            if kind in {None, tensor.dtype}:
                outputs.append(name)
                continue
            inner = self._add(f"{name}_{kind}", replace(tensor, dtype=kind, quant=None))
            outputs.append(inner)
            casts.append(Node("cast", (inner,), (name,), {}, node.location))
        self._nodes.append(replace(node, inputs=inputs, outputs=tuple(outputs)))
        self._nodes += casts

    def _generic(self, node: Node, declaration: Declaration, kinds: list[str | None]) -> str | None:
        """Return the data-type that ``?`` stands for; None if the operator has none."""
        if not declaration.generic:
            return None
        for name, kind in zip(node.outputs, _result_kinds(node, declaration), strict=True):
            if kind == "?":
                return self._tensors[name].dtype
        return next(
            self._tensors[name].dtype
            for name, kind in zip(node.inputs, kinds, strict=True)
            if kind == "?"
        )

    def _cast(self, name: str, kind: str) -> str:
        """Return a tensor of another data-type: a constant is converted, others are cast."""
        if (name, kind) not in self._casts:
            tensor = self._tensors[name]
            if tensor.data is None:
                result = self._add(f"{name}_{kind}", replace(tensor, dtype=kind, quant=None))
                self._nodes.append(Node("cast", (name,), (result,), {}, tensor.location))
            else:
                data: Array = tensor.data.astype(NUMPY_DTYPES[kind])
                changed = replace(tensor, dtype=kind, data=data, label=None, quant=None)
                alone = self._uses[name] == 1
                result = name if alone else self._add(f"{name}_{kind}", changed)
                self._tensors[result] = replace(changed, name=result)
            self._casts[name, kind] = result
        return self._casts[name, kind]

    def _copy(self, name: str) -> str:
        result = self._add(f"{name}_copy", replace(self._tensors[name], data=None, label=None))
        self._nodes.append(Node("copy", (name,), (result,)))
        return result

    def _add(self, hint: str, tensor: Tensor) -> str:
        name = unique(hint, self._tensors.keys())
        self._tensors[name] = replace(tensor, name=name)
        return name


def _input_kinds(node: Node, declaration: Declaration) -> Iterator[str | None]:
    """Yield the declared data-type of each input: ``?`` is generic, None takes any."""
    parameters = [item for item in declaration.parameters if item.is_tensor]
    count = len(node.inputs) - len(parameters) + 1
    for parameter in parameters:
        kind = _kind(parameter)
        yield from [kind] * (count if isinstance(parameter.type, ArrayType) else 1)


def _result_kinds(node: Node, declaration: Declaration) -> list[str | None]:
    first = declaration.results[0]
    if isinstance(first.type, ArrayType):
        return [_kind(first)] * len(node.outputs)
    return [_kind(result) for result in declaration.results]


def _kind(parameter: Parameter) -> str | None:
    kind: object = parameter.type.item if isinstance(parameter.type, ArrayType) else parameter.type
    assert isinstance(kind, TensorType)
    return kind.item
