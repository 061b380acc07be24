"""The shared engine's array: sums that stay where they are made, results that leave in turn."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.contraction import Matrices
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.pairs import Gather, Maxima, Minima, Products
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.base.primitives import restarted_sum
from nnef_hw.rtl.engine.products import add_products
from nnef_hw.rtl.engine.sequencer import word_layout

__all__ = ["EngineArray", "result_layout", "sums_layout"]


def result_layout(part: Engine, **fields):
    """Payload of results that leave together, with what is known of them.

    ``constant`` and ``write`` are the addresses of their biases and factors, and of the word that
    their codes go to; ``first`` and ``last`` of that word's codes are among them.
    """
    return data.StructLayout({
        "valid": 1,
        "first": 1,
        "last": 1,
        "constant": part.layout.widths["constant"],
        "write": part.layout.widths["write"],
        **fields,
    })


def _packs(part: Engine):
    """Return whether single codes may go to one word after the other."""
    gather = part.find(Gather)
    return gather is not None and gather.packs


def sums_layout(part: Engine):
    """Payload of the sums that leave together; ``saves`` tells of such that are no results."""
    array = part.array
    saves = {"saves": 1} if part.has(Matrices) else {}
    return result_layout(
        part, accs=data.ArrayLayout(signed(array.acc_bits), array.results), **saves
    )


class EngineArray(wiring.Component):
    """Multiply words of codes by weights of every row, and add the products of a pass.

    In a convolution the products of a row's lanes are added in a tree, ``tree_cycles`` cycles
    long, and every row has a sum of what comes from there (:func:`.add_products`). What is
    computed channel by channel has a sum for every lane instead, in the same registers: without the
    tree, and of the first row alone, or of ``slide_rows`` of them, between which the sums
    move. When a pass ends its sums are kept apart, and leave, ``results`` per cycle, while the
    next pass is computed. With ``maximum`` these may be the greatest codes of every lane instead,
    times 64; or the least ones, which ``inverts`` makes the greatest before and what they were
    behind. The codes of the first word of a pass, less 128, are the weights of the first row for a
    later one with ``times_kept``.

    Golden model: ``acc[r] = sum over words and lanes of code * weight``, modulo ``2**acc_bits``;
    of rows behind ``plain_rows`` plus :func:`.fast_offsets` of the pass.

    Members
    -------
    word : In(word_layout)
        The word that is read, ``operand_stage`` cycles before its codes and weights come.
    by_lane, takes_maximum, inverts : In(1)
        How results are made; as the word is read, and until its sums are kept.
    gathers : In(1)
        Every word has one result, of the first lane, and these go to words one after the other;
        only if there are such layers.
    packs, begin : In(1)
        Whether the word after the one that was written last is written next, not that of the
        address; an instruction begins. Only if there are such layers.
    adds : In(1)
        Results leave ``slow_pace`` cycles apart; only if all others leave one by one.
    codes : In(lanes * 8)
        Unsigned codes, lane 0 lowest.
    weights : In(rows * lanes * 8)
        Signed weights, row 0 lowest.
    result : Out(sums_layout)
        With their ``accs``; ``constant`` is a cycle ahead.
    """

    unproved = "no stream: a schedule of fixed delays, no handshake"

    def __init__(self, part: Engine):
        self.part = part
        super().__init__({
            "word": In(word_layout(part)),
            "by_lane": In(1),
            "takes_maximum": In(1),
            "codes": In(part.array.word_bits),
            "weights": In(part.array.products * CODE_BITS),
            "result": Out(sums_layout(part)),
            **({"inverts": In(1)} if part.has(Minima) else {}),
            **({"adds": In(1)} if part.pipeline.slow_pace > part.requantizer.cycles else {}),
            **({"gathers": In(1)} if part.has(Gather) else {}),
            **({"packs": In(1), "begin": In(1)} if _packs(part) else {}),
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        word = self.word
        # Of every cycle from that on in which the word is read.
        own = {
            "valid": word.valid, "fresh": word.fresh, "shift": word.shift,
            "keep": word.keep & word.valid,
            **({"times_kept": word.times_kept} if part.has(Products) else {}),
        }  # fmt: skip
        layout = data.StructLayout(dict.fromkeys(own, 1))
        flags = {part.pipeline.read_stage: layout(Cat(own.values()))}
        for n in range(part.pipeline.read_stage + 1, part.pipeline.keep_stage(by_lane=False) + 1):
            flags[n] = Signal(layout, name=f"flags{n}")
            m.d.sync += flags[n].eq(flags[n - 1])
        weights = self._weights(m, flags[part.pipeline.operand_stage])
        products, trees = add_products(m, part, self.codes, weights)
        sums = self._sums(m, platform, flags, products, trees)
        if part.has(Maxima):
            sums = self._maxima(m, flags[part.pipeline.operand_stage], sums)
        # The constant of a result is read a cycle before it is there.
        soon, keep = Signal(), Signal()
        for before, signal in ((1, soon), (0, keep)):
            stages = [part.pipeline.keep_stage(by_lane=way) - before for way in (False, True)]
            ends = [flags[stage].keep for stage in stages]
            m.d.comb += signal.eq(Mux(self.by_lane, ends[1], ends[0]))
        self._drain(m, soon, keep, sums)
        return m

    def _weights(self, m, reading):
        """Return the weights, of which those of the first row may be codes that were kept."""
        part = self.part
        if not part.has(Products):
            return self.weights
        kept = Signal(part.array.word_bits, name="kept_codes", reset_less=True)
        middle = Const(1 << (CODE_BITS - 1), CODE_BITS).replicate(part.array.lanes)
        with m.If(reading.valid & reading.fresh):
            m.d.sync += kept.eq(self.codes ^ middle)
        weights = Signal.like(self.weights, name="chosen_weights")
        first = Mux(reading.times_kept, kept, self.weights[: part.array.word_bits])
        m.d.comb += weights.eq(Cat(first, self.weights[part.array.word_bits :]))
        return weights

    def _sums(self, m, platform, flags, products, trees):
        """Return the sums of all rows; or of all lanes, if these are added by themselves."""
        part = self.part
        stage = part.pipeline.sum_stage
        alone, added = flags[stage], flags[stage + part.array.tree_cycles]
        first = Signal.like(alone, name="adding")
        m.d.comb += first.eq(Mux(self.by_lane, alone, added))
        sums = [
            [
                Signal(signed(part.array.acc_bits), name=f"acc{row}_{n}", reset_less=True)
                for n in range(part.array.lanes if row else part.array.rows)
            ]
            for row in range(part.array.slide_rows)
        ]
        for row, slots in enumerate(sums):
            adding = alone if row else first
            for n, own in enumerate(slots):
                added = products[row][n] if row else trees[n]
                if row == 0 and n < part.array.lanes:
                    added = Signal.like(trees[n], name=f"operand{n}")
                    m.d.comb += added.eq(Mux(self.by_lane, products[0][n], trees[n]))
                base, begins = own, adding.fresh
                if n < part.array.lanes and row + 1 < part.array.slide_rows:
                    base = Signal.like(own, name=f"base{row}_{n}")
                    m.d.comb += base.eq(Mux(adding.shift, sums[row + 1][n], own))
                elif n < part.array.lanes:
                    # What moves into the last of these rows is nothing.
                    begins = adding.fresh | adding.shift
                total = restarted_sum(
                    m, platform, ~begins, base, added, name=f"added{row}_{n}"
                )
                with m.If(adding.valid):
                    m.d.sync += own.eq(total)
        return sums[0]

    def _maxima(self, m, reading, sums):
        """Return the values to keep: the sums, or the greatest codes of all lanes."""
        part = self.part
        kept = list(sums)
        inverted = self.inverts.replicate(CODE_BITS) if part.has(Minima) else None
        for lane in range(part.array.lanes):
            code = self.codes.word_select(lane, CODE_BITS)
            if inverted is not None:
                code = code ^ inverted
            # 255 less the greatest code: a code is greater if both add up to more than 255, which
            # no family has to invert anything for.
            below = Signal(CODE_BITS, name=f"below{lane}", reset_less=True)
            with m.If(reading.valid & (reading.fresh | (code + below)[CODE_BITS])):
                m.d.sync += below.eq(~code)
            # As late as the sums are.
            cycles = part.pipeline.keep_stage(by_lane=True) - part.pipeline.operand_stage
            for n in range(cycles - 1):
                later = Signal.like(below, name=f"below{lane}_{n}", reset_less=True)
                m.d.sync += later.eq(below)
                below = later
            best = ~below if inverted is None else ~below ^ inverted
            kept[lane] = Mux(self.takes_maximum, best << 6, sums[lane])
        return kept

    def _drain(self, m, soon, keep, sums):
        """Keep the sums of a pass, and give so many of them per cycle."""
        part, together = self.part, self.part.array.results
        acc_bits, rows = part.array.acc_bits, part.array.rows
        kept = [Signal(signed(acc_bits), name=f"kept{n}") for n in range(rows)]
        leaves, moves = Const(1), Const(1)
        pace = part.pipeline.slow_pace
        if pace > 1:
            tick = Signal(range(pace))
            at_once = ~self.adds if hasattr(self, "adds") else Const(0)
            m.d.sync += tick.eq(Mux(keep | at_once, 0, tick + 1))
            leaves, moves = tick == 0, at_once | (tick == pace - 1)
        # Sums that are subtracted from biases are kept inverted, which takes no LUTs of their own.
        inverts = part.has(Matrices)
        with m.If(keep | moves):
            for n, total in enumerate(kept):
                following = kept[n + together] if n + together < part.array.rows else total
                m.d.sync += total.eq(Mux(keep, ~sums[n] if inverts else sums[n], following))

        place, next_constant = self._place(m)
        remaining = Signal(part.layout.bits("results"))
        lane = Signal(range(part.array.lanes))
        constant = Signal(part.layout.widths["constant"])
        write = Signal(part.layout.widths["write"])
        first_lane, last_lane = Const(0), Const(part.array.lanes - together)
        if part.has(Gather) and together > 1:
            last_lane = Mux(self.gathers, part.array.lanes - 1, last_lane)
        if part.has(Gather):
            first_lane = Signal.like(lane, name="first_lane")
            with m.If(keep & self.gathers):
                m.d.sync += first_lane.eq(first_lane + 1)
        filled = Const(0)
        if _packs(part):
            filled = Signal.like(write, name="filled")
            with m.If(self.begin):
                m.d.sync += filled.eq(0)
            with m.Elif(keep & self.packs):
                m.d.sync += filled.eq(filled + (first_lane == part.array.lanes - 1))
        with m.If(keep):
            m.d.sync += [
                remaining.eq(place.results),
                lane.eq(first_lane),
                write.eq(place.write + filled if _packs(part) else place.write),
            ]
        with m.Elif((remaining != 0) & moves):
            m.d.sync += [remaining.eq(remaining - 1), lane.eq(lane + together)]
            if part.array.rows > part.array.lanes:
                with m.If(lane == part.array.lanes - together):
                    m.d.sync += write.eq(write + 1)
        valid = (remaining != 0) & leaves
        if part.has(Matrices):
            saves = Signal()
            with m.If(keep):
                m.d.sync += saves.eq(place.saves)
            m.d.comb += self.result.saves.eq(valid & saves)
            valid &= ~saves
        with m.If(soon):
            m.d.sync += constant.eq(next_constant)
        with m.Elif(keep | moves):
            m.d.sync += constant.eq(constant + 1)
        m.d.comb += [
            self.result.valid.eq(valid),
            self.result.first.eq(lane == 0),
            self.result.last.eq(lane == last_lane),
            self.result.constant.eq(constant),
            self.result.write.eq(write),
            *(acc.eq(~total if inverts else total)
              for acc, total in zip(self.result.accs, kept[:together], strict=True)),
        ]

    def _place(self, m):
        """Return where the results go of the pass whose sums are kept in this cycle.

        And the constant of the one whose sums are kept in the next cycle. The last words of two
        such passes are at least ``lanes`` cycles apart, so that registers which wait in between
        hold it; where they may come in every cycle, as where several results leave together, it
        comes exactly when it is needed.
        """
        part, word = self.part, self.word
        names = ["results", "constant", "write", *(["saves"] if part.has(Matrices) else [])]
        layout = data.StructLayout({name: len(Value.cast(word[name])) for name in names})
        place = layout(Cat(*(word[name] for name in names)))
        if part.array.results > 1:
            return self._place_in_time(m, layout, place)
        arrives = word.valid & word.keep
        cycles = part.pipeline
        waits = max(0, cycles.keep_stage(by_lane=False) - part.array.lanes - cycles.read_stage)
        # What a register holds may be too late for a constant of results lane by lane.
        soonest = cycles.keep_stage(by_lane=True) - cycles.read_stage - 1
        is_exact = part.has(Gather) or waits >= soonest
        if is_exact:
            waits = soonest
        for n in range(waits):
            later = Signal(layout, name=f"place{n}", reset_less=True)
            arrives_later = Signal(name=f"arrives{n}")
            m.d.sync += [later.eq(place), arrives_later.eq(arrives)]
            place, arrives = later, arrives_later
        held = Signal(layout, name="place", reset_less=True)
        with m.If(arrives):
            m.d.sync += held.eq(place)
        if not is_exact:
            return held, held.constant
        return held, Mux(self.by_lane, place.constant, held.constant)

    def _place_in_time(self, m, layout, place):
        """Return the same, of words that are as many cycles ago as their sums take."""
        part = self.part
        places = {part.pipeline.read_stage: place}
        for n in range(part.pipeline.read_stage + 1, part.pipeline.keep_stage(by_lane=False) + 1):
            places[n] = Signal(layout, name=f"place{n}", reset_less=True)
            m.d.sync += places[n].eq(places[n - 1])
        stages = [part.pipeline.keep_stage(by_lane=way) for way in (True, False)]
        here, soon = (
            layout(Mux(self.by_lane, *(places[stage - before].as_value() for stage in stages)))
            for before in (0, 1)
        )
        return here, soon.constant
