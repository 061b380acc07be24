"""Turn every subgraph that is a function of one number into one operator: one table in hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.lower_reduce import LowerReduce
from nnef_hw.passes.functions.lower_clamp import LowerClamp
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.function_body import function_body, scalar_value
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.merge_equal import MergeEqual

__all__ = ["CollapseFunctions"]

_AFFINE = frozenset({"add", "sub", "mul", "div"})
_ACTIVATIONS = frozenset({"clamp", "relu"})


@dataclass(frozen=True, slots=True)
class CollapseFunctions(Pass):
    """Rewrite element-wise operators on one activation and scalar constants as one function.

    * ``x * clamp(x + 3, 0, 6) / 6``, ``x * tanh(softplus(x))``, ``0.5 * x * (1 + erf(x / c))``,
      ``select(x < 0, exp(x) - 1, x)`` and whatever else is computed from one activation alone
      -> ``pointwise`` with these operators as its ``body``; ``stepwise`` if steps are among them
    * an operator that no layer computes as it is: ``erf``, ``pow``, a division by an activation
    * a scale or an offset of what a function gives, as ``1 - sigmoid(x)``

    Results inside of such a subgraph that others read, too, are computed once more, unless all
    that is behind depends on them alone: then the function begins there.
    Left alone: one operator that has a table already; other scales and offsets, and a ReLU or
    ``clamp`` behind a layer, which it computes at no cost; what the model's author quantized on
    the way, or TensorFlow Lite rounds in its own way.
    """

    after: ClassVar[Reasons] = {
        LowerClamp: (
            "A limit that a layer can apply to its result stays a clamp or relu; it does not "
            "become a table."
        ),
        LowerReduce: (
            "A limit behind a sum over channels is applied by the layer that the sum becomes, "
            "not by a table."
        ),
        MergeEqual: "Equal operators are merged before one of them becomes part of a function.",
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        functions = _Functions(graph)
        if not functions.found:
            return graph
        editor = Editor(graph)
        for node in graph.nodes:
            if functions.needed.isdisjoint(node.outputs):
                continue
            if node.name not in functions.found:
                editor.keep(node)
                continue
            source, nodes = functions.found[node.name]
            body = function_body(graph, source, nodes)
            has_steps = any(inner.has(Trait.EXACT_TABLE) for inner in body.nodes)
            op = "stepwise" if has_steps else "pointwise"
            editor.emit(Node(op, (source,), (node.name,), {"body": body}, node.location))
        return editor.finish()


class _Functions:
    """The subgraphs of a graph that become one operator each.

    Attributes
    ----------
    found : dict
        Source and nodes, in order, of every function, by the name of its result.
    needed : set
        Tensors that are still read then, or are outputs.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._places = {node.name: place for place, node in enumerate(graph.nodes)}
        # by tensor: those that it is a function of alone, the nearest first
        self._origins: dict[str, tuple[str, ...]] = {}
        for node in graph.nodes:
            if len(node.outputs) == 1:
                self._origins[node.name] = (node.name, *self._common_origins(node))
        self.found: dict[str, tuple[str, list[Node]]] = {}
        self.needed = {*graph.outputs, *(state.result for state in graph.states.values())}
        for node in reversed(graph.nodes):
            if not self.needed.isdisjoint(node.outputs):
                self._note(node)

    def _note(self, node: Node) -> None:
        source = self._source(node.name) if len(node.outputs) == 1 else None
        nodes = [] if source is None else self._between(source, node.name)
        if source is not None and _is_worth_it(self._graph, source, nodes):
            self.found[node.name] = source, nodes
            self.needed.add(source)
        else:
            self.needed.update(node.inputs)

    def _common_origins(self, node: Node) -> Iterator[str]:
        if not _is_pointwise(self._graph, node):
            return
        chains = [self._origins_of(name) for name in _activations(self._graph, node)]
        for name in chains[0] if chains else ():
            if all(name in chain for chain in chains):
                yield name

    def _origins_of(self, name: str) -> tuple[str, ...]:
        if self._graph.tensor(name).quant is not None:
            return (name,)
        return self._origins.get(name, (name,))

    def _source(self, result: str) -> str | None:
        """Return the tensor that a function should begin at."""
        graph = self._graph
        origins = [
            name
            for name in self._origins[result][1:]
            if graph.tensor(name).dtype == graph.tensor(result).dtype == "scalar"
        ]
        if not origins:
            return None
        reached = [origins[0]]
        for name in origins[1:]:
            if self._is_read_elsewhere(reached[-1], result):
                break
            reached.append(name)
        steps = [*reversed(reached), result]
        layer = _layer(graph, steps[0])
        clips = False
        while layer is not None and len(steps) > 1 and self._is_free(layer, *steps[:2]):
            is_affine = _is_affine(graph, graph.producer(steps[1]))
            if clips and is_affine:
                break
            clips = not is_affine
            del steps[0]
        return steps[0] if len(steps) > 1 else None

    def _is_read_elsewhere(self, name: str, result: str) -> bool:
        inside = {node.name for node in self._between(name, result)}
        readers = self._graph.consumers(name)
        return name in self._graph.outputs or any(node.name not in inside for node in readers)

    def _is_free(self, layer: Node, source: str, result: str) -> bool:
        """Whether the layer that computes ``source`` could compute ``result`` at once."""
        nodes = self._between(source, result)
        if len(nodes) > 1 or self._is_read_elsewhere(source, result):
            return False
        if nodes[0].op in _ACTIVATIONS:
            return layer.has(Trait.CLIPS)
        return layer.has(Trait.WEIGHTS) and _is_affine(self._graph, nodes[0])

    def _between(self, source: str, result: str) -> list[Node]:
        """Return the nodes from an origin of a tensor to this, in order."""
        wanted, nodes = {result}, []
        pending = [result]
        while pending:
            node = self._graph.producer(pending.pop())
            assert node is not None
            nodes.append(node)
            new = {*_activations(self._graph, node)} - wanted - {source}
            wanted |= new
            pending += new
        return sorted(nodes, key=lambda node: self._places[node.name])


def _activations(graph: Graph, node: Node) -> tuple[str, ...]:
    return tuple(name for name in node.inputs if graph.tensor(name).data is None)


def _is_pointwise(graph: Graph, node: Node) -> bool:
    """Whether a node computes each number from numbers at the same place, and constants."""
    tensor = graph.tensor(node.name)
    if not node.has(Trait.ELEMENTWISE):
        return False
    if graph.rounding == "tflite" and tensor.quant is not None and _reads_codes(graph, node):
        return False
    return all(
        graph.tensor(name).shape == tensor.shape
        if graph.tensor(name).data is None
        else scalar_value(graph.tensor(name)) is not None
        for name in node.inputs
    )


def _reads_codes(graph: Graph, node: Node) -> bool:
    """Whether an activation that a node reads is quantized, not made on the way to a function."""
    return any(graph.tensor(name).quant is not None for name in _activations(graph, node))


def _is_affine(graph: Graph, node: Node | None) -> bool:
    """Whether a node multiplies by a constant or adds one."""
    if node is None or node.op not in _AFFINE:
        return False
    activations = _activations(graph, node)
    return len(activations) == 1 and (node.op != "div" or activations[0] == node.inputs[0])


def _layer(graph: Graph, name: str) -> Node | None:
    """Return the node whose sums a tensor holds, scaled or moved."""
    node = graph.producer(name)
    while node is not None and (
        node.has(Trait.MOVES) or node.op == "batch_normalization" or _is_affine(graph, node)
    ):
        node = next(map(graph.producer, _activations(graph, node)), None)
    return node


def _is_worth_it(graph: Graph, source: str, nodes: list[Node]) -> bool:
    if len(nodes) == 1 and nodes[0].has(Trait.TABLE):
        return len(nodes[0].inputs) > 1
    return _is_of_table(graph, source) or not all(_is_affine(graph, node) for node in nodes)


def _is_of_table(graph: Graph, name: str) -> bool:
    """Whether a tensor holds what a table gives: another table is less than a multiplier."""
    node = graph.producer(name)
    while node is not None and node.has(Trait.KEEPS_FORMAT):
        node = graph.producer(node.inputs[0])
    return node is not None and node.has(Trait.TABLE)
