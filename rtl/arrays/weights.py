"""Weights that an array reads: known ones in a read-only memory, or a stream's in one written."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.arrays.multiplier import weight_code
from nnef_hw.rtl.base.memory import TiledMemory

__all__ = ["WeightBank", "WeightRom"]


class WeightRom(TiledMemory):
    """Weights that multipliers with a common address read, in a memory or a table of LUTs.

    Golden model: ``weights[address]``, one cycle later, weight 0 lowest. The members are those of
    :class:`.TiledMemory` with a read port alone.

    Parameters
    ----------
    part : parts.WeightRom
    weights : ndarray of int, shape [depth, weights]
        The weights of every word.
    bits : int
        Width of a weight; of one bit it is a sign (:func:`.weight_code`).
    """

    unproved = "no stream: a memory"

    def __init__(self, part: parts.WeightRom, *, weights, bits):
        depth, count = weights.shape
        words = [
            sum(weight_code(int(weight), bits) << n * bits for n, weight in enumerate(word))
            for word in weights
        ]
        [tiling] = part.tilings(depth, [count * bits])
        super().__init__(tiling, words=words, style=part.style)
        self.part = part


class WeightBank(wiring.Component):
    """Weights that a group of an array's rows reads, in memories that are written one by one.

    Golden model: the word of ``page`` at ``read_address``, one cycle later, as it was last written;
    what was never written is 0. A word that is read is not written in the same cycle.

    Members
    -------
    read_address, read_enable, read_data
        As an array reads weights: ``part.lanes`` of row 0 lowest.
    page : In
        Matrix, and above it the half that it is in.
    write_address : In
        Half, matrix and word.
    write_enable : In
        One bit for each memory.
    write_data : In
        What memories hold: weights of a row's lanes, or of a lane's rows, or one.
    """

    unproved = "no stream: memories"

    def __init__(self, part: parts.WeightMemory, *, rows):
        self.part = part
        self.rows = rows
        super().__init__({
            "read_address": In(part.word_bits),
            "read_enable": In(1),
            "read_data": Out(rows * part.lanes * part.bits),
            "page": In(part.page_bits),
            "write_address": In(part.address_bits),
            "write_enable": In(part.banks(rows)),
            "write_data": In(part.gathered * part.bits),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        tiling = part.bank_tiling(self.rows)
        found = []
        for n in range(part.banks(self.rows)):
            memory = TiledMemory(tiling, writable=True, style=part.style)
            m.submodules[f"memory{n}"] = memory
            m.d.comb += [
                memory.read_address.eq(Cat(self.read_address, self.page)),
                memory.read_enable.eq(self.read_enable),
                memory.write_address.eq(self.write_address),
                memory.write_enable.eq(self.write_enable[n]),
                memory.write_data.eq(self.write_data),
            ]
            found.append(memory.read_data)
        if part.product.order[-1] == "n":
            found = [
                found[lane].word_select(row, part.bits)
                for row in range(self.rows) for lane in range(part.lanes)
            ]
        m.d.comb += self.read_data.eq(Cat(found))
        return m
