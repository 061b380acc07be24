"""Streaming plans of which a test changes blocks, with the cycles that they take then."""

from dataclasses import replace

from nnef_hw.streaming.beats.beats import simulate_beats
from nnef_hw.streaming.beats.fifos import give_fifos

__all__ = ["with_blocks", "with_folding"]


def with_blocks(plan, blocks):
    times = simulate_beats(blocks, plan.inputs, plan.outputs)
    return replace(
        plan, blocks=tuple(blocks), interval=times.interval, latency=times.latency,
        period=times.steady.period, settling=times.steady.settling,
    )  # fmt: skip


def with_folding(plan, target, op, **folding):
    """Fold the layers of an operator otherwise, with FIFOs that fit."""
    blocks = [block.with_folding(**folding) if block.op == op else block for block in plan.blocks]
    blocks = give_fifos(tuple(blocks), (plan.inputs, plan.outputs), target.device).blocks
    return with_blocks(plan, blocks)
