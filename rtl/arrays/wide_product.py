"""Product of a number of many bits and a factor of 16."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.rtl.base.primitives import lut_product

__all__ = ["WideProduct"]

LIMB_BITS = 16
HALF_BITS = 8
"""Bits of half a factor."""


class WideProduct(wiring.Component):
    """Product of a signed number and an unsigned factor of at most 16 bits, ``p = a * b``.

    Golden model: multiplication of integers, exact. One per cycle, never stalls. Two DSP blocks
    multiply the lower 16 bits of the number and those above, whose products are added behind their
    registers; without them LUTs do.

    Parameters
    ----------
    a_bits : int
        Bits of the number: 17 to 32.
    b_bits : int
        Bits of the factor, at most 16.
    in_dsp : bool
        Use the device's multipliers (``SB_MAC16``, ``MULT18X18D``).

    Members
    -------
    a : In(signed(a_bits))
    b : In(b_bits)
    p : Out(signed(a_bits + b_bits))
    enable : In(1)
        Without it the product stays. It is set where nothing is connected.

    Attributes
    ----------
    latency : int
        Cycles from operands to the product.
    """

    unproved = "it has no streams; tests/rtl compares its products"

    latency = 1

    def __init__(self, *, a_bits, b_bits, in_dsp):
        if not LIMB_BITS < a_bits <= 2 * LIMB_BITS or b_bits > LIMB_BITS:
            raise ValueError(f"WideProduct takes 17 to 32 and at most 16 bits, not {a_bits} and "
                             f"{b_bits}")
        self.in_dsp = in_dsp
        super().__init__({
            "a": In(signed(a_bits)), "b": In(b_bits), "p": Out(signed(a_bits + b_bits)),
            "enable": In(1, init=1),
        })

    def elaborate(self, platform):
        m = Module()
        if not self.in_dsp:
            # half as many digits on the way to a register
            halves = self.b[:HALF_BITS], self.b[HALF_BITS:]
            registers = []
            for name, digits in zip(("low", "high"), halves, strict=True):
                register = Signal(
                    signed(len(self.a) + len(digits)), name=f"{name}_product", reset_less=True)
                if len(digits):
                    product = lut_product(m, platform, digits, self.a, name=name)
                    with m.If(self.enable):
                        m.d.sync += register.eq(product)
                registers.append(register)
            low, high = registers
            m.d.comb += self.p.eq((high << HALF_BITS) + low)
            return m
        low, high = self.a[:LIMB_BITS], self.a[LIMB_BITS:].as_signed()
        low_product = Signal(2 * LIMB_BITS, reset_less=True)
        high_product = Signal(signed(2 * LIMB_BITS), reset_less=True)
        m.d.comb += self.p.eq((high_product << LIMB_BITS) + low_product)
        if platform is None:
            with m.If(self.enable):
                m.d.sync += [low_product.eq(low * self.b), high_product.eq(high * self.b)]
            return m
        factor = Signal(LIMB_BITS)
        m.d.comb += factor.eq(self.b)
        for name, limb, product in (("low", low, low_product), ("high", high, high_product)):
            wide = Signal(Shape(LIMB_BITS, limb.shape().signed), name=f"{name}_limb")
            m.d.comb += wide.eq(limb)
            m.submodules[name] = Instance(
                platform.prefix + "wide_product", p_A_SIGNED=Const(int(limb.shape().signed), 1),
                i_clk=ClockSignal(), i_enable=self.enable, i_a=wide, i_b=factor, o_p=product,
            )
        return m
