"""The program of the calculator: float32 numbers become codes, and results a mean distance."""

from collections.abc import Sequence

from nnef_hw.boards.hardware.mlperf.assembly import Assembly, Carry, Compute, Event, Jump, Source
from nnef_hw.host.benchmarks import DistanceFormat
from nnef_hw.host.floats import FloatReading

__all__ = ["calculator_program"]

_SPARE_BITS = 3
"""Bits of a quotient beyond those of a code: numbers out of the format's range."""
_BELOW = 4
"""Bytes of a float's number below the unit in which it is compared with steps."""
_REAL = 3
"""Bytes of a number that is rounded to 16 bits."""


def calculator_program(
    reading: FloatReading, distance: DistanceFormat, *, count: int, digits: int
) -> Assembly:
    """Return three routines, and jumps to them: of a byte that has come, a clear, a distance.

    Parameters
    ----------
    reading : FloatReading
        How float32 numbers are read.
    distance : DistanceFormat
        What a distance is counted in.
    count : int
        Codes of a result.
    digits : int
        Decimal digits of a distance.
    """
    p = Assembly()
    for name in ("byte", "clear", "measure"):
        p.jump(name)
    taken = p.variable(1)
    p.place("clear")
    p.clear(taken)
    p.end()
    _take(p, reading, taken)
    _measure(p, distance, count, digits)
    return p


def _take(p: Assembly, reading: FloatReading, taken: Sequence[int]) -> None:
    """Take a byte; of the fourth one make the number, and its code."""
    steps = reading.bits + _SPARE_BITS
    wide = max(reading.width + 2, reading.half.bit_length() + steps + 2)
    number = p.variable(_BELOW + -(-wide // 8))
    word, [exponent], [sign] = number[:4], p.variable(1), p.variable(1)
    p.place("byte")
    for n in range(3):
        p.copy(word[n + 1 : n + 2], word[n : n + 1])
    p.load(0, Source.BYTE)
    p.store(word[3])
    p.add_to(taken, p.number(0x40, 1))
    p.jump("word", Jump.CARRY)
    p.end()

    # twice the mantissa, and the exponent above it
    p.place("word")
    p.double(word)
    p.keep_carry(sign)
    p.copy(word[3:], [exponent])
    p.ask(exponent)
    p.keep_carry(word[3])
    p.clear(number[4:])
    p.load(*p.number(reading.largest_exponent, 1))
    p.compute(Compute.SUBTRACT, exponent, carry=Carry.SET)
    p.jump("beyond", Jump.NO_CARRY)
    least = 151 - reading.fraction - 8 * _BELOW
    p.add_to([exponent], p.number(-least, 1))
    p.jump("placed", Jump.NO_CARRY)
    p.place("shift")
    with p.at_most(reading.largest_exponent - least + 1):
        p.load(*p.number(-1, 1))
        p.add(exponent, Carry.CLEAR, writes=True)
        p.jump("placed", Jump.NO_CARRY)
        p.double(number)
        p.jump("shift")
    p.place("placed")

    real = _round(p, reading, number[_BELOW:])
    p.ask(sign)
    p.jump("positive", Jump.NO_CARRY)
    p.negate(number)
    p.negate(real)
    p.place("positive")
    p.load(real[0])
    p.store(0, Source.REAL)
    p.load(real[1])
    p.add(*p.number(0x80, 1), Carry.CLEAR)
    p.store(1, Source.REAL)
    p.event(Event.NEXT)
    code = _divide(p, reading, number[_BELOW:], steps)
    p.place("finish")
    for place in code[: -(-reading.bits // 8)]:
        p.load(place)
    p.event(Event.DONE)
    p.end()
    p.place("beyond")
    p.event(Event.BEYOND)
    p.jump("finish")


def _round(p: Assembly, reading: FloatReading, number: Sequence[int]) -> list[int]:
    """Round a magnitude to 15 bits, in two bytes; one of more is out of range."""
    lowest, bit = divmod(reading.fraction - reading.real_bits - 1, 8)
    rounded = p.variable(_REAL)
    padded = [*number, *p.number(0, lowest + _REAL)]
    p.copy(padded[lowest : lowest + _REAL], rounded)
    p.add_to(rounded, p.number(1 << bit, _REAL))
    if bit < 7:
        with p.loop("align", 7 - bit):
            p.double(rounded)
    p.load(rounded[-1])
    p.add(rounded[-1], Carry.CLEAR)
    p.jump("beyond", Jump.CARRY)
    return rounded[1:]


def _divide(p: Assembly, reading: FloatReading, rest: Sequence[int], steps: int) -> list[int]:
    """Find the code of a number: bits of its quotient by a step of the codes, one by one."""
    quotient = p.variable(-(-steps // 8))
    divisor = 2 * reading.half << steps - 1
    p.add_to(rest, p.number(-reading.least, len(rest)))
    p.clear(quotient)
    p.load(rest[-1])
    p.add(rest[-1], Carry.CLEAR)
    p.jump("divided", Jump.CARRY)
    with p.loop("divide", steps):
        p.add_to(rest, p.number(-divisor, len(rest)))
        p.jump("reached", Jump.CARRY)
        p.add_to(rest, p.number(divisor, len(rest)))
        p.add(*p.number(0, 1), Carry.CLEAR)
        p.place("reached")
        p.double(quotient, Carry.KEPT)
        p.double(rest)
    for n, (a, b) in enumerate(
        zip(quotient, p.number(1 << reading.bits, len(quotient)), strict=True)
    ):
        p.load(a)
        p.compute(Compute.SUBTRACT, b, carry=Carry.KEPT if n else Carry.SET)
    p.jump("divided", Jump.NO_CARRY)
    p.copy(p.number((1 << reading.bits) - 1, len(quotient)), quotient)
    p.place("divided")
    p.add_to(quotient, p.number(reading.lo, len(quotient)))
    return quotient


def _measure(p: Assembly, distance: DistanceFormat, count: int, digits: int) -> None:
    """Sum the squares of all differences, and find the digits of their mean."""
    largest = max(distance.first + count * 0xFFFF**2, 10 * distance.unit)
    total = p.variable(max(4, -(-largest.bit_length() // 8)))
    difference, factor, square = p.variable(2), p.variable(2), p.variable(4)
    p.place("measure")
    p.copy(p.number(distance.first, len(total)), total)
    p.place("element")
    with p.at_most(count):
        for n in range(2):
            p.load(n, Source.TABLE)
            p.compute(Compute.SUBTRACT, n, Source.REAL, Carry.KEPT if n else Carry.SET)
            p.store(difference[n])
        p.jump("magnitude", Jump.CARRY)
        p.negate(difference)
        p.place("magnitude")
        p.copy(difference, factor)
        p.clear(square)
        with p.loop("square", 16):
            p.double(square)
            p.double(factor)
            p.jump("no bit", Jump.NO_CARRY)
            p.add_to(square, difference + p.number(0, 2))
            p.place("no bit")
        p.add_to(total, square + p.number(0, len(total) - 4))
        p.jump("summed", Jump.LAST)
        p.event(Event.NEXT)
        p.jump("element")
    p.place("summed")
    _print(p, distance, total, digits)


def _print(p: Assembly, distance: DistanceFormat, total: Sequence[int], digits: int) -> None:
    """Find the digits of a sum, highest first: how often a unit is in it, and in ten times it."""
    tenfold, [digit], left = p.variable(len(total)), p.variable(1), p.variable(1)
    p.copy(p.number(digits, 1), left)
    p.place("digit")
    with p.at_most(digits):
        p.clear([digit])
        p.place("unit")
        with p.at_most(11):
            p.add_to(total, p.number(-distance.unit, len(total)))
            p.jump("less", Jump.NO_CARRY)
            p.add_to([digit], p.number(1, 1))
            p.add(*p.number(-10, 1), Carry.CLEAR)
            p.jump("unit", Jump.NO_CARRY)
        p.event(Event.BEYOND)
        p.event(Event.END)
        p.place("less")
        p.add_to(total, p.number(distance.unit, len(total)))
        p.load(digit)
        p.event(Event.PUSH)
        p.copy(total, tenfold)
        with p.loop("ten", 9):
            p.add_to(total, tenfold)
        p.add_to(left, p.number(-1, 1))
        p.ask(left[0])
        p.jump("digit", Jump.CARRY)
    p.end()
