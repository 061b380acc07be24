"""Times of a tensor's codes on the way through a unit: from memory, through parts, to memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from nnef_hw.engine.layers.formats import Image
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.engine.pipeline import EnginePipeline
from nnef_hw.parts.engine.units import StreamUnits

__all__ = ["passage_cycles"]


class _Passage(NamedTuple):
    """Sizes of a passage.

    Attributes
    ----------
    lanes, ways
        Codes of a word, and pixels that pass at once.
    takes_words
        Whether parts take a word at once, not a code.
    waiting
        Words of a way that may be on their way to its part.
    first
        Cycles from the begin of an instruction to the read of the first word.
    word_cycles
        Cycles from a read to the word.
    """

    lanes: int
    ways: int
    takes_words: bool
    waiting: int
    first: int
    word_cycles: int


def passage_cycles(
    pipeline: EnginePipeline, units: StreamUnits, part: Part, image: Image, frames: int
) -> int:
    """Return the cycles from the begin of an instruction to its end.

    Nothing of an instruction before is in a part when it begins.

    Parameters
    ----------
    units
        How many pixels pass at once, and how many codes of each.
    part
        What each passes.
    image
        That of the codes that are sent, as of those that come back.
    frames
        How many of it, one behind the other.
    """
    first = pipeline.before_passage
    passage = _Passage(
        pipeline.array.lanes, units.ways, units.lanes > 1, units.waiting(pipeline.word_cycles),
        first, pipeline.word_cycles,
    )  # fmt: skip
    return _cycles(passage, part, frames * image.pixels, image.channels)


@lru_cache(maxsize=1024)
def _cycles(passage: _Passage, part: Part, pixels: int, channels: int) -> int:
    """Run a passage; equal ones are many, as sizes are tried and layers share a unit."""
    kernel, lanes = Kernel(), passage.lanes
    firsts = range(0, channels, lanes)
    sizes = [1 if passage.takes_words else min(lanes, channels - first) for first in firsts]
    reads, freed, complete, written = (
        [kernel.log() for _ in range(passage.ways)] for _ in range(4)
    )
    order = list(_order(passage.ways, pixels, len(sizes)))
    kernel.start(_read(order, passage, reads, freed))
    ends: list[int] = []
    for way in range(passage.ways):
        words = sizes * len(range(way, pixels, passage.ways))
        stream = kernel.stream()
        send = _send_words if passage.takes_words else _send
        kernel.start(send(stream, words, passage.word_cycles, reads[way], freed[way]))
        results = part.start(kernel, stream)
        kernel.start(_collect(results, words, complete[way], written[way]))
    kernel.start(_write(order, complete, written, ends))
    kernel.run()
    [end] = ends
    return end


def _order(ways: int, pixels: int, blocks: int) -> Iterator[int]:
    """Yield the way of each word in the order in which they are read, and written."""
    for first in range(0, pixels, ways):
        yield from list(range(min(ways, pixels - first))) * blocks


def _read(
    order: Sequence[int], passage: _Passage, reads: Sequence[Log], freed: Sequence[Log]
) -> Process:
    """Read a word per cycle, none of a way for which enough are on their way."""
    counts, time = [0] * len(reads), passage.first
    for way in order:
        before = counts[way] - passage.waiting
        counts[way] += 1
        if before >= 0:
            if len(freed[way].times) <= before:
                yield freed[way], before + 1
            time = max(time, freed[way].times[before])
        reads[way].add(time)
        time += 1
    yield None


def _send(
    stream: Stream, words: Sequence[int], word_cycles: int, reads: Log, freed: Log
) -> Process:
    """Offer the codes of a way's words; a word is done with when its last code is offered."""
    time = 0
    for n, codes in enumerate(words):
        if len(reads.times) <= n:
            yield reads, n + 1
        time = max(time, reads.times[n] + word_cycles + 2)
        for code in range(codes):
            if code == codes - 1:
                freed.add(time)
            time = (yield stream, time) + 1
    yield None


def _send_words(
    stream: Stream, words: Sequence[int], word_cycles: int, reads: Log, freed: Log
) -> Process:
    """Offer the words of a way; one is done with when it was taken."""
    time = 0
    for n in range(len(words)):
        if len(reads.times) <= n:
            yield reads, n + 1
        time = (yield stream, max(time, reads.times[n] + word_cycles + 1)) + 1
        freed.add(time)
    yield None


def _collect(origin: Stream, words: Sequence[int], complete: Log, written: Log) -> Process:
    """Take the results of a way: the first ones of a word when the one before is written."""
    time = 0
    for n, codes in enumerate(words):
        for code in range(codes):
            offered = yield origin
            if n and not code:
                if len(written.times) < n:
                    yield written, n
                time = max(time, written.times[n - 1])
            time = max(time, offered)
            origin.accept(time)
            time += 1
        complete.add(time)
    yield None


def _write(
    order: Sequence[int], complete: Sequence[Log], written: Sequence[Log], ends: list[int]
) -> Process:
    """Write the words of all ways in turn; note when the last one is at the memory."""
    time, counts = 0, [0] * len(complete)
    for way in order:
        n = counts[way]
        counts[way] += 1
        if len(complete[way].times) <= n:
            yield complete[way], n + 1
        time = max(time, complete[way].times[n])
        written[way].add(time)
        time += 1
    ends.append(time)
    yield None
