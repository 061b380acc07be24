"""The link mlperf: a UART with the text that MLPerf Tiny's runner sends and reads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.interfaces.interface import Option
from nnef_hw.boards.interfaces.link import LinkRoom
from nnef_hw.boards.interfaces.uart import BITS_PER_BYTE, Uart
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.host.benchmarks import BENCHMARKS, Benchmark, Border, RunnerFormats, find_benchmark
from nnef_hw.host.mlperf import LINE_BYTES

__all__ = ["Mlperf", "RunnerFacts"]

_LINE_LETTERS = len("db %") + 2 * LINE_BYTES + len("m-ready\r\n")
_MICROSECONDS = 1_000_000
_BAUD = 115_200
_MANY_OUTPUTS = 100
"""Outputs from which on they are no classes."""
_DISTANCE_LUT = 150
"""LUTs that float32 numbers and their distance take, on an UP5K."""


@dataclass(frozen=True)
class RunnerFacts:
    """Facts that the hardware of the protocol needs.

    Parameters
    ----------
    model, vendor
        What it answers of its model and itself.
    formats
        Formats of bytes, codes and results.
    channels
        Codes of a pixel of the input.
    results
        Codes of a result.
    ticks, cycles
        So many microseconds are so many clock cycles.
    """

    model: str
    vendor: str
    formats: RunnerFormats
    channels: int
    results: int
    ticks: int
    cycles: int


@dataclass(frozen=True)
class Mlperf(Uart):
    """Answers MLPerf Tiny's runner, in place of the protocol of docs/protocol.md.

    Parameters
    ----------
    baud
        Rate.
    benchmark
        Name of the benchmark; by default the one that the network fits.
    source, sink
        The network's input and output; None as long as there is none.

    Raises
    ------
    UsageError
        If there is no such benchmark.
    """

    baud: int = _BAUD
    benchmark: str | None = None
    source: Border | None = None
    sink: Border | None = None

    name = "mlperf"
    vendor = "nnef-hw"
    options = (
        *Uart.options,
        Option("benchmark", str, "benchmark of MLPerf Tiny that a board answers for "
               "(by default by the network's shape)"),
    )
    core = "nnef_hw.boards.hardware.mlperf.core:RunnerCore"
    has_packets = False
    runs_sequences = False
    takes_turns = True
    usage = "nnef-hw score"
    lacks = ("--sink", "--source", "--token-loop", "--layer-counters", "--batch")
    silence = 30.0

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [x.name for x in BENCHMARKS]
        if self.benchmark not in {None, *names}:
            raise UsageError(f"there is no benchmark {self.benchmark!r}",
                             remedy=f"use --benchmark {' or '.join(names)}")

    def bound(self, sources: Mapping[str, Border], sinks: Mapping[str, Border]) -> "Mlperf":
        if not len(sources) == len(sinks) == 1:
            raise TargetError(
                f"the link mlperf carries one input and one output, and the network has "
                f"{len(sources)} and {len(sinks)}", remedy="use --link uart")
        [source], [sink] = sources.values(), sinks.values()
        benchmark = find_benchmark(self.benchmark, source, sink)
        benchmark.formats(source, sink)
        return replace(self, benchmark=benchmark.name, source=source, sink=sink)

    def room(self, inputs: int, outputs: int) -> LinkRoom:
        """Return the room of the protocol's program, and of frames; a distance takes more."""
        memories = [(1024, 18), (inputs, 8), (outputs, 8)]
        if outputs < _MANY_OUTPUTS:
            return LinkRoom(0, (*memories, (256, 16)))
        calculator = [(512, 16), (128, 8), (512, 8), (2 * inputs, 8)]
        return LinkRoom(_DISTANCE_LUT, (*memories, *calculator))

    @property
    def subject(self) -> Benchmark:
        """Benchmark of the network that the link is bound to."""
        return find_benchmark(self.benchmark, *self.borders)

    @property
    def borders(self) -> tuple[Border, Border]:
        """Input and output of the network that the link is bound to."""
        if self.source is None or self.sink is None:
            raise ValueError("the link mlperf is not bound to a network")
        return self.source, self.sink

    def facts(self, clk_hz: int) -> RunnerFacts:
        """Return the facts that the hardware needs for a clock."""
        subject, (source, sink) = self.subject, self.borders
        ticks = Fraction(_MICROSECONDS, clk_hz)
        return RunnerFacts(
            model=subject.name, vendor=self.vendor, formats=subject.formats(source, sink),
            channels=source.image[2], results=sink.codes,
            ticks=ticks.numerator, cycles=ticks.denominator)

    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock that is too slow for the rate, or for microseconds."""
        super().check_clock(clk_hz)
        if clk_hz < _MICROSECONDS:
            raise TargetError(f"the link mlperf counts microseconds, and a clock of {clk_hz} Hz is "
                              "slower", remedy="choose another --freq")

    def bytes_per_second(self, clock_mhz: float) -> float:
        return self.baud / BITS_PER_BYTE * LINE_BYTES / _LINE_LETTERS

    def to_json(self) -> dict[str, object]:
        """Return the entry of the manifest, with what it knows of the network."""
        borders = {key: {"name": x.name, "qtype": x.qtype.to_json(), "image": list(x.image),
                         "shape": list(x.shape)}
                   for key, x in (("source", self.source), ("sink", self.sink)) if x is not None}
        return {"kind": self.name, "baud": self.baud, "benchmark": self.benchmark,
                "protocol": "docs/howto/mlperf.md", **borders}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Mlperf":
        """Return the link of an entry."""
        borders = {
            key: Border(entry[key]["name"], QType.from_json(entry[key]["qtype"]),
                        tuple(entry[key]["image"]), tuple(entry[key]["shape"]))
            for key in ("source", "sink") if key in entry
        }
        return cls(baud=entry["baud"], benchmark=entry["benchmark"], **borders)
