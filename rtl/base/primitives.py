"""Arithmetic that maps to fewer LUTs as modules of ``primitives.v`` than as operators.

Without a platform, in Amaranth's own simulator, the functions return plain expressions.
"""

from pathlib import Path

from amaranth import *

__all__ = [
    "ENGINE_PRIMITIVES", "PACKED_PRIMITIVES", "PREFIX", "PRIMITIVES", "WIDE_PRIMITIVES",
    "chained_multiply_add", "delayed", "lut_product", "masked_difference", "masked_sum",
    "multiply_add", "own_lut", "own_register", "primitives_verilog", "restarted_sum",
]

PRIMITIVES = Path(__file__).with_name("primitives.v")
"""Verilog of the modules, behavioural in simulation."""
PREFIX = "nnef_hw_"
"""Prefix of the names of the modules there; a design puts its own in its place."""


ENGINE_PRIMITIVES = Path(__file__).with_name("engine_primitives.v")
"""More of them, which the shared engine alone has."""


WIDE_PRIMITIVES = Path(__file__).with_name("wide_primitives.v")
"""The multiplier of many bits, which few networks have."""


PACKED_PRIMITIVES = Path(__file__).with_name("packed_primitives.v")
"""The multiplier for four products of narrow weights."""


def primitives_verilog(prefix=PREFIX, *, engine=False, wide=False, packed=False):
    """Return the modules, with names that begin with ``prefix``, as those of a platform do."""
    paths = [PRIMITIVES, *engine * [ENGINE_PRIMITIVES], *wide * [WIDE_PRIMITIVES],
             *packed * [PACKED_PRIMITIVES]]
    return "\n".join(path.read_text() for path in paths).replace(PREFIX, prefix)


def lut_product(m, platform, digits, operand, *, name):
    """Return ``digits * operand``: ``digits`` of any signedness, ``operand`` signed."""
    if platform is None:
        return digits * operand
    product = Signal(signed(len(digits) + len(operand)), name=name)
    m.submodules[name] = Instance(
        platform.prefix + "lut_product",
        p_DIGITS=len(digits), p_SIGNED=int(digits.shape().signed), p_WIDTH=len(operand),
        i_digits=digits, i_operand=operand, o_product=product,
    )
    return product


def multiply_add(m, platform, base, digits, operand, *, width, name, select=None, other=0):
    """Return ``(other if select else base) + digits * operand`` in ``width`` bits, signed.

    ``digits`` are unsigned and few. Without ``select`` it is ``base + digits * operand``.
    """
    total = Signal(signed(width), name=name)
    if platform is None:
        start = base if select is None else Mux(select, other, base)
        m.d.comb += total.eq(start + digits * operand)
        return total
    addends = {"base": base, "other": other}
    for addend, value in addends.items():
        addends[addend] = Signal(signed(width), name=f"{name}_{addend}")
        m.d.comb += addends[addend].eq(value)
    m.submodules[name] = Instance(
        platform.prefix + "multiply_add",
        p_DIGITS=len(digits), p_WIDTH=len(operand), p_SUM=width,
        p_SELECTED=int(select is not None), i_select=Const(0) if select is None else select,
        i_base=addends["base"], i_other=addends["other"],
        i_digits=digits, i_operand=operand, o_sum=total,
    )
    return total


def chained_multiply_add(m, platform, base, digits, operand, *, width, name):
    """Return ``base + digits * operand`` in ``width`` bits, signed, in few cells of an iCE40.

    ``digits`` are unsigned and few, and take an adder each, one behind the other.
    """
    total = Signal(signed(width), name=name)
    if platform is None:
        m.d.comb += total.eq(base + digits * operand)
        return total
    extended = Signal(signed(width), name=f"{name}_base")
    m.d.comb += extended.eq(base)
    m.submodules[name] = Instance(
        platform.prefix + "chained_multiply_add",
        p_DIGITS=len(digits), p_WIDTH=len(operand), p_SUM=width,
        i_base=extended, i_digits=digits, i_operand=operand, o_sum=total,
    )
    return total


def masked_sum(m, platform, keep, kept, added, *, name):
    """Return ``(kept if keep else 0) + added`` in the width of ``kept``, signed."""
    total = Signal(signed(len(kept)), name=name)
    if platform is None:
        m.d.comb += total.eq(Mux(keep, kept, 0) + added)
        return total
    extended = Signal.like(total, name=f"{name}_added")
    m.d.comb += extended.eq(added)
    m.submodules[name] = Instance(
        platform.prefix + "masked_sum",
        p_WIDTH=len(kept),
        i_a=keep, i_b=kept, i_c=Const(1, 1), i_d=extended, o_sum=total,
    )
    return total


def masked_difference(m, platform, taken, less, base, *, name):
    """Return ``base - (less if taken else 0)`` in the width of ``base``, signed."""
    total = Signal(signed(len(base)), name=name)
    if platform is None:
        m.d.comb += total.eq(base - Mux(taken, less, 0))
        return total
    extended = Signal.like(total, name=f"{name}_less")
    m.d.comb += extended.eq(less)
    m.submodules[name] = Instance(
        platform.prefix + "masked_difference",
        p_WIDTH=len(base), i_taken=taken, i_less=extended, i_base=base, o_difference=total,
    )
    return total


def restarted_sum(m, platform, keep, kept, added, *, name):
    """Return the same as :func:`masked_sum`, in one logic cell per bit on an iCE40, too."""
    total = Signal(signed(len(kept)), name=name)
    if platform is None:
        m.d.comb += total.eq(Mux(keep, kept, 0) + added)
        return total
    extended = Signal.like(total, name=f"{name}_added")
    m.d.comb += extended.eq(added)
    m.submodules[name] = Instance(
        platform.prefix + "restarted_sum",
        p_WIDTH=len(kept), i_keep=keep, i_kept=kept, i_added=extended, o_sum=total,
    )
    return total


def own_register(m, platform, value, *, name):
    """Return ``value`` one cycle later, from flip-flops that no equal ones are merged with.

    It begins with 0 and is not reset.

    Only an ECP5 has flip-flops to spare; elsewhere it is a plain register.
    """
    register = Signal.like(value, name=name, reset_less=True)
    if platform is None:
        m.d.sync += register.eq(value)
        return register
    m.submodules[name] = Instance(
        platform.prefix + "register",
        p_WIDTH=len(value), i_clk=ClockSignal(), i_d=value, o_q=register,
    )
    return register


def own_lut(m, platform, function, *inputs, name):
    """Return a function of up to four bits, of integers or values, from a LUT of its own.

    Both ends of a stream decide alike whether a beat moves; synthesis would share one LUT, which is
    far from one of them, on the way from register to register there and back.
    """
    if platform is None:
        return function(*inputs)
    value = Signal(name=name)
    rows = (function(*(n >> k & 1 for k in range(len(inputs)))) for n in range(16))
    m.submodules[name] = Instance(
        platform.prefix + "lut",
        p_TABLE=Const(sum(row << n for n, row in enumerate(rows)), 16),
        i_index=Cat(inputs, Const(0, 4 - len(inputs))), o_value=value,
    )
    return value


def delayed(m, value, cycles, *, name, is_flag=False):
    """Return the value so many cycles later; a flag is 0 after reset."""
    for n in range(cycles):
        later = Signal.like(value, name=f"{name}{n}", reset_less=not is_flag)
        m.d.sync += later.eq(value)
        value = later
    return value
