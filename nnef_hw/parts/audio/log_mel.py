"""Log-mel features of audio, computed by one multiplier in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from nnef_hw.arithmetic.audio.log_mel import LogMelRequant
from nnef_hw.arithmetic.audio.log_spectrum import FACTOR_BITS, NUMBER_BITS
from nnef_hw.arithmetic.audio.logarithm import SEGMENT_BITS, SLOPE_BITS, log2_table
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, SinglePortRam, Tiling, tile_memory
from nnef_hw.parts.base.part import LogicProducts, Pipe
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["LogMel", "LogMelWords"]

LAST_WEIGHT = 1 << 15
"""Set in the last weight of a band."""
NEXT_BAND = 1 << 14
"""Set in the weight behind whose bin the next band begins, if it begins later."""

LIMB_BITS = 25
"""Bits of the lower half of a power."""
TOP_BIT = 57
"""The bit to which a sum is shifted before its logarithm is looked up."""
WIDE_SHIFT = 16
"""Places by which a sum may be shifted in a step, besides one."""
WIDE_JOINS, WIDE_NORMALIZES = 1, 3
"""Wide shifts between a sum's halves, and before its logarithm at most."""
JOIN_STEPS = WIDE_JOINS + LIMB_BITS - WIDE_JOINS * WIDE_SHIFT
NORMALIZE_STEPS = WIDE_NORMALIZES + WIDE_SHIFT - 1
LOG_STEPS = 33
LOG_CLASHES = 1
"""Steps of these that read and write: the number that was written last is read next."""
LOG_WORDS, CONSTANTS = 256, 8
"""Words of the logarithm's table, and other constants."""
ROOT_BITS = 25
"""Bits of a magnitude: each takes a step."""
ROOT_BEGIN = 8
"""Step of a bin in which its energy is taken for its root."""
ROOT_WRITTEN = ROOT_BEGIN + 1 + ROOT_BITS - 3
"""Step that says that the root is written: three steps later it is."""
ROOT_ADDRESS_BITS = 4
"""Bits of an address that take as many LUTs as a root.

Measured: 120 to 165; with them estimates are within 3% on an iCE40 and an ECP5.
"""
SQUARE_STEPS, ROOT_STEPS = 9, ROOT_WRITTEN + 1
"""Steps of the power of a bin, and of its magnitude."""
DRAIN = 5
"""Steps from the last number that a pass reads to the first of the next pass."""
WRITE_STEPS = 4
"""Steps from one that says that its sum is written to the one that writes."""


class _Pass(NamedTuple):
    """A pass over all numbers: which of its steps read, and say that a sum is written.

    Attributes
    ----------
    reads, writes
        Steps of a turn, a digit for each.
    turns
        How many there are.
    """

    reads: str
    writes: str
    turns: int

    @property
    def steps(self) -> int:
        """Steps of all turns, and until all is written."""
        return len(self.reads) * self.turns + DRAIN

    @property
    def clashes(self) -> int:
        """Steps that read and write."""
        turn = len(self.reads)
        both = [
            self.reads[n % turn] == self.writes[(n - WRITE_STEPS) % turn] == "1"
            for n in range(turn + WRITE_STEPS)
        ]
        # what the first ones write is not of this pass
        return self.turns * sum(both[-turn:]) - sum(both[:WRITE_STEPS])


@dataclass(frozen=True, kw_only=True)
class LogMelWords:
    """Where constants stand in the memory of factors, and these constants.

    Parameters
    ----------
    words
        All of them.
    cosines, logarithms, constants, weights
        Addresses of the first cosine, word of the logarithm, other constant, and weight; behind all
        but the last are as many words as a power of two divides the address.
    """

    words: tuple[int, ...]
    cosines: int
    logarithms: int
    constants: int
    weights: int

    @classmethod
    def of(cls, requant: LogMelRequant) -> LogMelWords:
        """Return the constants of a front end."""
        points = requant.front.points
        window = np.zeros(points, np.int64)
        window[: requant.front.window] = requant.window
        roots = requant.fft.roots(np.arange(points))
        cosines = np.abs(roots.real[: points // 2])
        weights = _weights(requant)
        slopes = np.diff(log2_table()) + (1 << SLOPE_BITS)
        segment = np.arange(1 << SEGMENT_BITS)
        # where the line of a segment meets the beginning of the table
        bases = (segment << SLOPE_BITS) + log2_table()[:-1] - slopes * segment
        first_log = _first_log(points)
        gap = [0] * (first_log - points - points // 2)
        one = requant.fft.one
        unit = 1 << FACTOR_BITS - 2
        constants = [0, unit, one // 4, one // 2, requant.mult, 2 * unit, 0, 0]
        words = [*window, *cosines, *gap, *slopes, *bases, *constants, *weights]
        assert min(words) >= 0, "factors have no sign"
        assert max(words) < 1 << FACTOR_BITS, "factors have 16 bits"
        return cls(
            words=tuple(map(int, words)), cosines=points, logarithms=first_log,
            constants=first_log + LOG_WORDS, weights=first_log + LOG_WORDS + CONSTANTS,
        )  # fmt: skip


def _in_few_rows(ram: BlockRam, depth: int, width: int) -> Tiling:
    """Return the memory with the fewest rows of blocks, of those with at most an eighth more."""
    tilings = [Tiling(depth, width, *shape) for shape in ram.shapes]
    most = min(tiling.count for tiling in tilings) * 9 / 8
    return min((x for x in tilings if x.count <= most), key=lambda x: (x.rows, x.count))


def _first_log(points: int) -> int:
    """Return where the logarithm's table begins, behind window and cosines."""
    return -(-(points + points // 2) // LOG_WORDS) * LOG_WORDS


def _weights(requant: LogMelRequant) -> list[int]:
    """Return the weights of all bands, with marks."""
    words: list[int] = []
    filters = requant.bank.filters
    for n, band in enumerate(filters):
        run = list(band.weights)
        # without a mark the next band begins with the same bin
        if n + 1 < len(filters) and filters[n + 1].first > band.first:
            run[filters[n + 1].first - band.first - 1] |= NEXT_BAND
        run[-1] |= LAST_WEIGHT
        words += run
    return words


@dataclass(frozen=True, kw_only=True)
class LogMel(Pipe):
    """Takes the samples of a hop, then computes the bands of a frame.

    Its contents are ``requant``.

    Parameters
    ----------
    window, hop, points
        Those of the front end.
    lengths
        Number of weights of each band.
    frames
        Frames of an inference; 0 where windows go on from one inference to the next.
    out_bits, out_signed
        Format of a result.
    in_dsp
        Whether DSP blocks multiply.
    ram
        The device's block RAM.
    magnitudes
        Whether bands are of magnitudes: a root takes a bit per step.
    single_port
        The device's single-port RAM, where that holds numbers; None if block RAM does.
    """

    component = "nnef_hw.rtl.audio.log_mel:LogMel"
    label = "log_mel"
    costs = "log_mel"

    DSP_BLOCKS: ClassVar[int] = 2
    """DSP blocks of its multiplier."""

    window: int
    hop: int
    points: int
    lengths: tuple[int, ...]
    frames: int
    out_bits: int
    out_signed: bool
    in_dsp: bool
    ram: BlockRam
    magnitudes: bool = False
    single_port: SinglePortRam | None = None

    def check(self, requant: LogMelRequant) -> None:
        """Refuse contents of another front end.

        Raises
        ------
        ValueError
            If their window, hop, points, numbers of weights or power are not these.
        """
        front = requant.front
        given = front.window, front.hop, front.points, requant.bank.lengths, front.power
        wanted = self.window, self.hop, self.points, self.lengths, 1 if self.magnitudes else 2
        if given != wanted:
            raise ValueError(
                f"LogMel has window, hop, points, weights and power {given}, not {wanted}"
            )

    def compute(self, samples: IntArray, *, requant: LogMelRequant) -> IntArray:
        """Return the bands [beats, 1] of the frames of samples [beats, 1]."""
        if self.frames:
            length = self.window + (self.frames - 1) * self.hop
            codes = requant.apply(samples.reshape(-1, length))
        else:
            past = np.zeros(self.window - self.hop, np.int64)
            codes = requant.apply(np.concatenate([past, samples[:, 0]]))
        return codes.reshape(-1, 1)

    @property
    def half(self) -> int:
        """Numbers of the complex transform."""
        return self.points // 2

    @property
    def kept(self) -> int:
        """Samples that are kept: a power of two."""
        return 1 << (self.window - 1).bit_length()

    @property
    def is_odd(self) -> bool:
        """Whether the first stage has radix 2."""
        return self.half.bit_length() % 2 == 0

    @property
    def data_words(self) -> int:
        """Numbers of the transform, and samples."""
        return self.points + self.kept

    @property
    def data_memory(self) -> Tiling:
        """Memory of these in block RAM."""
        return tile_memory(self.ram, self.data_words, NUMBER_BITS)

    @property
    def word_memory(self) -> Tiling:
        """Memory of factors."""
        others = _first_log(self.points) + LOG_WORDS + CONSTANTS
        return _in_few_rows(self.ram, others + sum(self.lengths), FACTOR_BITS)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.word_memory,) if self.single_port else (self.data_memory, self.word_memory)

    @property
    def spram(self) -> int:
        return -(-NUMBER_BITS // self.single_port.width) if self.single_port else 0

    def dsp(self, device: Device) -> int:
        del device
        return self.DSP_BLOCKS if self.in_dsp else 0

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return () if self.in_dsp else (LogicProducts(1, (FACTOR_BITS, NUMBER_BITS)),)

    @property
    def bin_steps(self) -> int:
        """Steps of the power, or magnitude, of a bin."""
        return ROOT_STEPS if self.magnitudes else SQUARE_STEPS

    @property
    def _passes(self) -> list[_Pass]:
        """Passes over the numbers: window, stages, real and imaginary parts of the bins, power."""
        half = self.half
        plain = _Pass("11", "11", half)
        turns, sums = ("1101", "0101"), _Pass("110", "011", half)
        first = [plain, _Pass(*turns, half // 2), sums] if self.is_odd else []
        stage = [plain, _Pass(*turns, half // 4 * 3), sums, sums]
        apart = [plain, sums, _Pass(*turns, half // 2), _Pass("1100", "0101", half)]
        power = _Pass(
            "101001".ljust(self.bin_steps, "0"), "11".rjust(self.bin_steps, "0"), half - 1
        )
        stages = (half.bit_length() - 1) // 2
        return [plain, *first, *stages * stage, *apart, power]

    @cached_property
    def transform_cycles(self) -> int:
        """Cycles from a frame's last sample to the first weight of its first band."""
        clashes = sum(each.clashes for each in self._passes) if self.single_port else 0
        return 2 + sum(each.steps for each in self._passes) + clashes

    def band_cycles(self, band: int) -> int:
        """Return the cycles from a band's first weight to its result."""
        clashes = LOG_CLASHES if self.single_port else 0
        steps = JOIN_STEPS + NORMALIZE_STEPS + LOG_STEPS
        return 2 * (self.lengths[band] + 1) + steps + clashes

    @property
    def latency(self) -> int:
        """Cycles from a frame's last sample to its first band."""
        return self.transform_cycles + self.band_cycles(0)

    @property
    def frame_cycles(self) -> int:
        """Cycles from a frame's first sample to the next one's, in the middle of a stream."""
        bands = sum(self.band_cycles(n) + 1 for n in range(len(self.lengths)))
        return self.hop + self.transform_cycles + bands - 1

    @property
    def features(self) -> Mapping[str, float]:
        bits = self.points.bit_length() - 1
        return {"address bits": bits + ROOT_ADDRESS_BITS * self.magnitudes}

    def flip_flops(self, device: Device) -> int:
        del device
        product = 0 if self.in_dsp else FACTOR_BITS + 2 * NUMBER_BITS
        paced = NUMBER_BITS + 2 if self.single_port else 0
        # energy, root and remainder
        root = 4 * ROOT_BITS + 1 if self.magnitudes else 0
        return 165 + 13 * (self.points.bit_length() - 1) + product + paced + root

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        time = -1 if self.frames else self.kept - 1
        missing, frame = self.window if self.frames else self.hop, 0
        while True:
            for _ in range(missing):
                time = max(time + 1, (yield origin))
                origin.accept(time)
            time += self.transform_cycles - 1
            for band in range(len(self.lengths)):
                time = yield target, time + 1 + self.band_cycles(band)
            frame += 1
            missing = self.window if frame % (self.frames or frame + 1) == 0 else self.hop
