"""Products of sums with weights of two rows in one factor: four products in a DSP block."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.arrays.packed_array import CODE_BITS, FIELD_BITS, WEIGHT_BITS

__all__ = ["PackedProduct"]


class PackedProduct(wiring.Component):
    """Product of two sums of a code and the weights of two rows, registered.

    Golden model: ``p = (x0 + w1 + (v1 << 14)) * (x1 + w0 + (v0 << 14))`` modulo ``2**width``. One
    per cycle, never stalls. Weights are at least -7.

    Parameters
    ----------
    width : int
        Bits of the product that are used, at most 36.

    Members
    -------
    x0, x1 : In(signed(8))
    w0, w1, v0, v1 : In(signed(4))
        Weights of the first row, and of the second one.
    p : Out(signed(width))

    Attributes
    ----------
    latency : int
        Cycles from operands to the product.
    """

    latency = 3

    unproved = "it has no streams; tests/rtl compares its products"

    def __init__(self, *, width):
        self.width = width
        code, weight = signed(CODE_BITS), signed(WEIGHT_BITS)
        super().__init__({
            "x0": In(code), "w0": In(weight), "v0": In(weight),
            "x1": In(code), "w1": In(weight), "v1": In(weight),
            "p": Out(signed(width)),
        })

    def elaborate(self, platform):
        m = Module()
        names = "x0", "w0", "v0", "x1", "w1", "v1"
        if platform is not None:
            m.submodules.dsp = Instance(
                platform.prefix + "packed_product", p_WIDTH=self.width, i_clk=ClockSignal(),
                o_p=self.p, **{f"i_{name}": getattr(self, name) for name in names},
            )
            return m
        a, b, a_register, b_register = (
            Signal(signed(FIELD_BITS + WEIGHT_BITS), name=name, reset_less=True)
            for name in ("a", "b", "a_register", "b_register")
        )
        product = Signal.like(self.p, reset_less=True)
        m.d.sync += [
            a.eq(self.x0 + self.w1 + (self.v1 << FIELD_BITS)), a_register.eq(a),
            b.eq(self.x1 + self.w0 + (self.v0 << FIELD_BITS)), b_register.eq(b),
            product.eq(a_register * b_register),
        ]
        m.d.comb += self.p.eq(product)
        return m
