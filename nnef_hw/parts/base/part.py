"""Every part answers alike: its computation, its resources of a device, the times of its items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from typing import ClassVar, NamedTuple, final

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.hardware.families.family import Family
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.parts.base.untyped import Content, Hardware

__all__ = [
    "SHORT_TABLE", "LogicProducts", "Part", "Pipe", "WindowPart", "constant_tables",
    "counter_bits", "rom_luts", "table_columns", "table_features",
]  # fmt: skip


def counter_bits(count: int) -> int:
    """Width of a counter of ``count`` states."""
    return max(0, count - 1).bit_length()


SHORT_TABLE = 16
"""Most words of a table of which a LUT4 holds a bit."""


def rom_luts(words: int) -> float:
    """LUT4s of one bit of a constant table, without those that choose between them.

    A short table shares logic with what surrounds it.
    """
    return words / 16 if words > SHORT_TABLE else min(1.0, words / 8)


def table_features(bits: int, words: int) -> dict[str, float]:
    """Return the features of a constant table of ``words`` of ``bits``, for an estimate."""
    luts, is_short = bits * rom_luts(words), words <= SHORT_TABLE
    return {"short table": luts if is_short else 0.0, "long table": 0.0 if is_short else luts}


def table_columns(bits: int, words: int) -> int:
    """Return how many columns of a constant table may differ; equal ones are merged."""
    return bits if words > SHORT_TABLE else min(bits, (1 << words) - 2)


TABLE_WORDS = 64
"""Constants of a table that is looked up within a cycle.

Measured on an ECP5-85F: a table of 256 was eight LUTs deep and the last path to miss 91 MHz; those
of 64 meet 97 MHz.
"""


def constant_tables(constants: int) -> int:
    """Return how many tables hold constants that come in turn, a power of two."""
    return 1 << (-(-constants // TABLE_WORDS) - 1).bit_length()


class LogicProducts(NamedTuple):
    """Multipliers in logic: their number, less what constants save; bits of their factors."""

    number: float
    widths: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Part(ABC):
    """A component of ``rtl/``: its parameters, and all that follows from them.

    The component takes it, and reads there what follows: widths, depths, latency, cycles. Its
    *contents* (weights, tables, constants) are given to :meth:`build` besides. A concrete part that
    leaves a question open cannot be made, and none can whose parameters make no component.

    Attributes
    ----------
    component
        ``module:class`` of the component.
    label
        What an instance is called in Verilog, behind the name of its layer.
    costs
        Its row in :attr:`.Family.lut_weights`.
    is_registered
        Whether registers stand between its operands and its result.
    takes_turns
        Whether it takes its operands in turn, not all at once.
    trained_sizes
        Parameters that follow from the weights of the layers that share it.
    unshown
        Why there is no example of it alone, if there is none.
    """

    component: ClassVar[str]
    label: ClassVar[str]
    costs: ClassVar[str]
    is_registered: ClassVar[bool] = True
    takes_turns: ClassVar[bool] = False
    trained_sizes: ClassVar[tuple[str, ...]] = ()
    unshown: ClassVar[str] = ""

    def __init_subclass__(cls, *, of_parts: bool = False) -> None:
        """Check that a new component says what it computes, and families what its LUTs weigh.

        One ``of_parts`` needs none: it takes what they take.
        """
        super().__init_subclass__()
        if not hasattr(cls, "component"):
            return
        assert cls.compute is not Part.compute, f"{cls.__name__} does not say what it computes"
        if not of_parts:
            unmeasured = [
                family.name
                for family in FAMILIES
                if cls.is_made_for(family) and cls.costs not in family.lut_weights
            ]
            assert not unmeasured, f"{cls.label} of {unmeasured} has no row {cls.costs!r}"

    @classmethod
    def is_made_for(cls, family: Family) -> bool:
        """Whether a family has the blocks that the component is for."""
        del family
        return True

    @property
    def memories(self) -> tuple[Tiling, ...]:
        """Memories in block RAM, as tiled."""
        return ()

    @property
    def interval(self) -> int:
        """Least cycles from one item to the next."""
        return 1

    @property
    def kept_bits(self) -> int:
        """Bits of an image that it keeps, copies included."""
        return 0

    @property
    def multipliers(self) -> int:
        """Multipliers for multiply-accumulates."""
        return 0

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates per cycle while none of these is idle."""
        return self.multipliers

    @property
    def in_logic(self) -> int:
        """Number of multipliers in LUTs."""
        return 0

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        """Products made in these LUTs, and those that are no multiply-accumulates."""
        return ()

    def dsp(self, device: Device) -> int:
        """DSP blocks, exact."""
        del device
        return 0

    @property
    def spram(self) -> int:
        """Single-port RAM blocks, exact."""
        return 0

    @abstractmethod
    def compute(self, *operands: Hardware, **contents: Content) -> IntArray:
        """Return the exact integers that a component gives from a reset on, in the order of beats.

        Parameters
        ----------
        operands
            What comes in each stream of :meth:`operands`, of whole frames: codes of beats
            [beats, lanes], or words of passes over windows [passes, words of a pass, lanes].
        contents
            What :meth:`build` is given.

        Returns
        -------
        The items of :meth:`result` in one of these two forms, sums as signed numbers.
        """

    @property
    @abstractmethod
    def features(self) -> Mapping[str, float]:
        """Uses of the LUTs: bits of registers, adders, counters, tables.

        Their weights are measured (:attr:`.Family.lut_weights`); each family has one for each of
        them, and one for ``fixed``, of which there is 1.
        """

    @abstractmethod
    def flip_flops(self, device: Device) -> int:
        """Estimate the flip-flops."""

    @property
    def timing(self) -> Part:
        """One part for all that move their items in the same cycles; this part if unsure."""
        return self

    @abstractmethod
    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        """Start the processes that move items as the component does; return what it gives."""

    @final
    def resources(self, device: Device) -> Resources:
        """Estimate the part's resources of a device; DSP blocks and memories are exact.

        Of the device, only the family matters.
        """
        kept = self._resources_by_family
        if device.family not in kept:
            kept[device.family] = self._estimated(device)
        return kept[device.family]

    @cached_property
    def _resources_by_family(self) -> dict[Family, Resources]:
        return {}

    @lru_cache(maxsize=1 << 15)  # noqa: B019 - equal parts, which layers that are alike have, once
    def _estimated(self, device: Device) -> Resources:
        return self._estimate(device)

    def _estimate(self, device: Device) -> Resources:
        weights = device.family.lut_weights[self.costs]
        features = {**self.features, "fixed": 1.0}
        assert features.keys() == weights.keys(), (self, features.keys() ^ weights.keys())
        lut = sum(weights[name] * count for name, count in features.items())
        return Resources(
            lut=round(lut + self.product_luts(device)),
            ff=self.flip_flops(device),
            dsp=self.dsp(device),
            bram=sum(tiling.count for tiling in self.memories),
            spram=self.spram,
        )

    def product_luts(self, device: Device) -> float:
        """Estimate the LUTs of its multipliers in logic."""
        share = device.family.product_share
        products = sum(each.number * share(*sorted(each.widths)) for each in self.logic_products)
        return device.lut_multiplier * products

    def build(self, **contents: Content) -> Hardware:
        """Return the Amaranth component with these contents."""
        return self.component_class()(self, **contents)

    def build_counted(self, **contents: Content) -> Hardware:
        """Return the same, with ports for what :meth:`arrivals` returns, if it takes more."""
        return self.build(**contents)

    def component_class(self) -> Hardware:
        """Return the class of the component; Amaranth is imported only now."""
        module, _, name = self.component.partition(":")
        return getattr(import_module(module), name)

    def made(self, component: Hardware) -> list[Hardware]:
        """Return the hardware that :meth:`build` has made: component and given values."""
        return [component]

    def operands(self, component: Hardware) -> list[Hardware]:
        """Return the streams in which a built component takes its operands."""
        return [component.i]

    def result(self, component: Hardware) -> Hardware:
        """Return the stream in which it gives its results."""
        return component.o

    def arrivals(self, component: Hardware) -> tuple[Hardware, Hardware]:
        """Return whether a word stands at a built component, and whether it would be taken now."""
        operands = self.operands(component)
        valid = operands[0].valid
        for operand in operands[1:]:
            valid &= operand.valid
        return valid, operands[0].ready


class Pipe(Part):
    """A part that is one process."""

    @abstractmethod
    def process(self, target: Stream, *origins: Stream) -> Process:
        """Move items from the operands to the result, as the component's docstring says."""

    @final
    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        """Start the process."""
        target = kernel.stream()
        kernel.start(self.process(target, *origins))
        return target


@dataclass(frozen=True, kw_only=True)
class WindowPart(Part):
    """A line buffer: its items are passes over windows, which are what its layer works on.

    Parameters
    ----------
    window
        Windows that it sends, over an image of beats of ``lanes`` codes.
    bits, signed, lanes
        Format of a beat.
    pad_code
        What the padding consists of: the input's zero point, or the lowest code for a maximum.
    ram
        The device's block RAM.
    """

    label = "window"

    window: Window
    bits: int
    signed: bool
    lanes: int
    pad_code: int
    ram: BlockRam

    @property
    def pass_words(self) -> int:
        """Words of a pass (T of the design)."""
        return 1

    @property
    def missing_words(self) -> int:
        """Words per frame that had no room before its reader came to wait for them."""
        return 0

    @property
    def pause(self) -> int:
        """Most cycles on end in which it takes nothing though nobody waits."""
        return 0

    @property
    def kept_bits(self) -> int:
        return sum(memory.depth * memory.width for memory in self.memories)

    def taps(self, codes: IntArray) -> IntArray:
        """Return the taps of every window of codes [beats, lanes].

        They are [window, tap, channel block, lane], of all windows whose rows have come. Rows
        before the first image of one without an end are padding.
        """
        window = self.window
        shape = -1, window.height, window.width, window.channel_blocks, self.lanes
        images = codes.reshape(shape)
        if window.goes_on:
            rows = images.reshape(-1, *shape[2:])
            past = np.full((window.history, *shape[2:]), self.pad_code)
            rows = np.concatenate([past, rows])
            frames = len(images) + -(-window.lag // window.height)
            kept = window.history + window.height - window.lag
            images_seen = [rows[n * window.height :][:kept] for n in range(frames)]
        else:
            images_seen = list(images)
        return np.concatenate([self._taps_of(image) for image in images_seen])

    def _taps_of(self, image: IntArray) -> IntArray:
        """Return the taps of the windows of an image [row, column, channel block, lane]."""
        window = self.window
        border = (*window.padding, (0, 0), (0, 0))
        padded = np.pad(image, border, constant_values=self.pad_code)
        (rows, columns), (down, across) = window.reach, window.dilation
        starts = [
            (y, x)
            for y in range(0, window.out_height * window.stride[0], window.stride[0])
            for x in range(0, window.out_width * window.stride[1], window.stride[1])
            if y + rows <= len(padded)  # of a frame that has not come yet
        ]
        taps = [
            padded[y : y + rows : down, x : x + columns : across].reshape(
                window.taps, *image.shape[2:]
            )
            for y, x in starts
        ]
        return np.reshape(taps, (-1, window.taps, *image.shape[2:]))
