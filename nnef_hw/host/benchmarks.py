"""Benchmarks of MLPerf Tiny that the runner knows: their inputs' bytes, and their results' text."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import FloatArray, IntArray, QType
from nnef_hw.errors import SampleError, TargetError

__all__ = ["BENCHMARKS", "Benchmark", "Border", "find_benchmark"]

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
class Benchmark:
    """A benchmark with a score for each class.

    Parameters
    ----------
    name
        What a board answers of its model.
    title
        Its name for people.
    input
        What its input's bytes are.
    image
        (height, width, channels) of the input.
    classes
        How many scores there are.
    """

    name: str
    title: str
    input: Input
    image: tuple[int, int, int]
    classes: int

    def fits(self, source: Border, sink: Border) -> bool:
        """Whether a network has such an input and such an output."""
        # a stream of one pixel has the order of the tensor
        is_flat = source.image[:2] == (1, 1) and source.shape == self.image
        has_order = source.image == self.image or is_flat or self.image[2] == 1
        return has_order and source.codes == prod(self.image) and sink.codes == self.classes

    def size(self, source: Border) -> int:
        """Return the bytes of an input."""
        return source.codes

    def table(self, source: Border) -> tuple[int, ...]:
        """Return the code of each byte of an input.

        Raises
        ------
        TargetError
            If the input's format cannot hold what bytes stand for.
        """
        return self.input.table(source, f"link mlperf, input {source.name!r} of {self.name}")

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
            If a number is none that a byte stands for.
        """
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
        """Return the numbers that a board prints for an input's file and the codes of its output.

        Those of a class are its score with three decimal places.
        """
        scores = sink.qtype.dequantize(codes)
        return tuple(float(f"{score:.{DECIMALS}f}") for score in scores)

    def digits(self, sink: Border) -> tuple[int, ...]:
        """Return four decimal digits, of 4 bits each, for each pattern of a score's bits.

        Raises
        ------
        TargetError
            If a score may be negative, or above 9.999, or has too many bits.
        """
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


_FEATURES = QType(8, signed=True, scale=0.5847029089927673, zero_point=83)
BENCHMARKS: Sequence[Benchmark] = (
    Benchmark("ic01", "image classification", Pixels(), (32, 32, 3), 10),
    Benchmark("ic02", "image classification, wide", Pixels(), (32, 32, 3), 10),
    Benchmark("kws01", "keyword spotting", Codes(_FEATURES), (49, 10, 1), 12),
    Benchmark("vww01", "visual wake words", Pixels(), (96, 96, 3), 2),
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
    known = ", ".join(f"{x.name} ({' x '.join(map(str, x.image))} to {x.classes})" for x in wanted)
    raise TargetError(
        f"the link mlperf is for the benchmarks {known}, and the network has "
        f"{' x '.join(map(str, source.image))} inputs and {sink.codes} outputs",
        remedy="use --link uart",
    )
