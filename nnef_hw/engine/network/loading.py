"""Beats of an input become words of the engine's memory."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.engine.layers.conv import ConvLayer
from nnef_hw.engine.layers.formats import Image

__all__ = ["Loading", "loading_of"]


@dataclass(frozen=True, slots=True)
class Loading:
    """Words that beats of an input become: rows of codes, of which windows are words.

    Parameters
    ----------
    rows, length
        Rows, and codes of each, padding included.
    lead, real
        Codes of padding in front; codes that come, behind which padding follows.
    window, step
        Codes up to the first word of a row, and from a word to the next one.
    pad
        Code of the padding.
    codes
        Codes of a beat: one; or those of a word, where none of it is padding, or of a pixel of
        which several are in a word. Rows, windows and steps are counted in beats.
    """

    rows: int
    length: int
    lead: int
    real: int
    window: int
    step: int
    pad: int
    codes: int = 1

    @classmethod
    def of(cls, image: Image, lanes: int) -> Loading:
        """Return the loading of an image as it is: every pixel in whole words."""
        if image.channels % lanes == 0:
            return cls.by_word(image, lanes)
        return cls.by_code(image, lanes)

    @classmethod
    def filled(cls, image: Image, lanes: int) -> Loading:
        """Return the loading of pixels whose first word is filled up with the codes before."""
        if image.channels < lanes or image.channels % lanes == 0:
            return cls.by_word(image, min(image.channels, lanes))
        window = image.channels - (image.blocks(lanes) - 1) * lanes
        return cls(image.pixels, image.channels, 0, image.channels, window, lanes, 0)

    @classmethod
    def by_code(cls, image: Image, lanes: int) -> Loading:
        """Return the loading of an image as it is, of which each beat brings a code."""
        length = image.blocks(lanes) * lanes
        return cls(image.pixels, length, 0, image.channels, lanes, lanes, 0)

    @classmethod
    def by_word(cls, image: Image, codes: int) -> Loading:
        """Return the loading of pixels of which each beat brings a word, or its upper codes."""
        beats = image.channels // codes
        return cls(image.pixels, beats, 0, beats, 1, 1, 0, codes)

    @classmethod
    def packed(cls, layer: ConvLayer) -> Loading:
        """Return the loading of a layer's operand whose windows have their rows in one word."""
        window, stride = layer.window.kernel[1], layer.window.stride[1]
        lead, real = layer.window.padding[1][0], layer.source.width
        reach = (layer.target.width - 1) * stride + window
        return cls(
            layer.source.height, max(reach, lead + real), lead, real, window, stride, layer.pad,
            layer.source.channels,
        )  # fmt: skip

    @classmethod
    def joined(cls, image: Image, together: int) -> Loading:
        """Return the loading of an image of which so many pixels of a row are a word."""
        return cls(image.height, image.width, 0, image.width, together, together, 0, image.channels)

    @property
    def is_padded(self) -> bool:
        """Whether any beats are padding."""
        return self.real < self.length

    @property
    def cycles(self) -> int:
        """Cycles that it takes."""
        return self.rows * self.length

    @property
    def words(self) -> int:
        """Words that it makes."""
        return self.rows * ((self.length - self.window) // self.step + 1)


def loading_of(
    layer: ConvLayer, image: Image, lanes: int, *, splits_pixels: bool
) -> tuple[Loading, ConvLayer]:
    """Return how the only layer that reads an input has it loaded, and that layer then.

    Parameters
    ----------
    splits_pixels
        Whether pixels may cross borders of words.
    """
    packed = layer.packed(lanes)
    if packed is not None:
        return Loading.packed(layer), packed
    codes = layer.codes_together(lanes, splits_pixels=splits_pixels)
    if codes == image.channels:
        return Loading.filled(image, lanes), layer.filled(lanes)
    joined = layer.joined(lanes, codes)
    if codes % image.channels:
        # Words end within pixels, so a beat is a code.
        return Loading.by_code(joined.source, lanes), joined
    return Loading.joined(image, codes // image.channels), joined
