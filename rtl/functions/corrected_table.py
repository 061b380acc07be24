"""Tables of wide codes that are exact: lines between knots, and a correction for every code."""

import numpy as np
from amaranth import *

from nnef_hw import parts
from nnef_hw.parts.functions.corrected_table import lines_and_corrections
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.functions.interpolated_table import InterpolatedTable

__all__ = ["CorrectedTable"]


class CorrectedTable(InterpolatedTable):
    """Replace every code by any function's result; golden model: a table of all codes.

    The corrections come from a memory of their own, at the code's place. Members and timing are
    those of :class:`.InterpolatedTable`, with one register more.

    Parameters
    ----------
    entries : list[int]
        A result for every code, lowest code first.

    Raises
    ------
    ValueError
        If there is not one for every code, or they are farther from lines than the part says.
    """

    def __init__(self, part: parts.CorrectedTable, *, entries):
        if len(entries) != 1 << part.in_bits:
            raise ValueError(f"CorrectedTable needs {1 << part.in_bits} entries, "
                             f"not {len(entries)}")
        knots, corrections = lines_and_corrections(np.asarray(entries), part.index_bits)
        super().__init__(part, knots=knots.tolist())
        self.least = int(corrections.min())
        self.corrections = (corrections - self.least).tolist()
        if max(self.corrections) >> part.correction_bits:
            raise ValueError(f"CorrectedTable corrections {self.least}..{corrections.max()} do not "
                             f"fit {part.correction_bits} bits")

    def _finish(self, m, lane, result, enables):
        part = self.part
        code = self.i.payload.data[lane].as_unsigned()
        if part.in_signed:
            code = code ^ (1 << part.in_bits - 1)
        packed, bits = part.packed, part.correction_bits
        words = [
            sum(self.corrections[first + n] << bits * n for n in range(packed))
            for first in range(0, len(self.corrections), packed)
        ]
        memory = TiledMemory(part.correction_memory, words=words)
        m.submodules.corrections = memory
        which = (packed - 1).bit_length()
        place = Signal(max(1, which), name="correction_place", reset_less=True)
        with m.If(enables[0]):
            m.d.sync += place.eq(code[:which])
        m.d.comb += [memory.read_address.eq(code >> which), memory.read_enable.eq(enables[0])]
        correction = memory.read_data.word_select(place, bits)
        for n in (1, 2, 3):
            held = Signal(part.correction_bits, name=f"correction{n}", reset_less=True)
            with m.If(enables[n]):
                m.d.sync += held.eq(correction)
            correction = held
        line = Signal(part.out_bits, name="line", reset_less=True)
        with m.If(enables[3]):
            m.d.sync += line.eq(result)
        with m.If(enables[4]):
            m.d.sync += self.o.payload.data[lane].eq(line + correction + self.least)
