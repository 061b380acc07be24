"""How wide the parts of an engine are: as its program needs them, no wider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.engine.program.program import Instruction, Program
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import BEAT_BITS, QUANTITIES, SIGNED_FIELDS
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["size_engine"]

_LEAST_SUM_BITS = 16
_OFTEN_SAME = frozenset({
    "pad", "zero_point", "low", "high", "sum_low", "sum_high", "other", "own_factor",
    "other_factor", "offset", "rounds_once", "slides", "by_lane", "maximum", "silent", "results",
    "last_results", "height", "width", "rows", "length", "lead", "real", "first_word", "word_step",
    "pixels", "blocks", "last_lanes",
})  # fmt: skip
_TRAINED = frozenset({"pad", "zero_point", "own_factor", "other_factor", "offset"})
"""Those of them that other weights change; but what is 0 stays so: that of a ReLU's results."""
_SUM_MARGIN = 1.25
"""By how much sums of other weights may be larger, where these need no new bitstream."""
_DIGITS = 3
"""Bits of a factor per stage of the requantizer: it is the only one, and stages take registers."""


def size_engine(program: Program) -> Engine:
    """Return the engine for a program.

    One whose program comes as a stream also runs that of other weights, as far as that costs
    little: no field is a constant of the hardware which they change, and sums have a margin.
    """
    layers = program.layers
    weight_words = max(2, program.weight_words)
    constant_words = max(2, sum(parts[-1].constants.stop for parts in program.parts))
    if program.ring_words:
        # As many as are in a block RAM of beats.
        constant_words = program.device.ram.deepest(BEAT_BITS)
    factors = [factor for layer in layers for factor in program.factors(layer)]
    fields, residual_bits = _fields(program, program.ring_words or weight_words, constant_words)
    same = {name: (fields.pop(name), value) for name, value in _same(program).items()}
    together = program.shape.results
    acc_bits, factor_bits = _acc_bits(program), max(factors).bit_length()
    digit_bits = min(_DIGITS, factor_bits)
    least_shift, more_shift_bits = _own_shifts(program)
    if program.ring_words:
        spare = -together * (acc_bits + factor_bits + more_shift_bits) % BEAT_BITS
        factor_bits += min(spare // together, -factor_bits % digit_bits)
    engine = Engine(
        rows=program.shape.rows, lanes=program.shape.lanes,
        slide_rows=program.slide_rows, fast=_is_fast(program), in_dsp=0, acc_bits=acc_bits,
        factor_bits=factor_bits, shift=program.shift, digit_bits=digit_bits,
        rounds_twice=program.rounds_twice, least_shift=least_shift,
        more_shift_bits=more_shift_bits,
        residual_bits=residual_bits, residual_shift=program.residual_shift,
        residual_cycles=program.residual_cycles,
        maximum=any(layer.maximum for layer in layers), code_words=max(2, program.memory[1]),
        weight_words=weight_words, constant_words=constant_words,
        instructions=len(program.instructions), fields=fields, ram=program.device.ram,
        ring_words=program.ring_words, tables=len(program.tables),
        tail_beats=len(program.tail_beats) if program.ring_words else 0,
        single_port=None if program.banks is None else program.device.single_port,
        residents=program.has_residents,
        same_fields=same, batches=program.batch > 1, results=together,
        other_words=program.other_words,
    )  # fmt: skip
    return replace(engine, in_dsp=_in_dsp(engine, program.device))


def _is_fast(program: Program) -> bool:
    """Whether a multiplier makes two products: where a DSP block can, and they are too few."""
    device = program.device
    products = program.shape.rows * program.shape.lanes
    return products > device.products and device.sums_per_dsp > 0


def _in_dsp(engine: Engine, device: Device) -> int:
    """Multipliers in DSP blocks: all; of a device that has fewer, as many as there are, or none.

    Two of single products are in one component.
    """
    if engine.multipliers <= device.products:
        return engine.multipliers
    return device.products // 2 * 2 if device.mixes_products else 0


def _acc_bits(program: Program) -> int:
    """Width of sums."""
    bits = _LEAST_SUM_BITS
    for layer in program.layers:
        margin = _SUM_MARGIN if program.ring_words and layer.weight_bytes else 1.0
        low, high = layer.largest_sum
        bits = max(bits, signed_bits(int(margin * low), int(margin * high)))
    return bits


def _own_shifts(program: Program) -> tuple[int, int]:
    """Return the least shift of results that have their own, and the bits of what is above it."""
    if not program.rounds_twice:
        return 0, 0
    shifts = [shift for layer in program.layers for shift in program.shifts(layer)]
    return min(shifts), (max(shifts) - min(shifts)).bit_length()


def _same(program: Program) -> Mapping[str, int]:
    """Return what all instructions have that look at a field, if it is the same."""
    found: dict[str, set[int]] = {}
    for instruction in program.instructions:
        # In the order of the fields: that of a set differs from run to run.
        for name in filter(_OFTEN_SAME.__contains__, instruction.fields):
            found.setdefault(name, set()).add(instruction.fields[name])
    same = {name: min(values) for name, values in found.items() if len(values) == 1}
    changes = _TRAINED if program.ring_words else frozenset()
    return {name: value for name, value in same.items() if not value or name not in changes}


def _fields(program: Program, weight_words: int, constant_words: int) -> tuple[dict[str, int], int]:
    """Return the widths of all fields, and that of the factors of residuals."""
    run = [x for x in program.instructions if x.nest is not None]
    factors = [x.fields.get(f"{name}_factor", 0) for x in run for name in ("own", "other")]
    residual_bits = 0
    if program.residual_shift:
        residual_bits = signed_bits(min(factors), max(factors))
    widths = {
        "count": _bits([count - 1 for x in run if x.nest for count in x.nest.counts]),
        **_address_bits(program, run, weight_words, constant_words),
    }
    own = {name: width for name, width in widths.items() if name in QUANTITIES}
    offsets = [x.fields.get("offset", 0) for x in run]
    offset_bits = signed_bits(min(offsets), max(offsets))
    if program.ring_words:
        # Their sum has room for that.
        offset_bits = max(offset_bits, CODE_BITS + residual_bits + 1)
    signed = dict(zip(SIGNED_FIELDS, (residual_bits, residual_bits, offset_bits), strict=True))
    steps = {f"{name}_step": width for name, width in own.items()}
    rows = program.shape.rows // program.shape.results
    fields = {
        "count": widths["count"], **steps, "kind": 2, **own,
        **dict.fromkeys(("slides", "by_lane", "maximum", "adds"), 1),
        "results": rows.bit_length(), "last_results": rows.bit_length(),
        **dict.fromkeys(("pad", "zero_point", "low", "high"), CODE_BITS),
    }  # fmt: skip
    if program.rounds_twice:
        fields["rounds_once"] = 1
    if residual_bits:
        fields |= {"other": own["write"], "sum_low": CODE_BITS, "sum_high": CODE_BITS, **signed}
    if any(map(program.shares, program.layers)):
        fields["shares"] = 1
    if program.tables:
        fields |= {"looks_up": 1, "table": _bits([len(program.tables) - 1])}
    if program.ring_words:
        fields |= {"weights": program.ring_words.bit_length(),
                   "constants": constant_words.bit_length()}  # fmt: skip
    if program.divides:
        fields["follows"] = 1
    if program.has_residents:
        fields["bank"] = 1
    if program.gathers:
        fields["gathers"] = 1
    if any(x.fields.get("packs") for x in run):
        fields["packs"] = 1
    for name in ("multiplies", "inverts"):
        if any(x.fields.get(name) for x in run):
            fields[name] = 1
    if program.ports > 1:
        fields["port"] = _bits([program.ports - 1])
    for name in (
        "silent", "height", "width", "rows", "length", "lead", "real", "first_word",
        "word_step", "pixels", "blocks", "last_lanes", *(["frames"] if program.batch > 1 else []),
    ):  # fmt: skip
        fields[name] = _bits([x.fields.get(name, 0) for x in program.instructions])
    return fields, residual_bits


def _address_bits(
    program: Program, run: Sequence[Instruction], weight_words: int, constant_words: int
) -> dict[str, int]:
    words = program.memory[1]
    gathers = program.gathers
    codes = words * program.shape.lanes if gathers else words
    depths = {"read": codes, "write": words, "weight": weight_words, "constant": constant_words}
    widths = {name: max(1, (depth - 1).bit_length()) for name, depth in depths.items()}
    for name in ("y", "x"):
        extremes = [x.nest.extremes(name) for x in run if x.nest is not None]
        widths[name] = _bits([max(high, 0) for _, high in extremes])
        extent = "height" if name == "y" else "width"
        sizes = [x.fields[extent] - min(low, 0) for x, (low, _) in zip(run, extremes, strict=True)]
        # what is before an image must not look like being inside of it
        widths[name] = max(widths[name], _bits(sizes))
    return widths


def _bits(values: Sequence[int]) -> int:
    return max(1, max(values).bit_length())
