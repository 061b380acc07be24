"""Caches that stay in the array's memory of matrices: a frame writes a row of weights of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.engine.layers.constant import KeptState
from nnef_hw.engine.layers.contraction import MIDDLE, ContractionLayer
from nnef_hw.engine.layers.formats import ANYWHERE, Image, Most, Places, Shape
from nnef_hw.engine.layers.gather import GatherLayer, plain_piece
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import LayerPart, Nest, Pass
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.network.network import Arrangement
from nnef_hw.parts.engine.array import Padding
from nnef_hw.parts.engine.contraction import Contracting, Filling, Placing
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import PASS_LEVEL, QUANTITIES
from nnef_hw.parts.engine.sizes import LEVELS

__all__ = ["MatrixFill", "keep_matrices"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixFill(EngineLayer):
    """A row of a cache that becomes weights, or all of its rows before the first frame.

    Parameters
    ----------
    product
        The layer whose matrices are the cache.
    place
        The integer that tells which row; None for all of them, which are one word.
    """

    label = "row of a matrix"
    by_lane = False

    product: ContractionLayer
    place: Place | None = None

    @property
    def tensors_apart(self) -> tuple[str, ...]:
        return ()

    @property
    def may_add(self) -> bool:
        return False

    @property
    def loops_over_frames(self) -> bool:
        return False

    def nest(self, shape: Shape, places: Places) -> Nest:
        product, (rows, lanes) = self.product, shape.multipliers
        words, passes = product.source.blocks(lanes), len(product.row_passes(shape))
        steps = product.matrix_steps(lanes)
        if self.place is None:
            steps = dict.fromkeys(steps, 0)
        weight = (0, 1, 0, words)
        if product.turns:
            blocks = rows // lanes
            if passes == 1:
                blocks = min(blocks, product.matrices.blocks(lanes))
            every = (lanes, words, blocks, passes)
            own = (1, 1, blocks, passes)
            read = (0, 0, steps["word"], rows // lanes * steps["word"])
        else:
            count = rows if passes > 1 else min(rows, product.product.columns)
            every, own = (1, words, count, passes), (1, words, 1, 1)
            read = (0, steps["word"], 0, 0)
        counts = every if self.place is None else own
        zeros = (0,) * (LEVELS - PASS_LEVEL - 2)
        strides = {
            "read": (*read, steps["m"], *zeros), "weight": (*weight, words * passes, *zeros),
            "write": (0, 0, 1, 0, 0, *zeros),
        }  # fmt: skip
        return Nest(
            counts=(*counts, product.groups, *(1,) * len(zeros)),
            strides={name: strides.get(name, (0,) * LEVELS) for name in QUANTITIES},
            starts={**dict.fromkeys(QUANTITIES, 0), "read": places.read, "weight": product.first},
        )  # fmt: skip

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        assert most is None, "a program in a stream has no matrices that stay"
        nest = self.nest(shape, places)
        return [LayerPart(nest, *self.passes(shape), range(0), range(0), self.records(shape))]

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        return [Pass(self.nest(shape, ANYWHERE).words, 0)], 1

    def part_level(self, shape: Shape) -> int:
        del shape
        return PASS_LEVEL

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        return np.zeros((0, *shape.multipliers), np.int64)

    def bias(self, shape: Shape) -> IntArray:
        del shape
        return np.zeros(0, np.int64)

    def records(self, shape: Shape) -> tuple[Record, ...]:
        product, lanes = self.product, shape.lanes
        words = product.source.blocks(lanes)
        last = lanes if product.turns else product.product.inner - (words - 1) * lanes
        own = (
            replace(self.work(shape), height=1, width=1), Padding(pad=MIDDLE),
            Contracting(contracts=1),
            Filling(fills=1, turns=product.turns, inner_lanes=last - 1),
        )  # fmt: skip
        if self.place is None:
            return own
        return (*own, self.place.record(1 if product.turns else words), Placing(placed=1))


@dataclass(frozen=True)
class _Cache:
    """A state of which a layer writes a row, and the product whose matrices its rows are."""

    state: KeptState
    writer: EngineLayer
    product: ContractionLayer


def keep_matrices(arranged: Arrangement, shape: Shape, sent: Collection[str]) -> Arrangement:
    """Return the arrangement with caches that stay in the memory of matrices, where they may.

    Other matrices have their room behind them.

    Parameters
    ----------
    sent
        Names of the tensors that are outputs.
    """
    caches = list(_caches(arranged, shape, sent))
    if not caches:
        return arranged
    products: dict[str, ContractionLayer] = {}
    first = 0
    for cache in caches:
        own = replace(cache.product, first=first, stays=True)
        products[own.tensor] = own
        words = own.source.blocks(shape.lanes) * len(own.row_passes(shape))
        first += words * own.groups
    start = _start(caches[0], shape.lanes)
    writers = {cache.writer.tensor: cache for cache in caches}
    layers: list[EngineLayer] = []
    beginnings: list[EngineLayer] = []
    for layer in arranged.layers:
        if layer.tensor in writers:
            product = products[writers[layer.tensor].product.tensor]
            before, fill = _written(layer, product, shape.lanes)
            layers += [*before, fill]
            image = start.initial.target
            beginnings.append(replace(fill, operand=start.name, source=image, place=None))
        elif isinstance(layer, ContractionLayer):
            layers.append(products.get(layer.tensor) or replace(layer, first=first))
        else:
            layers.append(layer)
    kept = {cache.state.name for cache in caches}
    states = tuple(state for state in arranged.states if state.name not in kept)
    return arranged._replace(
        layers=tuple(layers), states=(*states, start), beginnings=tuple(beginnings)
    )


def _caches(arranged: Arrangement, shape: Shape, sent: Collection[str]) -> Iterator[_Cache]:
    """Yield the caches that nothing but one product of two activations reads."""
    rows, lanes = shape.multipliers
    if rows & (rows - 1) or lanes & (lanes - 1):
        return
    for state in arranged.states:
        names = {state.name, state.result}
        writers = [layer for layer in arranged.layers if layer.tensor == state.result]
        readers = [layer for layer in arranged.layers if names & {*layer.operands}]
        others = [x for x in arranged.states if x is not state and names & {x.name, x.result}]
        if others or names & {*sent} or len(writers) != 1 or len(readers) != 1:
            continue
        [writer], [reader] = writers, readers
        if isinstance(reader, ContractionLayer) and _is_matrix(state, writer, reader, lanes):
            yield _Cache(state, writer, reader)


def _is_matrix(
    state: KeptState, writer: EngineLayer, product: ContractionLayer, lanes: int
) -> bool:
    """Whether rows of a cache are rows of a product's matrices, or lanes of rows."""
    if writer.row is None or product.operand == product.second or product.product.sets > 1:
        return False
    axis = "k" if product.turns else "n"
    extent = product.product.inner if product.turns else product.product.columns
    step = product.matrix_steps(lanes).get(axis)
    words = product.source.blocks(lanes)
    view = product.matrices_view
    return (
        extent == writer.row.count
        and step == writer.target.words(lanes)
        and (view is None or view.start == 0)
        and bool((state.initial.codes == MIDDLE).all())
        and (product.turns or not words & (words - 1))
    )


def _written(
    writer: EngineLayer, product: ContractionLayer, lanes: int
) -> tuple[list[EngineLayer], MatrixFill]:
    """Return the layer that computes a row, unless it is there, and that which fills a matrix."""
    own = replace(writer, tensor=writer.node.name, row=None)
    is_there = isinstance(own, GatherLayer) and own.is_idle(lanes)
    assert is_there or own.tensor != writer.tensor, f"{writer.tensor}: another node computes it"
    common = {x.name: getattr(writer, x.name) for x in fields(EngineLayer)}
    common |= {
        "operand": own.operand if is_there else own.tensor, "source": writer.target,
        "target": Image(0, 0, 1), "row": None, "residual": None, "table": None,
    }  # fmt: skip
    fill = MatrixFill(**common, product=product, place=writer.row)
    return ([] if is_there else [own]), fill


def _start(cache: _Cache, lanes: int) -> KeptState:
    """Return the word of which all rows are before the first frame: a state that never changes."""
    name, image = f"{cache.state.name}_start", Image(1, 1, lanes)
    own = replace(
        cache.state.initial, tensor=name, operand=name, source=image, target=image,
        codes=np.full((1, 1, lanes), MIDDLE, np.int64),
    )  # fmt: skip
    copy = replace(
        cache.state.copy, tensor=name, operand=name, source=image, target=image,
        pieces=(plain_piece(image, image),),
    )  # fmt: skip
    return KeptState(name, name, own, copy)
