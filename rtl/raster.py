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
    row, column, block : Signal
        The current word.
    padding : Value
        It lies in the border: no beat brings it.
    """
    (top, _), (left, _) = window.padding
    row = Signal(range(window.padded_height))
    column = Signal(range(window.padded_width))
    block = Signal(range(window.channel_blocks))
    inside = Const(1)
    if any(window.padding[0]):
        inside = inside & (row >= top) & (row < top + window.height)
    if any(window.padding[1]):
        inside = inside & (column >= left) & (column < left + window.width)

    with m.If(advance):
        m.d.sync += block.eq(block + 1)
        with m.If(block == window.channel_blocks - 1):
            m.d.sync += [block.eq(0), column.eq(column + 1)]
            with m.If(column == window.padded_width - 1):
                m.d.sync += [column.eq(0), row.eq(row + 1)]
                with m.If(row == window.padded_height - 1):
                    m.d.sync += row.eq(0)
    return row, column, block, ~inside
