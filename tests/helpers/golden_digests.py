"""Digests of what the compiler makes of the golden networks."""

import hashlib

from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.schedule import find_board, schedule

__all__ = ["BOARDS", "digests"]

BOARDS = ("icebreaker", "ulx3s_25f", "ulx3s_85f")


def digests(network, board):
    """Return the digests of ``plan.json`` and ``top.v``."""
    graph = network().fixed()
    plan = schedule(graph, find_board(board))
    verilog = to_verilog(Accelerator(plan, graph), comments=module_comments(plan, graph))
    return {"plan.json": _digest(plan.dumps()), "top.v": _digest(verilog)}


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]
