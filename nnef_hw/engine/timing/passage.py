"""When the codes of a tensor have passed a unit: from memory, through its part, to memory."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from nnef_hw.engine.layers.layer import Image
from nnef_hw.engine.layers.network import Loading
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.parts.engine.pipeline import EnginePipeline

__all__ = ["passage_cycles"]


class _Border(NamedTuple):
    """Cycles of sender and loader, from the begin of an instruction on."""

    lanes: int
    before_send: int
    between_words: int
    before_load: int
    border_delay: int


def passage_cycles(
    pipeline: EnginePipeline, part: Part, images: tuple[Image, Image], frames: int
) -> int:
    """Return the cycles from the begin of an instruction to its end.

    Nothing of an instruction before is in the part when it begins.

    Parameters
    ----------
    images
        Those of the codes that are sent, and of those that are loaded.
    frames
        How many of each, one behind the other.
    """
    border = _Border(
        pipeline.array.lanes, pipeline.before_send, pipeline.between_words, pipeline.before_load,
        pipeline.border_delay,
    )  # fmt: skip
    return _passage(border, part, *images, frames)


@lru_cache(maxsize=1024)
def _passage(border: _Border, part: Part, source: Image, target: Image, frames: int) -> int:
    """Run the three; equal ones are many, as sizes are tried and layers share a unit."""
    kernel = Kernel()
    stream = kernel.stream()
    ends: list[int] = []
    kernel.start(_send(stream, border, source, frames))
    loading = Loading.by_code(target, border.lanes)
    kernel.start(_load(part.start(kernel, stream), border, loading, frames, ends))
    kernel.run()
    [end] = ends
    return end + border.border_delay


def _send(stream: Stream, border: _Border, image: Image, frames: int) -> Process:
    """Offer the codes of each word, which is read when the last one of the word before is taken."""
    time = border.before_send
    for _ in range(frames * image.pixels):
        for channel in range(1, image.channels + 1):
            end = yield stream, time
            is_last = channel % border.lanes == 0 or channel == image.channels
            time = max(end + 1, time + (border.between_words if is_last else 1))
    yield None


def _load(
    origin: Stream, border: _Border, loading: Loading, frames: int, ends: list[int]
) -> Process:
    """Take codes, and a cycle for each place that pads a word; note the cycle of the last one."""
    time = border.before_load
    for _ in range(frames * loading.rows):
        for _ in range(loading.real):
            time = max(time, (yield origin))
            origin.accept(time)
            time += 1
        time += loading.length - loading.real
    ends.append(time - 1)
    yield None
