"""All examples, by the class of their part and by a name: the one table that tests run.

A new part has its examples in the module of its room; :class:`.Example` says what one is made of.
The sizes whose LUTs are measured stand beside them, by the row of weights that is fitted to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from examples import (
    arrays,
    audio,
    contractions,
    functions,
    images,
    pixels,
    products,
    readers,
    requantizers,
    shared,
    streams,
    tables,
    windows,
)
from examples.example import Example, Measured

__all__ = ["EXAMPLES", "MEASURED"]

EXAMPLES: Mapping[str, Mapping[str, Example]] = {
    **tables.TABLES, **functions.FUNCTIONS, **pixels.PIXELS, **images.IMAGES, **streams.STREAMS,
    **windows.WINDOWS, **arrays.ARRAYS, **products.PRODUCTS, **contractions.CONTRACTIONS,
    **requantizers.REQUANTIZERS, **audio.AUDIO, **shared.SHARED,
}  # fmt: skip
MEASURED: Measured = {
    **tables.MEASURED, **functions.MEASURED, **pixels.MEASURED, **images.MEASURED,
    **streams.MEASURED, **windows.MEASURED, **arrays.MEASURED, **products.MEASURED,
    **contractions.MEASURED, **requantizers.MEASURED, **audio.MEASURED, **readers.MEASURED,
}  # fmt: skip
