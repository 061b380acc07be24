"""Line buffers of layers: their depths, and the cycles that a shallow one costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.windows.linebuffer import LineBuffer

__all__ = ["buffered_cycles", "least_depth", "useful_depths", "writing_cycles"]

MAX_DEPTH_DOUBLINGS = 2


def least_depth(window: Window) -> int:
    """Return the fewest words that a line buffer may have."""
    return max(2, 1 << (window.min_depth - 1).bit_length())


def writing_cycles(window: Window, lanes: int, channels: int) -> int:
    """Cycles per frame in which a line buffer is written, of one beat per cycle.

    Words of several beats are gathered while padding is written, two of them at most. Lanes and
    channels are counted in beats.
    """
    blocks = window.channel_blocks
    if blocks == channels:
        return window.words
    first = min(lanes, channels)
    second = min(lanes, channels - first) or first
    (top, bottom), (left, right) = window.padding
    row = window.padded_width * blocks
    before, behind = (top * row + left * blocks, bottom * row + right * blocks)
    between = (left + right) * blocks
    # Words come in runs, with padding before each of them.
    rows, runs = (window.height, 1) if not between else (1, window.height)
    words, codes = rows * window.width * blocks, rows * window.width * channels
    if window.starts_in_padding:
        # That is not written before the first word is there.
        early = min(behind, first - 1) + min(before, second - 1)
    else:
        early = min(before + behind, first + second - 2)
    later = min(between, first + second - 2)
    written = max(words, codes - early) + (runs - 1) * max(words, codes - later)
    return window.words - window.beats + written


def buffered_cycles(buffer: LineBuffer, reading: int, channels: int, in_lanes: int = 1) -> int:
    """Cycles per frame of a layer that reads so long, of an image of so many channels.

    It comes in beats of ``in_lanes`` codes. A shallow buffer makes the reader wait at row and
    frame ends.
    """
    waiting = buffer.missing_words + (2 + buffer.decides_early) * buffer.waits
    lanes, channels = buffer.lanes // in_lanes, channels // in_lanes
    return max(reading + waiting, writing_cycles(buffer.window, lanes, channels))


def useful_depths(
    of_depth: Callable[[int], LineBuffer],
    window: Window,
    reading: int,
    channels: int,
    in_lanes: int = 1,
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
        cycles = buffered_cycles(of_depth(depth), reading, channels, in_lanes)
        if fastest is not None and cycles >= fastest:
            break
        yield depth
        fastest = cycles
        depth *= 2
