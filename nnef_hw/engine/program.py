"""A network's program for an array: weights, parts of layers, instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnef_hw.blockram import SPRAM_SHAPE
from nnef_hw.engine.layer import Layer, Most, Places
from nnef_hw.engine.nest import Nest, Part
from nnef_hw.engine.placement import Placement
from nnef_hw.engine.store import Store
from nnef_hw.errors import TargetError
from nnef_hw.parts.engine import (
    MOST_CONSTANTS,
    RESIDUAL_CYCLES,
    Engine,
    Kind,
)

__all__ = ["Instruction", "Program"]


@dataclass(frozen=True)
class Instruction:
    """A step of the program.

    Parameters
    ----------
    kind
        What it does.
    fields
        Its fields by name; others are 0.
    nest
        Loops of a layer.
    weights, constants
        Which words of all weights, and which of all constants, it needs.
    weight_rows
        Rows of the array that need weights.
    """

    kind: Kind
    fields: Mapping[str, int]
    nest: Nest | None = None
    weights: range = range(0)
    constants: range = range(0)
    weight_rows: int = 0


@dataclass(frozen=True, eq=False)
class Program(Placement):
    """What an array does for a network whose tensors have their places.

    Parameters
    ----------
    ring_words
        Words of the memory that weights pass, if the program comes as a stream with its weights and
        constants; 0 if all are in memory.
    store
        Where it comes from then; None if from anywhere, whenever it is wanted.
    existing
        The engine that a bitstream has already; None to make one for this network.
    resident
        Instructions whose packets stay in the banks of codes, beside these.
    staged
        Others whose packets are written there in every frame, where codes are no more; with the
        instruction during which each is.
    queue_words
        Words of the stream that may wait behind the memory that it comes from, in block RAM; 0: a
        few in registers.
    """

    ring_words: int = 0
    store: Store | None = None
    existing: Engine | None = None
    resident: tuple[int, ...] = ()
    staged: tuple[tuple[int, int], ...] = ()
    queue_words: int = 0

    @cached_property
    def weights(self) -> list[int]:
        """Contents of the weight memory: row 0 and lane 0 lowest."""
        words: list[int] = []
        for layer in self.layers:
            codes = layer.weights(self.shape).reshape(-1, self.shape.rows * self.shape.lanes)
            data = codes.astype(np.int8)
            assert (data == codes).all(), f"{layer.name}: weights exceed 8 bits"
            words += [int.from_bytes(row.tobytes(), "little") for row in data]
        return words or [0]

    @cached_property
    def rounds_twice(self) -> bool:
        """Whether results have shifts of their own, before which some are rounded, too."""
        return any(layer.scale.shifts for layer in self.layers)

    @cached_property
    def shift(self) -> int:
        """Shift behind the factors of all layers; where results have their own, that before."""
        if self.existing is not None:
            return self.existing.shift
        scales = [layer.scale for layer in self.layers]
        return max(x.fraction_bits if self.rounds_twice else x.shift for x in scales)

    def factors(self, layer: Layer) -> list[int]:
        """Return the factors of everything of a layer that has a bias, for that shift."""
        if self.rounds_twice:
            return layer.per_result(layer.scale.factors(self.shift).mult, self.shape, 1)
        up = self.shift - layer.scale.shift
        return layer.per_result([mult << up for mult in layer.scale.mult], self.shape, 1 << up)

    def shifts(self, layer: Layer) -> list[int]:
        """Return the shifts behind, of an engine whose results have their own."""
        found = layer.scale.factors(self.shift).shifts
        return layer.per_result(found, self.shape, min(found))

    @cached_property
    def tables(self) -> list[tuple[int, ...]]:
        """The different tables."""
        return list(dict.fromkeys(layer.table for layer in self.layers if layer.table))

    @cached_property
    def residual_shift(self) -> int:
        """Shift behind all sums of two codes; 0 if there are none."""
        if self.existing is not None:
            return self.existing.residual_shift
        return max((layer.residual.shift for layer in self.layers if layer.residual), default=0)

    @property
    def residual_cycles(self) -> int:
        """Cycles per sum of two codes: as many as no pass waits for, since few cells do then."""
        passes = [
            (words, results)
            for layer in self.layers
            if layer.residual
            for words, results in layer.passes(self.shape)[0]
        ]
        if not passes:
            return 1
        fast = (x for x in RESIDUAL_CYCLES if all(words >= x * n for words, n in passes))
        return next(fast, 1)

    @cached_property
    def parts(self) -> tuple[list[Part], ...]:
        """What each layer is divided into: with a ring, so that two parts have room in it."""
        found = []
        weight = constant = 0
        most = Most(self.ring_words // 2, MOST_CONSTANTS) if self.ring_words else None
        for layer in self.layers:
            read, *others = (self.places[name] for name in layer.read_tensors)
            write = self.places[layer.tensor]
            places = Places(read, weight, constant, write, tuple(others))
            found.append(parts := self._batched(layer, layer.parts(self.shape, places, most)))
            longest = max(len(part.weights) for part in parts)
            if most is not None and longest > self.ring_words:
                raise TargetError(
                    f"layer {layer.name!r}: a pass takes {longest:,} words of weights, and the "
                    f"ring has {self.ring_words:,}",
                    remedy="take a larger array, or a larger ring",
                )
            weight += parts[-1].weights.stop
            constant += parts[-1].constants.stop
        return tuple(found)

    def _batched(self, layer: Layer, parts: list[Part]) -> list[Part]:
        """Return the parts of a layer for all frames of a batch."""
        if self.batch == 1:
            return parts
        write = self.tensor_words[layer.tensor]
        reads = [self.tensor_words[layer.part_operand(n)] for n in range(len(parts))]
        return [
            part.batched(self.batch, words * (self.shape.lanes if part.nest.in_codes else 1), write)
            for words, part in zip(reads, parts, strict=True)
        ]

    @property
    def divides(self) -> bool:
        """Whether layers may be several instructions."""
        return self.ring_words > 0 or any(len(parts) > 1 for parts in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """What every instruction of the program makes: load, layers and their parts, send."""
        parts = zip(self.layers, self.parts, strict=True)
        middle = [layer.name for layer, own in parts for _ in own]
        loads = (self.network.sources[transfer.port].tensor for transfer in self.loads)
        sends = (self.network.sinks[transfer.port].tensor for transfer in self.sends)
        return (*loads, *middle, *sends)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The program."""
        return tuple(self._instructions())

    def _instructions(self) -> Iterator[Instruction]:
        lanes, network = self.shape.lanes, self.network
        for n, first, frames in self.loads:
            source, loading = network.sources[n], self.loadings[n]
            yield Instruction(Kind.LOAD, {
                **self._port(n), **self._bank(source.tensor), "rows": frames * loading.rows - 1,
                "write": self.places[source.tensor] + first * loading.words,
                "length": loading.length - 1, "lead": loading.lead,
                "real": loading.lead + loading.real, "first_word": loading.window - 1,
                "word_step": loading.step - 1, "pad": loading.pad,
            })  # fmt: skip
        weight = constant = 0
        for layer, parts in zip(self.layers, self.parts, strict=True):
            scale = layer.scale
            fields = {
                **layer.fields(self.shape), "zero_point": scale.zero_point, "low": scale.low,
                "high": scale.high, **self._residual(layer, self.places[layer.tensor]),
                **self._function(layer), **self._bank(layer.operand),
            }  # fmt: skip
            if self.rounds_twice:
                fields["rounds_once"] = int(not scale.twice)
            for part in parts:
                own = {"results": part.passes[0].results, "last_results": part.passes[-1].results}
                if self.divides:
                    own["follows"] = int(part is not parts[0])
                if self.ring_words:
                    own |= {"weights": len(part.weights), "constants": len(part.constants)}
                yield Instruction(
                    Kind.RUN, {**fields, **own, **part.nest.starts}, part.nest,
                    _moved(part.weights, weight), _moved(part.constants, constant),
                    self._weight_rows(layer),
                )  # fmt: skip
            weight += parts[-1].weights.stop
            constant += parts[-1].constants.stop
        for n, first, frames in self.sends:
            sink = network.sinks[n]
            yield Instruction(Kind.SEND, {
                **self._port(n), **self._bank(sink.tensor),
                **({"frames": frames - 1} if self.batch > 1 else {}),
                "read": self.places[sink.tensor] + first * self.tensor_words[sink.tensor],
                "pixels": sink.image.pixels - 1, "blocks": sink.image.blocks(lanes) - 1,
                "last_lanes": (sink.image.channels - 1) % lanes,
            })  # fmt: skip

    def _bank(self, tensor: str) -> Mapping[str, int]:
        """Return in which bank an instruction leaves no time to read packets, if any are there."""
        return {"bank": self.places[tensor] // SPRAM_SHAPE[0]} if self.has_residents else {}

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The step of the program, as :attr:`stays` count them, that every instruction is of."""
        first = len(self.loads)
        layers = (n for n, parts in enumerate(self.parts, first) for _ in parts)
        sends = range(first + len(self.layers), first + len(self.layers) + len(self.sends))
        return (*range(first), *layers, *sends)

    @property
    def has_residents(self) -> bool:
        """Whether any packets come from the banks of codes."""
        return bool(self.resident or self.staged)

    @property
    def ports(self) -> int:
        """Most inputs, or outputs."""
        return max(len(self.network.sources), len(self.network.sinks))

    def _port(self, n: int) -> Mapping[str, int]:
        """Return the number of an input or output, if there are several."""
        return {"port": n} if self.ports > 1 else {}

    @cached_property
    def tail_beats(self) -> list[int]:
        """Tables of what stands behind the engine, as beats."""
        tails = (sink.tail for sink in self.network.sinks)
        return [beat for tail in tails if tail is not None for beat in tail.table_beats]

    def _weight_rows(self, layer: Layer) -> int:
        """Rows that need weights: all of which sums may move, if any do."""
        if not layer.by_lane:
            return self.shape.rows
        return self.slide_rows if layer.sliding_rows(self.shape) > 1 else 1

    @cached_property
    def slide_rows(self) -> int:
        """Rows between which sums move."""
        return max(layer.sliding_rows(self.shape) for layer in self.layers)

    def _function(self, layer: Layer) -> Mapping[str, int]:
        if layer.table is None:
            return {}
        return {"looks_up": 1, "table": self.tables.index(layer.table)}

    def _residual(self, layer: Layer, write: int) -> Mapping[str, int]:
        residual = layer.residual
        if residual is None:
            return {}
        up = self.residual_shift - residual.shift
        return {
            **({"shares": 1} if self.shares(layer) else {}),
            "adds": 1, "other": self.places[residual.tensor] - write,
            "own_factor": residual.own << up, "other_factor": residual.other << up,
            "offset": residual.offset << up, "sum_low": residual.low, "sum_high": residual.high,
        }  # fmt: skip


def _moved(places: range, by: int) -> range:
    return range(places.start + by, places.stop + by)
