"""Systolic array: rows of multiply-accumulate units behind one stream of window words."""

from itertools import pairwise

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.arrays.multiplier import ProductPair
from nnef_hw.rtl.base.primitives import masked_sum
from nnef_hw.rtl.windows.linebuffer import window_layout

__all__ = ["SystolicArray", "sum_layout"]

READ_PORT = frozenset({"read_address", "read_enable", "read_data"})
"""What an array drives and reads of a memory of weights."""


def sum_layout(acc_bits, lanes=1):
    """Payload of a stream of sums, of ``lanes`` consecutive channels; ``last`` ends a frame."""
    return data.StructLayout({"acc": data.ArrayLayout(signed(acc_bits), lanes), "last": 1})


class SystolicArray(wiring.Component):
    """Multiply window words by the weights of ``rows`` output channels at a time.

    Golden model: ``acc[c] = sum(weights[c] * codes)`` over the T words of a window, modulo
    ``2**acc_bits``; channels come out in order, pixel after pixel.

    One word per cycle. Rows stand in groups of ``group_rows``; a group reads one weight memory,
    and word, address and control hop from group to group through registers: nothing fans out. A
    word that is inside never stalls: only the last word of a pass waits at the entrance, until the
    cycle after the last sum of all but ``kept_passes - 1`` passes before it was taken. Sums leave
    by a shift chain along the rows, ``out_lanes`` per cycle. All control comes from registers:
    ``i.ready`` depends only on ``i.payload.last`` besides, ``o.valid`` on nothing else.

    The first sum of a pass is offered ``latency`` after the pass's last word was accepted, or in
    the cycle after the last sum of the pass before was taken if that is later. With ``interval``
    cycles between the sums that the consumer takes, a pass takes
    ``max(T, latency + (rows - 1) * interval + 1)`` cycles if one pass is kept; a second set of sums
    brings that down to ``max(T, rows * interval, (latency + (rows - 1) * interval + 1) / 2)``.

    Parameters
    ----------
    weights : list of Component
        A memory for every group, with the read port of :class:`.TiledMemory`: its words are the
        weights of the group's rows, row 0 lowest, in each the weights of all lanes. Word
        ``n * T + t`` is read for word t of pass n.

    Members
    -------
    i : In(stream.Signature(window_layout))
    o : Out(stream.Signature(sum_layout))
    page0, write_address0 ... : In
        What a memory of group 0 takes beside its read port, and so on.
    """

    def __init__(self, part: parts.SystolicArray, *, weights):
        self.part = part
        self.weights = weights
        word = window_layout(bits=part.x_bits, signed=part.x_signed, lanes=part.lanes)
        super().__init__({
            "i": In(stream.Signature(word)),
            "o": Out(stream.Signature(sum_layout(part.acc_bits, part.out_lanes))),
            **{f"{name}{group}": member for group, memory in enumerate(weights)
               for name, member in memory.signature.members.items() if name not in READ_PORT},
        })

    def elaborate(self, platform):
        m = Module()
        part = self.part
        groups = part.group_sizes
        depth = part.depth
        accept = Signal()
        m.d.comb += accept.eq(self.i.valid & self.i.ready)

        # What hops from group to group: word, address, and (valid, first, last).
        entering = self._entering()
        x_hops = [Signal.like(entering, name=f"x_hop{n}", reset_less=True)
                  for n in range(len(groups) + 1)]
        address_hops = [Signal(range(depth), name=f"address_hop{n}", init=depth - 1)
                        for n in range(len(groups))]
        stages = len(groups) + part.sum_stage + 2
        valid = [Signal(name=f"valid{n}") for n in range(stages)]
        first = [Signal(name=f"first{n}", reset_less=True) for n in range(stages)]
        last = [Signal(name=f"last{n}") for n in range(stages)]
        for hops in (x_hops, address_hops, valid, first, last):
            m.d.sync += [later.eq(earlier) for earlier, later in pairwise(hops)]

        next_first = Signal(init=1)
        m.d.sync += [valid[0].eq(accept), last[0].eq(accept & self.i.payload.last)]
        with m.If(accept):
            m.d.sync += [
                x_hops[0].eq(entering),
                first[0].eq(next_first),
                next_first.eq(self.i.payload.last),
                address_hops[0].eq(address_hops[0] + 1),
            ]
            with m.If(address_hops[0] == depth - 1):
                m.d.sync += address_hops[0].eq(0)

        sum_stage = part.sum_stage
        accumulators, captures, words_of = [], [], []
        shared = None
        for group, (rows, weights) in enumerate(zip(groups, self.weights, strict=True)):
            m.submodules[f"weights{group}"] = weights
            m.d.comb += [
                getattr(weights, name).eq(getattr(self, f"{name}{group}"))
                for name in weights.signature.members if name not in READ_PORT
            ]
            m.d.comb += [
                weights.read_address.eq(address_hops[group]),
                weights.read_enable.eq(1),
            ]
            codes = self._delayed(m, x_hops[group + 1], name=f"codes{group}")
            words = self._delayed(m, weights.read_data, name=f"words{group}")
            if not group:
                shared = self._shared(m, codes)
            elif shared is not None:
                earlier, shared = shared, Signal.like(
                    shared, name=f"shared{group}", reset_less=True
                )
                m.d.sync += shared.eq(earlier)
            sums = self._products(m, group, rows, codes, words, shared)
            words_of.append(codes)
            stage = first[group + sum_stage], valid[group + sum_stage]
            accumulators.append([
                self._accumulated(m, platform, total, *stage, name=f"{group}_{row}")
                for row, total in enumerate(sums)
            ])
            captures.append(last[group + sum_stage + 1])

        shift, reload = self._drain(m, accept, last)
        shifts = [shift, *(Signal(name=f"shift{n}") for n in range(1, len(groups)))]
        reloads = [reload, *(Signal(name=f"reload{n}") for n in range(1, len(groups)))]
        for hops in (shifts, reloads):
            m.d.sync += [later.eq(earlier) for earlier, later in pairwise(hops)]
        if self.part.kept_passes == 1:
            reloads = captures
        results = self._chain(m, accumulators, captures, shifts, reloads)
        common = self._common(m, platform, words_of[0], first[sum_stage], valid[sum_stage])
        if common is not None:
            if part.kept_passes == 1:
                kept = self._held(m, common, captures[0], name="common_kept")
            else:
                waiting = self._held(m, common, captures[0], name="common_waiting")
                kept = self._held(m, waiting, shift & reload, name="common_kept")
            results = [result - kept for result in results]
        m.d.comb += [acc.eq(result)
                     for acc, result in zip(self.o.payload.acc, results, strict=True)]
        return m

    def _entering(self):
        """Return the codes of a word as the multipliers take them."""
        return self.i.payload.data

    def _shared(self, m, codes):
        """Return further operands of the products of all groups, or None.

        The codes are those of the first group's multipliers. It hops from group to group as these.
        """
        del m, codes

    def _common(self, m, platform, codes, first, valid):
        """Return the excess of the sums of all rows after a pass; None if it is nothing.

        The codes are those of the first group's multipliers.
        """
        del m, platform, codes, first, valid

    def _accumulated(self, m, platform, total, first, valid, *, name):
        """Return the sum of the valid totals since the first one."""
        accumulator = Signal(signed(self.part.acc_bits), name=f"acc{name}", reset_less=True)
        added = masked_sum(m, platform, ~first, accumulator, total, name=f"added{name}")
        with m.If(valid):
            m.d.sync += accumulator.eq(added)
        return accumulator

    def _held(self, m, value, load, *, name):
        """Return the value as last loaded."""
        register = Signal.like(value, name=name, reset_less=True)
        with m.If(load):
            m.d.sync += register.eq(value)
        return register

    def _chain(self, m, accumulators, captures, shifts, reloads):
        """Keep the sums of passes and shift them to the first rows; return what these hold.

        A shift with ``reload`` takes the sums that wait.
        """
        lanes = self.part.out_lanes
        following = [None] * lanes
        for group in reversed(range(len(accumulators))):
            reload = reloads[group]
            shift = shifts[group]
            if self.part.kept_passes == 1:
                shift = shift | reload
            held = []
            for row, total in reversed([*enumerate(accumulators[group])]):
                result = Signal.like(total, name=f"result{group}_{row}")
                if self.part.kept_passes > 1:
                    waiting = Signal.like(total, name=f"waiting{group}_{row}")
                    with m.If(captures[group]):
                        m.d.sync += waiting.eq(total)
                    total = waiting
                changed = Signal.like(total, name=f"changed{group}_{row}")
                if following[-1] is None:
                    m.d.comb += changed.eq(total)
                else:
                    m.d.comb += changed.eq(Mux(reload, total, following[-1]))
                with m.If(shift):
                    m.d.sync += result.eq(changed)
                following = [result, *following[:-1]]
                held = [(changed, result), *held[:lanes - 1]]
            # The group before is a cycle ahead: it takes what this one holds in the next cycle.
            following = [Mux(shift, changed, result) for changed, result in held]
        return [result for _, result in held]

    def _delayed(self, m, value, *, name):
        """Return the value ``weight_delay`` cycles later."""
        for n in range(self.part.weight_delay):
            register = Signal.like(value, name=f"{name}_{n}", reset_less=True)
            m.d.sync += register.eq(value)
            value = register
        return value

    def _products(self, m, group, rows, codes, weights, shared):
        """Instantiate a group's multipliers and adder trees; return one sum per row."""
        del shared
        part = self.part
        operands = []
        for row in range(rows):
            for lane in range(part.lanes):
                position = row * part.lanes + lane
                operands.append((codes[lane], weights.word_select(position, part.w_bits)))
        products = []
        in_dsp = part.runs_in_dsp[group]
        for n in range(0, len(operands), 2):
            pair = ProductPair(x_bits=part.x_bits, x_signed=part.x_signed, w_bits=part.w_bits,
                               in_dsp=n < in_dsp)
            m.submodules[f"products{group}_{n // 2}"] = pair
            m.d.comb += [pair.x0.eq(operands[n][0]), pair.w0.eq(operands[n][1])]
            products.append(pair.p0)
            if n + 1 < len(operands):
                m.d.comb += [pair.x1.eq(operands[n + 1][0]), pair.w1.eq(operands[n + 1][1])]
                products.append(pair.p1)

        return [
            self._tree(m, products[row * part.lanes:(row + 1) * part.lanes],
                       name=f"{group}_{row}")
            for row in range(rows)
        ]

    def _tree(self, m, level, *, name):
        """Return the sum of values of equal width, with a register behind every adder."""
        while len(level) > 1:
            pairs = []
            for n in range(0, len(level), 2):
                total = level[n] + level[n + 1] if n + 1 < len(level) else level[n]
                register = Signal(signed(len(level[0]) + 1), reset_less=True,
                                  name=f"tree{name}_{len(level)}_{n}")
                m.d.sync += register.eq(total)
                pairs.append(register)
            level = pairs
        return level[0]

    def _drain(self, m, accept, last):
        """Offer the sums of a pass one by one; hold back a last word until they can be kept.

        Returns the signals that shift the first group, and that make it take waiting sums then.
        """
        part = self.part
        capture_stage = part.sum_stage + 1
        pass_index = Signal(range(part.passes))
        beats = part.rows // part.out_lanes
        rest = (part.channels - (part.passes - 1) * part.rows) // part.out_lanes
        # Whether a pass is the last of its window, and of its frame, travels with its last word.
        final = [Signal(name=f"final{n}", reset_less=True) for n in range(capture_stage + 2)]
        end = [Signal(name=f"end{n}", reset_less=True) for n in range(capture_stage + 2)]
        with m.If(accept & self.i.payload.last):
            m.d.sync += [
                final[0].eq(pass_index == part.passes - 1),
                end[0].eq(self.i.payload.end),
                pass_index.eq(Mux(pass_index == part.passes - 1, 0, pass_index + 1)),
            ]
        for flags in (final, end):
            m.d.sync += [flags[n + 1].eq(flags[n]) for n in range(capture_stage)]
            with m.If(last[capture_stage]):
                m.d.sync += flags[-1].eq(flags[-2])

        kept = Signal(range(part.kept_passes + 1))
        valid = Signal()
        following = Signal(range(beats))
        is_last = Signal(init=1)
        leaving_end = Signal()
        waiting = Signal()
        transfer = Signal()
        load = Signal()
        shift = Signal(name="shift0")
        m.d.comb += [
            transfer.eq(valid & self.o.ready),
            load.eq(waiting & (~valid | (is_last & self.o.ready))),
            # While nothing is offered, a row holds what would come next.
            shift.eq(transfer if part.kept_passes == 1 else ~valid | self.o.ready),
            self.i.ready.eq(~self.i.payload.last | (kept != part.kept_passes)),
            self.o.valid.eq(valid),
            self.o.payload.last.eq(leaving_end & is_last),
        ]
        m.d.sync += kept.eq(kept + (accept & self.i.payload.last) - (transfer & is_last))

        with m.If(load):
            m.d.sync += [
                valid.eq(1),
                following.eq(Mux(final[-1], rest - 1, beats - 1)),
                is_last.eq(Mux(final[-1], rest == 1, beats == 1)),
                leaving_end.eq(end[-1]),
                waiting.eq(0),
            ]
        with m.Elif(transfer):
            m.d.sync += [
                valid.eq(~is_last),
                following.eq(following - 1),
                is_last.eq(is_last | (following == 1)),
            ]
        with m.If(last[capture_stage]):
            m.d.sync += waiting.eq(1)
        return shift, is_last
