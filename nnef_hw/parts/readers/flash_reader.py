"""Reader of an image in SPI flash: its pins in every cycle, and when its words come."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.hardware.memories import FlashChip, FlashRead
from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.readers.flash_words import FlashWords, QueuedFlashWords
from nnef_hw.parts.readers.reader import Reader
from nnef_hw.parts.streams.fifo import BlockFifo

__all__ = ["PAD_CYCLES", "FlashReader", "PinState"]

WORD_BITS = 16
PAD_CYCLES = 2
"""From a pulse of the clock at the component to what it brings: a register in each direction."""
READ_ID, RELEASE_POWER_DOWN, VOLATILE_WRITE, WRITE_STATUS_2 = 0x9F, 0xAB, 0x50, 0x31
QUAD_ENABLE = 0x02
ID_BITS = 24
PROGRAM_BITS = 10
# From the last pulse of a word to its offer: pins, pads, shift register, queue.
OFFER_CYCLES = PAD_CYCLES + 3


class PinState(NamedTuple):
    """Levels of the pins in a cycle.

    Attributes
    ----------
    select
        The chip is selected.
    sck
        Level in the first and in the second half of the cycle.
    dq
        Data lines, of which ``drive`` are driven.
    drive
        A bit per line.
    keep
        The bit that this cycle's pulse brings belongs to the ID.
    """

    select: int = 0
    sck: tuple[int, int] = (0, 0)
    dq: int = 0b1100
    drive: int = 0
    keep: int = 0


PULSE = (0, 1)
# /WP and /HOLD, which are the upper data lines while QE is 0, stay high.
SINGLE, QUAD = 0b1101, 0b1111


@dataclass(frozen=True, kw_only=True)
class FlashReader(Reader):
    """Gives the words of an image, of two bytes each, the lower one first.

    Parameters
    ----------
    chips
        Chips that it accepts; the timings are the longest of theirs.
    any_chip
        Accept others too: every chip that answers.
    read
        Read command.
    clock_mhz
        Of the component, and of the flash while it is read.
    base
        Byte address of the image.
    words
        Its words.
    once
        How many of these, the first ones, only the first read after a reset brings.
    queue
        Where words wait in block RAM; None: in a few registers.

    Raises
    ------
    ValueError
        If there is no chip or one lacks the command, the clock is too fast for it, or the image is
        empty, or all of it comes only once, or it is not within 24 bits of address.
    """

    component = "nnef_hw.rtl.readers.flash_reader:FlashReader"
    label = "flash_reader"
    costs = "flash reader"
    pads = "nnef_hw.rtl.readers.pads:FlashPads"

    chips: tuple[FlashChip, ...]
    read: FlashRead
    base: int
    any_chip: bool = False
    once: int = 0
    queue: BlockFifo | None = None

    def __post_init__(self) -> None:
        if not self.chips:
            raise ValueError("FlashReader needs a chip")
        for chip in self.chips:
            if self.read not in chip.reads:
                raise ValueError(f"FlashReader: {chip.name} has no {self.read.name!r}")
        if self.clock_mhz > self.read.max_mhz:
            raise ValueError(
                f"FlashReader: {self.read.name!r} takes at most {self.read.max_mhz:g} MHz, "
                f"not {self.clock_mhz:g}"
            )
        if not 0 <= self.once < max(1, self.words):
            raise ValueError(
                f"FlashReader: {self.once} of {self.words} words cannot be those that come once"
            )
        if self.words < 1 or self.base < 0 or self.base + 2 * self.words > 1 << 24:
            raise ValueError(
                f"FlashReader needs an image within 24 bits of address, not {self.words} words "
                f"at {self.base:#x}"
            )

    @property
    def word_cycles(self) -> int:
        """Pulses of the clock, and cycles, that a word takes."""
        return WORD_BITS // self.read.bits_per_clock

    @property
    def depth(self) -> int:
        """Words of the queue behind it: as few as never stop a consumer that takes them at once.

        Those in block RAM are as many as it has room for.
        """
        return self._register_depth if self.queue is None else self.queue.depth

    @property
    def _register_depth(self) -> int:
        return max(2, math.ceil((self.word_cycles + OFFER_CYCLES) / self.word_cycles))

    @property
    def offer_cycles(self) -> int:
        """Cycles from the last pulse of a word to its offer."""
        return OFFER_CYCLES if self.queue is None else OFFER_CYCLES + self.queue.latency - 1

    @property
    def interval(self) -> int:
        return self.word_cycles

    def _idle(self, nanoseconds: float) -> list[PinState]:
        """Deselect the chip for so long or longer."""
        return [PinState()] * math.ceil(nanoseconds * self.clock_mhz / 1000)

    @cached_property
    def startup(self) -> tuple[PinState, ...]:
        """Pins after a reset: wake the chip, read its ID, set QE if four lines are used."""
        wake = 1000 * max(chip.wake_us for chip in self.chips)
        deselect = max(chip.deselect_ns for chip in self.chips)
        states = [
            # a reset may have interrupted the same: the longest wait
            *self._idle(wake),
            *_send(RELEASE_POWER_DOWN, 8),
            *self._idle(wake),
            *_send(READ_ID, 8),
            *[PinState(select=1, sck=PULSE, drive=SINGLE, keep=1)] * ID_BITS,
            *self._idle(deselect),
        ]
        if self.read.lines == 4:
            states += [
                *_send(VOLATILE_WRITE, 8),
                *self._idle(deselect),
                *_send(WRITE_STATUS_2 << 8 | QUAD_ENABLE, 16),
                *self._idle(max(chip.write_deselect_ns for chip in self.chips)),
            ]
        # until the ID has passed the pads and the shift register
        return (*states, *[PinState()] * (PAD_CYCLES + 1))

    @cached_property
    def command(self) -> tuple[PinState, ...]:
        """Pins from the beginning of a read up to the first pulse that brings data."""
        return self._command(self.base)

    def _command(self, base: int) -> tuple[PinState, ...]:
        read = self.read
        address = base << read.mode_bits | (1 << read.mode_bits) - 1
        bits = 24 + read.mode_bits
        states = [*_send(read.opcode, 8)]
        if read.address_lines == 1:
            states += _send(address, bits)
        else:
            nibbles = [address >> shift & 15 for shift in range(bits - 4, -1, -4)]
            # at both edges a nibble takes a cycle as well: edges in the middle of every cycle
            edges = [PULSE, (1, 0)] if read.double_rate else [PULSE]
            states += [
                PinState(select=1, sck=edges[n % len(edges)], dq=nibble, drive=QUAD)
                for n, nibble in enumerate(nibbles)
            ]
        drive = 0 if read.lines == 4 else SINGLE
        states += [PinState(select=1, sck=PULSE, drive=drive)] * read.dummy_clocks
        return tuple(states)

    @property
    def reading(self) -> PinState:
        """Pins while words are read, but for the pulses of the clock."""
        return PinState(select=1, drive=0 if self.read.lines == 4 else SINGLE)

    @cached_property
    def ending(self) -> tuple[PinState, ...]:
        """Pins from the end of a read until the next one may begin."""
        return tuple(self._idle(max(chip.deselect_ns for chip in self.chips)))

    @property
    def program(self) -> tuple[PinState, ...]:
        """All states: :attr:`startup`, one to wait in, :attr:`command`, ``reading``, ``ending``.

        If some words come only once, from that to wait in again, for all reads but the first.
        """
        first = (*self.startup, PinState(), *self.command, self.reading, *self.ending)
        if not self.once:
            return first
        again = self._command(self.base + 2 * self.once)
        return (*first, PinState(), *again, self.reading, *self.ending)

    @property
    def tiling(self) -> Tiling:
        """The program's table, which is in LUTs."""
        depth = len(self.program)
        return Tiling(depth, PROGRAM_BITS, depth, PROGRAM_BITS)

    @property
    def first_word_cycles(self) -> int:
        """Cycles from ``start`` to the first word's ``valid``."""
        return 1 + len(self.command) + self.word_cycles - 1 + self.offer_cycles

    @property
    def bytes_per_second(self) -> float:
        """Rate that is never above that of a whole image."""
        return 2e6 * self.clock_mhz / self.word_cycles

    def image_cycles(self, words: int | None = None) -> int:
        """Cycles from ``start`` to the last of so many words, for a consumer that never pauses."""
        return self.first_word_cycles + ((words or self.words) - 1) * self.word_cycles

    def words_from(self) -> FlashWords:
        """Return the prediction, from the first cycle after a reset on."""
        return FlashWords(self) if self.queue is None else QueuedFlashWords(self)

    def _estimate(self, device: Device) -> Resources:
        """Estimate the reader, with a queue in block RAM."""
        found = super()._estimate(device)
        return found if self.queue is None else found + self.queue.resources(device)

    @property
    def features(self) -> Mapping[str, float]:
        return {
            "queue bits": self._register_depth * WORD_BITS,
            "word bits": counter_bits(self.words + 1),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        queue = self._register_depth * (WORD_BITS + 1)
        counters = counter_bits(len(self.program)) + counter_bits(self.words + 1)
        return queue + counters + counter_bits(self.word_cycles) + ID_BITS + 20


def _send(value: int, bits: int) -> list[PinState]:
    """Shift bits out on one line, the highest one first."""
    return [
        PinState(select=1, sck=PULSE, dq=0b1100 | value >> bit & 1, drive=SINGLE)
        for bit in range(bits - 1, -1, -1)
    ]
