"""Layers of the shared engine: loops, contents of memories, cycles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.formats import ANYWHERE, Format, Image, Most, Places, Residual, Shape
from nnef_hw.engine.layers.nest import LayerPart, Nest, Pass
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.layers.scale import POOL_SHIFT, Scale
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Node, layers
from nnef_hw.ir.operators import PerOperator
from nnef_hw.parts.engine.array import ArrayUse, Padding
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.narrow import NARROW_BITS, are_short

__all__ = ["EngineContext", "EngineLayer", "lowers"]


L = TypeVar("L", bound=layers.Layer, covariant=True)


@dataclass(frozen=True, kw_only=True)
class EngineLayer(ABC):
    """A node on the engine, of any size.

    Parameters
    ----------
    node
        Node of the model.
    tensor, operand
        Names of what it computes and of what it reads.
    source, target
        Images of both.
    pad
        Code of the padding.
    scale
        How its sums become codes.
    residual
        What is added to these.
    table
        The function that is applied at last: an entry for every code of the engine.
    row
        The place of the row that it writes of a cache, in a state's place; ``tensor`` is the whole
        cache then, ``target`` the row. None if it writes a tensor.
    rounds
        How often it runs in a frame, each time as many of its parts as follow those before.
    """

    label: ClassVar[str]
    by_lane: ClassVar[bool] = True
    maximum: ClassVar[bool] = False

    node: Node
    tensor: str
    operand: str
    source: Image
    target: Image
    pad: int
    scale: Scale
    residual: Residual | None = None
    table: tuple[int, ...] | None = None
    row: Place | None = None
    rounds: int = 1

    @property
    def name(self) -> str:
        """Name of the result: of the sum, or of the function, with which the layer ends."""
        return self.tensor

    @property
    def addressed(self) -> Place | None:
        """The integer at which its weights are a row of a table; None if they come in order."""
        return None

    @property
    def read_tensors(self) -> tuple[str, ...]:
        """Names of the tensors that the array reads."""
        return (self.operand,)

    def part_operand(self, n: int) -> str:
        """Return the name of the tensor that a part reads, or the first one of several."""
        del n
        return self.operand

    def renamed(self, names: Mapping[str, str]) -> EngineLayer:
        """Return the layer with other names of the tensors that are read, where there are such."""
        changed: Fields = {"operand": names.get(self.operand, self.operand)}
        residual = self.residual
        if residual is not None:
            tensor = names.get(residual.tensor, residual.tensor)
            changed["residual"] = replace(residual, tensor=tensor)
        return replace(self, **changed)

    @property
    def tensors_apart(self) -> tuple[str, ...]:
        """Names of those that are read while results are written."""
        return self.read_tensors

    @property
    def written_over(self) -> str | None:
        """Name of the tensor that is read word by word just before results are written, if any.

        Nothing else of the layer reads it, so that they may take its place.
        """
        other = None if self.residual is None else self.residual.tensor
        return None if other in self.read_tensors else other

    @property
    def loops_over_frames(self) -> bool:
        """Whether a part of it may run for all frames of a batch before the next part does."""
        return True

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of these, and of what is added."""
        others = () if self.residual is None else (self.residual.tensor,)
        return (*self.read_tensors, *others)

    @property
    def may_add(self) -> bool:
        """Whether another tensor may be added to its codes: nothing is behind its sums yet."""
        return self.residual is None and self.table is None and self.row is None

    @property
    def may_look_up(self) -> bool:
        """Whether a function by table may be applied to its codes: none is yet."""
        return self.table is None and self.row is None

    @property
    def may_write_row(self) -> bool:
        """Whether the layer may write a row of a cache: nothing else moves with that row."""
        return False

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame, padding taps included."""
        return 0

    @property
    def products(self) -> int:
        """Products of a code that it computes, on average."""
        return self.macs // (self.target.pixels * self.target.channels)

    @property
    def kernel(self) -> tuple[int, int]:
        """Rows and columns of its window."""
        return (1, 1)

    @property
    def parameters(self) -> int:
        """Weights and biases that the model has here."""
        return 0

    @property
    def weight_bytes(self) -> int:
        """Bytes of the model's weights."""
        return 0

    @cached_property
    def has_narrow_weights(self) -> bool:
        """Whether the model's weights have 4 bits, less their zero point."""
        if not self.weight_bytes:
            return False
        weights, most = self.weights(Shape(4, 4)), 1 << (NARROW_BITS - 1)
        return bool(weights.min() >= -most and weights.max() < most)

    @cached_property
    def has_short_weights(self) -> bool:
        """Whether the array's weights have 4 bits, or are 16 times such ones."""
        return are_short(self.weights(Shape(4, 4)))

    @property
    def largest_sum(self) -> tuple[int, int]:
        """Least and greatest sum, bias included."""
        return 0, self.pad_high << POOL_SHIFT

    @property
    def pad_high(self) -> int:
        """Greatest code that it reads."""
        return 255

    @abstractmethod
    def nest(self, shape: Shape, places: Places) -> Nest:
        """Return the loops of the layer."""

    @abstractmethod
    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        """Return passes with results that come over and over, and how often."""

    @abstractmethod
    def weights(self, shape: Shape) -> NDArray[np.int64]:
        """Return the weights of the layer: [words, rows, lanes]."""

    @abstractmethod
    def bias(self, shape: Shape) -> IntArray:
        """Return the bias of every result of a pixel, absent channels included.

        Where all channels have the same one, and the same factor, those of a word. They are a
        multiple of ``shape.results``.
        """

    def weight_words(self, shape: Shape) -> int:
        """Return the length of :meth:`weights`, which large layers know without making them."""
        return len(self.weights(shape))

    @abstractmethod
    def part_level(self, shape: Shape) -> int:
        """Return the loop whose iterations have constants of their own, and weights if any have."""

    def part_passes(self, shape: Shape, first: int, count: int) -> tuple[list[Pass], int]:
        """Return the passes of some iterations of that loop, and how often they come."""
        passes, repeats = self.passes(shape)
        counts = self.nest(shape, ANYWHERE).counts
        return passes, repeats * count // counts[self.part_level(shape)]

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        """Divide the layer into parts of no more weights and constants; None: it stays whole.

        A part is at least one iteration, whatever that takes.
        """
        nest = self.nest(shape, places)
        weights, constants = range(self.weight_words(shape)), range(len(self.bias(shape)))
        if most is None:
            return [LayerPart(nest, *self.passes(shape), weights, constants)]
        level = self.part_level(shape)
        count = nest.counts[level]
        words, results = (nest.strides[name][level] for name in ("weight", "constant"))
        fitting = count
        if results:
            fitting = min(fitting, most.constants // results)
        if words:
            fitting = min(fitting, most.weights // words)
        pieces = -(-count // max(1, fitting))
        ends = [count * n // pieces for n in range(pieces + 1)]
        return [
            LayerPart(
                nest.part(level, first, end - first),
                *self.part_passes(shape, first, end - first),
                weights[first * words : end * words] if words else weights,
                constants[first * results : end * results] if results else constants,
            )
            for first, end in pairwise(ends)
        ]

    def gathers(self, shape: Shape) -> bool:
        """Whether every word that it reads gives one code."""
        del shape
        return False

    def sliding_rows(self, shape: Shape) -> int:
        """Rows between which sums move; 1 if they do not."""
        del shape
        return 1

    def work(self, shape: Shape) -> ArrayUse:
        """Return the layer's use of the array."""
        rows = self.sliding_rows(shape)
        return ArrayUse(
            silent=rows - 1, slides=rows > 1, by_lane=self.by_lane, maximum=self.maximum,
            height=self.source.height, width=self.source.width, adds=self.residual is not None,
        )  # fmt: skip

    def records(self, shape: Shape) -> tuple[Record, ...]:
        """Return the fields of the layer's instruction besides loops and scale."""
        own = (self.work(shape), Padding(pad=self.pad))
        if self.row is None:
            return own
        return (*own, self.row.record(self.target.words(shape.lanes), moves_write=1))

    def per_result(self, values: Sequence[int], shape: Shape, default: int = 0) -> list[int]:
        """Return one of the values, of all channels or one each, for everything that has a bias."""
        count = len(self.bias(shape))
        own = tuple(values) * (self.target.channels if len(values) == 1 else 1)
        return [*own, *[default] * (count - len(own))][:count]


@dataclass(frozen=True, slots=True)
class EngineContext(Generic[L]):
    """An integer layer of a fixed graph, and the tensors that reshapes only rename.

    Parameters
    ----------
    device
        Where the engine is.
    """

    layer: L
    tensors: Mapping[str, str]
    device: Device

    @property
    def source(self) -> Format:
        """Format of the first operand's codes in the engine."""
        return Format.of(self.layer.source)

    @property
    def target(self) -> Format:
        """Format of the result's codes in the engine."""
        return Format.of(self.layer.target)

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the tensors that it reads."""
        return tuple(self.tensors[x.name] for x in self.layer.operands)

    @property
    def common(self) -> Fields:
        """Fields that all layers have, but for the scale and the padding."""
        layer = self.layer
        return {
            "node": layer.node, "tensor": layer.result.name, "operand": self.operands[0],
            "source": Image(*layer.image), "target": Image(*layer.result_image),
        }  # fmt: skip


AnyContext: TypeAlias = EngineContext[Any]
"""Surroundings of a layer of any kind."""
lowers = PerOperator[Callable[[AnyContext], EngineLayer]]("engine layer")
"""How nodes of an operator become layers of the engine."""
