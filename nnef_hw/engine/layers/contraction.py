"""Products of two activations: matrices of codes become weights, which rows of others meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.formats import Image, Most, Places, Shape
from nnef_hw.engine.layers.layer import EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.nest import LayerPart, Nest, Pass, issue_cycles
from nnef_hw.engine.layers.pieces import WordView
from nnef_hw.engine.layers.scale import Scale
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.ir import layers
from nnef_hw.parts.engine.array import Padding
from nnef_hw.parts.engine.contraction import Contracting, Filling, Measuring
from nnef_hw.parts.engine.program import PASS_LEVEL, QUANTITIES
from nnef_hw.parts.engine.sizes import CODE_BITS, LEVELS

__all__ = ["MIDDLE", "ContractionLayer"]

MIDDLE = 1 << (CODE_BITS - 1)
"""The code of the matrices that is 0: codes less this are weights."""
_SAVING = 4
"""Most cycles from a sum that is saved until another one may be taken from it."""
_LOOPS = LEVELS - PASS_LEVEL - 1
"""Loops around the passes of a row."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """Iterations, and what each adds to the words that are read and written, and to ``y``."""

    count: int
    read: int
    write: int
    y: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class ContractionLayer(EngineLayer):
    """Rows of the first operand times matrices of the second.

    Parts take turns: one fills the array's memory of matrices with some columns of one or several
    matrices, the next one runs on them. That begins with rows of padding, which is the zero point
    of the first operand: their sums are taken from all others. Where the zero point is code 0, as
    that of probabilities is, there is nothing to take, unless a multiplier makes two products:
    sums have those of weights then, besides.

    Parameters
    ----------
    second, matrices
        The other operand, and its image.
    product
        Sizes, and the order of the other operand.
    kept
        Words of the array's memory of matrices.
    device
        Where the array is.
    first_bias
        What is added to the sums of all columns.
    rows_view, matrices_view, results_view
        Where the words of rows, matrices and results are, if in tensors of another order.
    limits
        Least and greatest sum, bias included.
    first
        First word of the array's memory of matrices that they take.
    stays
        Whether the other operand is there already, and stays from frame to frame.
    """

    label = "contraction"
    by_lane = False

    second: str
    matrices: Image
    product: Contraction
    kept: int
    device: Device
    first_bias: int
    limits: tuple[int, int]
    rows_view: WordView | None = None
    matrices_view: WordView | None = None
    results_view: WordView | None = None
    first: int = 0
    stays: bool = False

    @property
    def read_tensors(self) -> tuple[str, ...]:
        return (self.operand,) if self.stays else (self.operand, self.second)

    @property
    def tensors_apart(self) -> tuple[str, ...]:
        return (self.operand,)

    @property
    def may_add(self) -> bool:
        return False

    @property
    def macs(self) -> int:
        return self.product.macs

    @property
    def largest_sum(self) -> tuple[int, int]:
        return self.limits

    @property
    def loops_over_frames(self) -> bool:
        return False

    def renamed(self, names: Mapping[str, str]) -> EngineLayer:
        changed: Fields = {"second": names.get(self.second, self.second)}
        return replace(super().renamed(names), **changed)

    def viewing(self, views: Mapping[str, WordView], lanes: int) -> ContractionLayer:
        """Return the layer with operands read where their words come from, if loops can."""
        changed: Fields = {}
        product, words = self.product, self.source.blocks(lanes)
        rows = [(words, 1), (product.sets, product.rows_of_set * words)]
        each = words
        for count in self._row_counts:
            rows, each = [*rows, (count, each)], each * count
        steps = self._matrix_words(lanes).values()
        every = (("operand", "rows_view", rows), ("second", "matrices_view", steps))
        for operand, name, loops in every:
            view = views.get(getattr(self, operand))
            if view is not None and all(view.step(*loop) is not None for loop in loops):
                changed |= {operand: view.tensor, name: view}
        return replace(self, **changed)

    @property
    def _row_counts(self) -> tuple[int, ...]:
        """Loops over the rows of a set, the innermost first."""
        product = self.product
        if product.matrices == 1:
            return (product.turns * product.repeats,)
        return product.repeats, product.matrices, product.turns

    def _matrix_words(self, lanes: int) -> Mapping[str, tuple[int, int]]:
        """Return how many there are of what, and how many words apart, of the second operand.

        Words of a pixel, both axes of its pixels, and sets.
        """
        product, step = self.product, self.matrices.blocks(lanes)
        found = {"word": (step, 1)}
        pairs = zip(reversed(product.order[:-1]), reversed(product.extents[:-1]), strict=True)
        for axis, extent in pairs:
            found[axis], step = (extent, step), step * extent
        return {**found, "set": (product.sets, step)}

    def matrix_steps(self, lanes: int) -> Mapping[str, int]:
        """Return how far apart words of the second operand are in memory: along each axis."""
        loops = self._matrix_words(lanes).items()
        return {name: _step(self.matrices_view, *loop) for name, loop in loops}

    @property
    def groups(self) -> int:
        """Products of rows and one matrix."""
        return self.product.sets * self.product.matrices

    @property
    def row_order(self) -> tuple[int, int, int, int]:
        """Sets of rows, turns, matrices and repeats: whose row is the next one."""
        product = self.product
        return product.sets, product.turns, product.matrices, product.repeats

    @property
    def turns(self) -> bool:
        """Whether words of the second operand are lanes of matrices, not rows."""
        return self.product.order[-1] == "n"

    def _padded(self, shape: Shape) -> int:
        """Columns in whole words."""
        return self.target.blocks(shape.lanes) * shape.lanes

    def row_passes(self, shape: Shape) -> list[Pass]:
        """Return the passes of a row."""
        words = self.source.blocks(shape.lanes)
        full, rest = divmod(self._padded(shape), shape.rows)
        return [Pass(words, shape.rows)] * full + [Pass(words, rest)] * (rest > 0)

    def _row_loops(self, shape: Shape) -> list[_Loop]:
        """Return the loops around the passes of the rows of a matrix: two at most."""
        product = self.product
        read, write = (image.blocks(shape.lanes) for image in (self.source, self.target))

        def loop(count: int, rows: int, matrices: int = 1) -> _Loop:
            """Return a loop over rows so far apart, between which there are other matrices'."""
            apart = [
                rows if self._is_of_round(image) else rows * matrices
                for image in (self.source, self.target)
            ]
            return _Loop(
                count, _step(self.rows_view, count, apart[0] * read),
                _step(self.results_view, count, apart[1] * write),
            )  # fmt: skip

        inner = loop(product.repeats, 1)
        outer = loop(product.turns, product.repeats, product.matrices)
        if product.matrices == 1:
            return [replace(loop(product.turns * product.repeats, 1), y=1)]
        if product.repeats == 1:
            return [replace(outer, y=1)]
        if product.turns == 1:
            return [replace(inner, y=1)]
        return [inner, replace(outer, y=1)]

    def _measures(self, shape: Shape) -> bool:
        """Whether sums of weights are other than 0: they are measured, and taken from results."""
        return self.pad != 0 or self.device.pairs_products(shape.rows * shape.lanes)

    def _before(self, passes: list[Pass], loops: list[_Loop], shape: Shape) -> int:
        """Return how many rows of padding come first: the last sums of one have been saved then.

        None where all of their sums are 0.
        """
        if not self._measures(shape):
            return 0
        paced = [Pass(words, -(-count // shape.results)) for words, count in passes]
        inner = prod(loop.count for loop in loops[:-1])
        cycles = issue_cycles(paced, 2 * inner) - issue_cycles(paced, inner)
        return max(1, -(-_SAVING // max(1, cycles)))

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        passes, loops = self.row_passes(shape), self._row_loops(shape)
        rows = loops[-1].count + self._before(passes, loops, shape)
        return passes, self.groups * rows * prod(loop.count for loop in loops[:-1])

    def nest(self, shape: Shape, places: Places) -> Nest:
        """Return the loops of its first part that runs."""
        return self.parts(shape, places, None)[0 if self.stays else 1].nest

    def parts(self, shape: Shape, places: Places, most: Most | None) -> list[LayerPart]:
        words = self.source.blocks(shape.lanes)
        count = len(self.row_passes(shape))
        fitting = count if self.stays else max(1, self.kept // words)
        if most is not None:
            fitting = max(1, min(fitting, most.constants // shape.rows))
        pieces = -(-count // fitting)
        ends = [count * n // pieces for n in range(pieces + 1)]
        together = 1
        if pieces == 1 and len(self._row_loops(shape)) < _LOOPS:
            together = self.groups if self.stays else max(1, self.kept // (count * words))
        if self.rounds > 1:
            together = 1
        found: list[LayerPart] = []
        for group in range(0, self.groups, together):
            groups = range(group, min(group + together, self.groups))
            for first, end in pairwise(ends):
                own = range(first, end)
                found += self._pair(shape, places, groups, own, is_stream=most is not None)
        return found

    def _is_of_round(self, image: Image) -> bool:
        """Whether an image of rows or of results has those of one group, which a round is for."""
        return self.rounds > 1 and image.pixels < self.product.rows

    def _pair(
        self, shape: Shape, places: Places, groups: range, passes: range, *, is_stream: bool
    ) -> Iterator[LayerPart]:
        """Yield a part that fills the memory of matrices, and one that runs on them.

        Matrices that stay are there.
        """
        words = self.source.blocks(shape.lanes)
        constants = range(
            passes.start * shape.rows, min(passes.stop * shape.rows, self._padded(shape))
        )
        first, stored = self.first, len(passes)
        if self.stays:
            stored = len(self.row_passes(shape))
            first += (groups.start * stored + passes.start) * words
        else:
            yield self._fill(shape, places, groups, passes)
        own = self.row_passes(shape)[passes.start : passes.stop]
        loops = self._row_loops(shape)
        before = self._before(own, loops, shape)
        outer = loops[-1]
        product = self.product
        apart = product.rows_of_set if product.matrices == 1 else product.repeats
        read_blocks, write_blocks = (x.blocks(shape.lanes) for x in (self.source, self.target))
        group_step = _step(self.rows_view, self.groups, apart * read_blocks)
        group = _Loop(
            len(groups), 0 if self._is_of_round(self.source) else group_step,
            0 if self._is_of_round(self.target)
            else _step(self.results_view, self.groups, apart * write_blocks),
        )  # fmt: skip
        word_step = _step(self.rows_view, words, 1)
        run = [*loops[:-1], replace(outer, count=outer.count + before)]
        weight_of_group = words * stored
        levels = [*run, *([group] if len(groups) > 1 else [])]
        levels += [_Loop(1, 0, 0)] * (_LOOPS - len(levels))
        of_group = len(run) if len(groups) > 1 else None
        first_read = (
            places.read + _start(self.rows_view) + groups.start * group.read - before * outer.read
        )
        first_write = (
            places.write + _start(self.results_view) + groups.start * group.write
            - before * outer.write
        )  # fmt: skip
        per_pass = shape.rows // shape.lanes
        inner = (0,) * (PASS_LEVEL - 1)
        around = [weight_of_group if n == of_group else 0 for n in range(_LOOPS)]
        nest = Nest(
            counts=(words, 1, 1, len(own), *(x.count for x in levels)),
            strides={
                "read": (word_step, *inner, 0, *(x.read for x in levels)),
                "y": (0, *inner, 0, *(x.y for x in levels)),
                "x": (0,) * LEVELS,
                "weight": (1, *inner, words, *around),
                "constant": (0, *inner, shape.rows, *(0,) * _LOOPS),
                "write": (0, *inner, per_pass, *(x.write for x in levels)),
            },
            starts={
                "read": first_read, "y": -before, "x": 0, "weight": first,
                "constant": 0 if is_stream else places.constant + constants.start,
                "write": first_write + passes.start * per_pass,
            },
        )  # fmt: skip
        repeats = len(groups) * prod(loop.count for loop in run)
        yield LayerPart(
            nest, own, repeats, range(0), constants,
            self._records(shape, outer.count, self.pad),
        )  # fmt: skip

    def _fill(self, shape: Shape, places: Places, groups: range, passes: range) -> LayerPart:
        """Return the part that fills the memory of matrices."""
        product, lanes, rows = self.product, shape.lanes, shape.rows
        words, blocks = self.source.blocks(lanes), self.matrices.blocks(lanes)
        steps = self.matrix_steps(lanes)
        of_group = steps["set"] if product.matrices == 1 else steps["m"]
        if self.turns:
            # lanes of a word, words of a row, groups of rows
            count = blocks - passes.start * rows // lanes
            counts = (lanes, words, rows // lanes if len(passes) > 1 else min(rows // lanes, count))
            groups_of_rows = rows // lanes * steps["word"]
            read = (steps["k"], lanes * steps["k"], steps["word"], groups_of_rows)
            y, extent, last = (1, lanes, 0, 0), product.inner, lanes
            weight, start = (0, 1, 0, words), 0
        else:
            counts = (
                1,
                words,
                rows if len(passes) > 1 else min(rows, product.columns - passes.start * rows),
            )
            read = (0, steps["word"], steps["n"], rows * steps["n"])
            y, extent = (0, 0, 1, rows), product.columns
            last = product.inner - (words - 1) * lanes
            weight, start = (0, 1, 0, words), passes.start * rows
        zeros, first = (0,) * (_LOOPS - 1), sum(places.others) + _start(self.matrices_view)
        strides = {
            "read": (*read, of_group, *zeros), "y": (*y, 0, *zeros),
            "weight": (*weight, words * len(passes), *zeros), "write": (0, 0, 1, 0, 0, *zeros),
        }  # fmt: skip
        nest = Nest(
            counts=(*counts, len(passes), len(groups), *(1,) * (_LOOPS - 1)),
            strides={name: strides.get(name, (0,) * LEVELS) for name in QUANTITIES},
            starts={
                **dict.fromkeys(QUANTITIES, 0), "y": start, "weight": self.first,
                "read": first + groups.start * of_group + passes.start * read[-1],
            },
        )  # fmt: skip
        filling = Filling(fills=1, turns=self.turns, inner_lanes=last - 1)
        return LayerPart(
            nest, [Pass(nest.words, 0)], 1, range(0), range(0),
            self._records(shape, extent, MIDDLE, filling),
        )  # fmt: skip

    def _records(self, shape: Shape, height: int, pad: int, *filling: Filling) -> tuple[Any, ...]:
        """Return records of an instruction; results on their way need those of a filling, too."""
        use = replace(self.work(Shape(4, 4)), height=height, width=1)
        measuring = Measuring(measures=int(self._measures(shape)))
        return use, Padding(pad=pad), Contracting(contracts=1), measuring, *filling

    def part_level(self, shape: Shape) -> int:
        del shape
        return PASS_LEVEL

    def part_operand(self, n: int) -> str:
        return self.operand if n % 2 or self.stays else self.second

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        return np.zeros((0, *shape.multipliers), np.int64)

    def bias(self, shape: Shape) -> IntArray:
        return np.full(self._padded(shape), self.first_bias, np.int64)


def _step(view: WordView | None, count: int, words: int) -> int:
    """Return how far apart words are in memory of which so many are so many words apart."""
    if view is None:
        return words
    found = view.step(count, words)
    assert found is not None, f"{view}: {count} words, {words} apart"
    return found


def _start(view: WordView | None) -> int:
    return 0 if view is None else view.start


def _scale(context: EngineContext[layers.Contraction]) -> Scale:
    """Return how sums become codes, without the power of two that they are multiplied by."""
    layer = context.layer
    scale = Scale.of(layer.requant, context.target.offset, [layer.sums])
    return scale.weighted(-layer.gain) if layer.gain else scale


@lowers("contraction")
def _lower_contraction(context: EngineContext[layers.Contraction]) -> ContractionLayer:
    layer, source = context.layer, context.source
    second = layer.operands[1]
    return ContractionLayer(
        **context.common, second=context.operands[1], matrices=Image(*layers.image_of(second)),
        product=layer.sizes, kept=context.device.ram.shapes[0][0], pad=source.zero_point,
        device=context.device,
        scale=_scale(context),
        first_bias=layer.bias >> layer.gain,
        limits=(layer.sums[0] >> layer.gain, -(-layer.sums[1] >> layer.gain)),
    )  # fmt: skip
