"""Graph, Node and Tensor: NNEF's own operators on tensors with static shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.records import AttributeMap, AttributeValue
from nnef_hw.errors import Location
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir.operators import Attributes, CanonicalOperator, Operator, Trait, operator

__all__ = ["Graph", "Node", "Quantization", "Stage", "State", "Tensor"]

A = TypeVar("A", bound=Attributes)
T = TypeVar("T")


class Stage(StrEnum):
    """Stages that a graph goes through (docs/design.md)."""

    FLOAT = "float"
    CANONICAL = "canonical"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """Quantization of a tensor by the model's author: a line of ``graph.quant`` (spec chapter 5).

    Parameters
    ----------
    op
        ``min_max_linear_quantize``, ``zero_point_linear_quantize``, ``linear_quantize`` or
        ``logarithmic_quantize``.
    args
        The arguments by name, complete: Python values, or arrays whose shape broadcasts from
        the tensor's first dimension (``scale`` of shape [8]: one per output channel of a filter).
    ties_to_even
        Whether numbers halfway between two codes take the even one, as ONNX says; else the upper
        one, as in hardware.
    """

    op: str
    args: AttributeMap
    ties_to_even: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Value that is kept from one inference to the next (``update`` of a variable).

    Or, within a loop, from one of its steps to the next.

    Parameters
    ----------
    initial
        Value in the first inference, or in the first step of every inference.
    result
        Tensor whose value it takes for the next inference or step.
    label
        The variable's label; None if it has none.
    steps
        Steps of the loop, after which it begins anew; 1 if it goes on through all inferences.
    """

    initial: Array
    result: str
    label: str | None = None
    steps: int = 1

    @property
    def goes_on(self) -> bool:
        """Whether an inference begins with what the one before has left."""
        return self.steps == 1


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A named value of static shape.

    Parameters
    ----------
    name
        The identifier in the graph; unique.
    shape
        Extents; NNEF order (batch, channels, spatial...).
    dtype
        ``scalar``, ``integer`` or ``logical`` as in NNEF.
    data
        The value of a variable or constant (float32/float64, int64 or bool; integer codes in the
        fixed stage), None for activations.
    label
        The variable's label, i.e. its file without ``.dat``; None for literals and activations.
    qtype
        Fixed-point format; every activation of the fixed stage has one.
    quant
        How the model's author quantized it, of the float and canonical stage. ``data`` of a
        quantized variable holds real numbers: its codes were decoded.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "scalar"
    data: Array | None = None
    label: str | None = None
    qtype: QType | None = None
    location: Location | None = None
    quant: Quantization | None = None

    @property
    def volume(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator invocation.

    Parameters
    ----------
    op
        NNEF operator name (``conv``, ``max_pool``...).
    inputs
        Names of the tensor arguments in the order of the operator's declaration. Always complete:
        a defaulted tensor argument (``bias = 0.0``) is a constant tensor of its own.
    outputs
        Names of the results.
    attrs
        Attributes by NNEF name, complete with defaults, as plain Python values (lists and tuples
        as NNEF has them). Later stages add ``activation`` (canonical), ``requant`` and ``table``
        (fixed), see :mod:`nnef_hw.ir.verify`.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: AttributeMap = field(default_factory=dict)
    location: Location | None = None

    @property
    def name(self) -> str:
        """The first result's name: what users call the layer."""
        return self.outputs[0]

    @property
    def operator(self) -> Operator:
        """Facts about the operator."""
        return operator(self.op)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Operands that hold numbers: all but the integer place that some operators have."""
        return self.inputs[:-1] if self.has(Trait.INDEXED) else self.inputs

    def has(self, trait: Trait) -> bool:
        """Whether the operator has a trait."""
        return self.operator.has(trait)

    def attributes(self, kind: type[A]) -> A:
        """Return the attributes of a canonical node, parsed.

        Parameters
        ----------
        kind
            The class of its operator's attributes, or one that this is derived from.

        Raises
        ------
        AssertionError
            If the operator has no such attributes.
        """
        found = self.operator
        parsed = found.parsed if isinstance(found, CanonicalOperator) else None
        assert parsed is not None, f"{self.op} has no parsed attributes"
        assert issubclass(parsed, kind), f"{self.op} has no {kind.__name__}"
        return parsed.parse(self.attrs)

    def with_attrs(self, **attrs: object) -> Node:
        """Copy with some attributes replaced or added."""
        return replace(self, attrs={**self.attrs, **attrs})


class _Made(dict[tuple[Hashable, ...], AttributeValue]):
    """Results that were computed of a graph; a copy in another process computes them again."""

    def __reduce__(self) -> tuple[type[_Made], tuple[()]]:
        """Leave all results out."""
        return _Made, ()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes in execution order over named tensors; never changed in place.

    ``states`` are tensors without a producer and without data: each holds a value that the
    inference before left, so no pass can take it for a constant. ``rounding`` is how the model's
    author rounds sums (:class:`nnef_hw.quantize.Scheme`); None if nothing is known. ``repeated``
    says of inputs that are the states of loops how often they come in an inference; ``rows`` of the
    inputs of a step of another network, which computes windows, how they take these. ``features``
    are the scales of inputs of the fixed stage that have one for each feature.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    stage: Stage = Stage.FLOAT
    states: Mapping[str, State] = field(default_factory=dict)
    rounding: str | None = None
    repeated: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, StreamRows] = field(default_factory=dict)
    features: Mapping[str, FeatureScales] = field(default_factory=dict)
    _producers: dict[str, Node] = field(init=False, repr=False, default_factory=dict)
    _consumers: dict[str, list[Node]] = field(init=False, repr=False, default_factory=dict)
    _steps: dict[str, int] = field(init=False, repr=False, default_factory=dict)
    _made: _Made = field(init=False, repr=False, default_factory=_Made)

    def once(self, make: Callable[..., T], *choices: Hashable) -> T:
        """Call a function or a class with the graph and some choices, once; return the result.

        It is made the first time only, for the graph never changes.
        """
        key = make, *choices
        if key not in self._made:
            self._made[key] = make(self, *choices)
        found: T = self._made[key]
        return found

    def _connect(self) -> None:
        """Note who computes and who reads what, once somebody asks."""
        if self._producers:
            return
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                self._consumers.setdefault(name, []).append(node)
            for name in node.outputs:
                self._producers.setdefault(name, node)

    def producer(self, tensor: str) -> Node | None:
        """Return the node that computes a tensor; None for inputs and constants."""
        self._connect()
        return self._producers.get(tensor)

    def consumers(self, tensor: str) -> tuple[Node, ...]:
        """Return the nodes that read a tensor, in execution order."""
        self._connect()
        return tuple(self._consumers.get(tensor, ()))

    def dependents(self, names: Collection[str]) -> set[str]:
        """Return tensors and all that nodes compute from them, in one inference."""
        found = set(names)
        for node in self.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
        return found

    @property
    def is_sequential(self) -> bool:
        """Whether samples of the graph are sequences: a state goes on from one step to the next."""
        return any(state.goes_on for state in self.states.values())

    def steps(self, tensor: str) -> int:
        """Return how often a tensor is computed in an inference: more than once in a loop."""
        if not self._steps:
            self._steps.update(dict.fromkeys(self.inputs, 1), **self.repeated)
            self._steps.update({name: state.steps for name, state in self.states.items()})
            for node in self.nodes:
                steps = max((self._steps.get(name, 1) for name in node.inputs), default=1)
                if node.has(Trait.ENTERS_LOOP):
                    steps = self._steps.get(node.inputs[0], 1) * node.attrs["steps"]
                elif node.has(Trait.LEAVES_LOOP):
                    steps //= node.attrs["steps"]
                self._steps.update(dict.fromkeys(node.outputs, steps))
        return self._steps.get(tensor, 1)

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by name."""
        return self.tensors[name]

    def constant(self, name: str) -> Array:
        """Return the data of a constant tensor.

        Raises
        ------
        KeyError
            If the tensor is an activation.
        """
        data = self.tensors[name].data
        if data is None:
            raise KeyError(name)
        return data

    def replaced(
        self,
        *,
        nodes: tuple[Node, ...] | None = None,
        tensors: Mapping[str, Tensor] | None = None,
        stage: Stage | None = None,
        outputs: tuple[str, ...] | None = None,
        rounding: str | None = None,
    ) -> Graph:
        """Copy with what is given replaced; tensors nobody refers to are dropped."""
        new_nodes = self.nodes if nodes is None else nodes
        new_outputs = self.outputs if outputs is None else outputs
        table = self.tensors if tensors is None else tensors
        used = {*self.inputs, *new_outputs, *self.states}
        used.update(state.result for state in self.states.values())
        for node in new_nodes:
            used.update(node.inputs, node.outputs)
        return Graph(
            name=self.name,
            inputs=self.inputs,
            outputs=new_outputs,
            tensors={name: tensor for name, tensor in table.items() if name in used},
            nodes=new_nodes,
            stage=self.stage if stage is None else stage,
            states=self.states,
            rounding=self.rounding if rounding is None else rounding,
            repeated=self.repeated,
            rows=self.rows,
            features=self.features,
        )
