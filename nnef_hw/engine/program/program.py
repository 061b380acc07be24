"""A network's program for an array: weights, parts of layers, instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import LayerPart
from nnef_hw.engine.layers.unit import ALONE, UnitForm, UnitLayer
from nnef_hw.engine.memory.placement import Placement
from nnef_hw.engine.memory.steps import Step
from nnef_hw.engine.program.division import Division, Run
from nnef_hw.engine.program.following import Part, followers
from nnef_hw.engine.program.instruction import Instruction, first_places, sent_words
from nnef_hw.engine.program.scales import Scales
from nnef_hw.engine.program.units import Units
from nnef_hw.engine.program.weights import contents, weights_read
from nnef_hw.parts.engine.array import Padding, Results
from nnef_hw.parts.engine.border import Batched, Loaded, PortNumber
from nnef_hw.parts.engine.codes import Bank
from nnef_hw.parts.engine.contraction import Contracting
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.narrow import WeightScale, WeightWidth, short_words
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.engine.requantizer import Requantized, Rounding
from nnef_hw.parts.engine.residual import (
    RESIDUAL_CYCLES,
    AddedFactors,
    AddedLimits,
    AddedPlace,
    Sharing,
    TensorSums,
)
from nnef_hw.parts.engine.sequencer import (
    Following,
    ReadPlace,
    WritePlace,
)
from nnef_hw.parts.engine.supply import PacketSizes
from nnef_hw.parts.engine.tables import LookUp
from nnef_hw.parts.engine.units import UnitNumber

__all__ = ["Program"]


@dataclass(frozen=True, eq=False)
class Program:
    """Program of an array for a network whose tensors have their places.

    Parameters
    ----------
    placement
        The network, and where its tensors are.
    ring_words
        Words of the memory that weights pass, if the program comes as a stream with its weights and
        constants; 0 if all are in memory.
    existing
        The engine that a bitstream has already; None to make one for this network.
    has_residents
        Whether any packets of the program come from the banks of codes.
    packs_weights
        Whether two weights are one byte, of layers where they have 4 bits.
    short_weights
        Whether all words of weights have 4 bits per multiplier.
    unit_ways, unit_form
        Pixels that pass units at once, and how fast these are.
    lut_matrices
        Whether codes that are weights are in LUT RAM.
    result_cycles
        Cycles in which a result leaves: 1, or as many as sums of two tensors bit by bit take.
    dense
        Whether memories that are filled once have no gaps: between instructions, and between
        weights and codes that become weights.
    is_loaded
        Whether a system may write another program to the memories.
    """

    placement: Placement
    ring_words: int = 0
    existing: Engine | None = None
    has_residents: bool = False
    packs_weights: bool = False
    unit_ways: int = 1
    unit_form: UnitForm = ALONE
    lut_matrices: bool = False
    result_cycles: int = 1
    dense: bool = False
    is_loaded: bool = False
    short_weights: bool = False

    @property
    def is_replaceable(self) -> bool:
        """Whether the engine gets other weights without another bitstream."""
        return self.is_loaded or self.ring_words > 0

    @property
    def spares_blocks(self) -> bool:
        """Whether block RAMs are so short that LUTs and cycles are given for single ones."""
        return self.lut_matrices and self.placement.single_copy

    @property
    def layers(self) -> tuple[EngineLayer, ...]:
        """Layers in the order in which they run, then those that run once."""
        return self.placement.layers

    @property
    def shape(self) -> Shape:
        """Size of the array."""
        return self.placement.shape

    @cached_property
    def weights(self) -> list[int]:
        """Contents of the weight memory: row 0 and lane 0 lowest."""
        words: list[int] = []
        for layer, parts in zip(self.layers, self.parts, strict=True):
            words += contents(
                layer, parts, self.shape,
                is_packed=self.is_packed(layer), is_short=self.short_weights,
            )  # fmt: skip
        assert len(words) == self.weight_words, "layers know how many words they have"
        return words or [0]

    @cached_property
    def weight_words(self) -> int:
        """Number of words of weights; sizes of an array are compared by it."""
        return sum(parts[-1].weights.stop for parts in self.parts)

    @cached_property
    def shares_weights(self) -> bool:
        """Whether codes that become weights are behind the others."""
        contracts = any(isinstance(layer, ContractionLayer) for layer in self.layers)
        return self.dense and contracts and not self.ring_words

    def is_packed(self, layer: EngineLayer) -> bool:
        """Whether two words of a layer's weights are one in memory."""
        return self.division.is_packed(layer)

    @cached_property
    def division(self) -> Division:
        """The layers, divided into parts."""
        return Division(self.placement, self.ring_words, self.packs_weights)

    @property
    def parts(self) -> tuple[list[LayerPart], ...]:
        """Parts of each layer: :attr:`.Division.parts`."""
        return self.division.parts

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of layers, in their order; first those that run once, before the first frame."""
        return self.division.runs

    @cached_property
    def scales(self) -> Scales:
        """Factors and shifts that results are brought to codes with."""
        shift = None if self.existing is None else self.existing.requantizer.shift
        return Scales(self.layers, self.shape, shift)

    @cached_property
    def tables(self) -> list[tuple[int, ...]]:
        """The different tables."""
        return list(dict.fromkeys(layer.table for layer in self.layers if layer.table))

    @cached_property
    def units(self) -> Units:
        """The units that tensors pass."""
        return Units(
            layers=self.layers, ram=self.placement.device.ram, form=self.unit_form,
            is_written=self.is_replaceable, is_empty=self.ring_words > 0,
            frames=self.placement.batch,
            existing=None if self.existing is None else self.existing.units,
        )  # fmt: skip

    @cached_property
    def residual_shift(self) -> int:
        """Shift behind all sums of two codes; 0 if there are none."""
        if self.existing is not None:
            residual = self.existing.find(TensorSums)
            return 0 if residual is None else residual.shift
        return max((layer.residual.shift for layer in self.layers if layer.residual), default=0)

    @property
    def residual_cycles(self) -> int:
        """Cycles per sum of two codes: as many as no pass waits for, since few cells do then.

        One where several results leave together, or where the array stands still for the other
        code; where all leave more slowly, as many as they take.
        """
        if self.result_cycles > 1:
            return self.result_cycles
        passes = [
            (words, results)
            for layer in self.layers
            if layer.residual
            for words, results in layer.passes(self.shape)[0]
        ]
        if not passes or self.shape.results > 1 or self.placement.single_copy:
            return 1
        fast = (x for x in RESIDUAL_CYCLES if all(words >= x * n for words, n in passes))
        return next(fast, 1)

    @property
    def first(self) -> int:
        """Number of the first instruction of a frame: those before it run once."""
        return sum(len(run.parts) for run in self.division.first_runs)

    def outline(self, layer: EngineLayer) -> str:
        """Return the facts of a layer that are in hardware, or decide about places and order."""
        images = [f"{x.height} x {x.width} x {x.channels}" for x in (layer.source, layer.target)]
        kernel = " x ".join(map(str, layer.kernel))
        behind = ["a sum"] if layer.residual is not None else []
        behind += ["a function by table"] if layer.table is not None else []
        ends = f", with {' and '.join(behind)}" if behind else ""
        ends += ", with weights of 4 bits" if self.is_packed(layer) else ""
        return f"{layer.label} {kernel}, {' -> '.join(images)}{ends}"

    @property
    def divides(self) -> bool:
        """Whether layers may be several instructions."""
        return self.ring_words > 0 or any(len(parts) > 1 for parts in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Results of every instruction of the program: load, layers and their parts, send."""
        network, runs = self.placement.network, iter(self.runs)
        found: list[str] = []
        for step in (*self.placement.steps.beginnings, *self.placement.steps.sequence):
            if step.kind == Kind.RUN:
                run = next(runs)
                found += [run.layer.name] * len(run.parts)
            else:
                ports = network.sources if step.kind == Kind.LOAD else network.sinks
                found.append(ports[step.n].tensor)
        return tuple(found)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The program."""
        return tuple(
            replace(x, records=(*x.records, Following(follows=1))) if n in self.followers else x
            for n, x in enumerate(self._plain)
        )

    @cached_property
    def followers(self) -> frozenset[int]:
        """Numbers of the instructions that do not wait for results of the one before."""
        if not self.divides:
            return frozenset()
        runs, parts = iter(self.runs), list[Part]()
        for step in (*self.placement.steps.beginnings, *self.placement.steps.sequence):
            if step.kind != Kind.RUN:
                parts.append(Part(self._plain[len(parts)], None, goes_on=False))
                continue
            run = next(runs)
            for n in range(len(run.parts)):
                goes_on = run.follows(n, self.placement)
                parts.append(Part(self._plain[len(parts)], run.layer, goes_on))
        return frozenset(followers(parts, self.placement, is_streamed=self.ring_words > 0))

    @cached_property
    def _plain(self) -> tuple[Instruction, ...]:
        """The program, of which nothing says what it does not wait for."""
        return tuple(self._instructions())

    def _instructions(self) -> Iterator[Instruction]:
        runs = iter(self.runs)
        for step in (*self.placement.steps.beginnings, *self.placement.steps.sequence):
            if step.kind == Kind.RUN:
                yield from self._run(next(runs))
            else:
                yield self._load(step) if step.kind == Kind.LOAD else self._send(step)

    def _load(self, step: Step) -> Instruction:
        source, loading = self.placement.network.sources[step.n], self.placement.loadings[step.n]
        loaded = Loaded(
            rows=step.frames * loading.rows - 1, length=loading.length - 1, lead=loading.lead,
            real=loading.lead + loading.real, first_word=loading.window - 1,
            word_step=loading.step - 1,
        )  # fmt: skip
        place = WritePlace(write=self.placement.place(source.tensor, step.first))
        return Instruction(Kind.LOAD, (
            *self._port(step.n), *self._bank(self.placement.places[source.tensor]), place, loaded,
            Padding(pad=loading.pad),
        ))  # fmt: skip

    def _stream(self, run: Run, layer: UnitLayer) -> Instruction:
        """Return the instruction that sends a tensor through a unit: frames of a batch in a row."""
        [part] = run.parts
        number = [UnitNumber(unit=self.units.number(layer))] if len(self.units.peers) > 1 else []
        sizes = [PacketSizes(constants=len(part.constants))] if self.ring_words else []
        return Instruction(Kind.STREAM, (
            *self._bank(self.placement.places[layer.operand]),
            sent_words(layer.source, self.shape.lanes, run.step.frames), *number,
            *self.units.records(layer), *sizes, *first_places(part.nest),
        ), part.nest, constants=_moved(part.constants, run.constant))  # fmt: skip

    def _run(self, run: Run) -> Iterator[Instruction]:
        layer, scale = run.layer, run.layer.scale
        if isinstance(layer, UnitLayer):
            yield self._stream(run, layer)
            return
        common: list[Record] = [
            Requantized(zero_point=scale.zero_point, low=scale.low, high=scale.high),
            *self._residual(layer, run.step.first), *self._function(layer),
        ]  # fmt: skip
        if self.scales.rounds_twice:
            common.append(Rounding(rounds_once=not scale.twice))
        for n, part in enumerate(run.parts):
            own = [*(part.records or layer.records(self.shape)), *common]
            if part.passes[-1].results:
                results, last = part.passes[0].results, part.passes[-1].results
                own.append(Results(results=results, last_results=last))
            if self.packs_weights and part.weights:
                halves, words = self.is_packed(layer), weights_read(part)
                has_rest = halves and not layer.by_lane and words % 2
                own.append(WeightWidth(halves=halves, has_rest=has_rest))
            if self.short_weights and part.weights:
                own.append(WeightScale(scaled=short_words(layer.weights(self.shape))[1]))
            own += self._bank(self._place_read(layer, n))
            if self.ring_words:
                own.append(PacketSizes(weights=len(part.weights), constants=len(part.constants)))
            yield Instruction(
                Kind.RUN, (*own, *self._first_places(part)), part.nest,
                _moved(part.weights, run.weight), _moved(part.constants, run.constant),
                self._weight_rows(layer), None if layer.addressed is None else run.step.n,
            )  # fmt: skip

    def _first_places(self, part: LayerPart) -> Sequence[Record]:
        """Return where a part's quantities begin: those of matrices behind all weights."""
        nest = part.nest
        if self.shares_weights and any(isinstance(x, Contracting) for x in part.records):
            weight = nest.starts["weight"] + self.weight_words
            nest = replace(nest, starts={**nest.starts, "weight": weight})
        return first_places(nest)

    def _send(self, step: Step) -> Instruction:
        sink = self.placement.network.sinks[step.n]
        sent = sent_words(sink.image, self.shape.lanes)
        return Instruction(Kind.SEND, (
            *self._port(step.n), *self._bank(self.placement.places[sink.tensor]),
            *([Batched(frames=step.frames - 1)] if self.placement.batch > 1 else []),
            ReadPlace(read=self.placement.place(sink.tensor, step.first)), sent,
        ))  # fmt: skip

    def _place_read(self, layer: EngineLayer, part: int) -> int:
        """Return where a part of a layer reads: all that it reads is in one bank."""
        if layer.part_operand(part) in layer.read_tensors:
            return self.placement.places[layer.part_operand(part)]
        return self.placement.places_read(layer, 0)[0]

    def _bank(self, place: int) -> Sequence[Record]:
        """Return in which bank an instruction leaves no time to read packets, if any are there."""
        return [Bank(bank=self.placement.bank(place))] if self.has_residents else []

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The step of a :attr:`turn`, as :attr:`stays` count them, that every instruction is of.

        Those that run once are before the first one.
        """
        steps = self.placement.steps
        turn, sequence = steps.turn, steps.sequence
        numbers = {(x.kind, x.n): n for n, x in enumerate(turn)}
        runs = iter(self.runs[len(self.division.first_runs) :])
        found: list[int] = [-1] * self.first
        for n, step in enumerate(sequence):
            number = n if turn == sequence else numbers[step.kind, step.n]
            count = len(next(runs).parts) if step.kind == Kind.RUN else 1
            found += [number] * count
        return tuple(found)

    @property
    def ports(self) -> int:
        """Most inputs, or outputs."""
        return max(len(self.placement.network.sources), len(self.placement.network.sinks))

    def _port(self, n: int) -> Sequence[Record]:
        """Return the number of an input or output, if there are several."""
        return [PortNumber(port=n)] if self.ports > 1 else []

    @cached_property
    def tail_beats(self) -> list[int]:
        """Tables of what stands behind the engine, as beats."""
        tails = (sink.tail for sink in self.placement.network.sinks)
        return [beat for tail in tails if tail is not None for beat in tail.table_beats]

    def _weight_rows(self, layer: EngineLayer) -> int:
        """Rows that need weights: all of which sums may move, if any do."""
        if not layer.by_lane:
            return self.shape.rows
        return self.slide_rows if layer.sliding_rows(self.shape) > 1 else 1

    @cached_property
    def slide_rows(self) -> int:
        """Rows between which sums move."""
        return max(layer.sliding_rows(self.shape) for layer in self.layers)

    def _function(self, layer: EngineLayer) -> Sequence[Record]:
        if layer.table is None:
            return []
        return [LookUp(looks_up=1, table=self.tables.index(layer.table))]

    def _residual(self, layer: EngineLayer, frame: int) -> Sequence[Record]:
        residual = layer.residual
        if residual is None:
            return []
        other, own = (self.placement.place(x, frame) for x in (residual.tensor, layer.tensor))
        up = self.residual_shift - residual.shift
        return [
            *([Sharing(shares=1)] if self.placement.shares(layer) else []),
            AddedPlace(other=other - own),
            AddedFactors(
                own_factor=residual.own << up, other_factor=residual.other << up,
                offset=residual.offset << up,
            ),
            AddedLimits(sum_low=residual.low, sum_high=residual.high),
        ]  # fmt: skip


def _moved(places: range, by: int) -> range:
    return range(places.start + by, places.stop + by)
