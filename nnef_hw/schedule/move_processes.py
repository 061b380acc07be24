"""The components that move codes of one stream, as timed processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.schedule.plan import Block
from nnef_hw.schedule.processes import padding_words
from nnef_hw.schedule.timing import Log, Process, Stream
from nnef_hw.window import Window

__all__ = ["pad", "read_order", "reordered", "take_slice"]

STAGES = 2


def take_slice(origin: Stream, target: Stream, runs: tuple[int, int, int]) -> Process:
    """Model Split with one kept run: it drops codes as they come, and hands the others on."""
    before, kept, behind = runs
    while True:
        for _ in range(before):
            origin.accept((yield origin))
        for _ in range(kept):
            offered = yield origin
            origin.accept((yield target, offered))
        for _ in range(behind):
            origin.accept((yield origin))


def pad(origin: Stream, target: Stream, window: Window) -> Process:
    """Model Pad: the border ahead of an image waits for its first code, as all else waits."""
    padding = padding_words(window)
    given = -1
    while True:
        for word, is_padding in enumerate(padding):
            time = given + 1
            if word == 0 or not is_padding:
                time = max(time, (yield origin))
            given = yield target, time
            if not is_padding:
                origin.accept(given)


def read_order(block: Block) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which code of an image is read when, and how many make room after each."""
    window = block.window
    assert window is not None
    image = np.arange(window.beats).reshape(window.height, window.width, window.channel_blocks)
    if block.kind == "transpose":
        frees = np.zeros(window.beats, np.int64)
        frees[-1] = window.beats
        return image.transpose(block.factors).reshape(-1), frees
    rows, columns = block.factors
    if block.kind == "depth_to_space":
        phases = image.reshape(window.height, window.width, rows, -1)
        reads = phases.swapaxes(1, 2)
        frees = np.zeros_like(reads)
        frees[:, -1, :, -1] = window.channel_blocks
        return reads.reshape(-1), frees.reshape(-1)
    reads = image.repeat(rows, axis=0).repeat(columns, axis=1)
    frees = np.zeros_like(reads)
    frees[rows - 1 :: rows, columns - 1 :: columns] = 1
    return reads.reshape(-1), frees.reshape(-1)


def reordered(target: Stream, block: Block, written: Log, freed: Log) -> Process:
    """Model the read side of Upsample, DepthToSpace and Transpose, and the registers behind it."""
    assert block.window is not None
    reads, frees = (array.tolist() for array in read_order(block))
    entered = [-1] * (STAGES + 1)
    first = 0
    while True:
        for read, freeing in zip(reads, frees, strict=True):
            if len(written.times) <= first + read:
                yield written, first + read + 1
            entered[0] = max(written.times[first + read] + 1, entered[1])
            for _ in range(freeing):
                freed.add(entered[0])
            for stage in range(1, STAGES):
                entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
            entered[STAGES] = yield target, entered[STAGES - 1] + 1
        first += block.window.beats
