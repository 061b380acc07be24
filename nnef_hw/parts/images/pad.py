"""A border of one code around an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.base.part import Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.windows.linebuffer import padding_words

__all__ = ["Pad"]


@dataclass(frozen=True, kw_only=True)
class Pad(Pipe):
    """The border ahead of an image waits for its first code, as all else waits.

    Parameters
    ----------
    height, width, channels
        Extents of the image, in beats.
    padding
        ``((top, bottom), (left, right))`` in pixels.
    pad_code
        What the border consists of.
    bits, signed, lanes
        Format of a beat.
    """

    component = "nnef_hw.rtl.images.pad:Pad"
    label = "pad"
    costs = "pad"
    latency = 0
    is_registered = False

    height: int
    width: int
    channels: int
    padding: tuple[tuple[int, int], tuple[int, int]]
    pad_code: int
    bits: int
    signed: bool
    lanes: int = 1

    @property
    def window(self) -> Window:
        """The image and its border."""
        return Window(self.height, self.width, self.channels, padding=self.padding)

    @property
    def _counters(self) -> int:
        window = self.window
        extents = (window.padded_height, window.padded_width, window.channel_blocks)
        return sum(map(counter_bits, extents))

    def compute(self, codes: IntArray) -> IntArray:
        """Return the images of codes [beats, lanes] with their borders."""
        images = codes.reshape(-1, self.height, self.width, self.channels, self.lanes)
        border = ((0, 0), *self.padding, (0, 0), (0, 0))
        padded = np.pad(images, border, constant_values=self.pad_code)
        return padded.reshape(-1, self.lanes)

    @property
    def features(self) -> Mapping[str, float]:
        extents = (self.window.padded_height, self.window.padded_width)
        compared = [
            counter_bits(extent)
            for extent, pair in zip(extents, self.padding, strict=True)
            if any(pair)
        ]
        return {"counter bits": self._counters, "compared bits": sum(compared)}

    def flip_flops(self, device: Device) -> int:
        del device
        return self._counters

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        padding = padding_words(self.window)
        sent = -1
        while True:
            for word, is_padding in enumerate(padding):
                time = sent + 1
                if word == 0 or not is_padding:
                    time = max(time, (yield origin))
                sent = yield target, time
                if not is_padding:
                    origin.accept(sent)
