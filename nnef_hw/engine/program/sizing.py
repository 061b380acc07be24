"""Widths of an engine's parts: as its program needs them, no wider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.engine.program.instruction import Instruction
from nnef_hw.engine.program.program import Program
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.engine.array import ArrayUse, MultiplierArray
from nnef_hw.parts.engine.border import Batch, Choosing, PlaceInputs, Ports
from nnef_hw.parts.engine.codes import Codes, Residents
from nnef_hw.parts.engine.contraction import (
    MOST_LUT_RAM_WORDS,
    Contracting,
    Filling,
    KeptMatrices,
    Matrices,
    Placing,
)
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.feature import Feature
from nnef_hw.parts.engine.narrow import NarrowWeights, ShortWeights, WeightScale, WeightWidth
from nnef_hw.parts.engine.pairs import (
    Gather,
    Gathering,
    Inverting,
    Maxima,
    Minima,
    Multiplying,
    Packing,
    Products,
)
from nnef_hw.parts.engine.program import BEAT_BITS, MOST_CONSTANTS, QUANTITIES
from nnef_hw.parts.engine.requantizer import SecondRounding, SharedRequantizer
from nnef_hw.parts.engine.residual import AddedFactors, SharedBank, TensorSums
from nnef_hw.parts.engine.sequencer import Divided, Sequencer
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.engine.supply import Held, Ring, Supply, Written
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.parts.engine.units import StreamUnits

__all__ = ["size_engine"]

_LEAST_SUM_BITS = 16
_SUM_MARGIN = 1.25
"""By how much sums of other weights may be larger, where these need no new bitstream."""
_DIGITS = 3
"""Bits of a factor per stage of the requantizer: it is the only one, and stages take registers."""


def size_engine(program: Program) -> Engine:
    """Return the engine for a program.

    One whose program comes as a stream, or may be written, also runs that of other weights, as far
    as that costs little: no field is a constant of the hardware which they change, and sums have a
    margin.
    """
    device, shape = program.placement.device, program.shape
    features = tuple(_features(program))
    array = MultiplierArray(
        rows=shape.rows, lanes=shape.lanes, results=shape.results, slide_rows=program.slide_rows,
        fast=device.pairs_products(shape.rows * shape.lanes), in_dsp=0, acc_bits=_acc_bits(program),
    )  # fmt: skip
    engine = Engine(
        sequencer=_sequencer(program, array, features),
        array=replace(array, in_dsp=_in_dsp(array, device)),
        requantizer=_requantizer(program, array, features),
        codes=Codes(
            words=max(2, program.placement.memory[1]),
            single_port=None if program.placement.banks is None else device.single_port,
        ),
        features=features, ram=device.ram,
        short_words=MOST_LUT_RAM_WORDS if program.spares_blocks else 0,
    )  # fmt: skip
    fields = engine.widths(_counted(engine, program.instructions))
    same = {name: (fields.pop(name), value) for name, value in _same(engine, program).items()}
    return replace(engine, fields=fields, same_fields=same)


def _features(program: Program) -> Iterator[Feature]:
    """Yield the features of an engine for a program, in the order of fields."""
    run = [x for x in program.instructions if x.nest is not None]
    if program.scales.rounds_twice:
        shifts = [shift for layer in program.layers for shift in program.scales.shifts(layer)]
        more = max(shifts) - min(shifts)
        yield SecondRounding(least_shift=min(shifts), more_shift_bits=more.bit_length())
    if program.residual_shift:
        yield _residual(program, run)
    if any(map(program.placement.shares, program.layers)):
        yield SharedBank()
    if program.tables:
        yield Tables(count=len(program.tables))
    yield _supply(program)
    if program.divides:
        yield Divided()
    if program.has_residents:
        yield Residents()
    if any(layer.maximum for layer in program.layers):
        yield Maxima()
    if any(x.find(Gathering) for x in run):
        yield Gather(packs=any(found.packs for x in run if (found := x.find(Packing))))
    if any(x.find(Multiplying) for x in run):
        yield Products()
    if any(x.find(Inverting) for x in run):
        yield Minima()
    if fills := [x for x in run if x.find(Filling)]:
        yield _matrices(program, fills)
    if program.ports > 1:
        yield Ports(count=program.ports)
    chosen = [own for x in program.instructions if (own := x.find(Choosing))]
    if chosen:
        ports = [source.port for source in program.placement.network.sources]
        yield PlaceInputs(
            bits={n: ports[n].bits for n in sorted({own.place for own in chosen})},
            reads=any(own.moves_read for own in chosen),
            sums=any(own.place_rest for own in chosen),
        )
    if program.packs_weights:
        widths = [x.find(WeightWidth) for x in run]
        yield NarrowWeights(always=all(x.halves for x in widths if x))
    if program.short_weights:
        scales = (x.find(WeightScale) for x in run)
        yield ShortWeights(always=not any(x.scaled for x in scales if x))
    if program.placement.batch > 1:
        yield Batch()
    if program.units.units:
        yield StreamUnits(
            units=program.units.units, ways=program.unit_ways, lanes=program.unit_form.lanes
        )


def _residual(program: Program, run: Sequence[Instruction]) -> TensorSums:
    found = [x.find(AddedFactors) or AddedFactors() for x in run]
    factors = [factor for x in found for factor in (x.own_factor, x.other_factor)]
    bits = signed_bits(min(factors), max(factors))
    offsets = [x.offset for x in found]
    offset_bits = signed_bits(min(offsets), max(offsets))
    if program.is_replaceable:
        # Their sum has room for that.
        offset_bits = max(offset_bits, CODE_BITS + bits + 1)
    return TensorSums(
        bits=bits, shift=program.residual_shift, cycles=program.residual_cycles,
        words=program.placement.other_words, offset_bits=offset_bits,
    )  # fmt: skip


def _matrices(program: Program, fills: Sequence[Instruction]) -> Matrices:
    """Return the memory of matrices that so many instructions fill."""
    words = [x.nest.extremes("weight")[1] + 1 for x in fills if x.nest is not None]
    turns = {bool(filling.turns) for x in fills if (filling := x.find(Filling))}
    constants = [len(x.constants) for x in program.instructions if x.find(Contracting)]
    kind = KeptMatrices if any(x.find(Placing) for x in fills) else Matrices
    return kind(
        words=max(2, *words), sums=1 << (max(2, *constants) - 1).bit_length(),
        turns=True in turns, keeps=False in turns, in_lut_ram=program.lut_matrices,
        behind=program.weight_words if program.shares_weights else None,
    )  # fmt: skip


def _supply(program: Program) -> Supply:
    weights, instructions = max(2, program.weight_words), len(program.instructions)
    if program.ring_words:
        return Ring(
            frame_weights=weights, constants=_ring_of_constants(program),
            instructions=instructions, words=program.ring_words,
            tail_beats=len(program.tail_beats),
        )  # fmt: skip
    constants = max(2, sum(parts[-1].constants.stop for parts in program.parts))
    kind, tail_beats = (Written, len(program.tail_beats)) if program.is_loaded else (Held, 0)
    return kind(
        frame_weights=weights, constants=constants, instructions=instructions,
        first=program.first, dense=program.dense, shared=program.shares_weights,
        tail_beats=tail_beats,
    )  # fmt: skip


def _ring_of_constants(program: Program) -> int:
    """Return the words of the ring of constants: what a block RAM of beats holds, or more.

    Where block RAMs are short, what one of two beats holds.

    The longest instruction's constants, as of a normalization of many channels, fit beside those
    that results of the two instructions before may still need.
    """
    shape = program.shape
    longest = max(len(part.constants) for parts in program.parts for part in parts)
    ended = 2 * max(MOST_CONSTANTS, shape.rows // shape.results)
    together = 2 if program.spares_blocks else 1
    deepest = program.placement.device.ram.deepest(together * BEAT_BITS)
    return max(deepest, 1 << (longest + ended - 1).bit_length())


def _requantizer(
    program: Program, array: MultiplierArray, features: Sequence[Feature]
) -> SharedRequantizer:
    factors = [factor for layer in program.layers for factor in program.scales.factors(layer)]
    bits, together = max(factors, default=1).bit_length(), array.results
    cycles = program.result_cycles
    digit_bits = min(_DIGITS, bits) if cycles == 1 else -(-bits // (cycles - 1))
    if program.is_replaceable:
        more = [x.more_shift_bits for x in features if isinstance(x, SecondRounding)]
        spare = -together * (array.acc_bits + bits + sum(more)) % BEAT_BITS
        bits += min(spare // together, -bits % digit_bits)
    return SharedRequantizer(
        factor_bits=bits, shift=program.scales.shift, digit_bits=digit_bits, cycles=cycles,
        holds_places=program.dense and cycles > 1,
    )  # fmt: skip


def _in_dsp(array: MultiplierArray, device: Device) -> int:
    """Multipliers in DSP blocks: all; of a device that has fewer, as many as there are, or none.

    Two of single products are in one component.
    """
    if array.multipliers <= device.products:
        return array.multipliers
    return device.products // 2 * 2 if device.mixes_products else 0


def _acc_bits(program: Program) -> int:
    """Width of sums."""
    bits = _LEAST_SUM_BITS
    for layer in program.layers:
        margin = _SUM_MARGIN if program.is_replaceable and layer.weight_bytes else 1.0
        low, high = layer.largest_sum
        bits = max(bits, signed_bits(int(margin * low), int(margin * high)))
    return bits


def _same(engine: Engine, program: Program) -> Mapping[str, int]:
    """Return the value of each field that is the same in all instructions that look at it."""
    found: dict[str, set[int]] = {}
    for instruction in program.instructions:
        for name, value in instruction.values.items():
            if name in engine.facts and engine.facts[name].constant:
                found.setdefault(name, set()).add(value)
    same = {name: min(values) for name, values in found.items() if len(values) == 1}
    if not program.is_replaceable:
        return same
    return {
        name: value for name, value in same.items() if not value or not engine.facts[name].trained
    }


def _counted(engine: Engine, instructions: Sequence[Instruction]) -> Mapping[str, int]:
    """Return the widths of fields that are as wide as their greatest values."""
    names = [name for name, what in engine.facts.items() if what.counted]
    return {name: _bits([x.values.get(name, 0) for x in instructions]) for name in names}


def _sequencer(program: Program, array: MultiplierArray, features: Sequence[Feature]) -> Sequencer:
    run = [x for x in program.instructions if x.nest is not None]
    [supply] = [x for x in features if isinstance(x, Supply)]
    words = program.placement.memory[1]
    depths = {
        "read": words, "write": words, "weight": supply.weights, "constant": supply.constants,
    }  # fmt: skip
    for feature in features:
        if isinstance(feature, Matrices):
            # where words of codes go that become weights
            depths["weight"] = max(depths["weight"], feature.words + (feature.behind or 0))
            depths["write"] = max(words, array.rows)
    places = {name: max(1, (depth - 1).bit_length()) for name, depth in depths.items()}
    for feature in features:
        for name, (_, bits) in feature.fine(array.lanes).items():
            places[name] += bits
    images = [(use, x.nest) for x in run if (use := x.find(ArrayUse)) and x.nest is not None]
    extents = {
        "y": [use.height for use, _ in images], "x": [use.width for use, _ in images],
    }  # fmt: skip
    for name, own in extents.items():
        extremes = [nest.extremes(name) for _, nest in images]
        places[name] = _bits([max(high, 0) for _, high in extremes])
        sizes = [extent - min(low, 0) for extent, (low, _) in zip(own, extremes, strict=True)]
        # what is before an image must not look like being inside of it
        places[name] = max(places[name], _bits(sizes))
    count = _bits([count - 1 for x in run if x.nest for count in x.nest.counts])
    steps = _step_bits(run, features, array.lanes) if program.dense else {}
    steps = {name: min(bits, places[name]) for name, bits in steps.items()}
    return Sequencer(count=count, places=places, steps=places | steps)


def _step_bits(
    run: Sequence[Instruction], features: Sequence[Feature], lanes: int
) -> Mapping[str, int]:
    """Return the widths of the steps of loops, signed numbers."""
    fine = {name: bits for x in features for name, (_, bits) in x.fine(lanes).items()}
    found = {
        name: [step << fine.get(name, 0) for x in run if x.nest for step in x.nest.steps(name)]
        for name in QUANTITIES
    }
    return {name: signed_bits(min(own), max(own)) for name, own in found.items()}


def _bits(values: Sequence[int]) -> int:
    return max(1, max(values, default=0).bit_length())
