"""Layers that read a tensor through moves alone, and what they read of each of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.operators import CanonicalOperator, Trait

__all__ = [
    "InputReader", "feature_axes", "index_count", "input_readers", "moved_features", "zero_codes",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class InputReader:
    """A layer with constant weights that reads a tensor, from behind moves of it.

    Parameters
    ----------
    node
        The layer.
    moves
        Reshapes and transposes between, the first one first.
    shapes
        Shapes of their results.
    kernel
        Shape of the filter.
    is_padded
        Whether zeros stand beside what it reads.
    """

    node: Node
    moves: tuple[Node, ...]
    shapes: tuple[tuple[int, ...], ...]
    kernel: tuple[int, ...]
    is_padded: bool

    def moved(self, values: Array) -> Array:
        """Return values of a tensor's elements, [1, ...], as those of the layer's operand."""
        for move, shape in zip(self.moves, self.shapes, strict=True):
            if move.op == "transpose":
                values = values.transpose(move.attrs["axes"])
            values = values.reshape(shape)
        return values

    def read(self, values: Array) -> Array | None:
        """Return values of a tensor's elements as those of the filter's weights, to multiply both.

        None if a weight is multiplied with elements of several values.
        """
        operand = self.moved(values)[0]
        found: Array | None = None
        channels = operand.reshape(len(operand), -1)
        if (channels == channels[:, :1]).all():
            groups = self.node.attrs.get("groups", 1) or len(operand)
            of_group = channels[:, 0].reshape(groups, 1, -1)
            rows = np.broadcast_to(of_group, (groups, self.kernel[0] // groups, self.kernel[1]))
            found = rows.reshape(*self.kernel[:2], *[1] * (len(self.kernel) - 2))
        return found


def input_readers(graph: Graph, name: str) -> list[InputReader] | None:
    """Return all that read a tensor, from behind moves of it.

    None if it is an output, or anything else reads it: only layers with constants that nobody has
    quantized are found.
    """
    found: list[InputReader] = []
    results = {*graph.outputs, *(state.result for state in graph.states.values())}
    waiting: list[tuple[str, tuple[Node, ...]]] = [(name, ())]
    while waiting:
        tensor, moves = waiting.pop(0)
        if tensor in results:
            return None
        for node in graph.consumers(tensor):
            if node.has(Trait.MOVES):
                waiting.append((node.name, (*moves, node)))
            elif _is_free(graph, node) and tensor not in node.inputs[1:]:
                shapes = tuple(graph.tensor(move.name).shape for move in moves)
                kernel = graph.tensor(node.inputs[1]).shape
                padding = node.attrs.get("padding", [(0, 0)])
                is_padded = not padding or any(map(any, padding))
                found.append(InputReader(node, moves, shapes, kernel, is_padded))
            else:
                return None
    return found


def feature_axes(
    shape: tuple[int, ...], readers: Sequence[InputReader]
) -> dict[int, list[NDArray[np.int64]]]:
    """Return the axes of a tensor along which its readers tell features apart by their channels.

    And by axis for each reader the feature of each weight, as :meth:`InputReader.read` gives it.
    """
    found = {}
    for axis in range(1, len(shape)):
        ids = np.arange(shape[axis]).reshape(-1, *[1] * (len(shape) - 1 - axis))
        columns = [reader.read(np.broadcast_to(ids, shape)) for reader in readers]
        known = [column.astype(np.int64) for column in columns if column is not None]
        if shape[axis] > 1 and len(known) == len(columns):
            found[axis] = known
    return found


def moved_features(graph: Graph) -> set[str]:
    """Return tensors that reshapes and transposes alone make of inputs with scales by feature.

    What their codes stand for are other numbers than in the real network.
    """
    found = set(graph.features)
    for node in graph.nodes:
        if node.has(Trait.MOVES) and node.inputs[0] in found:
            found.update(node.outputs)
    return found - set(graph.features)


def zero_codes(graph: Graph, name: str) -> NDArray[np.int64]:
    """Return the codes of a tensor of the fixed stage that stand for zeros, or come nearest.

    They differ where an input has a zero point for each feature, also behind moves of it.
    """
    tensor, node = graph.tensor(name), graph.producer(name)
    assert tensor.qtype is not None, name
    zeros = np.zeros(tensor.shape)
    if name in graph.features:
        return graph.features[name].quantize(zeros, tensor.shape, tensor.qtype)
    if node is not None and node.has(Trait.MOVES):
        codes = zero_codes(graph, node.inputs[0])
        return (codes.transpose(node.attrs["axes"]) if node.op == "transpose" else codes).reshape(
            tensor.shape
        )
    return tensor.qtype.quantize(zeros)


def index_count(graph: Graph, name: str) -> int:
    """Return how many integers from 0 on an input may hold: those that all its readers have.

    Those are rows of tables and of caches, and channels of masks. 0 of an input that holds no
    places, or that something else reads as well.
    """
    tensor = graph.tensor(name)
    if tensor.dtype != "integer" or name in graph.outputs:
        return 0
    counts = []
    for node in graph.consumers(name):
        if node.has(Trait.RESHAPES):
            counts.append(index_count(graph, node.name))
        else:
            is_place = node.has(Trait.INDEXED) and name not in node.numbers
            counts.append(_places(graph, node) if is_place else 0)
    return min(counts, default=0)


def _places(graph: Graph, node: Node) -> int:
    """Return how many places an operator has."""
    found = node.operator
    assert isinstance(found, CanonicalOperator), node.op
    return graph.tensor(node.inputs[0]).shape[found.place_axis]


def _is_free(graph: Graph, node: Node) -> bool:
    """Whether a node is a layer whose constants are real numbers that may change."""
    if not node.has(Trait.WEIGHTS) or len(node.inputs) != 3:
        return False
    constants = [graph.tensor(name) for name in node.inputs[1:]]
    return all(tensor.data is not None and tensor.quant is None for tensor in constants)
