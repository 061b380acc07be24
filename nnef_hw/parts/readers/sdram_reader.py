"""Reader of an image in SDR SDRAM, which writes it there, too: cycles, and when its words come."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling
from nnef_hw.hardware.memories import SdramChip
from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.readers.reader import Reader, check_left
from nnef_hw.parts.streams.fifo import FIFO_REGISTERS, BlockFifo

__all__ = ["SdramReader", "SdramWords"]

PAD_CYCLES = 2
"""From a command at the component to the data of a CAS latency of 0: a register per direction."""
SETUP_REFRESHES = 8
_OUTPUT_LATENCY = 1
"""Cycles through the two registers behind the queue, which part it from what takes the words."""
_OUTPUT_DEPTH = 2
_SETTLED = 8
"""Words that are taken one after the other until each moves as the one before did."""
GRANULE = 16
"""What is written and read is a multiple of so many words: no row is open for less than tRAS."""


@dataclass(frozen=True, kw_only=True)
class SdramReader(Reader):
    """Gives the words of an image, from address 0 on, a burst after the other into a queue.

    A burst is a row, or a power of two of its words; it begins when the queue has room for all of
    it. A refresh comes every :attr:`refresh_cycles`, or behind the burst that is going on then.

    Parameters
    ----------
    chip
        The memory.
    clock_mhz
        Of the component, and of the memory.
    words
        Words of the image. Those up to the next multiple of 16 are written, and read, too.
    ram
        Block RAM for the queue.
    once
        How many of them, the first ones, only the first read brings.

    Raises
    ------
    ValueError
        If the image is empty, all of it comes only once, or it is larger than the memory; or the
        clock is too fast, or too slow for any burst between two refreshes.
    """

    component = "nnef_hw.rtl.readers.sdram_reader:SdramReader"
    label = "sdram_reader"
    costs = "sdram reader"
    pads = "nnef_hw.rtl.readers.pads:SdramPads"

    chip: SdramChip
    ram: BlockRam
    once: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.once < max(1, self.words):
            raise ValueError(
                f"SdramReader: {self.once} of {self.words} words cannot be those that come once"
            )
        if not 1 <= self.words <= self.chip.words:
            raise ValueError(f"SdramReader needs 1 to {self.chip.words} words, not {self.words}")
        self.chip.cas_latency(self.clock_mhz)
        if self.burst < GRANULE:
            raise ValueError(f"SdramReader: {self.clock_mhz:g} MHz is too slow for refreshes")

    @property
    def granules(self) -> int:
        """The image's words in multiples of 16."""
        return _granules(self.words)

    @cached_property
    def cas_latency(self) -> int:
        """CAS latency in cycles."""
        return self.chip.cas_latency(self.clock_mhz)

    def _cycles(self, nanoseconds: float) -> int:
        return self.chip.cycles(nanoseconds, self.clock_mhz)

    @cached_property
    def active_cycles(self) -> int:
        """From ``ACTIVE`` to ``READ`` or ``WRITE``."""
        return self._cycles(self.chip.t_rcd)

    @cached_property
    def precharge_cycles(self) -> int:
        """From ``PRECHARGE`` to the next command."""
        return self._cycles(self.chip.t_rp)

    @cached_property
    def refresh_command_cycles(self) -> int:
        """From ``REFRESH`` to the next command."""
        return self._cycles(self.chip.t_rfc)

    @property
    def mode_cycles(self) -> int:
        """From ``LOAD MODE REGISTER`` to the next command."""
        return self._cycles(self.chip.t_mrd)

    @property
    def write_cycles(self) -> int:
        """From ``WRITE``, whose row then closes by itself, to the next command."""
        open_cycles = self._cycles(self.chip.t_ras) - self.active_cycles
        closed = max(self._cycles(self.chip.t_wr), open_cycles)
        return max(
            closed + self.precharge_cycles, self._cycles(self.chip.t_rc) - self.active_cycles
        )

    @cached_property
    def refresh_cycles(self) -> int:
        """Cycles from one refresh that is due to the next."""
        return math.floor(self.chip.refresh_us * self.clock_mhz)

    @property
    def power_up_refreshes(self) -> int:
        """Intervals of refresh that pass before the first command."""
        return math.ceil(self.chip.power_up_us * self.clock_mhz / self.refresh_cycles)

    @property
    def setup_cycles(self) -> int:
        """First cycle after a reset in which it could do something useful."""
        return (
            self.power_up_refreshes * self.refresh_cycles + self.precharge_cycles
            + SETUP_REFRESHES * self.refresh_command_cycles + self.mode_cycles
        )  # fmt: skip

    def burst_cycles(self, words: int) -> int:
        """Cycles from the beginning of a burst to the next command."""
        return self.active_cycles + GRANULE * _granules(words) + self.precharge_cycles

    @cached_property
    def burst(self) -> int:
        """Words of a burst: a row, unless fewer are what fits between two refreshes."""
        words = self.chip.columns
        between = self.refresh_cycles - self.refresh_command_cycles
        while words and self.burst_cycles(words) > between:
            words //= 2
        return words

    @property
    def depth(self) -> int:
        """Words that the queue holds: two bursts."""
        return 2 * self.burst

    @property
    def queue(self) -> BlockFifo:
        """The queue; ``last`` of its beats means nothing."""
        return BlockFifo(
            bits=self.chip.width, signed=False, frame=self.words,
            depth=self.depth + FIFO_REGISTERS, ram=self.ram,
        )  # fmt: skip

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return self.queue.memories

    @cached_property
    def first_read_cycles(self) -> int:
        """Cycles from the ``READ`` that is decided on to its word in the queue."""
        return 1 + self.cas_latency + PAD_CYCLES

    @property
    def first_word_cycles(self) -> int:
        """From ``start`` to the first word's ``valid``, unless a refresh is due just then."""
        behind = self.queue.latency + _OUTPUT_LATENCY
        return 1 + self.active_cycles + self.first_read_cycles + behind

    @property
    def words_per_cycle(self) -> float:
        """Mean rate in a long image, for a consumer that takes a word per cycle."""
        bursts = 1 - self.refresh_command_cycles / self.refresh_cycles
        return bursts * self.burst / self.burst_cycles(self.burst)

    def words_from(self) -> SdramWords:
        """Return the prediction, from the first cycle after a reset on."""
        return SdramWords(self)

    @property
    def features(self) -> Mapping[str, float]:
        return {
            "word bits": counter_bits(self.words),
            "data bits": self.chip.width,
        }

    def flip_flops(self, device: Device) -> int:
        counters = counter_bits(self.granules) + counter_bits(self.chip.words)
        counters += counter_bits(self.depth) + counter_bits(self.refresh_cycles)
        counters += 2 if self.once else 0
        registers = (1 + _OUTPUT_DEPTH) * self.chip.width
        return self.queue.flip_flops(device) + registers + counters + 43


def _granules(words: int) -> int:
    return -(-words // GRANULE)


class SdramWords:
    """Words of a :class:`SdramReader` in time: a consumer's cycles in, the reader's out.

    Between commands it decides in some cycle t what comes next. A refresh is due in every multiple
    of ``refresh_cycles``; if one is, it decides again in ``t + refresh_command_cycles``. Otherwise,
    if of the words that were read at most half the queue is not taken before t - 1, a burst of n
    words begins: word k of it enters the queue in ``t + active_cycles + k + first_read_cycles``,
    and it decides again in ``t + active_cycles + m + precharge_cycles``, where m is the next
    multiple of 16. A burst ends at a multiple of its words; the first one of a read that leaves out
    what comes once begins with a multiple of 16, of which the words that it leaves out do not
    enter the queue. From the queue on, the formulae are those of
    :class:`nnef_hw.rtl.streams.fifo.BlockFifo`, which gives to two registers: word k in ``h[k] =
    max(s[k], g[k - 2]) + 1``; they offer it from ``h[k] + 1`` on and give it in ``g[k]``. Cycles
    count from the first one after a reset.

    Nothing may have been written since that reset, or ``idle`` be late for it.

    Attributes
    ----------
    offered : int
        Cycle in which the next word's ``valid`` rises.
    left : int
        Words of the read that have not been taken.
    """

    def __init__(self, reader: SdramReader) -> None:
        self._reader = reader
        self._free = reader.setup_cycles
        self._refreshed = reader.power_up_refreshes
        # takes of the last burst and of the word before it
        self._taken: deque[int] = deque(maxlen=reader.burst + 1)
        # of the burst: words in the queue or on their way, and when the first of them enters it
        self._inside = self._entered = 0
        self._unread = 0
        # the next word of the image that is read, and whether a read has begun before
        self._place, self._is_again = 0, False
        # the last word's s, h and g, and the g of the one before
        self._moved = self._given = self._last = self._before = -1
        self.offered = -1

    @property
    def left(self) -> int:
        return self._inside + self._unread

    def begin(self, wanted: int) -> int:
        """Give ``start`` in this cycle, or in the first later one in which it is heeded.

        Raises
        ------
        ValueError
            If words of the last read have not been taken.
        """
        if self.left:
            raise ValueError(f"{self.left} words of the last read were not taken yet")
        cycle = max(wanted, self._free)
        # refreshes go on until then, and one that is due comes first
        while self._next_refresh <= cycle:
            self._free = self._refresh(max(self._free, self._next_refresh))
            cycle = max(cycle, self._free)
        self._place, self._unread = self._first()
        self._free = cycle + 1
        self._next()
        return cycle

    def _first(self) -> tuple[int, int]:
        """Return the first word of a read that begins, and how many it has."""
        once = self._reader.once if self._is_again else 0
        self._is_again = True
        return once, self._reader.words - once

    @property
    def _next_refresh(self) -> int:
        return (self._refreshed + 1) * self._reader.refresh_cycles

    def _refresh(self, cycle: int) -> int:
        self._refreshed += 1
        return cycle + self._reader.refresh_command_cycles

    def take(self, wanted: int) -> int:
        """Take the next word in this cycle, or when it comes; return the cycle.

        Raises
        ------
        ValueError
            If all words have been taken.
        """
        return self.take_all(1, wanted)

    def take_all(self, count: int, wanted: int, *, each: int = 1) -> int:
        """Take so many words as they come, none before a cycle; return the cycle of the last one.

        A word is looked at for as many cycles as ``each`` tells, and taken in the last of them.

        Raises
        ------
        ValueError
            If there are not so many.
        """
        check_left(count, self.left)
        while count:
            # Words of a burst enter the queue one per cycle, so that is how they leave it.
            some = min(count, self._inside)
            first = max(wanted, self.offered) + each - 1
            cycles = range(first, first + some * each, each)
            self._taken.extend(cycles)
            count -= some
            for cycle in cycles[:_SETTLED]:
                self._leave(cycle)
            if some > _SETTLED:
                # Each is given to the registers behind the queue as soon as one of them is free.
                self._last = cycles[-2]
                self._given = cycles[-3] + 1
                self._moved = self._given - each
                self._leave(cycles[-1], some - _SETTLED)
        return self._last

    def _leave(self, cycle: int, words: int = 1) -> None:
        """Let a word be taken, the last one of so many, and go on with the one behind it."""
        self._before, self._last = self._last, cycle
        self._inside -= words
        self._entered += words
        if self.left:
            self._next()

    def _next(self) -> None:
        """Go on with the next word."""
        if not self._inside:
            self._burst()
        # entered the queue, is read, moves on behind the memory, leaves the queue, is offered
        read = max(self._entered + 1, self._moved)
        self._moved = max(read + 1, self._given)
        self._given = max(self._moved, self._before) + 1
        self.offered = max(self._given, self._last) + 1

    def _burst(self) -> None:
        """Read a burst, as soon as there is room for it."""
        reader = self._reader
        early, row = self._place % GRANULE, self._place % reader.burst
        words = min(reader.burst - row, self._unread)
        room = self._taken[0] + 2 if len(self._taken) > reader.burst else 0
        cycle = self._free
        while cycle < room or self._next_refresh <= cycle:
            if self._next_refresh <= cycle:
                cycle = self._refresh(cycle)
            else:
                cycle = min(room, self._next_refresh)
        self._entered = cycle + reader.active_cycles + reader.first_read_cycles + early
        self._inside = words
        self._free = cycle + reader.burst_cycles(early + words)
        self._unread -= words
        self._place += words
