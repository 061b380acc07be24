"""The line buffer that gives all pixels of a window in one word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.base.part import Pipe, WindowPart, counter_bits
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.windows.linebuffer import padding_words, window_bases

__all__ = ["ParallelLineBuffer"]


@dataclass(frozen=True, kw_only=True)
class ParallelLineBuffer(WindowPart, Pipe):
    """Takes pixels of ``lanes`` codes: one is accepted, shifts in, and its window is given.

    Its latency lasts from the pixel that completes a window to that window.

    Raises
    ------
    ValueError
        If the window has several channel blocks or a dilation, the padded image one column, or the
        first window no pixel.
    """

    component = "nnef_hw.rtl.windows.parallel:ParallelLineBuffer"
    costs = "parallel line buffer"
    latency = 2

    def __post_init__(self) -> None:
        window = self.window
        if window.channel_blocks != 1 or window.by_channel:
            raise ValueError("ParallelLineBuffer needs all channels of a pixel in one beat")
        if window.goes_on:
            raise ValueError("ParallelLineBuffer keeps no rows from frame to frame")
        if window.dilation != (1, 1):
            raise ValueError(f"ParallelLineBuffer has no dilation, not {window.dilation!r}")
        if window.padded_width < 2 or window.starts_in_padding:
            raise ValueError("ParallelLineBuffer needs two columns and a first window with a pixel")

    @property
    def pixel_bits(self) -> int:
        """Width of a pixel."""
        return self.bits * self.lanes

    @property
    def memory(self) -> Tiling | None:
        """Memory of the rows above the current one, a word per column, if there are any."""
        rows = self.window.kernel[0] - 1
        if not rows:
            return None
        return tile_memory(self.ram, self.window.padded_width, self.pixel_bits * rows)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return () if self.memory is None else (self.memory,)

    def compute(self, codes: IntArray) -> IntArray:
        """Return the words [passes, 1, taps and lanes] of every window of codes [beats, lanes]."""
        taps = self.taps(codes).repeat(self.window.passes, axis=0)
        return np.asarray(taps.reshape(len(taps), 1, -1))

    @property
    def features(self) -> Mapping[str, float]:
        window = self.window
        place = counter_bits(window.padded_height) + counter_bits(window.padded_width)
        return {
            "window bits": self.pixel_bits * window.taps,
            "pixel bits": self.pixel_bits,
            "padded width": self.pixel_bits if window.words != window.beats else 0,
            "counter bits": place + counter_bits(window.passes),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return self.pixel_bits * (self.window.taps + 1) + 40

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        window = self.window
        padding = padding_words(window)
        completing = set((window_bases(window) + window.span - 1).tolist())
        time = shifted = free = -1
        while True:
            for word in range(window.words):
                time = max(time + 1, shifted)
                if not padding[word]:
                    offered = yield origin
                    time = max(time, offered)
                    origin.accept(time)
                shifted = max(time + 1, free)
                free = shifted + 1
                if word in completing:
                    for _ in range(window.passes):
                        free = (yield target, free) + 1
                    free -= 1
