"""Readers of memories beside the FPGA give an image, word after word."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Protocol

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.parts.base.untyped import Hardware

__all__ = ["Reader", "ReaderWords", "check_left"]


def check_left(count: int, left: int) -> None:
    """Check that a read has so many words left to be taken.

    Raises
    ------
    ValueError
        If they are not.
    """
    if count > left:
        what = f"only {left} words are" if left else "no word is"
        raise ValueError(f"{what} left: begin a read first")


class ReaderWords(Protocol):
    """Words of a :class:`Reader` in time: a consumer's cycles in, the reader's out.

    Cycles count from the first one after a reset.
    """

    @property
    def offered(self) -> int:
        """Cycle in which the next word's ``valid`` rises."""

    @property
    def left(self) -> int:
        """Words of the read that have not been taken."""

    def begin(self, wanted: int) -> int:
        """Give ``start`` in this cycle, or in the first later one in which it is heeded.

        Raises
        ------
        ValueError
            If words of the last read have not been taken.
        """

    def take(self, wanted: int) -> int:
        """Take the next word in this cycle, or when it comes; return the cycle.

        Raises
        ------
        ValueError
            If all words have been taken.
        """

    def take_all(self, count: int, wanted: int) -> int:
        """Take so many words as they come, none before a cycle; return the cycle of the last one.

        Raises
        ------
        ValueError
            If there are not so many.
        """


@dataclass(frozen=True, kw_only=True)
class Reader(Part):
    """Gives the words of an image, from its first one on, whenever it is started.

    What comes only once, if anything does, is left out when it is started again.

    Parameters
    ----------
    clock_mhz
        Of the component, and of the memory.
    words
        Words of the image.

    Attributes
    ----------
    pads
        Module and class of what is between it and the pins.
    """

    pads: ClassVar[str]
    unshown = "words come from a chip: tests/rtl/readers has them with its model"

    clock_mhz: float
    words: int

    def make_pads(self) -> Hardware:
        """Return the hardware between reader and pins (:class:`nnef_hw.rtl.readers.pads.Pads`)."""
        module, _, name = self.pads.partition(":")
        return getattr(import_module(module), name)(self)

    @abstractmethod
    def words_from(self) -> ReaderWords:
        """Return the prediction, from the first cycle after a reset on."""

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        """Start a process that reads the image over and over, as soon as each time it can."""
        del origins
        target = kernel.stream()
        kernel.start(self._process(target))
        return target

    def _process(self, target: Stream) -> Process:
        times = self.words_from()
        while True:
            times.begin(0)
            for _ in range(times.left):
                taken = yield target, times.offered
                times.take(taken)

    def compute(self, image: IntArray) -> IntArray:
        """Return the words [words, 1] of an image of words [words, 1], as the first read does."""
        assert len(image) == self.words
        return image
