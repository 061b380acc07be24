"""Tables whose rows an integer chooses, kept in the memory of codes: written once, read by rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from nnef_hw.engine.layers.constant import CopyLayer, InitialLayer, KeptState, LookupLayer
from nnef_hw.engine.layers.formats import Image, Shape
from nnef_hw.engine.layers.gather import GatherLayer, plain_piece
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.pieces import WordView
from nnef_hw.engine.layers.place import Place
from nnef_hw.parts.engine.fields import Record

__all__ = ["TableLayer", "TableRowLayer", "keep_tables"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableLayer(InitialLayer):
    """The rows of a table, which an instruction writes once, before the first frame."""

    label = "table"

    @property
    def has_narrow_weights(self) -> bool:
        return False

    @property
    def weight_bytes(self) -> int:
        return self.codes.size

    @property
    def parameters(self) -> int:
        return self.codes.size


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRowLayer(GatherLayer):
    """A row of a table in the memory of codes: what is read begins at the chosen one."""

    label = "lookup"

    place: Place

    def view(self, lanes: int) -> WordView | None:
        return None

    def is_idle(self, lanes: int) -> bool:
        return False

    def records(self, shape: Shape) -> tuple[Record, ...]:
        own = self.place.record(_row_words(self.source, shape.lanes), moves_read=1)
        return (*super().records(shape), own)


def keep_tables(
    layers: Sequence[EngineLayer], lanes: int
) -> tuple[tuple[EngineLayer, ...], tuple[KeptState, ...]]:
    """Return layers that read rows of tables in memory, and these as states that never change.

    Rows are a power of two words apart. A lookup with something behind it stays what it is.
    """
    found: list[EngineLayer] = []
    tables: list[KeptState] = []
    for layer in layers:
        if isinstance(layer, LookupLayer) and layer.may_add:
            table = _table(layer, lanes)
            tables.append(table)
            layer = _row(layer, table.name)
        found.append(layer)
    return tuple(found), tuple(tables)


def _row_words(row: Image, lanes: int) -> int:
    """Return the words from a row to the next one, a power of two."""
    return 1 << (row.words(lanes) - 1).bit_length()


def _table(layer: LookupLayer, lanes: int) -> KeptState:
    name, width = f"{layer.tensor}_rows", _row_words(layer.target, lanes) * lanes
    rows = np.pad(layer.codes, ((0, 0), (0, 0), (0, width - layer.codes.shape[2])))
    image = Image(len(rows), 1, width)
    initial = TableLayer(
        node=layer.node, tensor=name, operand=name, source=image, target=image, pad=layer.pad,
        scale=layer.scale, codes=rows,
    )  # fmt: skip
    copy = CopyLayer(
        node=layer.node, tensor=name, operand=name, source=image, target=image, pad=0,
        scale=layer.scale, pieces=(plain_piece(image, image),),
    )  # fmt: skip
    return KeptState(name, name, initial, copy)


def _row(layer: LookupLayer, table: str) -> TableRowLayer:
    own = {x.name: getattr(layer, x.name) for x in fields(EngineLayer)}
    own |= {"operand": table, "source": layer.target, "pad": 0}
    return TableRowLayer(
        **own, place=layer.place, pieces=(plain_piece(layer.target, layer.target),)
    )
