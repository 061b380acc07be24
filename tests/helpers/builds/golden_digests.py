"""Digests of what the compiler makes of the golden networks."""

import hashlib
from functools import cache

from nnef_hw.boards import find_board
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

__all__ = ["BOARDS", "digests", "fixed_graph", "plan_digest", "planned", "verilog_digest"]

BOARDS = ("icebreaker", "ulx3s_25f", "ulx3s_85f", "tang_nano_20k")


def digests(network, board):
    """Return the digests of what a plan says, and of ``top.v``."""
    plan = planned(network, board)
    return {"plan": plan_digest(plan), "top.v": verilog_digest(plan, fixed_graph(network))}


@cache
def fixed_graph(network):
    """Quantize a golden network, once for all boards."""
    return network().fixed()


@cache
def planned(network, board):
    """Plan a golden network for a board, once for its plan and its Verilog."""
    return schedule(fixed_graph(network), find_board(board))


def plan_digest(plan):
    """Return the digest of what a plan says."""
    return _digest(repr(_facts(plan)))


def verilog_digest(plan, graph):
    """Return the digest of ``top.v``."""
    return _digest(to_verilog(Accelerator(plan, graph), comments=module_comments(plan, graph)))


def _facts(plan):
    """List what a plan predicts, however ``plan.json`` writes it."""
    return [
        (plan.interval, plan.latency, plan.multipliers, plan.link.to_json()),
        *(
            (block.name, block.op, [(s.tensor, s.depth) for s in block.sources], block.cycles,
             block.macs, block.multipliers, block.resources.to_json())
            for block in plan.blocks
        ),
    ]  # fmt: skip


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]
