"""Line buffers of layers: their depths, and the cycles that a shallow one costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nnef_hw.blockram import tile_memory
from nnef_hw.parts.linebuffer import LineBuffer
from nnef_hw.window import Window

__all__ = ["buffered_cycles", "least_depth", "useful_depths"]

MAX_DEPTH_DOUBLINGS = 2


def least_depth(window: Window) -> int:
    """Return the fewest words that a line buffer may have."""
    return max(2, 1 << (window.min_depth - 1).bit_length())


def buffered_cycles(buffer: LineBuffer, reading: int, codes: int) -> int:
    """Cycles per frame of a layer that reads so long, of an image of so many codes.

    A shallow buffer makes the reader wait at row and frame ends.
    """
    waiting = buffer.missing_words + 2 * buffer.waits
    return max(reading + waiting, buffer.window.words, codes)


def useful_depths(
    of_depth: Callable[[int], LineBuffer], window: Window, reading: int, codes: int
) -> Iterator[int]:
    """Yield powers of two that fill their block RAMs, as long as a larger one saves cycles."""
    depth = least_depth(window)
    buffer = of_depth(depth)
    width = buffer.bits * buffer.lanes
    while (
        tile_memory(buffer.ram, 2 * depth, width).count
        == tile_memory(buffer.ram, depth, width).count
    ):
        depth *= 2
    fastest = None
    for _ in range(1 + MAX_DEPTH_DOUBLINGS):
        cycles = buffered_cycles(of_depth(depth), reading, codes)
        if fastest is not None and cycles >= fastest:
            break
        yield depth
        fastest = cycles
        depth *= 2
