"""A network on an engine of some size: the engine, and what its memories hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import Nest
from nnef_hw.engine.layers.unit import UnitForm, UnitLayer
from nnef_hw.engine.memory.choices import MEMORY, chosen
from nnef_hw.engine.memory.placement import Placement
from nnef_hw.engine.memory.store import Store
from nnef_hw.engine.network.network import Network
from nnef_hw.engine.program.instruction import Instruction
from nnef_hw.engine.program.packets import Packets
from nnef_hw.engine.program.program import Program
from nnef_hw.engine.program.sizing import size_engine
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.fast_array import fast_offsets
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import QUANTITIES
from nnef_hw.parts.engine.requantizer import SecondRounding
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.engine.tables import Tables

__all__ = ["Design"]

_PLACING = frozenset({
    "network", "shape", "device", "batch", "frame_by_frame", "keeps_tables", "addresses_tables",
    "fills_tables", "keeps_matrices", "dense", "single_copy", "head_by_head",
    "splits_pixels",
})  # fmt: skip
_PROGRAMMING = frozenset({
    "ring_words",
    "existing",
    "packs_weights",
    "short_weights",
    "unit_ways",
    "unit_pace",
    "unit_words",
    "lut_matrices",
    "result_cycles",
    "is_loaded",
})
"""Choices that decide about places, and besides about the program and its engine."""


@dataclass(frozen=True, eq=False)
class Design:
    """A network on an engine of some size: all that was chosen, and what follows.

    Parameters
    ----------
    network, shape, device
        What runs, on which array, where.
    ring_words
        Words of the memory that weights pass, if the program comes as a stream with its weights and
        constants; 0 if all are in memory.
    store
        Where it comes from then; None if from anywhere, whenever it is wanted.
    existing
        The engine that a bitstream has already; None to make one for this network.
    batch
        Frames that are computed together: a layer runs for all of them.
    frame_by_frame
        How many layers, from the first one on, still run for one frame after the other.
    keeps_tables
        Whether tables of which an integer chooses a row are in the memory of codes.
    addresses_tables
        Whether they stay in the memory of the board, from which the row comes.
    fills_tables
        Whether they are in the memory of codes when the FPGA is configured, if that is block RAM.
    keeps_matrices
        Whether caches stay among the array's weights, if all of these are in memory.
    resident, staged, queue_words
        Which packets stay on the chip, or are written there in every frame; words of the stream
        that may wait in block RAM (:class:`.Packets`).
    packs_weights
        Whether two weights are one byte, of layers where they have 4 bits.
    short_weights
        Whether all words of weights have 4 bits per multiplier.
    unit_ways, unit_pace, unit_words
        Pixels that pass units at once; cycles per code, or word, that these may take; whether they
        take words.
    lut_matrices
        Whether codes that are weights are in LUT RAM.
    result_cycles
        Cycles in which a result leaves, of an engine whose requantizer multiplies digits in turn.
    dense
        Whether memories that are filled once have no gaps.
    is_loaded
        Whether a system may write another program to the memories.
    single_copy
        Whether codes that are added to others are in block RAM once, and the array stands still
        while they are read.
    head_by_head
        Whether products of activations, and what is between them, run for one head after the other.
    splits_pixels
        Whether pixels of inputs may cross borders of words, which then take a cycle per code.
    """

    network: Network
    shape: Shape
    device: Device
    ring_words: int = chosen(0, "ring", section=MEMORY, positional=True)
    store: Store | None = None
    existing: Engine | None = None
    batch: int = chosen(1, "batch")
    frame_by_frame: int = chosen(0, "frame_by_frame")
    keeps_tables: bool = chosen(False, "kept_tables", section=MEMORY)
    addresses_tables: bool = chosen(False, "addressed_tables", section=MEMORY)
    resident: tuple[int, ...] = chosen((), "resident", section=MEMORY)
    staged: tuple[tuple[int, int], ...] = chosen((), "staged", section=MEMORY)
    queue_words: int = chosen(0, "queue", section=MEMORY)
    packs_weights: bool = chosen(False, "packed_weights")
    lut_matrices: bool = chosen(False, "lut_matrices")
    unit_ways: int = chosen(1, "unit_ways")
    unit_pace: int = chosen(1, "unit_pace")
    unit_words: bool = chosen(False, "unit_words")
    result_cycles: int = chosen(1, "result_cycles")
    dense: bool = chosen(False, "dense")
    is_loaded: bool = chosen(False, "loaded")
    fills_tables: bool = chosen(False, "filled_tables")
    keeps_matrices: bool = chosen(False, "kept_matrices")
    short_weights: bool = chosen(False, "short_weights")
    single_copy: bool = chosen(False, "single_copy")
    head_by_head: bool = chosen(False, "head_by_head")
    splits_pixels: bool = chosen(False, "split_pixels")

    def changed(self, **choices: Any) -> Design:
        """Return the design with other choices, and all of it that they do not decide about.

        Which packets stay on the chip is tried often, and changes nothing but packets.
        """
        new = replace(self, **choices)
        if not choices.keys() & _PLACING:
            self._share(new, "placement")
            is_same = new._has_residents == self._has_residents
            if is_same and not choices.keys() & _PROGRAMMING:
                self._share(new, "program", "engine")
        return new

    def _share(self, new: Design, *names: str) -> None:
        vars(new).update({name: vars(self)[name] for name in names if name in vars(self)})

    @property
    def _has_residents(self) -> bool:
        return bool(self.resident or self.staged)

    @cached_property
    def placement(self) -> Placement:
        """Where tensors are."""
        return Placement(
            self.network, self.shape, self.device, batch=self.batch,
            frame_by_frame=self.frame_by_frame, keeps_tables=self.keeps_tables,
            addresses_tables=self.addresses_tables,
            fills_tables=self.fills_tables and not self.ring_words,
            keeps_matrices=self.keeps_matrices and not self.ring_words,
            dense=self.dense and not self.ring_words, single_copy=self.single_copy,
            head_by_head=self.head_by_head, splits_pixels=self.splits_pixels,
        )  # fmt: skip

    @cached_property
    def program(self) -> Program:
        """Program of the array."""
        return Program(
            self.placement, self.ring_words, self.existing,
            self._has_residents, self.packs_weights, self.unit_ways,
            UnitForm(self.unit_pace, self.shape.lanes if self.unit_words else 1),
            self.lut_matrices, self.result_cycles, self.dense, self.is_loaded,
            self.short_weights,
        )  # fmt: skip

    @cached_property
    def engine(self) -> Engine:
        """The engine: that of the bitstream, or with fields as wide as this program needs them."""
        return self.existing or size_engine(self.program)

    @cached_property
    def packets(self) -> Packets:
        """Program of the design as a stream."""
        return Packets(
            program=self.program, engine=self.engine, store=self.store, resident=self.resident,
            staged=self.staged, queue_words=self.queue_words,
        )  # fmt: skip

    @property
    def layers(self) -> tuple[EngineLayer, ...]:
        """Layers in the order in which they run, then those that run once."""
        return self.placement.layers

    @property
    def frame_layers(self) -> tuple[EngineLayer, ...]:
        """Layers that run in every frame."""
        return self.placement.frame_layers

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions of the program."""
        return self.program.instructions

    @cached_property
    def constants(self) -> list[int]:
        """Contents of the constant memory: a bias in the low bits, a factor above, its shift.

        Those of results that leave together are a word, the first one lowest. Of channels that pass
        a unit they are what it takes of each.
        """
        engine, found = self.engine, []
        bits, together = engine.array.acc_bits, engine.array.results
        rounding = engine.find(SecondRounding)
        for layer in self.layers:
            if isinstance(layer, UnitLayer):
                own = layer.constants(self.program.units.of(layer))
                found += [*own, *[0] * (len(layer.bias(self.shape)) - len(own))]
                continue
            factors = self.program.scales.factors(layer)
            farther = [0] * len(factors)
            if rounding is not None:
                farther = [
                    shift - rounding.least_shift for shift in self.program.scales.shifts(layer)
                ]
            biases = layer.bias(self.shape) - self._offsets(layer)
            for bias, factor, shift in zip(biases, factors, farther, strict=True):
                above = factor | shift << engine.requantizer.factor_bits
                found.append(above << bits | int(bias) & ((1 << bits) - 1))
        groups = (found[n : n + together] for n in range(0, len(found), together))
        return [
            sum(one << n * engine.constant_bits for n, one in enumerate(group)) for group in groups
        ]

    def _offsets(self, layer: EngineLayer) -> NDArray[np.int64]:
        """Return the excess of sums of rows whose multipliers make two products.

        One number for every constant of the layer.
        """
        passes, _ = layer.passes(self.shape)
        offsets = np.zeros((len(passes), self.shape.rows), np.int64)
        first = self.engine.array.plain_rows
        if layer.by_lane or first == self.shape.rows or not layer.weight_words(self.shape):
            return np.zeros(1, np.int64)
        ends = np.cumsum([one.words for one in passes])
        words = np.split(layer.weights(self.shape), ends[:-1])
        for own, weights in zip(offsets, words, strict=True):
            channels = weights[:, first:].transpose(1, 0, 2)
            own[first:] = fast_offsets(channels, x_bits=CODE_BITS, x_signed=False)
        return np.concatenate([
            own[: one.results] for own, one in zip(offsets, passes, strict=True)
        ])

    @cached_property
    def code_words(self) -> list[int]:
        """Contents of the memory of codes when the FPGA is configured: lane 0 lowest."""
        words = [0] * max(
            (self.placement.places[x.tensor] + x.target.words(self.shape.lanes)
             for x in self.placement.filled),
            default=0,
        )  # fmt: skip
        for table in self.placement.filled:
            rows = table.codes.astype(np.uint8).reshape(-1, self.shape.lanes)
            first = self.placement.places[table.tensor]
            words[first : first + len(rows)] = (
                int.from_bytes(row.tobytes(), "little") for row in rows
            )
        return words

    @cached_property
    def entries(self) -> list[int]:
        """Contents of the memory of tables, 256 entries each."""
        tables = self.engine.find(Tables)
        unused = [()] * (0 if tables is None else tables.count - len(self.program.tables))
        return [
            entry
            for table in (*self.program.tables, *unused)
            for entry in (*table, *[0] * ((1 << CODE_BITS) - len(table)))
        ]

    @cached_property
    def row_words(self) -> list[int]:
        """Contents of the program memory."""
        stride = self.engine.stride
        found: list[int] = []
        for instruction in self.instructions:
            rows = self.rows(instruction)
            found += [*rows, *[0] * (stride - len(rows))]
        return found

    def rows(self, instruction: Instruction) -> list[int]:
        """Return the rows of an instruction."""
        layout = self.engine.layout
        rows = [0] * layout.rows
        values = dict(instruction.values)
        coarse = self.engine.coarse(instruction.records)
        if instruction.nest is not None:
            rows[: layout.levels] = self._loops(instruction.nest, coarse)
        for name, bits in coarse.items():
            values[name] = values.get(name, 0) << bits
        unknown = [name for name, x in values.items() if x and name not in self.engine.facts]
        assert not unknown, unknown
        for name, (row, bit) in layout.parameters.items():
            width = layout.widths[name]
            rows[layout.levels + row] |= (values.get(name, 0) & ((1 << width) - 1)) << bit
        return rows

    def _loops(self, nest: Nest, coarse: Mapping[str, int]) -> Iterator[int]:
        steps = {name: nest.steps(name) for name in QUANTITIES}
        for level in range(self.engine.layout.levels):
            word = bit = 0
            for name, width in self.engine.layout.loop_fields.items():
                if name == "count":
                    value = nest.counts[level] - 1
                else:
                    quantity = name.removesuffix("_step")
                    value = steps[quantity][level] << coarse.get(quantity, 0)
                word |= (value & ((1 << width) - 1)) << bit
                bit += width
            yield word
