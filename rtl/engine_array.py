"""The shared engine's array: sums that stay where they are made, results that leave one by one."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine import CODE_BITS, Engine
from nnef_hw.rtl.engine_sequencer import word_layout
from nnef_hw.rtl.multiplier import ProductPair
from nnef_hw.rtl.primitives import restarted_sum

__all__ = ["EngineArray", "result_layout"]


def result_layout(part: Engine, **fields):
    """Payload of a result, with what is known of it.

    ``constant`` and ``write`` are the addresses of its bias and factor, and of the word that its
    code goes to; ``first`` and ``last`` of that word's codes.
    """
    return data.StructLayout({
        "valid": 1,
        "first": 1,
        "last": 1,
        "constant": part.fields["constant"],
        "write": part.fields["write"],
        **fields,
    })


class EngineArray(wiring.Component):
    """Multiply words of codes by weights of every row, and add the products of a pass.

    Every multiplier has a sum of its own. When a pass ends its sums are kept apart: they leave
    while the next pass is computed, row by row, each the sum over its lanes (a convolution) or
    lane by lane of the first row alone (what is computed channel by channel). With ``maximum``
    these may be the greatest codes of every lane instead, times 64.

    Golden model: ``acc[r] = sum over words and lanes of code * weight``, modulo ``2**acc_bits``.

    Members
    -------
    word : In(word_layout)
        The word that is read, ``part.operand_stage`` cycles before its codes and weights come.
    by_lane, takes_maximum : In(1)
        How results are made; as the word is read.
    codes : In(lanes * 8)
        Unsigned codes, lane 0 lowest.
    weights : In(rows * lanes * 8)
        Signed weights, row 0 lowest.
    result : Out(result_layout)
        With its ``acc``; ``write`` is ``part.tree_levels`` cycles ahead.
    """

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "word": In(word_layout(part)),
            "by_lane": In(1),
            "takes_maximum": In(1),
            "codes": In(part.word_bits),
            "weights": In(part.multipliers * CODE_BITS),
            "result": Out(result_layout(part, acc=signed(part.acc_bits))),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        # Since the issue of the word, one cycle has passed when it is read.
        words = [self.word]
        for n in range(2, part.keep_stage + 1):
            delayed = Signal(word_layout(part), name=f"word{n}")
            m.d.sync += delayed.eq(words[-1])
            words.append(delayed)
        adding, keeping = words[part.sum_stage - 1], words[part.keep_stage - 1]
        accumulators = self._sums(m, platform, adding)
        lanes = accumulators[0]
        if part.maximum:
            lanes = self._maxima(m, words[part.operand_stage - 1], lanes)
        self._drain(m, keeping, accumulators, lanes)
        return m

    def _sums(self, m, platform, adding):
        """Return the sums of all rows and lanes."""
        part = self.part
        operands = [
            (
                self.codes.word_select(lane, CODE_BITS),
                self.weights.word_select(row * part.lanes + lane, CODE_BITS).as_signed(),
            )
            for row in range(part.rows)
            for lane in range(part.lanes)
        ]
        products = []
        for n in range(0, len(operands), 2):
            pair = ProductPair(
                x_bits=CODE_BITS, x_signed=False, w_bits=CODE_BITS, in_dsp=part.in_dsp
            )
            m.submodules[f"products{n // 2}"] = pair
            m.d.comb += [
                pair.x0.eq(operands[n][0]),
                pair.w0.eq(operands[n][1]),
                pair.x1.eq(operands[n + 1][0]),
                pair.w1.eq(operands[n + 1][1]),
            ]
            products += [pair.p0, pair.p1]
        sums = [
            [
                Signal(signed(part.acc_bits), name=f"acc{row}_{lane}", reset_less=True)
                for lane in range(part.lanes)
            ]
            for row in range(part.rows)
        ]
        for row in range(part.rows):
            for lane in range(part.lanes):
                own = sums[row][lane]
                base = own
                if row + 1 < part.slide_rows:
                    base = Signal.like(own, name=f"base{row}_{lane}")
                    m.d.comb += base.eq(Mux(adding.shift, sums[row + 1][lane], own))
                # What moves into the last of these rows is nothing.
                begins = adding.fresh
                if row + 1 >= part.slide_rows:
                    begins = adding.fresh | adding.shift
                added = restarted_sum(
                    m,
                    platform,
                    ~begins,
                    base,
                    products[row * part.lanes + lane],
                    name=f"added{row}_{lane}",
                )
                with m.If(adding.valid):
                    m.d.sync += own.eq(added)
        return sums

    def _maxima(self, m, reading, lanes):
        """Return what the first row's lanes keep: their sums, or their greatest codes."""
        part = self.part
        kept = []
        for lane, total in enumerate(lanes):
            code = self.codes.word_select(lane, CODE_BITS)
            best = Signal(CODE_BITS, name=f"best{lane}", reset_less=True)
            with m.If(reading.valid & (reading.fresh | (code > best))):
                m.d.sync += best.eq(code)
            # As late as the sums are.
            for n in range(part.keep_stage - part.operand_stage - 1):
                later = Signal.like(best, name=f"best{lane}_{n}", reset_less=True)
                m.d.sync += later.eq(best)
                best = later
            kept.append(Mux(self.takes_maximum, best << 6, total))
        return kept

    def _drain(self, m, keeping, accumulators, lanes):
        """Keep the sums of a pass, and give them one by one."""
        part = self.part
        kept = [
            [Signal.like(total, name=f"kept{row}_{lane}") for lane, total in enumerate(sums)]
            for row, sums in enumerate(accumulators)
        ]
        keep = Signal()
        m.d.comb += keep.eq(keeping.valid & keeping.keep)
        sources = [lanes, *accumulators[1:]]
        for row, sums in enumerate(kept):
            for lane, total in enumerate(sums):
                following = kept[row + 1][lane] if row + 1 < part.rows else total
                following = Mux(self.by_lane, total, following)
                m.d.sync += total.eq(Mux(keep, sources[row][lane], following))

        remaining = Signal(part.fields["results"])
        lane = Signal(range(part.lanes))
        constant = Signal(part.fields["constant"])
        write = Signal(part.fields["write"])
        with m.If(keep):
            m.d.sync += [
                remaining.eq(keeping.results),
                lane.eq(0),
                constant.eq(keeping.constant),
                write.eq(keeping.write),
            ]
        with m.Elif(remaining != 0):
            m.d.sync += [remaining.eq(remaining - 1), lane.eq(lane + 1), constant.eq(constant + 1)]
            with m.If(lane == part.lanes - 1):
                m.d.sync += write.eq(write + 1)

        # A result beside the sums of lanes that are added for it.
        result = Signal(result_layout(part))
        m.d.comb += [
            result.valid.eq(remaining != 0),
            result.first.eq(lane == 0),
            result.last.eq(lane == part.lanes - 1),
            result.constant.eq(constant),
        ]
        level = [
            Mux(self.by_lane & (lane != n), 0, total).as_signed() for n, total in enumerate(kept[0])
        ]
        depth = 0
        while len(level) > 1:
            depth += 1
            sums = [
                Signal(signed(part.acc_bits), name=f"tree{depth}_{n}", reset_less=True)
                for n in range(len(level) // 2)
            ]
            for n, total in enumerate(sums):
                m.d.sync += total.eq(level[2 * n] + level[2 * n + 1])
            level = sums
            later = Signal(result_layout(part), name=f"result{depth}")
            m.d.sync += later.eq(result)
            result = later
        m.d.comb += [
            *(
                self.result[name].eq(result[name])
                for name in ("valid", "first", "last", "constant")
            ),
            self.result.write.eq(write),
            self.result.acc.eq(level[0]),
        ]
