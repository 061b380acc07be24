"""Results of attention where its queries were: they take no room, and heads need not be joined."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.conv import ConvLayer
from nnef_hw.engine.layers.formats import Image
from nnef_hw.engine.layers.gather import GatherLayer
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.pieces import WordView
from nnef_hw.engine.memory.rounds import Rounds, find_rounds

__all__ = ["Replacing", "attend_in_place"]


class Replacing(NamedTuple):
    """Layers of which some write their results where they have read.

    Attributes
    ----------
    layers
        The layers.
    tensors
        The tensor whose place is taken, by the name of each result.
    """

    layers: tuple[EngineLayer, ...]
    tensors: dict[str, str]


def attend_in_place(layers: Sequence[EngineLayer], kept: Collection[str], lanes: int) -> Replacing:
    """Let attention write over its queries, where a layer of 1 x 1 windows reads the result.

    Queries are a view of a larger tensor, and nothing else reads them. That layer reads pixels that
    are farther apart, so heads are joined by addresses.

    Parameters
    ----------
    kept
        Names of tensors that are needed behind all layers.
    lanes
        Codes of a word.
    """
    changed: list[EngineLayer | None] = list(layers)
    tensors: dict[str, str] = {}
    for rounds in find_rounds(layers, kept):
        first, last = (layers[rounds.layers[n]] for n in (0, -1))
        assert isinstance(first, ContractionLayer)
        assert isinstance(last, ContractionLayer)
        view, reading = first.rows_view, _reading(layers, rounds.layers[-1], kept, lanes)
        if view is None or reading is None or not _is_free(view, layers, rounds, kept):
            continue
        if first.source.words(lanes) != last.target.words(lanes):
            continue
        read = view if reading.view is None else view.behind(reading.view)
        pitch = None if read is None else _pitch(read.joined, reading.layer.source, lanes)
        if read is None or pitch is None:
            continue
        changed[rounds.layers[-1]] = replace(last, results_view=view)
        if reading.view is not None:
            changed[rounds.layers[-1] + 1] = None
        changed[reading.number] = replace(
            reading.layer, operand=view.tensor, pitch=pitch, begin=read.start
        )
        tensors[last.tensor] = view.tensor
    return Replacing(tuple(x for x in changed if x is not None), tensors)


class _Reading(NamedTuple):
    """The layer that reads what attention gives, behind one that joins heads if there is a view."""

    number: int
    layer: ConvLayer
    view: WordView | None


def _reading(
    layers: Sequence[EngineLayer], last: int, kept: Collection[str], lanes: int
) -> _Reading | None:
    """Return the only layer that reads the result of a layer, if its windows are pixels."""
    tensor, view = layers[last].tensor, None
    joins = layers[last + 1] if last + 1 < len(layers) else None
    if isinstance(joins, GatherLayer) and joins.operand == tensor:
        view = joins.view(lanes)
        if view is None or tensor in kept or _readers(layers, tensor) != [last + 1]:
            return None
        tensor = joins.tensor
    readers = _readers(layers, tensor)
    if tensor in kept or len(readers) != 1:
        return None
    layer = layers[readers[0]]
    is_pixelwise = isinstance(layer, ConvLayer) and layer.is_pixelwise
    if not is_pixelwise or layer.operands.count(tensor) != 1 or layer.operand != tensor:
        return None
    assert isinstance(layer, ConvLayer)
    return _Reading(readers[0], layer, view)


def _is_free(
    view: WordView, layers: Sequence[EngineLayer], rounds: Rounds, kept: Collection[str]
) -> bool:
    """Whether nothing reads the queries' words but the first of the layers."""
    ends = {rounds.layers[0], rounds.layers[-1]}
    if view.tensor in kept or not ends.issuperset(_readers(layers, view.tensor)):
        return False
    for layer in (layers[n] for n in ends):
        assert isinstance(layer, ContractionLayer)
        if layer.second != view.tensor:
            continue
        matrices = layer.matrices_view
        if matrices is None or np.intersect1d(view.words, matrices.words).size:
            return False
    return True


def _readers(layers: Sequence[EngineLayer], tensor: str) -> list[int]:
    return [n for n, layer in enumerate(layers) if tensor in layer.operands]


def _pitch(view: WordView, image: Image, lanes: int) -> int | None:
    """Return the words from a pixel to the next one, if the words of each are in a row."""
    blocks = image.blocks(lanes)
    if view.step(blocks, 1) not in {1, 0}:
        return None
    return view.step(image.pixels, blocks)
