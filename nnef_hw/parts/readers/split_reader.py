"""Reader of an image in SDRAM whose words are two beats: the lower half first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling
from nnef_hw.hardware.memories import SdramChip
from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.readers.reader import Reader, check_left
from nnef_hw.parts.readers.sdram_reader import SdramReader

__all__ = ["SplitReader", "SplitWords"]


@dataclass(frozen=True, kw_only=True)
class SplitReader(Reader, of_parts=True):
    """Gives the halves of a memory's words, of which it is given the halves to write, too.

    Parameters
    ----------
    chip
        The memory.
    clock_mhz
        Of the component, and of the memory.
    words
        Halves that the image has; of the last word only the lower one, if they are odd.
    ram
        Block RAM for the queue.
    once
        Halves, the first ones, that only the first read brings.

    Raises
    ------
    ValueError
        If there is no :class:`.SdramReader` of so many whole words.
    """

    component = "nnef_hw.rtl.readers.split_reader:SplitReader"
    label = "split_reader"
    pads = SdramReader.pads

    chip: SdramChip
    ram: BlockRam
    once: int = 0

    def __post_init__(self) -> None:
        assert self.whole.words

    @cached_property
    def whole(self) -> SdramReader:
        """The reader of whole words."""
        words = -(-self.words // 2)
        return SdramReader(
            chip=self.chip, clock_mhz=self.clock_mhz, words=words, ram=self.ram,
            once=self.once // 2,
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Bits of a half."""
        return self.chip.width // 2

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return self.whole.memories

    @property
    def first_word_cycles(self) -> int:
        """From ``start`` to the first half's ``valid``, unless a refresh is due just then."""
        return self.whole.first_word_cycles

    def words_from(self) -> SplitWords:
        """Return the prediction, from the first cycle after a reset on."""
        return SplitWords(self)

    @property
    def features(self) -> Mapping[str, float]:
        return {}

    def flip_flops(self, device: Device) -> int:
        count = counter_bits(self.words) if self.words % 2 or self.once % 2 else 0
        return self.whole.flip_flops(device) + self.width + 2 + count

    def _estimate(self, device: Device) -> Resources:
        # A choice for each bit of a half.
        chosen = Resources(lut=self.width, ff=self.flip_flops(device))
        whole = self.whole.resources(device)
        return chosen + Resources(lut=whole.lut, bram=whole.bram)


class SplitWords:
    """Halves of a :class:`SplitReader` in time: a consumer's cycles in, the reader's out.

    A word is taken with its upper half, in the cycle after that of its lower one or later.

    Attributes
    ----------
    left : int
        Halves of the read that have not been taken.
    """

    def __init__(self, reader: SplitReader) -> None:
        self._reader = reader
        self._words = reader.whole.words_from()
        self._is_upper = False
        # whether only the upper half of the word is given
        self._is_single = False
        self._is_again = False
        self._last = -1
        self.left = 0

    @property
    def offered(self) -> int:
        """Cycle in which the next half's ``valid`` rises."""
        is_second = self._is_upper and not self._is_single
        return self._last + 1 if is_second else self._words.offered

    def begin(self, wanted: int) -> int:
        """Give ``start`` in this cycle, or in the first later one in which it is heeded.

        Raises
        ------
        ValueError
            If words of the last read have not been taken.
        """
        cycle = self._words.begin(wanted)
        once = self._reader.once if self._is_again else 0
        self.left = self._reader.words - once
        self._is_upper = self._is_single = once % 2 > 0
        self._is_again = True
        return cycle

    def take(self, wanted: int) -> int:
        """Take the next half in this cycle, or when it comes; return the cycle.

        Raises
        ------
        ValueError
            If all have been taken.
        """
        return self.take_all(1, wanted)

    def take_all(self, count: int, wanted: int) -> int:
        """Take so many halves as they come, none before a cycle; return the cycle of the last one.

        Raises
        ------
        ValueError
            If there are not so many.
        """
        check_left(count, self.left)
        self.left -= count
        if self._is_upper and count:
            self._last = self._words.take(max(wanted, self.offered))
            self._is_upper, self._is_single, count = False, False, count - 1
        if count > 1:
            self._last = self._words.take_all(count // 2, wanted, each=2)
        if count % 2:
            self._last = max(wanted, self.offered)
            self._is_upper = self.left > 0
            if not self.left:
                self._words.take(self._last)
        return self._last
