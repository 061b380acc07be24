"""Requantizer of averages over windows that may lie over the border of an image."""

from collections import Counter

from amaranth import *

from nnef_hw import parts
from nnef_hw.rtl.arrays.requantizer import Requantizer

__all__ = ["AverageRequantizer"]


class AverageRequantizer(Requantizer):
    """Multiply a sum by what belongs to its place in the image, shift, round, clip.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.Requant.apply` of ``acc + bias``, with
    ``mult[n]`` for what comes from position [row, column], n being ``positions[row][column]``. Sums
    come row by row, column by column, channel by channel.

    Places are told apart by their row and column alone: few rows differ, those at the border.
    Members and timing are those of :class:`.Requantizer`.

    Parameters
    ----------
    requant : Requant
        One mult for every number in ``positions``.
    bias : list[int]
        One for all channels.
    positions : list[list[int]]
        Which mult a sum takes, row by row.

    Raises
    ------
    ValueError
        If a position has no mult, there are several biases, or a factor is wider than its part
        says.
    """

    def __init__(self, part: parts.AverageRequantizer, *, requant, bias, positions):
        self.positions = [tuple(row) for row in positions]
        super().__init__(part, requant=requant, bias=bias)

    def _check_mult(self, name):
        most = max(map(max, self.positions))
        if most >= len(self.requant.mult):
            raise ValueError(f"{name} has {len(self.requant.mult)} mult, positions up to {most}")

    def _channel_constants(self, m, take):
        """Bias, factor and offset of the sum that comes next, the factor from a register."""
        columns = list(zip(*self.positions, strict=True))
        channel, column, row = self._following_place(m, take, len(columns))
        del channel
        row_kind, row_kinds = _kind(m, row, self.positions, "row_kind")
        column_kind, column_kinds = _kind(m, column, columns, "column_kind")
        mults = self.requant.mult
        width = max(mults).bit_length()
        following, factor = Signal(width), Signal(width, init=mults[self.positions[0][0]])
        select = Cat(column_kind, row_kind)
        with m.Switch(select):
            for row_number, of_row in enumerate(row_kinds):
                for column_number, of_column in enumerate(column_kinds):
                    place = self.positions[of_row][of_column]
                    with m.Case(row_number << len(column_kind) | column_number):
                        m.d.comb += following.eq(mults[place])
        with m.If(take):
            m.d.sync += factor.eq(following)
        [offset] = self._offsets()
        bias = Const(self.bias[0], signed(self.part.acc_bits))
        return bias, factor, Const(offset, self.part.offset_bits), Const(0, 0)

    def _following_place(self, m, take, width):
        """Count channel, column and row of the sum after the next."""
        extents = {"channel": self.part.channels, "column": width, "row": len(self.positions)}
        index, advance, counters = 1, take, []
        for name, extent in extents.items():
            counter = Signal(range(extent), name=name, init=index % extent)
            with m.If(advance):
                m.d.sync += counter.eq(Mux(counter == extent - 1, 0, counter + 1))
            index //= extent
            advance = advance & (counter == extent - 1)
            counters.append(counter)
        return counters


def _kind(m, place, lines, name):
    """Return a number for each kind of lines, that of the one at ``place``; and one of each."""
    kinds = [kind for kind, _ in Counter(lines).most_common()]
    number = Signal(range(len(kinds)), name=name)
    with m.Switch(place):
        for n, kind in enumerate(kinds[1:], start=1):
            with m.Case(*[k for k, line in enumerate(lines) if line == kind]):
                m.d.comb += number.eq(n)
    return number, [lines.index(kind) for kind in kinds]
