"""All examples, by the class of their part and by a name: the one table that tests run.

A new part has its examples in the module of its room; :class:`.Example` says what one is made of.
"""

from __future__ import annotations

from collections.abc import Mapping

from examples.arrays import ARRAYS
from examples.audio import AUDIO
from examples.contractions import CONTRACTIONS
from examples.example import Example
from examples.functions import FUNCTIONS
from examples.images import IMAGES
from examples.pixels import PIXELS
from examples.requantizers import REQUANTIZERS
from examples.streams import STREAMS
from examples.windows import WINDOWS

__all__ = ["EXAMPLES"]

EXAMPLES: Mapping[str, Mapping[str, Example]] = {
    **FUNCTIONS, **PIXELS, **IMAGES, **STREAMS, **WINDOWS, **ARRAYS, **CONTRACTIONS,
    **REQUANTIZERS, **AUDIO,
}  # fmt: skip
