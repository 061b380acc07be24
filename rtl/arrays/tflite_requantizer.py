"""Requantizer with TensorFlow Lite's rounding."""

from amaranth import *

from nnef_hw.rtl.arrays.requantizer import Requantizer

__all__ = ["TfliteRequantizer"]

PRODUCT_SHIFT = 31


class TfliteRequantizer(Requantizer):
    """Add the channel's bias, multiply by its 31-bit ``mult``, round, shift, round again, clip.

    Golden model: :meth:`nnef_hw.arithmetic.tflite.numerics.TfliteRequant.apply` of ``acc +
    bias[c]``, for sums of at most 32 bits.

    The first rounding takes halves up and the second one away from 0, for which one is added to or
    taken from twice the first one's result. Shifts that all channels share are wires; a barrel
    shifter does what they differ by. Members and timing are those of
    :class:`.Requantizer`, with two registers more.

    Parameters
    ----------
    requant : TfliteRequant
        mult and shift (one, or one per channel), zero point, limits.
    """

    def _factors(self):
        return self.requant.factors

    def _offsets(self):
        return (0,)

    def _companions(self):
        """Return the extra shift of each channel's products."""
        shifts = self.requant.right_shifts
        amounts = tuple(shift - min(shifts) for shift in shifts)
        return amounts, max(amounts).bit_length()

    def _first_shift(self):
        return PRODUCT_SHIFT

    def _round(self, m, product, companion, advance):
        least = min(self.requant.right_shifts)
        amounts = [Signal.like(companion, name=f"amount{n}", reset_less=True) for n in range(2)]
        once = Signal(signed(len(product) + 1), name="rounded_once", reset_less=True)
        shifted = Signal(signed(max(len(once) - least, 1)), name="shifted", reset_less=True)
        rounded = Signal(self._rounded_shape(len(shifted)), name="rounded", reset_less=True)
        if self.requant.rounds_once:
            first = product
        else:
            # Below zero halves go down, unless the second rounding has nothing to round.
            is_down = product[-1] if least else product[-1] & amounts[0].any()
            first = (product + Cat(Const(1, 1), is_down.replicate(len(product))).as_signed()) & ~1
        with m.If(advance):
            m.d.sync += [
                amounts[0].eq(companion),
                amounts[1].eq(amounts[0]),
                once.eq(first),
                shifted.eq((once >> least) >> amounts[1]),
                rounded.eq((shifted + (2 * self.requant.zero_point + 1)) >> 1),
            ]
        return rounded
