"""Products of codes and weights: in DSP blocks of the device, or in LUTs."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.rtl.base.primitives import lut_product, masked_difference, own_register

__all__ = ["ProductOfSums", "ProductPair", "weight_code", "weight_of"]

FACTOR_BITS = 9
"""Width of the factors of a multiplier that takes sums of codes and weights."""
DIGITS = 4
"""Bits of a factor that are multiplied in logic in a cycle."""


def weight_code(weight, bits):
    """Return the bits that a memory holds of a weight: two's complement, of one bit the sign.

    Raises
    ------
    ValueError
        If one bit is to hold anything but +1 and -1.
    """
    if bits > 1:
        return weight & ((1 << bits) - 1)
    if weight not in {-1, 1}:
        raise ValueError(f"one bit cannot hold a weight of {weight}")
    return int(weight < 0)


def weight_of(code):
    """Return the weight that a memory holds as that code: the inverse of :func:`weight_code`."""
    return Cat(1, code).as_signed() if len(code) == 1 else code.as_signed()


class ProductPair(wiring.Component):
    """Two independent products ``p = x * w``, registered before and after.

    Golden model: multiplication of integers, exact. One pair per cycle, never stalls.

    Parameters
    ----------
    x_bits, x_signed : int, bool
        Format of an activation code.
    w_bits : int
        Width of a weight, signed; a single bit is a sign: 0 for +1, 1 for -1.
    in_dsp : bool
        Use the device's multipliers (``SB_MAC16`` in dual 8x8 mode, ``MULT18X18D``); otherwise
        LUTs. Which device it is, is decided when the Verilog is synthesized.

    Members
    -------
    x0, x1 : In(x_bits)
    w0, w1 : In(signed(w_bits))
    p0, p1 : Out(signed(x_bits + w_bits))

    Attributes
    ----------
    latency : int
        Cycles from operands to products.
    """

    unproved = "no stream: it never waits"

    latency = 2

    def __init__(self, *, x_bits, x_signed, w_bits, in_dsp):
        if in_dsp and (x_bits > 8 or w_bits > 8):
            raise ValueError(f"a dual 8x8 multiplier cannot take {x_bits} x {w_bits} bits")
        self.x_bits = x_bits
        self.x_signed = x_signed
        self.w_bits = w_bits
        self.in_dsp = in_dsp
        x_shape = Shape(x_bits, x_signed)
        product = signed(x_bits + w_bits)
        super().__init__({
            "x0": In(x_shape), "w0": In(signed(w_bits)), "p0": Out(product),
            "x1": In(x_shape), "w1": In(signed(w_bits)), "p1": Out(product),
        })

    def elaborate(self, platform):
        m = Module()
        w0, w1 = weight_of(self.w0), weight_of(self.w1)
        if self.in_dsp and platform is not None:
            p0, p1 = Signal(signed(16)), Signal(signed(16))
            x_shape = Shape(8, self.x_signed)
            x0, x1 = Signal(x_shape), Signal(x_shape)
            wide_w0, wide_w1 = Signal(signed(8)), Signal(signed(8))
            m.d.comb += [
                x0.eq(self.x0), x1.eq(self.x1), wide_w0.eq(w0), wide_w1.eq(w1),
                self.p0.eq(p0), self.p1.eq(p1),
            ]
            m.submodules.dsp = Instance(
                platform.prefix + "product_pair",
                p_X_SIGNED=Const(int(self.x_signed), 1), p_W_BITS=self.w_bits,
                i_clk=ClockSignal(),
                i_x0=x0, i_x1=x1, i_w0=wide_w0, i_w1=wide_w1, o_p0=p0, o_p1=p1,
            )
            return m

        for n, (x, w, p) in enumerate([(self.x0, w0, self.p0), (self.x1, w1, self.p1)]):
            # Multipliers of many rows take the same x, each from a register of its own.
            x_register = own_register(m, platform, x, name=f"x{n}_register")
            w_register = Signal(w.shape(), name=f"w{n}_register", reset_less=True)
            m.d.sync += w_register.eq(w)
            # An adder per two digits: the narrower operand has the digits.
            digits, operand = x_register, w_register
            if len(w_register) < self.x_bits:
                # an odd one out would take an adder for its sign
                digits = w_register
                if len(digits) % 2:
                    digits = Cat(digits, digits[-1]).as_signed()
                operand = x_register if self.x_signed else Cat(x_register, Const(0, 1)).as_signed()
            # The halves of the digits are multiplied apart and joined after the second register,
            # where there is time for another adder.
            low_bits = (len(digits) + 3) // 4 * 2 if len(digits) > 4 else 0
            halves = []
            for name, half in (("low", digits[:low_bits]), ("high", digits[low_bits:])):
                if name == "high" and digits.shape().signed:
                    half = half.as_signed()
                if len(half):
                    product = lut_product(m, platform, half, operand, name=f"{name}{n}_product")
                    register = Signal.like(product, name=f"{name}{n}", reset_less=True)
                    m.d.sync += register.eq(product)
                    halves.append(register)
            *low, high = halves
            if low:
                upper = (low[0] >> low_bits) + high
                m.d.comb += p.eq(Cat(low[0][:low_bits], upper))
            else:
                m.d.comb += p.eq(high)
        return m


class ProductOfSums(wiring.Component):
    """Product of two sums of a code and a weight, ``p = (x0 + w1) * (x1 + w0)``, registered.

    Golden model: multiplication of integers, exact. One per cycle, never stalls.

    Parameters
    ----------
    x_bits, w_bits : int
        Width of a code and of a weight, signed; a sum has one bit more.
    in_dsp : bool
        Use one of the device's multipliers (``MULT18X18D``, ``MULT9X9``); otherwise LUTs.

    Members
    -------
    x0, x1 : In(signed(x_bits))
    w0, w1 : In(signed(w_bits))
    p : Out(signed(2 * (max(x_bits, w_bits) + 1)))

    Attributes
    ----------
    latency : int
        Cycles from operands to the product.
    """

    latency = 3

    unproved = "it has no streams; tests/rtl compares its products"

    def __init__(self, *, x_bits, w_bits, in_dsp):
        if in_dsp and max(x_bits, w_bits) >= FACTOR_BITS:
            raise ValueError(f"a multiplier of {FACTOR_BITS} bits cannot take sums of {x_bits} "
                             f"and {w_bits} bits")
        self.in_dsp = in_dsp
        self.width = max(x_bits, w_bits) + 1
        super().__init__({
            "x0": In(signed(x_bits)), "w0": In(signed(w_bits)),
            "x1": In(signed(x_bits)), "w1": In(signed(w_bits)),
            "p": Out(signed(2 * self.width)),
        })

    def elaborate(self, platform):
        m = Module()
        if self.in_dsp and platform is not None:
            shape = signed(self.width - 1)
            names = "x0", "w0", "x1", "w1"
            operands = {name: Signal(shape, name=f"wide_{name}") for name in names}
            m.d.comb += [wide.eq(getattr(self, name)) for name, wide in operands.items()]
            m.submodules.dsp = Instance(
                platform.prefix + "product_of_sums",
                p_WIDTH=self.width, i_clk=ClockSignal(), o_p=self.p,
                **{f"i_{name}": wide for name, wide in operands.items()},
            )
            return m
        # A register of their own, since the multipliers of a DSP block may be far from the adders.
        a, b = (Signal(signed(self.width), name=name, reset_less=True) for name in "ab")
        m.d.sync += [a.eq(self.x0 + self.w1), b.eq(self.x1 + self.w0)]
        if not self.in_dsp:
            return self._in_logic(m, platform, a, b)
        factors = [Signal.like(a, reset_less=True) for _ in range(2)]
        product = Signal.like(self.p, reset_less=True)
        m.d.sync += [factors[0].eq(a), factors[1].eq(b), product.eq(factors[0] * factors[1])]
        m.d.comb += self.p.eq(product)
        return m

    def _in_logic(self, m, platform, a, b):
        """Multiply four digits of ``a`` at a time, and join their products a cycle later.

        So there are no more than two adders between registers. A sign that is left over takes
        ``b`` from what the other digits make, which needs no adder of its own to negate it.
        """
        width, products = self.width, []
        has_lone_sign = width % DIGITS == 1 and width > 1
        for low in range(0, width - has_lone_sign, DIGITS):
            digits = a[low:low + DIGITS]
            if low + DIGITS >= width:
                digits = digits.as_signed()
            product = lut_product(m, platform, digits, b, name=f"product{low}")
            register = Signal.like(product, name=f"digits{low}", reset_less=True)
            m.d.sync += register.eq(product)
            products.append(register)
        # The low digits of a product are those of the whole; its others are added to the next one.
        total = products.pop()
        if has_lone_sign:
            sign, factor = Signal(reset_less=True), Signal.like(b, name="factor", reset_less=True)
            m.d.sync += [sign.eq(a[-1]), factor.eq(b)]
            upper = Signal(signed(width + 1), name="upper")
            m.d.comb += upper.eq(total >> DIGITS)
            upper = masked_difference(m, platform, sign, factor, upper, name="signed")
            total = Cat(total[:DIGITS], upper).as_signed()
        for product in reversed(products):
            total = Cat(product[:DIGITS], total + (product >> DIGITS)).as_signed()
        joined = Signal.like(self.p, name="joined", reset_less=True)
        m.d.sync += joined.eq(total)
        m.d.comb += self.p.eq(joined)
        return m
