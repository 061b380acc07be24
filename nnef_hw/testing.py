"""Build small graphs in Python; for tests and experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import Location
from nnef_hw.ir import Graph, Node, State, Tensor, verify
from nnef_hw.reference.real.registry import NUMPY_DTYPES, Evaluation, evaluate

__all__ = ["GraphBuilder"]

_DTYPES = {"b": "logical", "i": "integer"}


class GraphBuilder:
    """A graph of the float stage, one operator after the other.

    Every method returns the name of the result; shapes follow from the float reference. The
    location of node n is line n of the file ``NAME.nnef``.
    """

    def __init__(self, name: str = "net") -> None:
        self.name = name
        self._inputs: list[str] = []
        self._tensors: dict[str, Tensor] = {}
        self._nodes: list[Node] = []
        self._states: dict[str, State] = {}

    def input(self, name: str, shape: Sequence[int], dtype: str = "scalar") -> str:
        """Add a graph input."""
        self._inputs.append(name)
        self._tensors[name] = Tensor(name, tuple(shape), dtype)
        return name

    def state(self, name: str, initial: ArrayLike) -> str:
        """Add a state, which :meth:`update` gives its next values."""
        data = np.asarray(initial, np.float64)
        self._tensors[name] = Tensor(name, data.shape, location=Location(f"{self.name}.nnef", 0))
        self._states[name] = State(data, name, label=name)
        return name

    def update(self, state: str, result: str) -> None:
        """Let a state take over a tensor's value for the next inference."""
        self._states[state] = replace(self._states[state], result=result)

    def constant(
        self, name: str, data: ArrayLike, label: str | None = None, dtype: str = "scalar"
    ) -> str:
        """Add a variable (with a label) or a literal."""
        array = np.asarray(data)
        self._tensors[name] = Tensor(name, array.shape, dtype, data=array, label=label)
        return name

    def op(
        self,
        op: str,
        *args: str | ArrayLike,
        name: str | None = None,
        shape: Sequence[int] | None = None,
        **attrs: Any,
    ) -> str:
        """Add a node; arguments that are no names become constants.

        ``shape`` is the result's shape, needed by shape operators only.
        """
        name = name or f"{op}{len(self._nodes) + 1}"
        inputs = tuple(
            arg if isinstance(arg, str) else self.constant(f"{name}_arg{index}", arg)
            for index, arg in enumerate(args)
        )
        location = Location(f"{self.name}.nnef", len(self._nodes) + 1)
        node = Node(op, inputs, (name,), attrs, location)
        dtype = self._tensors[inputs[0]].dtype
        if shape is None:
            result = evaluate(Evaluation(node, tuple(map(self._sample, inputs)), ((),)))[0]
            shape, dtype = result.shape, _DTYPES.get(result.dtype.kind, "scalar")
        self._tensors[name] = Tensor(name, tuple(shape), dtype, location=location)
        self._nodes.append(node)
        return name

    def conv(
        self,
        x: str,
        weights: ArrayLike,
        bias: ArrayLike = 0.0,
        *,
        name: str | None = None,
        padding: int | Sequence[tuple[int, int]] = 0,
        stride: int = 1,
        dilation: int = 1,
        groups: int = 1,
        border: str = "constant",
    ) -> str:
        """Add a convolution; padding, stride and dilation are the same on all axes."""
        rank = np.ndim(weights) - 2
        pairs = [(padding, padding)] * rank if isinstance(padding, int) else list(padding)
        return self.op(
            "conv",
            x,
            weights,
            bias,
            name=name,
            border=border,
            padding=pairs,
            stride=[stride] * rank,
            dilation=[dilation] * rank,
            groups=groups,
        )

    def pool(
        self,
        op: str,
        x: str,
        size: int = 2,
        *,
        name: str | None = None,
        padding: int = 0,
        stride: int | None = None,
        border: str = "constant",
    ) -> str:
        """Add ``max_pool``, ``avg_pool`` or ``box`` over the spatial axes; strides as the size."""
        rank = len(self._tensors[x].shape) - 2
        return self.op(
            op,
            x,
            name=name,
            size=[1, 1] + [size] * rank,
            border=border,
            padding=[(0, 0)] * 2 + [(padding, padding)] * rank,
            stride=[1, 1] + [stride or size] * rank,
            dilation=[1] * (rank + 2),
        )

    def reshape(self, x: str, shape: Sequence[int], name: str | None = None) -> str:
        """Add a reshape to a whole shape."""
        attrs: Fields = {"axis_start": 0, "axis_count": -1}
        node = self.op("reshape", x, name=name, shape=shape, **attrs)
        self._nodes[-1] = self._nodes[-1].with_attrs(shape=list(shape))
        return node

    def build(self, *outputs: str) -> Graph:
        """Return the graph with these results, the last node's if none is given."""
        graph = Graph(
            name=self.name,
            inputs=tuple(self._inputs),
            outputs=outputs or self._nodes[-1].outputs,
            tensors=dict(self._tensors),
            nodes=tuple(self._nodes),
            states=dict(self._states),
        )
        verify(graph)
        return graph

    def _sample(self, name: str) -> Any:
        tensor = self._tensors[name]
        kind = NUMPY_DTYPES[tensor.dtype]
        return np.zeros(tensor.shape, kind) if tensor.data is None else tensor.data
