"""Constant matrix times vector, requantized: every product in adders of its own."""

from amaranth import *

from nnef_hw import parts
from nnef_hw.rtl.streams.pipeline import Pipeline

__all__ = ["MatrixProduct"]


class MatrixProduct(Pipeline):
    """Multiply the vectors that come, a beat each, by a matrix of constants, and requantize.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.Requant.apply` of ``matrix @ codes + bias``.

    There are no multipliers: a product with a constant is a sum of shifted codes
    (:class:`nnef_hw.arithmetic.adders.AdderGraph`), with a register before the first and behind
    every adder. Bias, rounding and zero point are one constant of each result. Gives ``out_lanes``
    codes per cycle.
    """

    def __init__(self, part: parts.MatrixProduct):
        super().__init__(part)

    def _results(self, m, codes):
        graph, part = self.part.graph, self.part
        # A code goes to adders all over the product: from a register, not from a queue's memory.
        registers = [Signal.like(code, name=f"code_in{n}_0", reset_less=True)
                     for n, code in enumerate(codes)]
        m.d.sync += [register.eq(code) for register, code in zip(registers, codes, strict=True)]
        # Of every value, what it was one cycle ago, two ...
        self.history = [[register] for register in registers]
        for number, adder in enumerate(graph.adders, graph.inputs):
            total = self._register(m, number)
            level = graph.levels[number]
            first = Const(adder.constant) if adder.first is None else self._at(
                m, adder.first, level - 1)
            second = self._at(m, adder.second, level - 1)
            # What is below the second operand passes by.
            high = first >> adder.shift
            added = high - second if adder.sign < 0 else high + second
            low = _low_bits(first, adder.shift)
            m.d.sync += total.eq(Cat(low, added))
            self.history.append([total])

        results = []
        for n, (value, constant) in enumerate(zip(graph.results, graph.constants, strict=True)):
            if value is None:
                code = min(max(constant >> part.shift, 0), part.hi - part.lo)
                results.append(Const(code + part.lo, part.out_bits))
                continue
            code = self._clipped(m, self.history[value][0], f"code{n}")
            waiting = graph.depth - graph.levels[value]
            results.append(_delayed(m, [code], waiting, f"code{n}"))
        return results

    def _register(self, m, number):
        """Return the register of a value."""
        graph = self.part.graph
        shape = Shape(graph.widths[number], signed=graph.ranges[number][0] < 0)
        return Signal(shape, name=f"sum{number}", reset_less=True)

    def _at(self, m, value, level):
        """Return a value as it stands at a level: registers keep it until then."""
        graph = self.part.graph
        name = f"{'code_in' if value < graph.inputs else 'sum'}{value}"
        return _delayed(m, self.history[value], level - graph.levels[value], name)

    def _clipped(self, m, total, name):
        """Return the code of a result, from a register."""
        part = self.part
        shifted = total >> part.shift
        span = part.hi - part.lo
        code = Signal(part.out_bits, name=name, reset_less=True)
        above = Signal(name=f"{name}_above")
        below = shifted[-1] if shifted.shape().signed else Const(0, 1)
        kept = shifted[:span.bit_length()]
        if span & (span + 1):
            m.d.comb += above.eq(shifted > span)
        else:
            m.d.comb += above.eq(shifted[span.bit_length():].any())
        clipped = Mux(below, 0, Mux(above, span, kept))
        m.d.sync += code.eq(clipped + part.lo)
        return code


def _low_bits(value, count):
    """Return the lowest bits of a value, extended if it has fewer."""
    if not count:
        return Const(0, 0)
    extended = Cat(value, value[-1].replicate(count)) if value.shape().signed else Cat(
        value, Const(0, count))
    return extended[:count]


def _delayed(m, history, cycles, name):
    """Return ``history[cycles]``, for which registers are added to the history."""
    while len(history) <= cycles:
        before = history[-1]
        after = Signal.like(before, name=f"{name}_{len(history)}", reset_less=True)
        m.d.sync += after.eq(before)
        history.append(after)
    return history[cycles]
