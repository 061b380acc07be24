"""Systolic array of packed fast inner products: one multiplier for four products."""

from amaranth import *
from amaranth.lib import data

from nnef_hw.parts.arrays.packed_array import FIELD_BITS
from nnef_hw.rtl.arrays.array import SystolicArray
from nnef_hw.rtl.arrays.fast_array import signed_codes
from nnef_hw.rtl.arrays.multiplier import ProductPair
from nnef_hw.rtl.arrays.packed_product import PackedProduct

__all__ = ["PackedArray"]


class PackedArray(SystolicArray):
    """Multiply window words by the weights of ``rows`` output channels, four products at a time.

    A unit multiplies two sums of a code and the weights of two rows, w and v, with 14 bits between
    them::

        (x0 + w1 + (v1 << 14)) * (x1 + w0 + (v0 << 14)) - x0 * x1
            = x0 * w0 + x1 * w1 + w0 * w1
            + (x0 * v0 + x1 * v1 + w1 * v0 + w0 * v1 + (v0 * v1 << 14) << 14)

    The first line is a fast inner product (:class:`.FastArray`), and the second one is that of the
    other row. Weights of -7 to 7 and codes of at most 8 bits leave the first one below half of
    ``1 << 14`` in magnitude even if the results of four units are added. So units are added in
    sections of four, the products of codes of a section are taken off, and half of ``1 << 14`` is
    added: then the lower 14 bits are the first row's sum, without a sign, and those above are the
    second row's. Products of codes are the same for all rows. They are made once, and hop from
    group to group. What depends on weights alone is constant, and belongs to the bias of a channel
    (:meth:`.parts.PackedArray.offsets`).

    Golden model: ``acc[c] = sum(weights[c] * codes) + offsets[c]`` over the T words of a window,
    modulo ``2**acc_bits``. Members and parameters are those of :class:`SystolicArray`. So is the
    timing, with the latency of its part.
    """

    unproved = "its timing is that of SystolicArray; the solver has no notion of its products"

    def _entering(self):
        return signed_codes(self.part, self.i.payload.data)

    def _sections(self, values):
        """Split what there is for every unit into sections."""
        first = 0
        for size in self.part.section_sizes:
            yield values[first:first + size]
            first += size

    def _shared(self, m, codes):
        """Return the sum of products of codes that is taken off each section, less half a field."""
        part = self.part
        products = []
        for n in range(0, part.lanes - 1, 4):
            pair = ProductPair(x_bits=part.x_bits, x_signed=True, w_bits=max(part.x_bits, 2),
                               in_dsp=n // 2 < part.runs_in_dsp[-1])
            m.submodules[f"common{n // 4}"] = pair
            m.d.comb += [pair.x0.eq(codes[n]), pair.w0.eq(codes[n + 1])]
            products.append(pair.p0)
            if n + 3 < part.lanes:
                m.d.comb += [pair.x1.eq(codes[n + 2]), pair.w1.eq(codes[n + 3])]
                products.append(pair.p1)
        # a last lane without another one is multiplied by 0
        products += [Const(0, signed(len(products[0])))] * (part.lanes % 2)
        taken = []
        for number, section in enumerate(self._sections(products)):
            total = self._sum(m, section, part.section_levels, name=f"common{number}")
            width = max(len(total), FIELD_BITS) + 1
            less = Signal(signed(width), name=f"taken{number}", reset_less=True)
            m.d.sync += less.eq(total - (1 << FIELD_BITS - 1))
            taken.append(less)
        return data.View(data.ArrayLayout(taken[0].shape(), len(taken)), Cat(*taken))

    def _products(self, m, group, rows, codes, weights, shared):
        part = self.part
        sums = []
        for row in range(0, rows, 2):
            units = []
            for lane in range(0, part.lanes, 2):
                unit = PackedProduct(width=part.product_bits)
                m.submodules[f"product{group}_{row}_{lane}"] = unit
                operands = {"x0": codes[lane], "w0": (row, lane), "v0": (row + 1, lane)}
                if lane + 1 < part.lanes:
                    operands |= {
                        "x1": codes[lane + 1], "w1": (row, lane + 1), "v1": (row + 1, lane + 1)
                    }  # fmt: skip
                for name, value in operands.items():
                    if isinstance(value, tuple):
                        position = value[0] * part.lanes + value[1]
                        value = weights.word_select(position, part.w_bits).as_signed()
                    m.d.comb += getattr(unit, name).eq(value)
                units.append(unit.p)
            fields = [], []
            for number, section in enumerate(self._sections(units)):
                name = f"{group}_{row}_{number}"
                total = self._sum(m, section, part.section_levels, part.section_bits, name=name)
                both = Signal(signed(part.section_bits), name=f"both{name}", reset_less=True)
                m.d.sync += both.eq(total - shared[number])
                fields[0].append(Cat(both[:FIELD_BITS], 0).as_signed())
                fields[1].append(both[FIELD_BITS:].as_signed())
            sums += [
                self._sum(m, field, part.levels, part.acc_bits, name=f"{group}_{row + n}")
                for n, field in enumerate(fields)
            ]
        return sums

    def _sum(self, m, values, levels, most=None, *, name):
        """Return the sum of signed values after so many cycles, in at most so many bits."""
        for level in range(levels):
            pairs = []
            for n in range(0, len(values), 2):
                total = values[n] + values[n + 1] if n + 1 < len(values) else values[n]
                width = len(values[0]) + 1
                register = Signal(signed(min(width, most or width)), reset_less=True,
                                  name=f"sum{name}_{level}_{n}")
                m.d.sync += register.eq(total)
                pairs.append(register)
            values = pairs
        return values[0]
