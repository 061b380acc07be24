"""Block RAMs that parts take."""

import numpy as np
import pytest
from examples.streams import STREAMS

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tflite.short_functions import short_logistic, short_tanh
from nnef_hw.boards import find_board
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.functions.corrected_table import corrected_table

RAM = find_board("ulx3s_85f").device.ram


@pytest.mark.parametrize("queue", ["BlockFifo", "CutFifo"])
@pytest.mark.parametrize(
    ("name", "stores_last"),
    [
        ("last in nine bits", True), ("last in eight bits", False), ("three lanes", False),
        ("four lanes", True), ("sixteen bits", True),
    ],
)  # fmt: skip
def test_last_takes_no_more_block_ram(queue, name, stores_last):
    part = STREAMS[queue][name].part
    assert part.stores_last == stores_last
    assert part.memory.count == -(-part.bits * part.lanes // part.ram.shapes[0][1])


@pytest.mark.parametrize(("name", "most"), [("tanh", 29), ("logistic", 21)])
def test_functions_of_lstms_take_few_block_rams(name, most):
    """A table of all results of 16 bits would take 64."""
    qtype, codes = QType(16, True, 1.0), np.arange(-(1 << 15), 1 << 15)
    entries = short_tanh(codes, 4) if name == "tanh" else short_logistic(codes)
    part = corrected_table(entries, qtype, qtype, RAM)
    assert sum(memory.count for memory in part.memories) <= most


def test_lanes_take_what_their_copies_take():
    window = Window(4, 4, 8, (2, 2), (2, 2), passes=8, by_channel=True)
    copy = parts.RunningSum(window=window, bits=8, signed=True, acc_bits=10, ram=RAM)
    wide = parts.Lanes(part=copy, lanes=3)
    assert len(wide.memories) == 3 * len(copy.memories)
    assert wide.kept_bits == 3 * copy.kept_bits
