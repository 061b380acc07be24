"""Systolic array of fast inner products: one multiplier for two products."""

from amaranth import *
from amaranth.lib import data

from nnef_hw.rtl.arrays.array import SystolicArray
from nnef_hw.rtl.arrays.multiplier import ProductOfSums, ProductPair, weight_of

__all__ = ["FastArray", "signed_codes"]


def signed_codes(part, codes):
    """Return the codes of a word as numbers with a sign: less half their range if they have none.

    ``part`` tells their format, and how many lanes there are.
    """
    values = [Value.cast(codes[lane]) for lane in range(part.lanes)]
    if not part.x_signed:
        values = [Cat(value[:-1], ~value[-1]) for value in values]
    return data.View(data.ArrayLayout(signed(part.x_bits), part.lanes), Cat(*values))


class FastArray(SystolicArray):
    """Multiply window words by the weights of ``rows`` output channels, two products at a time.

    S. Winograd, "A new algorithm for inner product", IEEE Transactions on Computers, 1968::

        x0 * w0 + x1 * w1 = (x0 + w1) * (x1 + w0) - x0 * x1 - w0 * w1

    A unit multiplies two sums of nine bits for each two lanes of a row. The products of codes are
    the same for all rows: a row more sums them up over a pass, and what leaves is less that sum.
    The products of weights are constants, which belong to the bias of a channel
    (:func:`.parts.fast_offsets`). Codes without a sign are taken less half their range, so
    that sums of codes and weights have nine bits; that, too, belongs to the bias. A last lane
    without another is one with 0.

    Golden model: ``acc[c] = sum(weights[c] * codes) + offsets[c]`` over the T words of a window,
    modulo ``2**acc_bits``. Modulo that, no width is needed but that of the result. Timing, members
    and parameters are those of :class:`SystolicArray`.
    """

    unproved = "its timing is that of SystolicArray; the solver has no notion of its products"

    def _entering(self):
        return signed_codes(self.part, self.i.payload.data)

    def _products(self, m, group, rows, codes, weights, shared):
        del shared
        part = self.part
        sums = []
        for row in range(rows):
            products = []
            for n in range(0, part.lanes, 2):
                number = (group * part.group_rows + row) * part.units + n // 2
                unit = ProductOfSums(x_bits=part.x_bits, w_bits=max(part.w_bits, 2),
                                     in_dsp=number < part.runs_in_dsp[0])
                m.submodules[f"product{group}_{row}_{n // 2}"] = unit
                # operands that are left out are 0
                ports = [(unit.x0, unit.w0), (unit.x1, unit.w1)]
                for (x, w), lane in zip(ports, range(n, part.lanes), strict=False):
                    weight = weights.word_select(row * part.lanes + lane, part.w_bits)
                    m.d.comb += [x.eq(codes[lane]), w.eq(weight_of(weight))]
                products.append(unit.p)
            sums.append(self._tree(m, products, name=f"{group}_{row}"))
        return sums

    def _common(self, m, platform, codes, first, valid):
        """Return the sum of the products of codes."""
        part = self.part
        # sums of codes and weights take a cycle; what they are multiplied by here comes as late
        later = Signal.like(codes, name="common_codes", reset_less=True)
        m.d.sync += later.eq(codes)
        w_bits = max(part.x_bits, 2)
        products = []
        for n in range(0, part.lanes - 1, 4):
            pair = ProductPair(x_bits=part.x_bits, x_signed=True, w_bits=w_bits,
                               in_dsp=n // 2 < part.runs_in_dsp[-1])
            m.submodules[f"common{n // 4}"] = pair
            m.d.comb += [pair.x0.eq(later[n]), pair.w0.eq(later[n + 1])]
            products.append(pair.p0)
            if n + 3 < part.lanes:
                m.d.comb += [pair.x1.eq(later[n + 2]), pair.w1.eq(later[n + 3])]
                products.append(pair.p1)
        if part.lanes % 2:
            products.append(Const(0, signed(len(products[0]))))
        total = self._tree(m, products, name="common")
        return self._accumulated(m, platform, total, first, valid, name="common")
