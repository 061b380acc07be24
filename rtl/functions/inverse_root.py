"""The inverse root of a pixel's variance, a bit or two per cycle."""

from dataclasses import dataclass

from amaranth import *

from nnef_hw.arithmetic.normalization import FACTOR_BITS, ROOT_BITS
from nnef_hw.rtl.base.primitives import masked_difference

__all__ = ["RootPort", "RootedPixel", "find_inverse_root", "of_lane"]


@dataclass
class RootedPixel:
    """Inputs of the multipliers by pixel: sum, inverse root, exponent; whether it is the last."""

    total: Value
    root: Value
    exponent: Value
    last: Value


@dataclass
class RootPort:
    """Signals of a root that was found: whether it is taken, is there; which pixels are last."""

    taken: Value
    rooted: Value
    last: list


def of_lane(lane):
    """Return a function that names signals of a lane."""
    return lambda name: f"{name}_lane{lane}" if lane else name


def find_inverse_root(m, platform, part, sums, epsilon, finer, port):
    """Find the inverse root of each pixel's variance; return what waits until it is taken.

    Golden model: :func:`nnef_hw.arithmetic.normalization.inverse_root`. A cycle finds
    ``part.digits`` bits of the root, and of its inverse.

    Parameters
    ----------
    sums
        Sum of a pixel's differences, that of their squares, and whether both are complete.
    epsilon
        What is added to the variance.
    finer
        By how many bits the fraction is longer than that of the normalized numbers.
    port : RootPort
        The signals between this and what takes the root.
    """
    total, squares, ends = sums
    complete = Signal()
    width = part.radicand_bits
    # pairs of zeros in front, so that the last cycle has all its digits
    radicand = Signal(width + 2 * (-ROOT_BITS % part.digits), reset_less=True)
    kept = Signal.like(total, name="kept_total", reset_less=True)
    # the sum times a power of two, and its bits that are left
    moved = Signal(width, name="moved_total", reset_less=True)
    bits_left = Signal(part.sum_bits, reset_less=True)
    remainder = Signal(ROOT_BITS + 1, reset_less=True)
    root = Signal(ROOT_BITS, reset_less=True)
    inverse = Signal(FACTOR_BITS, reset_less=True)
    exponent = Signal(range(width // 2 + part.finer), reset_less=True)
    step = Signal(range(max(part.sum_bits, width // 2, ROOT_BITS)))
    bank = Signal(name="root_bank")
    taken, rooted = port.taken, port.rooted

    # A root takes two bits of the radicand at a time, its inverse one of 2**32 - 1. Which of them
    # is found is known from the beginning of a cycle.
    dividing = Signal()
    found, rest_left, root_so_far = [], remainder, root
    for n in range(part.digits):
        pair = radicand[len(radicand) - 2 * n - 2 : len(radicand) - 2 * n]
        digits = Mux(dividing, Cat(Const(1, 1), rest_left), Cat(pair, rest_left))
        divisor = Mux(dividing, root, Cat(Const(1, 2), root_so_far))
        rest = Signal(signed(ROOT_BITS + 4), name=of_lane(n)("rest"))
        fits = Signal(name=of_lane(n)("fits"))
        m.d.comb += [rest.eq(digits - divisor), fits.eq(~rest[-1])]
        following = Mux(fits, rest, digits)
        found.insert(0, fits)
        rest_left, root_so_far = following[: len(remainder)], Cat(fits, root_so_far)

    def count(state, bits):
        """Stay for as many cycles as so many bits take."""
        m.d.sync += step.eq(step + 1)
        with m.If(step == -(-bits // part.digits) - 1):
            m.d.sync += step.eq(0)
            m.next = state

    with m.FSM():
        with m.State("IDLE"):
            m.d.sync += [
                radicand.eq(part.channels * squares.as_unsigned()),
                kept.eq(total if part.centered else 0),
                step.eq(0),
            ]
            with m.If(complete):
                m.d.sync += complete.eq(0)
                m.next = "PREPARE"
        with m.State("PREPARE"):
            magnitude = Signal(part.sum_bits)
            m.d.comb += magnitude.eq(Mux(kept[-1], -kept, kept))
            m.d.sync += [
                radicand.eq(radicand + epsilon),
                moved.eq(magnitude),
                bits_left.eq(magnitude),
            ]
            m.next = "SQUARE" if part.centered else "SETTLE"
        if part.centered:
            with m.State("SQUARE"):
                less = radicand
                for n in range(part.digits):
                    less = masked_difference(
                        m, platform, bits_left[n], Cat(Const(0, n), moved, Const(0, 1)).as_signed(),
                        Cat(less[: len(radicand)], Const(0, 1)).as_signed(),
                        name=of_lane(n)("less_square"))
                m.d.sync += [
                    radicand.eq(less),
                    moved.eq(moved << part.digits),
                    bits_left.eq(bits_left >> part.digits),
                ]
                count("SETTLE", part.sum_bits)
        with m.State("SETTLE"):
            # 0 only without an epsilon: the codes, and so the results, are all the same
            m.d.sync += [
                radicand[0].eq(radicand[0] | ~radicand.any()),
                exponent.eq(width // 2 - 1 + finer),
                remainder.eq(0),
                root.eq(0),
            ]
            m.next = "NORMALIZE" if width > 2 else "ROOT"
        with m.State("NORMALIZE"):
            # The highest pair that is not 0 comes to the top, by some of them per cycle.
            for n in range(1, part.digits + 1):
                with m.If(~radicand[width - 2 * n : width].any()):
                    m.d.sync += [radicand.eq(radicand << 2 * n), exponent.eq(exponent - n)]
            count("ROOT", width // 2 - 1)
        with m.State("ROOT"):
            m.d.sync += [
                remainder.eq(following),
                root.eq(Cat(*found, root)),
                radicand.eq(radicand << 2 * part.digits),
            ]
            with m.If(step == -(-ROOT_BITS // part.digits) - 1):
                # a dividend of ones: its upper half is less than the root
                m.d.sync += [remainder.eq((1 << FACTOR_BITS) - 1), dividing.eq(1)]
            count("DIVIDE", ROOT_BITS)
        with m.State("DIVIDE"):
            m.d.sync += [remainder.eq(following), inverse.eq(Cat(*found, inverse))]
            count("WAIT", FACTOR_BITS)
        with m.State("WAIT"):
            m.d.comb += rooted.eq(1)
            m.d.sync += dividing.eq(0)
            with m.If(taken):
                m.d.sync += bank.eq(~bank)
                m.next = "IDLE"
    # Sums of one code may be complete in the cycle in which those before them are taken.
    with m.If(ends):
        m.d.sync += complete.eq(1)
    return RootedPixel(kept, inverse, exponent, Mux(bank, port.last[1], port.last[0]))
