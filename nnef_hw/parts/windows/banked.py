"""The line buffer with a memory per tap, which gives all taps of a channel block in one word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.base.part import WindowPart, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.windows.linebuffer import padding_words, window_bases

__all__ = ["BankedLineBuffer"]


@dataclass(frozen=True, kw_only=True)
class BankedLineBuffer(WindowPart):
    """Keeps rows of beats of ``lanes`` codes in each of its memories.

    Its latency lasts from the beat that completes a word to that word.

    Parameters
    ----------
    lines
        Rows kept: a power of two, at least the window's reach.
    long_wires
        Whether a beat that comes is looked up in a LUT of its own, and what is stored is counted
        both with and without the word that may be read, which is known late: for long wires.

    Raises
    ------
    ValueError
        If it is another number, or the first window has no pixel.
    """

    component = "nnef_hw.rtl.windows.banked:BankedLineBuffer"
    costs = "banked line buffer"

    lines: int
    long_wires: bool = False

    def __post_init__(self) -> None:
        if self.window.goes_on:
            raise ValueError("BankedLineBuffer keeps no rows from frame to frame")
        if self.window.starts_in_padding:
            raise ValueError("BankedLineBuffer needs a first window with a pixel")
        if self.lines < 1 or self.lines & (self.lines - 1):
            raise ValueError(f"BankedLineBuffer lines must be a power of two, not {self.lines!r}")
        if self.lines < self.window.reach[0]:
            raise ValueError(
                f"BankedLineBuffer lines must be at least {self.window.reach[0]}, "
                f"not {self.lines!r}"
            )

    @property
    def latency(self) -> int:
        return 2 + self.stages

    @property
    def stages(self) -> int:
        """Registers from a memory's address to the word: the memory's, and one behind the padding.

        Some memories have two: what is read, and a register behind it.
        """
        return 2 + self.ram.has_register

    @property
    def depth(self) -> int:
        """Beats that a memory holds."""
        return self.lines * self.window.width * self.window.channel_blocks

    @property
    def beat_bits(self) -> int:
        """Width of a beat's codes."""
        return self.bits * self.lanes

    @property
    def memory(self) -> Tiling:
        """Memory of a tap."""
        return tile_memory(self.ram, self.depth, self.beat_bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,) * self.window.taps

    @property
    def _written_bits(self) -> int:
        """Registers between the beats and the memories."""
        row = self.beat_bits + counter_bits(self.depth) + 1
        return self.window.kernel[0] * row

    def compute(self, codes: IntArray) -> IntArray:
        """Return the words [passes, words, taps and lanes] of windows of codes [beats, lanes]."""
        window = self.window
        blocks = self.taps(codes).swapaxes(1, 2)
        if window.by_channel:
            return np.asarray(blocks.reshape(-1, 1, window.taps * self.lanes))
        passes = blocks.repeat(window.passes, axis=0)
        return np.asarray(passes.reshape(-1, window.channel_blocks, window.taps * self.lanes))

    @property
    def features(self) -> Mapping[str, float]:
        window = self.window
        place = sum(map(counter_bits, (window.height, window.width, window.channel_blocks)))
        return {
            "window bits": self.beat_bits * window.taps,
            "written bits": self._written_bits,
            "offset bits": counter_bits(self.depth) * sum(window.kernel),
            "counter bits": 2 * place + counter_bits(window.passes),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return self.beat_bits * self.window.taps + 80 + self._written_bits

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        accepted, finished, target = kernel.log(origin), kernel.log(), kernel.stream()
        kernel.start(self._write(origin, accepted, finished))
        kernel.start(self._read(target, accepted, finished))
        return target

    def _write(self, origin: Stream, accepted: Log, finished: Log) -> Process:
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
                    offered = yield origin
                    time = offered if offered > time else time + 1
                    origin.accept(time)
                    if accepted.waiter is not None:
                        accepted.wake(time)

    def _read(self, target: Stream, accepted: Log, finished: Log) -> Process:
        """Read words through a pipeline that ends with the one it gives."""
        window = self.window
        inside = (~np.array(padding_words(window))).cumsum()
        passes = 1 if window.by_channel else window.passes
        last_tap = window_bases(window) + window.span - window.channel_blocks
        needed = np.repeat(last_tap, passes)[:, None] + np.arange(window.channel_blocks)
        row_words = needed.size // window.out_height
        counts: list[int] = inside[needed.reshape(-1)].tolist()
        arrivals = accepted.times
        stages = self.stages
        entered = [-1] * (stages + 1)
        for frame in count():
            for word, beats in enumerate(counts):
                missing = frame * window.beats + beats
                if len(arrivals) < missing:
                    yield accepted, missing
                entered[0] = max(entered[0] + 1, arrivals[missing - 1] + 2, entered[1])
                if word % row_words == row_words - 1:
                    finished.add(entered[0])
                for stage in range(1, stages):
                    entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
                entered[stages] = yield target, entered[stages - 1] + 1
