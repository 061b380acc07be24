"""Layers write constants, first codes of states, and copies of these to the memory of codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.engine.layers.formats import Format, Image, Most, Places, Shape
from nnef_hw.engine.layers.gather import GatherLayer, plain_piece
from nnef_hw.engine.layers.layer import EngineContext, EngineLayer
from nnef_hw.engine.layers.nest import LayerPart, Nest, Pass
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.layers.scale import POOL_SHIFT, Scale
from nnef_hw.ir import Graph, Node, Tensor, layers, stream_image
from nnef_hw.parts.engine.array import ArrayUse
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import PASS_LEVEL, QUANTITIES
from nnef_hw.parts.engine.sizes import LEVELS

__all__ = [
    "ConstantLayer", "CopyLayer", "InitialLayer", "KeptState", "LookupLayer", "RowLayer",
    "expanded",
]  # fmt: skip

_MIDDLE = 1 << 7
"""A weight is a code less this."""

L = TypeVar("L", bound=layers.Layer)


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantLayer(EngineLayer):
    """A constant tensor: every pass reads a word of padding and a word of weights.

    Padding has the code ``2**POOL_SHIFT``, so that a weight of 1 is a code of 1: the sums of a
    word are its codes, less 128, which the bias makes up for. No tensor is read.

    Parameters
    ----------
    codes
        Codes as the engine has them: [rows, columns, channels].
    """

    label = "constant"

    codes: NDArray[np.int64]

    @classmethod
    def of(cls, layer: layers.Layer, constant: Tensor) -> ConstantLayer:
        """Return the layer that writes a constant operand of another layer."""
        offset = Format.of(layers.format_of(constant)).offset
        target = Image(*layers.image_of(constant))
        assert constant.data is not None, f"{constant.name}: no constant"
        shape = target.channels, target.height, target.width
        codes = np.asarray(constant.data, np.int64).reshape(shape).transpose(1, 2, 0) - offset
        return cls(
            node=layer.node, tensor=constant.name, operand=constant.name, source=target,
            target=target, pad=1 << POOL_SHIFT, scale=Scale.identity(int(codes.max())), codes=codes,
        )  # fmt: skip

    @property
    def read_tensors(self) -> tuple[str, ...]:
        return ()

    @property
    def may_add(self) -> bool:
        return False

    @property
    def weight_bytes(self) -> int:
        return self.codes.size

    @property
    def parameters(self) -> int:
        return self.codes.size

    def nest(self, shape: Shape, places: Places) -> Nest:
        counts, none = [1] * LEVELS, [0] * LEVELS
        counts[PASS_LEVEL] = self.target.words(shape.lanes)
        words = [*none[:PASS_LEVEL], 1, *none[PASS_LEVEL + 1 :]]
        strides = dict.fromkeys(QUANTITIES, tuple(none))
        return Nest(
            counts=tuple(counts),
            strides={**strides, "weight": tuple(words), "write": tuple(words)},
            starts={
                **dict.fromkeys(QUANTITIES, 0), "read": places.read, "write": places.write,
                "weight": places.weight, "constant": places.constant,
                # Below an image of one row: padding.
                "y": 1,
            },
        )  # fmt: skip

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        return [Pass(1, shape.lanes)], self.target.words(shape.lanes)

    def part_level(self, shape: Shape) -> int:
        del shape
        return PASS_LEVEL

    def weight_words(self, shape: Shape) -> int:
        return self.target.words(shape.lanes)

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        fill = self.target.blocks(shape.lanes) * shape.lanes - self.target.channels
        codes = np.pad(self.codes - _MIDDLE, ((0, 0), (0, 0), (0, fill)))
        words = np.zeros((self.weight_words(shape), *shape.multipliers), np.int64)
        words[:, 0] = codes.reshape(-1, shape.lanes)
        return words

    def bias(self, shape: Shape) -> IntArray:
        return np.full(shape.lanes, _MIDDLE << POOL_SHIFT, np.int64)

    def work(self, shape: Shape) -> ArrayUse:
        return replace(super().work(shape), height=1, width=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class InitialLayer(ConstantLayer):
    """The first codes of a state, which an instruction writes once, before the first frame."""

    label = "initial value"

    @property
    def weight_bytes(self) -> int:
        return 0

    @property
    def parameters(self) -> int:
        return 0

    @cached_property
    def _is_uniform(self) -> bool:
        """Whether all words are the same one, of which one word of weights tells."""
        return bool((self.codes == self.codes.flat[0]).all())

    def nest(self, shape: Shape, places: Places) -> Nest:
        own = super().nest(shape, places)
        if not self._is_uniform:
            return own
        return replace(own, strides={**own.strides, "weight": (0,) * LEVELS})

    def weight_words(self, shape: Shape) -> int:
        return 1 if self._is_uniform else super().weight_words(shape)

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        if not self._is_uniform:
            return super().weights(shape)
        words = np.zeros((1, *shape.multipliers), np.int64)
        words[:, 0] = self.codes.flat[0] - _MIDDLE
        return words


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyLayer(GatherLayer):
    """Codes of a next value, to the place of its state when nothing reads that any more."""

    label = "copy"

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True, slots=True)
class KeptState:
    """A tensor whose codes a frame finds as the one before has left them.

    Parameters
    ----------
    name, result
        Names of the state, and of the tensor in memory that it takes over for the next frame.
    initial
        What writes its first codes.
    copy
        What copies the next value to its place, if it is not computed there.
    """

    name: str
    result: str
    initial: InitialLayer
    copy: CopyLayer

    @classmethod
    def of(cls, graph: Graph, name: str, result: str) -> Self:
        """Return a state of a fixed graph; its next value may have another name in memory."""
        tensor, state = graph.tensor(name), graph.states[name]
        form = Format.of(layers.format_of(tensor))
        height, width, channels = stream_image(tensor.shape)
        image = Image(height, width, channels)
        codes = state.initial.astype(np.int64).reshape(channels, height, width)
        node = Node("update", (state.result,), (name,), location=tensor.location)
        initial = InitialLayer(
            node=node, tensor=name, operand=name, source=image, target=image,
            pad=1 << POOL_SHIFT, scale=Scale.identity(form.high),
            codes=codes.transpose(1, 2, 0) - form.offset,
        )  # fmt: skip
        copy = CopyLayer(
            node=node, tensor=name, operand=result, source=image, target=image, pad=0,
            scale=Scale.identity(form.high), pieces=(plain_piece(image, image),),
        )  # fmt: skip
        return cls(name, result, initial, copy)

    def renamed(self, names: dict[str, str]) -> KeptState:
        """Return the state with another name of its next value, if there is one."""
        result = names.get(self.result, self.result)
        return replace(self, result=result, copy=replace(self.copy, operand=result))


@dataclass(frozen=True, eq=False, kw_only=True)
class RowLayer(ConstantLayer):
    """A row of a table, at the place that an integer tells; it is not divided."""

    label = "lookup"

    place: Place

    @property
    def may_add(self) -> bool:
        return self.residual is None and self.table is None

    @property
    def has_narrow_weights(self) -> bool:
        return False

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        nest = self.nest(shape, places)
        if most is not None:
            nest = replace(nest, starts={**nest.starts, "weight": 0, "constant": 0})
        weights, constants = range(self.weight_words(shape)), range(len(self.bias(shape)))
        return [LayerPart(nest, *self.passes(shape), weights, constants)]


@dataclass(frozen=True, eq=False, kw_only=True)
class LookupLayer(RowLayer):
    """A row of a table, of which each is a pixel of the codes: weights begin at the chosen one."""

    def _row_words(self, shape: Shape) -> int:
        """Return the words from a row to the next one, a power of two."""
        return 1 << (self.target.words(shape.lanes) - 1).bit_length()

    def weight_words(self, shape: Shape) -> int:
        return len(self.codes) * self._row_words(shape)

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        rows = self.codes[:, 0] - _MIDDLE
        count = self._row_words(shape) * shape.lanes
        words = np.zeros((self.weight_words(shape), *shape.multipliers), np.int64)
        padded = np.pad(rows, ((0, 0), (0, count - rows.shape[1])))
        words[:, 0] = padded.reshape(-1, shape.lanes)
        return words

    def records(self, shape: Shape) -> tuple[Record, ...]:
        own = self.place.record(self._row_words(shape), moves_weight=1)
        return (*super().records(shape), own)

    @classmethod
    def lowered(cls, context: EngineContext[layers.Lookup], place: Place) -> LookupLayer:
        """Return the layer of a table and an integer."""
        layer, target = context.layer, Image(*context.layer.result_image)
        codes = layer.rows[:, None] - context.target.offset
        return cls(
            node=layer.node, tensor=layer.result.name, operand=layer.result.name, source=target,
            target=target, pad=1 << POOL_SHIFT, scale=Scale.identity(int(codes.max())),
            codes=codes, place=place,
        )  # fmt: skip


def expanded(layer: L) -> L:
    """Return a layer whose constant operands have the shape of its result, if it is elementwise."""
    if not isinstance(layer, layers.Elementwise):
        return layer
    return replace(layer, operands=tuple(_whole(x, layer.result.shape) for x in layer.operands))


def _whole(operand: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a constant as large as what it meets; NNEF broadcasts from the left."""
    if operand.data is None or operand.shape == shape:
        return operand
    data = operand.data.reshape(operand.shape + (1,) * (len(shape) - len(operand.shape)))
    return replace(operand, shape=shape, data=np.broadcast_to(data, shape))
