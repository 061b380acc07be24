"""Position in a padded image that arrives in stream order."""

from amaranth import *

__all__ = ["padded_raster"]


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
    row, column : Signal
        The current word's pixel.
    first, final : Value
        The current word is the first of the image (a register), or the final one.
    padding : Value
        It lies in the border: no beat brings it. Of registers without arithmetic, for it decides
        whether a beat is taken.
    """
    row = Signal(range(window.padded_height))
    column = Signal(range(window.padded_width))
    block = Signal(range(window.channel_blocks))
    first = Signal(init=1)
    pixel_end = block == window.channel_blocks - 1
    row_end = pixel_end & (column == window.padded_width - 1)
    final = row_end & (row == window.padded_height - 1)

    with m.If(advance):
        m.d.sync += [block.eq(block + 1), first.eq(final)]
        with m.If(pixel_end):
            m.d.sync += [block.eq(0), column.eq(Mux(row_end, 0, column + 1))]
        with m.If(row_end):
            m.d.sync += row.eq(Mux(final, 0, row + 1))

    inside = [
        _inside(m, position, extent, padding, advance & step, name=name)
        for position, extent, padding, step, name in (
            (row, window.height, window.padding[0], row_end, "row_inside"),
            (column, window.width, window.padding[1], pixel_end, "column_inside"),
        )
        if any(padding)
    ]
    return row, column, first, final, ~Cat(inside).all()


def _inside(m, position, extent, padding, step, *, name):
    """Return a register: the position along an axis is in the image, not in its border."""
    before, _ = padding
    inside = Signal(init=not before, name=name)
    with m.If(step):
        with m.If(position == before + extent - 1):
            m.d.sync += inside.eq(0)
        with m.If(position == (before - 1) % (extent + sum(padding))):
            m.d.sync += inside.eq(1)
    return inside
