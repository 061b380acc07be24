"""What an engine takes of a device."""

from __future__ import annotations

from nnef_hw.engine.program.design import Design
from nnef_hw.hardware.devices import Device, Resources, Target
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["array_resources", "border_resources", "engine_resources"]

_FIXED_LUTS = 705
_RESIDUAL_LUTS = 5.4
"""Per bit of a code and of the residual's factor: two products, their sum, registers between."""
_SERIAL_LUTS = 60
"""Of sums bit by bit, besides their factors and the word that is added."""
_RESIDENT_LUTS = 260
"""Of what keeps packets in the memory of codes and reads them there."""
_PRODUCT_FLIP_FLOPS = 39
"""Of a multiplier in logic: its operands, and the halves of its product."""
_FEED_LUTS = 300
"""Of what puts a program that comes as a stream into its memories."""


def border_resources(target: Target) -> Resources:
    """Return what the host link takes."""
    return Resources(lut=target.link_lut, ff=target.link_ff, bram=target.link_bram)


def engine_resources(design: Design) -> Resources:
    """Estimate what an engine and its tails take; DSP blocks and memories are exact."""
    tails = (sink.tail for sink in design.network.sinks)
    behind = (tail.part.resources(design.device) for tail in tails if tail is not None)
    return Resources.total(behind) + array_resources(design)


def array_resources(design: Design) -> Resources:
    """Estimate what an engine takes without its tail."""
    engine, device = design.engine, design.device
    reader = Resources() if design.reader is None else design.reader.resources(device)
    return reader + Resources(
        lut=round(_luts(engine, device)),
        ff=round(_flip_flops(engine)),
        dsp=_dsp(engine, device),
        bram=sum(memory.count for memory in engine.memories),
        spram=engine.spram,
    )


def _dsp(engine: Engine, device: Device) -> int:
    """DSP blocks."""
    plain, double, common = engine.runs_in_dsp
    blocks = -(-(plain + common) // device.products_per_dsp)
    return blocks + (-(-double // device.sums_per_dsp) if double else 0)


def _luts(engine: Engine, device: Device) -> float:
    """LUT4s, from what adders and multiplexers there are, and registers that stand alone."""
    slots, acc = engine.rows, engine.acc_bits
    luts = float(engine.plain_rows * sum(_tree_levels(engine.lanes)))
    if engine.fast:
        luts += sum(_fast_adders(engine))
    luts += engine.lanes * (2 * CODE_BITS + engine.tree_levels) + 2.0 * slots * acc
    luts += 2.0 * (engine.slide_rows - 1) * engine.lanes * acc
    of_result = (engine.digit_bits + 1.0) * engine.stages * acc + 1.5 * engine.factor_bits
    of_result += engine.stages * engine.factor_bits / 2
    if engine.residual_cycles > 1:
        luts += _SERIAL_LUTS + 4.0 * engine.residual_bits + engine.word_bits
    elif engine.residual_bits:
        of_result += _RESIDUAL_LUTS * CODE_BITS * engine.residual_bits
    luts += of_result * engine.results
    if engine.maximum:
        luts += 5.0 * engine.word_bits
    if engine.inverts:
        luts += 2.0 * engine.word_bits
    if engine.multiplies:
        luts += 2.0 * engine.word_bits
    plain, double, common = _in_logic(engine)
    # Factors of two products are sums, of a bit more.
    share = device.family.product_share(CODE_BITS + 1, CODE_BITS + 1)
    luts += (plain + share * double + common) * device.lut_multiplier
    fields = sum(engine.fields.values())
    luts += _FEED_LUTS if engine.streamed else 0
    luts += _RESIDENT_LUTS if engine.residents else 0
    return _FIXED_LUTS + luts + 2.0 * fields + engine.word_bits * 3.0


def _in_logic(engine: Engine) -> list[int]:
    """Return the multipliers in LUTs, as :attr:`.EngineSizes.runs` has them."""
    return [every - dsp for every, dsp in zip(engine.runs, engine.runs_in_dsp, strict=True)]


def _fast_adders(engine: Engine) -> tuple[int, int, int]:
    """Return the bits of adders of rows whose multipliers make two products.

    Of sums of codes and weights, of the trees, and of the sum of products of codes.
    """
    rows, half, factor = engine.rows - engine.plain_rows, engine.lanes // 2, CODE_BITS + 1
    tree = sum(_tree_levels(half, 2 * factor)) + 2 * factor + engine.tree_levels
    return rows * engine.lanes * factor, rows * tree, sum(_tree_levels(half))


def _tree_levels(lanes: int, bits: int = 2 * CODE_BITS) -> list[int]:
    """Return the bits of the adders of a tree of products of so many bits, by level."""
    levels = []
    while lanes > 1:
        lanes, bits = lanes // 2, bits + 1
        levels.append(lanes * bits)
    return levels


def _flip_flops(engine: Engine) -> float:
    sums = (engine.slide_rows * engine.lanes + 2 * engine.rows) * engine.acc_bits
    # A register behind two adders in a row, and behind the last one.
    levels = _tree_levels(engine.lanes)
    trees = engine.plain_rows * sum(levels[1::2] + levels[len(levels) // 2 * 2 :])
    if engine.fast:
        factors, adders, common = _fast_adders(engine)
        # Half of a tree's adders are in its first level.
        trees += factors + adders // 2 + common // 2 + engine.plain_rows * levels[-1]
    products = engine.in_logic * _PRODUCT_FLIP_FLOPS
    plain, double, common = engine.runs
    products += engine.product_cycles * 2 * (CODE_BITS * (plain + common + double) + double)
    operands = 0 if engine.direct else engine.products * CODE_BITS + engine.word_bits
    pipeline = engine.results * engine.stages * (2 * engine.acc_bits + engine.factor_bits / 2)
    address = 2 * engine.fields["write"] + 3
    delays = 3 * (engine.requantizer_delay + engine.residual_delay)
    fields = 2 * sum(engine.fields.values())
    return sums + trees + products + operands + pipeline + address + delays + fields
