"""Tables whose rows an integer chooses, left in the memory of the board: a row comes per frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from nnef_hw.engine.layers.constant import LookupLayer, RowLayer
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.place import Place
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["AddressedRowLayer", "address_tables"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AddressedRowLayer(RowLayer):
    """A row of a table: its weights are what the reader of the memory finds at an integer.

    Parameters
    ----------
    place
        The integer.
    rows
        The table's codes, [rows, channels]; ``codes`` are those of the first row.
    """

    rows: NDArray[np.int64]

    @property
    def addressed(self) -> Place:
        return self.place

    @property
    def parameters(self) -> int:
        return self.rows.size

    def row_beats(self, shape: Shape, beats: int) -> NDArray[np.uint16]:
        """Return the rows as beats of the stream, [rows, beats]; ``beats`` are those of a word."""
        count = self.weight_words(shape)
        fill = count * shape.lanes - self.rows.shape[1]
        codes = np.pad(self.rows - (1 << CODE_BITS - 1), ((0, 0), (0, fill))).astype(np.int8)
        words = codes.reshape(len(self.rows), count, shape.lanes).view(np.uint8)
        width = beats * (BEAT_BITS // CODE_BITS)
        words = np.pad(words, ((0, 0), (0, 0), (0, width - shape.lanes)))
        # of a word the highest bits come first
        found = words.view("<u2")[:, :, ::-1]
        return np.ascontiguousarray(found).reshape(len(self.rows), -1)


def address_tables(layers: Sequence[EngineLayer]) -> tuple[EngineLayer, ...]:
    """Return layers that read rows of tables which stay in the memory of the board."""
    return tuple(_row(layer) if isinstance(layer, LookupLayer) else layer for layer in layers)


def _row(layer: LookupLayer) -> AddressedRowLayer:
    own = {x.name: getattr(layer, x.name) for x in fields(EngineLayer)}
    rows = layer.codes[:, 0]
    return AddressedRowLayer(**own, codes=layer.codes[:1], place=layer.place, rows=rows)
