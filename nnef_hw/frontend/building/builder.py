"""Make a float Graph node by node: what every front end lowers to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, UnsupportedError
from nnef_hw.frontend.shapes import SHAPE_RULES, Call
from nnef_hw.ir import Graph, Node, State, Tensor, verify
from nnef_hw.reference.real.program import as_array
from nnef_hw.reference.real.registry import Evaluation, evaluate

__all__ = ["Builder", "identifier", "without_unused"]

DTYPES = {"b": "logical", "i": "integer", "u": "integer", "f": "scalar"}
"""NNEF data-type by NumPy's kind."""

_MAX_FOLDED = 1 << 16


class Builder:
    """A graph under construction; shapes are inferred as nodes are added.

    Parameters
    ----------
    name
        The graph's name.
    fold
        Whether nodes whose arguments are small constants, not quantized, are computed at once.
        Shape arithmetic of dynamic exporters (``shape_of``, ``gather``, ``concat``, ``reshape``)
        then ends in constants that attributes can be read from.
    is_loop
        Whether it is the body of a loop, whose inputs are not the model's.
    """

    def __init__(self, name: str, *, fold: bool = False, is_loop: bool = False) -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []
        self.states: dict[str, State] = {}
        self.reserved: set[str] = set()
        """Names that :meth:`unique` must not give away."""
        self._counts: dict[str, int] = {}
        self._fold = fold
        self.is_loop = is_loop
        self.caches: dict[str, str] = {}
        """Graph inputs for caches of operators, which the file lists nowhere."""

    def unique(self, wanted: str) -> str:
        """Reserve and return ``wanted``, with a number appended if that name is in use."""
        name = wanted
        while name in self.tensors or name in self.reserved:
            self._counts[wanted] = self._counts.get(wanted, 0) + 1
            name = f"{wanted}_{self._counts[wanted]}"
        self.reserved.add(name)
        return name

    def add(self, tensor: Tensor) -> Tensor:
        """Add a tensor that no node computes: an input, a state or a constant."""
        self.tensors[tensor.name] = tensor
        return tensor

    def input(self, tensor: Tensor) -> Tensor:
        """Add a graph input."""
        self.inputs.append(tensor.name)
        return self.add(tensor)

    def constant(self, name: str, data: Array, *, location: Location | None = None) -> Tensor:
        """Add a constant under a unique name made from ``name``."""
        dtype = DTYPES[data.dtype.kind]
        return self.add(Tensor(self.unique(name), data.shape, dtype, data, location=location))

    def node(
        self,
        op: str,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, object],
        results: Sequence[str] | str,
        dtypes: Sequence[str] = ("scalar",),
        *,
        places: Mapping[str, Location] | None = None,
        location: Location | None = None,
        origin: Location | None = None,
    ) -> list[Tensor]:
        """Add a node and return its results.

        Parameters
        ----------
        results
            Names of the results, or one name from which unique names are derived.
        dtypes
            One data-type for each result, or one for all.
        places, location
            Where the arguments and the invocation stand: errors point there.
        origin
            Location from which the node originates; by default ``location``.

        Raises
        ------
        ModelError
            If shapes or attributes do not fit the operator.
        UnsupportedError
            If there is no such operator.
        """
        name = results if isinstance(results, str) else results[0]
        if op not in SHAPE_RULES:
            raise UnsupportedError(
                f"the operator {op!r} of {name!r} is not supported",
                remedy="replace it by operators of docs/operators.md",
                location=location,
            )
        call = Call(op, name, tuple(inputs), dict(attrs), tuple(dtypes), places or {}, location)
        shapes = SHAPE_RULES[op](call)
        if isinstance(results, str):
            results = [self.unique(results) for _ in shapes]
        if len(results) != len(shapes):
            raise call.error(f"it has {len(shapes)} results, but {len(results)} are assigned")
        kinds = list(dtypes) if len(dtypes) == len(shapes) else [dtypes[0]] * len(shapes)
        origin = origin or location
        node = Node(op, tuple(tensor.name for tensor in inputs), tuple(results), call.attrs, origin)
        tensors = [
            Tensor(result, shape, kind, location=origin)
            for result, shape, kind in zip(results, shapes, kinds, strict=True)
        ]
        if self._fold and self._is_small(inputs, tensors):
            return self._folded(node, inputs, tensors)
        self.nodes.append(node)
        return [self.add(tensor) for tensor in tensors]

    def sources(self, name: str) -> list[Tensor]:
        """Return the inputs of the model that a tensor depends on; none inside of a loop."""
        needed = {name}
        for node in reversed(self.nodes if not self.is_loop else ()):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.inputs)
        return [self.tensors[x] for x in self.inputs if x in needed and not self.is_loop]

    def rename(self, old: str, new: str) -> Tensor:
        """Rename a tensor that only nodes added after its own refer to; return it."""
        tensor = self.tensors[new] = replace(self.tensors.pop(old), name=new)
        for index in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[index]
            inputs = tuple(new if name == old else name for name in node.inputs)
            outputs = tuple(new if name == old else name for name in node.outputs)
            self.nodes[index] = replace(node, inputs=inputs, outputs=outputs)
            if outputs != node.outputs:
                break
        for name, state in self.states.items():
            if state.result == old:
                self.states[name] = replace(state, result=new)
        for name, result in self.caches.items():
            if result == old:
                self.caches[name] = new
        return tensor

    def build(self, outputs: Sequence[str]) -> Graph:
        """Return the graph."""
        graph = Graph(
            self.name,
            tuple(self.inputs),
            tuple(outputs),
            self.tensors,
            tuple(self.nodes),
            states=self.states,
        )
        verify(graph)
        return graph

    @staticmethod
    def _is_small(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> bool:
        all_constant = all(tensor.data is not None and tensor.quant is None for tensor in inputs)
        return all_constant and sum(tensor.volume for tensor in (*inputs, *results)) <= _MAX_FOLDED

    def _folded(
        self, node: Node, inputs: Sequence[Tensor], results: Sequence[Tensor]
    ) -> list[Tensor]:
        arguments = tuple(as_array(tensor.data, tensor.dtype) for tensor in inputs)
        dtypes = tuple(x.dtype for x in results)
        values = evaluate(
            Evaluation(node, arguments, tuple(x.shape for x in results), dtypes=dtypes)
        )
        return [
            self.add(Tensor(x.name, x.shape, x.dtype, value.reshape(x.shape), location=x.location))
            for x, value in zip(results, values, strict=True)
        ]


def identifier(name: str) -> str:
    """Return a name as NNEF can have it: ``/fc/Gemm_output_0`` becomes ``fc_Gemm_output_0``."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "value"
    return f"_{plain}" if plain[0].isdigit() else plain


def without_unused(graph: Graph) -> Graph:
    """Return a graph without nodes whose results nobody reads, such as those of shapes."""
    used = {*graph.outputs, *(state.result for state in graph.states.values())}
    nodes = []
    for node in reversed(graph.nodes):
        if not used.isdisjoint(node.outputs):
            used.update(node.inputs)
            nodes.append(node)
    return graph.replaced(nodes=tuple(reversed(nodes)))
