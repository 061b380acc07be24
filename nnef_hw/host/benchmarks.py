"""Benchmarks of MLPerf Tiny that the runner knows: their inputs' bytes, and their results' text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import FloatArray, IntArray, QType
from nnef_hw.errors import SampleError, TargetError
from nnef_hw.host.floats import FloatReading

__all__ = ["BENCHMARKS", "Benchmark", "Border", "DistanceFormat", "RunnerFormats", "find_benchmark"]

MOST_BITS = 10
"""Bits of a score at most: each code has digits in a memory."""
DECIMALS = 3
_STEP = 1e-4


@dataclass(frozen=True)
class Border:
    """An input or an output of a network, as a link is told of it.

    Parameters
    ----------
    name
        Its name.
    qtype
        Its format.
    image
        (height, width, channels) of its stream.
    shape
        Extents of one sample.
    """

    name: str
    qtype: QType
    image: tuple[int, int, int]
    shape: tuple[int, ...]

    @property
    def codes(self) -> int:
        """Codes of a frame."""
        return prod(self.image)


class Input(ABC):
    """Rule by which the bytes of an input's file become codes."""

    @abstractmethod
    def table(self, border: Border, where: str) -> tuple[int, ...]:
        """Return the code of each byte.

        Raises
        ------
        TargetError
            If the input's format cannot hold what bytes stand for.
        """

    @abstractmethod
    def values(self, border: Border) -> FloatArray:
        """Return the real number that each byte stands for."""


@dataclass(frozen=True)
class Pixels(Input):
    """Pixels of a picture: bytes of 0 to 255, which a network takes as they are or as 0 to 1."""

    def table(self, border: Border, where: str) -> tuple[int, ...]:
        """Return the code of each pixel; which range is meant the input's format says."""
        form = border.qtype
        least, greatest = (float(form.dequantize(code)) for code in (form.lo, form.hi))
        reals = self.values(border)
        if least <= -0.25 * greatest:
            raise TargetError(
                f"{where}: its format holds {least:g} to {greatest:g}, and pixels are 0 to 255, or "
                "0 to 1",
                remedy="let the network scale its pixels itself",
            )
        codes = form.quantize(reals)
        if np.any(np.abs(form.dequantize(codes) - reals) > 0.51 * float(np.max(form.scale))):
            raise TargetError(
                f"{where}: its format ends at {greatest:g}, and pixels at {reals[-1]:g}",
                remedy="calibrate with pictures that have white pixels",
            )
        return tuple(map(int, codes))

    def values(self, border: Border) -> FloatArray:
        """Return 0 to 1 if the input's format ends there, and otherwise 0 to 255."""
        form = border.qtype
        unit = 1 / 255 if float(form.dequantize(form.hi)) <= 2 else 1.0
        return np.asarray(np.arange(256) * unit, np.float64)


@dataclass(frozen=True)
class Codes(Input):
    """Codes of the benchmark's own eight bits, two's complement.

    Parameters
    ----------
    qtype
        Their format.
    """

    qtype: QType

    def table(self, border: Border, where: str) -> tuple[int, ...]:
        """Return the nearest code of each; its own where the formats are the same."""
        return tuple(map(int, border.qtype.quantize(self.values(border))))

    def values(self, border: Border) -> FloatArray:
        """Return the real numbers of the benchmark's codes."""
        return self.qtype.dequantize(np.arange(256).astype(np.uint8).view(np.int8))


@dataclass(frozen=True)
class RunnerFormats:
    """Formats between the bytes of the protocol, the codes of a network, and its printed results.

    Parameters
    ----------
    size
        Bytes of an input.
    table
        The code of each byte; None if several bytes are a code.
    reading
        Reading of bytes that are float32 numbers.
    digits
        Four decimal digits, of 4 bits each, for each pattern of a result's bits.
    distance
        Numbers for each such pattern, whose distance from the input is the result.
    """

    size: int
    table: tuple[int, ...] | None = None
    reading: FloatReading | None = None
    digits: tuple[int, ...] | None = None
    distance: DistanceFormat | None = None


@dataclass(frozen=True)
class DistanceFormat:
    """Numbers of a mean squared distance.

    Parameters
    ----------
    numbers
        Number of each pattern of a code's bits.
    unit
        Sum of squares of which the mean is 100.
    first
        Sum to begin with: half a thousandth.
    """

    numbers: tuple[int, ...]
    unit: int
    first: int


@dataclass(frozen=True)
class Benchmark(ABC):
    """A benchmark that the runner knows.

    Parameters
    ----------
    name
        Model that a board answers.
    title
        Name for people.
    image
        (height, width, channels) of the input.
    outputs
        Codes of an output.
    """

    name: str
    title: str
    image: tuple[int, int, int]
    outputs: int

    def fits(self, source: Border, sink: Border) -> bool:
        """Whether a network has such an input and such an output."""
        # a stream of one pixel has the order of the tensor
        is_flat = source.image[:2] == (1, 1) and source.shape == self.image
        has_order = source.image == self.image or is_flat or self.image[2] == 1
        return has_order and source.codes == prod(self.image) and sink.codes == self.outputs

    @abstractmethod
    def formats(self, source: Border, sink: Border) -> RunnerFormats:
        """Return the formats for a network.

        Raises
        ------
        TargetError
            If the input's format cannot hold what bytes stand for, or a result cannot be printed.
        """

    @abstractmethod
    def file(self, source: Border, sample: ArrayLike) -> bytes:
        """Return the bytes of a sample's file: row, column, channel.

        Parameters
        ----------
        source
            The input.
        sample
            Real numbers; channel, row, column, whatever the shape.

        Raises
        ------
        SampleError
            If a number is none that bytes stand for.
        """

    @abstractmethod
    def results(
        self, source: Border, sink: Border, file: bytes, codes: IntArray
    ) -> tuple[float, ...]:
        """Return the numbers that a board prints for an input's file and the codes of its output.

        Raises
        ------
        SampleError
            If it would be an error.
        """


@dataclass(frozen=True)
class Classes(Benchmark):
    """A benchmark with a score for each class.

    Parameters
    ----------
    input
        Rule of its input's bytes.
    """

    input: Input

    def formats(self, source: Border, sink: Border) -> RunnerFormats:
        table = self.input.table(source, f"link mlperf, input {source.name!r} of {self.name}")
        return RunnerFormats(source.codes, table=table, digits=self._digits(sink))

    def file(self, source: Border, sample: ArrayLike) -> bytes:
        """Return the bytes of a sample's file, each the nearest one."""
        height, width, channels = source.image
        image = np.asarray(sample, np.float64).reshape(channels, height, width).transpose(1, 2, 0)
        values = self.input.values(source)
        order = np.argsort(values)
        places = order[
            np.searchsorted(values[order], image.ravel() - _STEP * np.ptp(values)).clip(max=255)
        ]
        if np.any(wrong := np.abs(values[places] - image.ravel()) > _STEP * np.ptp(values)):
            raise SampleError(
                f"the number {image.ravel()[wrong][0]:g} is none of the {len(values)} that a byte "
                f"of {self.name} stands for"
            )
        return bytes(places.astype(np.uint8))

    def results(
        self, source: Border, sink: Border, file: bytes, codes: IntArray
    ) -> tuple[float, ...]:
        """Return the score of each class, with three decimal places."""
        scores = sink.qtype.dequantize(codes)
        return tuple(float(f"{score:.{DECIMALS}f}") for score in scores)

    def _digits(self, sink: Border) -> tuple[int, ...]:
        """Return four decimal digits for each pattern of a score's bits."""
        form, where = sink.qtype, f"link mlperf, output {sink.name!r} of {self.name}"
        if form.bits > MOST_BITS:
            raise TargetError(
                f"{where}: its scores have {form.bits} bits, and at most {MOST_BITS} have room for "
                "digits of each code",
                remedy=f"give --set {sink.name}.activation_bits=8",
            )
        scores = [float(form.dequantize(code)) for code in range(form.lo, form.hi + 1)]
        texts = [f"{score:.{DECIMALS}f}" for score in scores]
        if scores[0] < 0 or len(texts[-1]) > DECIMALS + 2:
            raise TargetError(
                f"{where}: the runner takes scores of 0 to 1, and these are {scores[0]:g} to "
                f"{scores[-1]:g}",
                remedy="end the network with a softmax",
            )
        patterns = dict(zip(range(form.lo, form.hi + 1), texts, strict=True))
        found = [0] * (1 << form.bits)
        for code, text in patterns.items():
            found[code & (1 << form.bits) - 1] = int(text.replace(".", ""), 16)
        return tuple(found)


@dataclass(frozen=True)
class Anomaly(Benchmark):
    """A benchmark whose result is the mean squared distance of float32 inputs and outputs.

    Differences are taken in fixed point: inputs and outputs are rounded to 16 bits, of which so
    many are behind the point that the input's format is held twice.
    """

    def formats(self, source: Border, sink: Border) -> RunnerFormats:
        reading = FloatReading.of(source.qtype)
        form, bits = sink.qtype, reading.real_bits
        if form.bits > MOST_BITS:
            raise TargetError(
                f"link mlperf, output {sink.name!r} of {self.name}: its codes have {form.bits} "
                f"bits, and at most {MOST_BITS} have room for a number of each",
                remedy=f"give --set {sink.name}.activation_bits=8",
            )
        numbers = [0] * (1 << form.bits)
        for code in range(form.lo, form.hi + 1):
            number = int(np.floor(float(form.dequantize(code)) * 2**bits + 0.5))
            if number.bit_length() > 15:
                raise TargetError(
                    f"link mlperf, output {sink.name!r} of {self.name}: it may be "
                    f"{float(form.dequantize(code)):g}, and the input's range ends at "
                    f"{2**reading.integer}",
                    remedy="calibrate with samples of the input's whole range",
                )
            numbers[code & (1 << form.bits) - 1] = number
        thousandth = Fraction(source.codes << 2 * bits, 1000)
        distance = DistanceFormat(tuple(numbers), int(thousandth * 100_000), int(thousandth / 2))
        return RunnerFormats(4 * source.codes, reading=reading, distance=distance)

    def file(self, source: Border, sample: ArrayLike) -> bytes:
        """Return the numbers of a sample's file, lowest byte first."""
        return np.asarray(sample, "<f4").tobytes()

    def results(
        self, source: Border, sink: Border, file: bytes, codes: IntArray
    ) -> tuple[float, ...]:
        """Return the distance, with three decimal places."""
        formats = self.formats(source, sink)
        assert formats.reading is not None
        assert formats.distance is not None
        reals, distance = formats.reading.reals(file), formats.distance
        if reals is None:
            raise SampleError(f"a number of the input is {2**formats.reading.integer} or more")
        mask = len(distance.numbers) - 1
        found = [distance.numbers[int(code) & mask] for code in codes]
        total = distance.first + sum((x - y) ** 2 for x, y in zip(found, reals, strict=True))
        thousandths = total * 100_000 // distance.unit
        if thousandths >= 10**6:
            raise SampleError(f"the distance of {thousandths / 1000:g} has more than three digits")
        return (thousandths / 1000,)


_FEATURES = QType(8, signed=True, scale=0.5847029089927673, zero_point=83)
BENCHMARKS: Sequence[Benchmark] = (
    Classes("ic01", "image classification", (32, 32, 3), 10, Pixels()),
    Classes("ic02", "image classification, wide", (32, 32, 3), 10, Pixels()),
    Classes("kws01", "keyword spotting", (49, 10, 1), 12, Codes(_FEATURES)),
    Classes("vww01", "visual wake words", (96, 96, 3), 2, Pixels()),
    Anomaly("ad01", "anomaly detection", (1, 640, 1), 640),
)
"""Every benchmark; the first one that fits is a network's own."""


def find_benchmark(name: str | None, source: Border, sink: Border) -> Benchmark:
    """Return the benchmark of a name, or the one that a network fits.

    Raises
    ------
    TargetError
        If the network fits none, or not this one.
    """
    wanted = [x for x in BENCHMARKS if name in {None, x.name}]
    for benchmark in wanted:
        if benchmark.fits(source, sink):
            return benchmark
    known = ", ".join(f"{x.name} ({' x '.join(map(str, x.image))} to {x.outputs})" for x in wanted)
    raise TargetError(
        f"the link mlperf is for the benchmarks {known}, and the network has "
        f"{' x '.join(map(str, source.image))} inputs and {sink.codes} outputs",
        remedy="use --link uart",
    )
