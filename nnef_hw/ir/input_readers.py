"""Layers that read a tensor through moves alone, and what they read of each of its elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.operators import Trait

__all__ = ["InputReader", "input_readers"]


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

    def moved(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of a tensor's elements, [1, ...], as those of the layer's operand."""
        for move, shape in zip(self.moves, self.shapes, strict=True):
            if move.op == "transpose":
                values = values.transpose(move.attrs["axes"])
            values = values.reshape(shape)
        return values

    def read(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return values of a tensor's elements as those of the filter's weights, to multiply both.

        None if a weight is multiplied with elements of several values.
        """
        operand = self.moved(values)[0]
        found: NDArray[Any] | None = None
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


def _is_free(graph: Graph, node: Node) -> bool:
    """Whether a node is a layer whose constants are real numbers that may change."""
    if not node.has(Trait.WEIGHTS) or len(node.inputs) != 3:
        return False
    constants = [graph.tensor(name) for name in node.inputs[1:]]
    return all(tensor.data is not None and tensor.quant is None for tensor in constants)
