"""The line buffer with a memory per tap, which gives all taps of a channel block in one word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from nnef_hw.blockram import Tiling, tile_memory
from nnef_hw.devices import Device
from nnef_hw.parts.linebuffer import padding_words, window_bases
from nnef_hw.parts.part import WindowPart, counter_bits
from nnef_hw.parts.timing import Kernel, Log, Process, Stream

__all__ = ["BankedLineBuffer"]

STAGES = 2
"""Registers of the read side."""


@dataclass(frozen=True, kw_only=True)
class BankedLineBuffer(WindowPart):
    """Keeps ``lines`` rows of beats of ``lanes`` codes in each of its memories."""

    component = "nnef_hw.rtl.banked:BankedLineBuffer"
    costs = "banked line buffer"

    lines: int

    @property
    def depth(self) -> int:
        """Beats that a memory holds."""
        return self.lines * self.window.width * self.window.channel_blocks

    @property
    def memories(self) -> tuple[Tiling, ...]:
        one = tile_memory(self.ram, self.depth, self.bits * self.lanes)
        return (one,) * self.window.taps

    @property
    def _written_bits(self) -> int:
        """Registers between the beats and the memories."""
        row = self.bits * self.lanes + counter_bits(self.depth) + 1
        return self.window.kernel[0] * row

    @property
    def features(self) -> Mapping[str, float]:
        window = self.window
        place = sum(map(counter_bits, (window.height, window.width, window.channel_blocks)))
        return {
            "window bits": self.bits * self.lanes * window.taps,
            "written bits": self._written_bits,
            "offset bits": counter_bits(self.depth) * sum(window.kernel),
            "counter bits": 2 * place + counter_bits(window.passes),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return self.bits * self.lanes * self.window.taps + 80 + self._written_bits

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        taken, finished, target = kernel.log(), kernel.log(), kernel.stream()
        kernel.start(self._write(origin, taken, finished))
        kernel.start(self._read(target, taken, finished))
        return target

    def _write(self, origin: Stream, taken: Log, finished: Log) -> Process:
        """Take a beat while its row has room."""
        window, lines = self.window, self.lines
        row_beats = window.width * window.channel_blocks
        # The oldest row that each row of windows reads, and what has to be finished before a row.
        oldest = np.arange(window.out_height) * window.stride[0] - window.padding[0][0]
        oldest = np.maximum(oldest, 0)
        past = lines // window.height + 1
        earlier = np.concatenate([oldest - back * window.height for back in range(past, -1, -1)])
        places = np.arange(window.height) - lines
        passed_before = (earlier.searchsorted(places, "right") - past * len(oldest)).tolist()
        time = -1
        for frame in count():
            for before in passed_before:
                passed = frame * window.out_height + before
                if passed > 0:
                    if len(finished.times) < passed:
                        yield finished, passed
                    time = max(time, finished.times[passed - 1])
                for _ in range(row_beats):
                    time = max(time + 1, (yield origin))
                    origin.accept(time)
                    taken.add(time)

    def _read(self, target: Stream, taken: Log, finished: Log) -> Process:
        """Read words through a pipeline that ends with the one it gives."""
        window = self.window
        inside = (~np.array(padding_words(window))).cumsum()
        passes = 1 if window.by_channel else window.passes
        last_tap = window_bases(window) + window.span - window.channel_blocks
        needed = np.repeat(last_tap, passes)[:, None] + np.arange(window.channel_blocks)
        row_words = needed.size // window.out_height
        counts: list[int] = inside[needed.reshape(-1)].tolist()
        entered = [-1] * (STAGES + 1)
        for frame in count():
            for word, beats in enumerate(counts):
                missing = frame * window.beats + beats
                if len(taken.times) < missing:
                    yield taken, missing
                entered[0] = max(entered[0] + 1, taken.times[missing - 1] + 2, entered[1])
                if word % row_words == row_words - 1:
                    finished.add(entered[0])
                for stage in range(1, STAGES):
                    entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
                entered[STAGES] = yield target, entered[STAGES - 1] + 1
