"""Position in a padded image that arrives in stream order."""

from typing import NamedTuple

from amaranth import *

__all__ = ["Raster", "padded_raster"]


class Raster(NamedTuple):
    """Where a word of a padded image lies.

    Attributes
    ----------
    row, column : Signal
        The current word's pixel.
    first, final : Value
        The current word is the first of the image (a register), or the final one.
    padding : Value
        It lies in the border: no beat brings it. Of registers without arithmetic, for it decides
        whether a beat is taken.
    passed_first, passed_padding : Value
        What ``first`` and ``padding`` are in the next cycle if the word is passed.
    """

    row: Signal
    column: Signal
    first: Value
    final: Value
    padding: Value
    passed_first: Value
    passed_padding: Value


def padded_raster(m, window, advance):
    """Count row, column and channel block of the padded image, one step per ``advance``.

    Parameters
    ----------
    m : Module
        Gets the counters.
    window : Window
        Geometry.
    advance : Value
        Goes to the next word.

    Returns
    -------
    Raster
        The current word's place.
    """
    row = Signal(range(window.padded_height))
    column = Signal(range(window.padded_width))
    block = Signal(range(window.channel_blocks))
    first = Signal(init=1)
    pixel_end = block == window.channel_blocks - 1
    row_end = pixel_end & (column == window.padded_width - 1)
    final = row_end & (row == window.padded_height - 1)

    with m.If(advance):
        m.d.sync += block.eq(block + 1)
        with m.If(pixel_end):
            m.d.sync += [block.eq(0), column.eq(Mux(row_end, 0, column + 1))]
        with m.If(row_end):
            m.d.sync += row.eq(Mux(final, 0, row + 1))

    with m.If(advance):
        m.d.sync += first.eq(final)

    axes = [
        _inside(m, position, extent, padding, advance, step, name=name)
        for position, extent, padding, step, name in (
            (row, window.height, window.padding[0], row_end, "row_inside"),
            (column, window.width, window.padding[1], pixel_end, "column_inside"),
        )
        if any(padding)
    ]
    inside, passed = Cat(now for now, _ in axes), Cat(after for _, after in axes)
    return Raster(row, column, first, final, ~inside.all(), final, ~passed.all())


def _inside(m, position, extent, padding, advance, step, *, name):
    """Return whether the position along an axis is not in the border, now and behind the word.

    The first of them is a register.
    """
    before, _ = padding
    inside, passed = Signal(init=not before, name=name), Signal(name=f"passed_{name}")
    m.d.comb += passed.eq(inside)
    with m.If(advance):
        m.d.sync += inside.eq(passed)
    with m.If(step):
        with m.If(position == before + extent - 1):
            m.d.comb += passed.eq(0)
        with m.If(position == (before - 1) % (extent + sum(padding))):
            m.d.comb += passed.eq(1)
    return inside, passed
