"""How wide the parts of an engine are: as its program needs them, no wider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nnef_hw.numerics import signed_bits
from nnef_hw.parts.engine import (
    BEAT_BITS,
    CODE_BITS,
    QUANTITIES,
    RING_CONSTANTS,
    SIGNED_FIELDS,
    Engine,
)

if TYPE_CHECKING:
    from nnef_hw.engine.design import Design, Instruction

__all__ = ["size_engine"]

_LEAST_SUM_BITS = 16
_OFTEN_SAME = frozenset({
    "pad", "zero_point", "low", "high", "sum_low", "sum_high", "other", "own_factor",
    "other_factor", "offset",
})  # fmt: skip
_TRAINED = frozenset({"pad", "zero_point", "own_factor", "other_factor", "offset"})
"""Those of them that other weights change; but what is 0 stays so: that of a ReLU's results."""
_SUM_MARGIN = 1.25
"""By how much sums of other weights may be larger, where these need no new bitstream."""
_DIGITS = 3
"""Bits of a factor per stage of the requantizer: it is the only one, and stages take registers."""


def size_engine(design: Design) -> Engine:
    """Return the engine for a design's program.

    One whose program comes as a stream also runs that of other weights, as far as that costs
    little: no field is a constant of the hardware which they change, and sums have a margin.
    """
    layers = design.layers
    weight_words = max(2, len(design.weights))
    constant_words = max(2, sum(parts[-1].constants.stop for parts in design.parts))
    if design.ring_words:
        constant_words = RING_CONSTANTS
    factors = [factor for layer in layers for factor in design.factors(layer)]
    fields, residual_bits = _fields(design, design.ring_words or weight_words, constant_words)
    same = {name: (fields.pop(name), value) for name, value in _same(design).items()}
    products = design.shape.rows * design.shape.lanes
    acc_bits, factor_bits = _acc_bits(design), max(factors).bit_length()
    digit_bits = min(_DIGITS, factor_bits)
    if design.ring_words:
        spare = -(acc_bits + factor_bits) % BEAT_BITS
        factor_bits += min(spare, -factor_bits % digit_bits)
    return Engine(
        rows=design.shape.rows, lanes=design.shape.lanes,
        slide_rows=design.slide_rows,
        in_dsp=products <= design.device.products, acc_bits=acc_bits,
        factor_bits=factor_bits, shift=design.shift, digit_bits=digit_bits,
        residual_bits=residual_bits, residual_shift=design.residual_shift,
        residual_cycles=design.residual_cycles,
        maximum=any(layer.maximum for layer in layers), code_words=max(2, design.memory[1]),
        weight_words=weight_words, constant_words=constant_words,
        instructions=len(design.instructions), fields=fields, ram=design.device.ram,
        ring_words=design.ring_words, tables=len(design.tables),
        single_port=design.banks is not None, same_fields=same,
    )  # fmt: skip


def _acc_bits(design: Design) -> int:
    """Width of sums."""
    bits = _LEAST_SUM_BITS
    for layer in design.layers:
        margin = _SUM_MARGIN if design.ring_words and layer.weight_bytes else 1.0
        low, high = layer.largest_sum
        bits = max(bits, signed_bits(int(margin * low), int(margin * high)))
    return bits


def _same(design: Design) -> Mapping[str, int]:
    """Return what all instructions have that look at a field, if it is the same."""
    found: dict[str, set[int]] = {}
    for instruction in design.instructions:
        for name in _OFTEN_SAME & instruction.fields.keys():
            found.setdefault(name, set()).add(instruction.fields[name])
    same = {name: min(values) for name, values in found.items() if len(values) == 1}
    changes = _TRAINED if design.ring_words else frozenset()
    return {name: value for name, value in same.items() if not value or name not in changes}


def _fields(design: Design, weight_words: int, constant_words: int) -> tuple[dict[str, int], int]:
    """Return the widths of all fields, and that of the factors of residuals."""
    run = [x for x in design.instructions if x.nest is not None]
    factors = [x.fields.get(f"{name}_factor", 0) for x in run for name in ("own", "other")]
    residual_bits = 0
    if design.residual_shift:
        residual_bits = signed_bits(min(factors), max(factors))
    widths = {
        "count": _bits([count - 1 for x in run if x.nest for count in x.nest.counts]),
        **_address_bits(design, run, weight_words, constant_words),
    }
    own = {name: width for name, width in widths.items() if name in QUANTITIES}
    offsets = [x.fields.get("offset", 0) for x in run]
    offset_bits = signed_bits(min(offsets), max(offsets))
    if design.ring_words:
        # Their sum has room for that.
        offset_bits = max(offset_bits, CODE_BITS + residual_bits + 1)
    signed = dict(zip(SIGNED_FIELDS, (residual_bits, residual_bits, offset_bits), strict=True))
    steps = {f"{name}_step": width for name, width in own.items()}
    rows = design.shape.rows
    fields = {
        "count": widths["count"], **steps, "kind": 2, **own,
        **dict.fromkeys(("slides", "by_lane", "maximum", "adds"), 1),
        "results": rows.bit_length(), "last_results": rows.bit_length(),
        **dict.fromkeys(("pad", "zero_point", "low", "high"), CODE_BITS),
    }  # fmt: skip
    if residual_bits:
        fields |= {"other": own["write"], "sum_low": CODE_BITS, "sum_high": CODE_BITS, **signed}
    if any(map(design.shares, design.layers)):
        fields["shares"] = 1
    if design.tables:
        fields |= {"looks_up": 1, "table": _bits([len(design.tables) - 1])}
    if design.ring_words:
        fields |= {"weights": design.ring_words.bit_length(),
                   "constants": RING_CONSTANTS.bit_length(), "follows": 1}  # fmt: skip
    for name in (
        "silent", "height", "width", "rows", "length", "lead", "real", "first_word",
        "word_step", "pixels", "blocks", "last_lanes",
    ):  # fmt: skip
        fields[name] = _bits([x.fields.get(name, 0) for x in design.instructions])
    return fields, residual_bits


def _address_bits(
    design: Design, run: Sequence[Instruction], weight_words: int, constant_words: int
) -> dict[str, int]:
    words = design.memory[1]
    depths = {"read": words, "write": words, "weight": weight_words, "constant": constant_words}
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
