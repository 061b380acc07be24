"""Constant matrix times vector, requantized: every product in adders of its own."""

from amaranth import *

from nnef_hw import parts
from nnef_hw.rtl.streams.pipeline import Pipeline

__all__ = ["MatrixProduct"]


class MatrixProduct(Pipeline):
    """Multiply the vectors that come, a beat each, by a matrix of constants, and requantize.

    Golden model: :meth:`nnef_hw.arithmetic.numerics.Requant.apply` of ``matrix @ codes + bias``.

    There are no multipliers: a product with a constant is a sum of shifted codes
    (:class:`nnef_hw.arithmetic.adders.AdderGraph`). Registers stand before the first adders and at
    cuts between them (:class:`nnef_hw.arithmetic.cuts.Cuts`). Bias, rounding and zero point are one
    constant of each result. Gives ``out_lanes`` codes per cycle.
    """

    def __init__(self, part: parts.MatrixProduct):
        super().__init__(part)

    def _results(self, m, codes):
        graph, part, cuts = self.part.graph, self.part, self.part.cuts
        # A code goes to adders all over the product: from a register, not from a queue's memory.
        registers = [Signal.like(code, name=f"code_in{n}_0", reset_less=True)
                     for n, code in enumerate(codes)]
        m.d.sync += [register.eq(code) for register, code in zip(registers, codes, strict=True)]
        # Of every value, as it is computed, and behind one cut, two ...
        self.history = [[register] for register in registers]
        for number, adder in enumerate(graph.adders, graph.inputs):
            total = self._sum(number)
            level = graph.levels[number]
            first = Const(adder.constant) if adder.first is None else self._at(
                m, adder.first, level)
            second = self._at(m, adder.second, level)
            # What is below the second operand passes by.
            high = first >> adder.shift
            added = high - second if adder.sign < 0 else high + second
            low = _low_bits(first, adder.shift)
            m.d.comb += total.eq(Cat(low, added))
            self.history.append([total])

        results = []
        for n, (value, constant) in enumerate(zip(graph.results, graph.constants, strict=True)):
            if value is None:
                code = min(max(constant >> part.shift, 0), part.hi - part.lo)
                results.append(Const(code + part.lo, part.out_bits))
                continue
            level = graph.levels[value] + 1
            code = self._clipped(m, self._at(m, value, level), f"code{n}")
            waiting = len(cuts.places) - cuts.stage(level)
            results.append(_delayed(m, [code], waiting, f"code{n}"))
        return results

    def _sum(self, number):
        """Return the signal of a value."""
        graph = self.part.graph
        shape = Shape(graph.widths[number], signed=graph.ranges[number][0] < 0)
        return Signal(shape, name=f"sum{number}")

    def _at(self, m, value, level):
        """Return a value as what is computed at a level takes it: behind the cuts before that."""
        graph, cuts = self.part.graph, self.part.cuts
        name = f"{'code_in' if value < graph.inputs else 'sum'}{value}"
        crossed = cuts.stage(level) - cuts.stage(graph.levels[value])
        return _delayed(m, self.history[value], crossed, name)

    def _clipped(self, m, total, name):
        """Return the code of a result."""
        part = self.part
        shifted = total >> part.shift
        span = part.hi - part.lo
        code = Signal(part.out_bits, name=name)
        above = Signal(name=f"{name}_above")
        below = shifted[-1] if shifted.shape().signed else Const(0, 1)
        kept = shifted[:span.bit_length()]
        if span & (span + 1):
            m.d.comb += above.eq(shifted > span)
        else:
            m.d.comb += above.eq(shifted[span.bit_length():].any())
        clipped = Mux(below, 0, Mux(above, span, kept))
        m.d.comb += code.eq(clipped + part.lo)
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
