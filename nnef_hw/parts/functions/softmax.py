"""Softmax over the channels of a pixel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.arithmetic.integer_functions import integer_softmax_codes
from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.softmax import softmax_codes
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.geometry.blockram import LUT_RAM_WORDS, BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Part, Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["DividingSoftmax", "SerialSoftmax", "Softmax", "SoftmaxPart"]


@dataclass(frozen=True, kw_only=True)
class SoftmaxPart(Part):
    """Softmax with exponentials from a ``table``, which is its contents.

    Parameters
    ----------
    channels
        Codes per pixel, or the most of them if it is shared.
    bits, signed
        Format of a code.
    ram
        The device's block RAM.
    is_shared
        Whether ports tell what differs between the layers whose pixels pass it in turn.
    tables
        Tables that it has, one behind the other, of which a port tells the number.
    is_written
        Whether these are written through ports, and not there from the beginning.

    Attributes
    ----------
    exponential_bits
        Width of an exponential.
    """

    label = "softmax"
    trained_sizes: ClassVar[tuple[str, ...]] = ("tables",)
    exponential_bits: ClassVar[int] = 16

    channels: int
    bits: int
    signed: bool
    ram: BlockRam
    is_shared: bool = False
    tables: int = 1
    is_written: bool = False

    @property
    def table_memory(self) -> Tiling:
        """Memory of the exponentials of all differences of codes."""
        return tile_memory(self.ram, self.tables << self.bits, self.exponential_bits)

    @property
    def beats(self) -> int:
        """Beats of a pixel."""
        return self.channels

    @property
    def lane_bits(self) -> int:
        """Bits that number the codes of a beat."""
        return 0

    @property
    def sum_bits(self) -> int:
        """Width of the sum of a pixel's exponentials."""
        return self.exponential_bits + counter_bits(self.channels)


@dataclass(frozen=True, kw_only=True)
class DividingSoftmax(SoftmaxPart):
    """Divides exponentials by their sum.

    Parameters
    ----------
    out_bits
        Bits of a probability, unsigned.
    places
        Bits of it below 1; it has no others.
    fewer_places
        By how many of them some of the layers that share it have fewer.
    rounds_down
        Whether it is the whole number below ``2**places - 1`` times the share of the sum, and not
        the nearest one of ``2**places`` times it.
    """

    trained_sizes = ("tables", "places", "fewer_places")

    out_bits: int = 8
    places: int = 8
    fewer_places: int = 0
    rounds_down: bool = False

    @property
    def least_places(self) -> int:
        """Places of the layer that has the fewest."""
        return self.places - self.fewer_places

    def missing(self, built: DividingSoftmax) -> Iterator[str]:
        """Yield the fields that differ from those of a part of the same format."""
        if self.least_places < built.least_places or self.places > built.places:
            own, there = self._ranges, built._ranges
            yield f"has probabilities of {own} places, there are {there}"

    @property
    def _ranges(self) -> str:
        few, most = self.least_places, self.places
        return str(most) if few == most else f"{few} to {most}"

    def _estimate(self, device: Device) -> Resources:
        found = super()._estimate(device)
        # An exponential is moved by some of these places.
        more = self.fewer_places.bit_length() * self.exponential_bits
        return replace(found, lut=found.lut + more)

    @property
    def quotient_bits(self) -> int:
        """Bits of a probability, the one above 1 included."""
        return self.places + 1

    def compute(
        self, codes: IntArray, *, table: Sequence[int], is_masked: bool = False
    ) -> IntArray:
        """Return the probabilities of codes [beats, lanes]; masked, the lowest code has none."""
        pixels = codes.reshape(-1, self.channels)
        if self.rounds_down:
            assert not is_masked, "integer networks hide no codes"
            return integer_softmax_codes(pixels, table, 1 << self.places).reshape(codes.shape)
        hidden = QType(self.bits, self.signed, 1.0).lo if is_masked else None
        qtype = QType(self.out_bits, False, 2.0**-self.places)
        return softmax_codes(pixels, table, qtype=qtype, hidden=hidden).reshape(codes.shape)


@dataclass(frozen=True, kw_only=True)
class SerialSoftmax(SoftmaxPart, Pipe):
    """One pixel at a time: all of its codes are taken, then its probabilities are given.

    Attributes
    ----------
    registers
        Flip-flops besides those of indices.
    """

    registers: ClassVar[int]

    @property
    @abstractmethod
    def latency(self) -> int:
        """Cycles from a pixel's last code to its first probability."""

    @property
    @abstractmethod
    def spacing(self) -> int:
        """Cycles from an accepted probability to the next one."""

    @property
    def pixel_cycles(self) -> int:
        """Cycles from a pixel's first code to the next pixel's."""
        return self.channels + self.latency + (self.channels - 1) * self.spacing

    @property
    def code_memory(self) -> Tiling:
        """Memory of the codes of a pixel."""
        return tile_memory(self.ram, max(2, self.channels), self.bits)

    @property
    def holds_few(self) -> bool:
        """Whether these codes are in LUT RAM.

        A block RAM with a register of its own gives a word late without it, and from here the word
        goes on to the table's address.
        """
        return self.ram.has_register and self.channels <= LUT_RAM_WORDS

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.table_memory,) if self.holds_few else (self.code_memory, self.table_memory)

    @property
    def features(self) -> Mapping[str, float]:
        return {"index bits": counter_bits(self.channels)}

    def flip_flops(self, device: Device) -> int:
        del device
        # That of an exponential is the block RAM's own, if it has one.
        outputs = self.bits * self.holds_few - self.exponential_bits * self.ram.has_register
        return self.registers + 3 * counter_bits(self.channels) + outputs

    def process(self, target: Stream, *origins: Stream) -> Process:
        """Take the codes of a pixel, then give its probabilities one after the other."""
        [origin] = origins
        idle = 0
        while True:
            accepted = 0
            for _ in range(self.channels):
                offered = yield origin
                accepted = max(offered, idle)
                origin.accept(accepted)
            time = accepted + self.latency
            for _ in range(self.channels):
                sent = yield target, time
                time = sent + self.spacing
                idle = sent + 1


@dataclass(frozen=True, kw_only=True)
class Softmax(DividingSoftmax, SerialSoftmax):
    """Divides every exponential by their sum, a bit of the quotient per cycle."""

    component = "nnef_hw.rtl.functions.softmax:Softmax"
    costs = "softmax"
    registers = 87

    @property
    def latency(self) -> int:
        return self.channels + 4 + self.spacing

    @property
    def spacing(self) -> int:
        return self.quotient_bits + 5
