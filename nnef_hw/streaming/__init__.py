"""The streaming architecture: from a fixed graph to a Plan, with cost, folding and beat times."""

from nnef_hw.boards import find_board
from nnef_hw.devices import Resources, Target
from nnef_hw.streaming.block import Block, Source
from nnef_hw.streaming.lower import lower
from nnef_hw.streaming.plan import LayerGraph, Plan
from nnef_hw.streaming.solver import schedule
from nnef_hw.streaming.support import check_streamable

__all__ = [
    "Block",
    "LayerGraph",
    "Plan",
    "Resources",
    "Source",
    "Target",
    "check_streamable",
    "find_board",
    "lower",
    "schedule",
]
