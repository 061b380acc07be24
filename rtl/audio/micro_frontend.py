"""TensorFlow Lite Micro's audio front end, computed by a program."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.parts.audio.front_program import HIGHEST, ROOT_STEPS, FrontProgram
from nnef_hw.parts.audio.front_transform import SAMPLES
from nnef_hw.parts.audio.program import (
    ADDRESS_BITS,
    FIELDS,
    Base,
    Factor,
    Kind,
    Load,
    Op,
    Register,
    Slice,
    encoded,
)
from nnef_hw.rtl.arrays.wide_product import WideProduct
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.rtl.base.primitives import delayed
from nnef_hw.rtl.streams.stream import beat_layout, check_limits

__all__ = ["MicroFrontend"]

LIMB = 16
SUM_BITS = 2 * ROOT_STEPS + 1
PLACE_BITS = 8
"""Bits of the place of a number of the transform."""


class MicroFrontend(wiring.Component):
    """Features of samples of audio, those of TensorFlow Lite Micro's front end.

    Golden model: :meth:`nnef_hw.arithmetic.audio.micro_frontend.MicroFrontend.apply`, and the
    requantizer behind it. It takes a sample per cycle, until a hop is complete; then it takes none
    until the frame's features have left. A sequencer does one instruction per cycle: it reads a
    number and a factor, multiplies them in the next cycle, adds the product to a sum in the one
    behind it, and writes bits of the sum after that. Every frame takes as many cycles whatever the
    numbers are.

    Parameters
    ----------
    front : nnef_hw.arithmetic.audio.micro_frontend.MicroFrontend
        The front end.
    requant : Requant
        How a feature becomes a code.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Samples; ``last`` ends an inference.
    o : Out(stream.Signature(beat_layout))
        Codes of a frame, frame by frame.

    Raises
    ------
    ValueError
        If the front end or the requantizer is not that of its part.
    """

    unproved = "the solver would have to multiply; tests simulate it under stalls"

    def __init__(self, part: parts.MicroFrontend, *, front, requant):
        check_limits(part, requant)
        part.check(front, requant)
        self.part = part
        self.requant = requant
        self.program = FrontProgram(front, requant.mult[0])
        samples = beat_layout(bits=16, signed=True, lanes=1)
        results = beat_layout(bits=part.out_bits, signed=part.out_signed, lanes=1)
        super().__init__({"i": In(stream.Signature(samples)), "o": Out(stream.Signature(results))})

    def elaborate(self, platform):
        m = Module()
        part = self.part
        assert len(self.program.words) == part.word_memory.depth, "a memory of another size"
        m.submodules.data = self.data = TiledMemory(part.data_memory, writable=True)
        m.submodules.words = self.words = TiledMemory(part.word_memory, words=self.program.words)
        m.submodules.code = self.code = TiledMemory(
            part.code_memory, words=[encoded(each) for each in self.program.code])
        m.d.comb += [self.data.read_enable.eq(1), self.words.read_enable.eq(1)]
        self.registers = {name: Signal(ADDRESS_BITS, name=f"register_{name.name.lower()}",
                                       reset_less=True)
                          for name in (Register.M, Register.K, Register.C, Register.J, Register.L)}
        self.count = Signal(6)
        self.sum = Signal(signed(SUM_BITS), reset_less=True)
        self._fetch(m)
        self._address(m)
        self._step(m)
        self._multiply(m)
        self._add(m)
        self._take(m)
        self._give(m)
        return m

    def _fetch(self, m):
        """Read instructions one after the other; those that wait for somebody stay."""
        at = 0
        self.now = now = {}
        for name, bits in FIELDS:
            now[name] = Signal(bits, name=f"now_{name}")
            m.d.comb += now[name].eq(self.code.read_data[at:at + bits])
            at += bits
        is_live = Signal()
        m.d.sync += is_live.eq(1)
        self.is_sum = Signal()
        self.is_step = Signal()
        self.is_take = Signal()
        self.is_give = Signal()
        for flag, kind in ((self.is_sum, Kind.SUM), (self.is_step, Kind.STEP),
                           (self.is_take, Kind.TAKE), (self.is_give, Kind.GIVE)):
            m.d.comb += flag.eq(is_live & (now["kind"] == kind))
        self.waits = Signal()
        self.jumps = Signal()
        self.jump_to = Signal(range(len(self.program.code)))
        counter = Signal(range(len(self.program.code)))
        m.d.comb += [
            self.code.read_enable.eq(~self.waits),
            self.code.read_address.eq(counter),
        ]
        with m.If(~self.waits):
            m.d.sync += counter.eq(Mux(self.jumps, self.jump_to, counter + 1))

    def _address(self, m):
        """Add registers to addresses."""
        now, registers = self.now, self.registers
        k, j = registers[Register.K], registers[Register.J]
        pairs = [k[1 + 2 * n:3 + 2 * n] for n in range(PLACE_BITS // 2)]
        values = {
            **registers,
            Register.REVERSED: Cat(k[0], *reversed(pairs)), Register.COUNT: self.count,
            Register.J2: j << 1, Register.J3: (j << 1) + j,
        }

        def sum_of(name, used):
            """Return an address, of the registers that any instruction uses there."""
            by = Signal(ADDRESS_BITS, name=f"{name}_by")
            with m.Switch(now[f"{name}_by"]):
                for register in used:
                    with m.Case(register):
                        m.d.comb += by.eq(values[register])
            address = Signal(ADDRESS_BITS, name=f"{name}_address")
            m.d.comb += address.eq(now[f"{name}_at"] + by)
            return address

        def used(name):
            found = {getattr(each, name).by for each in self.program.code}
            return sorted(found - {Register.NONE})

        m.d.comb += [
            self.data.read_address.eq(sum_of("read", used("read"))),
            self.words.read_address.eq(sum_of("word", used("word"))),
        ]
        self.target = sum_of("target", used("target"))

    def _step(self, m):
        """Set a register, add to it, and jump."""
        now = self.now
        old, new = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        for name, register in self.registers.items():
            is_it = now["base"] == name
            with m.If(is_it & ~now["signed"]):
                m.d.comb += old.eq(register)
            with m.If(self.is_step & is_it):
                m.d.sync += register.eq(new)
        m.d.comb += [
            new.eq(old + now["read_at"]),
            self.jumps.eq(self.is_step & now["signed_factor"] & (new != now["word_at"])),
        ]
        m.d.comb += self.jump_to.eq(now["target_at"])
        if self.part.frames:
            # behind an inference estimates of noise begin anew
            self.is_anew = Signal(init=1)
            with m.If(now["signed"] & self.is_anew):
                m.d.comb += self.jump_to.eq(self.program.clear_again)

    def _multiply(self, m):
        """Multiply what was read a cycle before; keep it, or set a register to a word."""
        now, word, data = self.now, self.words.read_data, self.data.read_data
        load = delayed(m, Mux(self.is_sum, now["load"], Load.NONE), 1, name="load", is_flag=True)
        self.load = delayed(m, load, 1, name="load_of_sum", is_flag=True)
        factor_of = delayed(m, now["factor"], 1, name="factor_of")
        is_signed = delayed(m, now["signed"], 1, name="signed")
        has_sign = delayed(m, now["signed_factor"], 1, name="has_sign")
        minus = delayed(m, now["minus"], 1, name="minus")
        number = Signal(signed(LIMB + 1))
        m.d.comb += number.eq(Cat(data, is_signed & data[-1]))
        kept, kept_sign = Signal(LIMB, reset_less=True), Signal(reset_less=True)
        with m.If(load == Load.KEPT):
            m.d.sync += [kept.eq(Mux(number[-1], -number, number)), kept_sign.eq(number[-1])]
        for name, register in ((Load.M, Register.M), (Load.J, Register.J), (Load.L, Register.L)):
            with m.If(load == name):
                m.d.sync += self.registers[register].eq(word)
        factor, sign = Signal(LIMB), Signal()
        with m.Switch(factor_of):
            with m.Case(Factor.WORD):
                m.d.comb += [
                    factor.eq(Cat(word[:-1], word[-1] & ~has_sign)), sign.eq(word[-1] & has_sign),
                ]
            with m.Case(Factor.KEPT):
                m.d.comb += [factor.eq(kept), sign.eq(kept_sign)]
            with m.Default():
                m.d.comb += factor.eq(1 << self.count[:4])
        m.submodules.multiplier = multiplier = WideProduct(
            a_bits=LIMB + 1, b_bits=LIMB, in_dsp=self.part.in_dsp)
        m.d.comb += [multiplier.a.eq(number), multiplier.b.eq(factor)]
        self.product = multiplier.p
        self.minus = delayed(m, minus ^ sign, 1, name="minus_product")

    def _add(self, m):
        """Add a product, or do something else to the sum."""
        now, total, count = self.now, self.sum, self.count
        op = delayed(m, Mux(self.is_sum, now["op"], Op.HOLD), 2, name="op", is_flag=True)
        base = delayed(m, now["base"], 2, name="base")
        root, rest = Signal(ROOT_STEPS), Signal(ROOT_STEPS + 2)
        sizes = Signal(LIMB - 1)
        start, added = Signal(signed(SUM_BITS)), Signal(signed(SUM_BITS))
        carry = Signal()
        m.d.comb += [
            added.eq(Mux(self.minus, ~self.product, self.product)), carry.eq(self.minus)]
        with m.Switch(base):
            with m.Case(Base.SELF):
                m.d.comb += start.eq(total)
            with m.Case(Base.HALF):
                m.d.comb += start.eq(1 << LIMB - 2)
            with m.Case(Base.UP):
                m.d.comb += start.eq(total << LIMB)
            with m.Case(Base.SIZES):
                m.d.comb += start.eq(sizes << LIMB + 1)
            with m.Case(Base.COUNT):
                m.d.comb += start.eq(count << LIMB)
            with m.Case(Base.ROOT):
                # roots of 16 bits are not rounded beyond them
                m.d.comb += [
                    start.eq(root), carry.eq((rest > root) & (root != (1 << LIMB) - 1))]
        following, trial = Signal(ROOT_STEPS + 2), Signal(signed(ROOT_STEPS + 3))
        m.d.comb += [
            following.eq(Cat(total[2 * ROOT_STEPS - 2:2 * ROOT_STEPS], rest[:ROOT_STEPS])),
            trial.eq(following - Cat(C(1, 2), root)),
        ]
        with m.Switch(op):
            with m.Case(Op.ADD):
                m.d.sync += total.eq(start + added + carry)
                with m.If(base == Base.SIZES):
                    m.d.sync += sizes.eq(0)
                with m.If(base == Base.ROOT):
                    m.d.sync += [root.eq(0), rest.eq(0)]
            with m.Case(Op.NORMALIZE):
                with m.If(~total[31]):
                    m.d.sync += [total.eq(total << 1), count.eq(count + 1)]
            with m.Case(Op.SHIFT):
                with m.If(count.any()):
                    m.d.sync += [total.eq(total >> 1), count.eq(count - 1)]
            with m.Case(Op.HALVE):
                m.d.sync += total.eq(total >> 1)
            with m.Case(Op.ROOT):
                m.d.sync += [
                    total.eq(total << 2), root.eq(Cat(~trial[-1], root)),
                    rest.eq(Mux(trial[-1], following, trial)),
                ]
            with m.Case(Op.LIMIT):
                with m.If(total[-1]):
                    m.d.sync += total.eq(0)
        with m.If((self.load == Load.SIZES) & ~total[-1]):
            m.d.sync += sizes.eq(sizes | total[:LIMB - 1])
        with m.If(self.load == Load.COUNT):
            m.d.sync += count.eq(self.product)
        with m.If(self.load == Load.SEGMENT):
            m.d.sync += self.registers[Register.J].eq(total[24:31])

    def _take(self, m):
        """Take samples behind those that are kept; write them, or bits of the sum."""
        part, now = self.part, self.now
        first, last = SAMPLES + part.window - part.hop, SAMPLES + part.window - 1
        place = Signal(range(last + 1), init=SAMPLES if part.frames else first)
        takes, is_complete = Signal(), Signal()
        self.ends = Signal()
        m.d.comb += [
            self.i.ready.eq(self.is_take),
            takes.eq(self.is_take & self.i.valid),
            is_complete.eq(takes & (place == last)),
            self.waits.eq((self.is_take & ~is_complete) | (self.is_give & ~self.o.ready)),
        ]
        with m.If(takes):
            m.d.sync += place.eq(place + 1)
        with m.If(is_complete):
            m.d.sync += [place.eq(first), self.ends.eq(self.i.p.last)]
            if part.frames:
                frame = Signal(range(part.frames))
                with m.If(frame == part.frames - 1):
                    m.d.sync += [frame.eq(0), place.eq(SAMPLES), self.is_anew.eq(1)]
                with m.Else():
                    m.d.sync += [frame.eq(frame + 1), self.is_anew.eq(0)]
        total = self.sum
        bits = delayed(m, now["bits"], 3, name="bits")
        writes = delayed(m, self.is_sum & now["writes"], 3, name="writes", is_flag=True)
        target = delayed(m, self.target, 3, name="target")
        slices = {which: total[which.bit:which.bit + LIMB] for which in Slice}
        m.d.comb += [
            self.data.write_enable.eq(writes | takes),
            self.data.write_address.eq(Mux(self.is_take, place, target)),
        ]
        with m.If(self.is_take):
            m.d.comb += self.data.write_data.eq(self.i.p.data[0])
        with m.Else(), m.Switch(bits):
            for which, value in slices.items():
                with m.Case(which):
                    m.d.comb += self.data.write_data.eq(value)

    def _give(self, m):
        """Give the code of the sum, within its limits."""
        part, requant = self.part, self.requant
        highest = (HIGHEST * requant.mult[0] >> requant.shift) + 1 + requant.zero_point
        scaled = Signal(signed(signed_bits(requant.zero_point, highest)))
        m.d.comb += scaled.eq(
            ((self.sum >> (requant.shift - 1)) + (2 * requant.zero_point + 1)) >> 1)
        limited = Mux(scaled < requant.lo, requant.lo, Mux(scaled > requant.hi, requant.hi, scaled))
        m.d.comb += [
            self.o.valid.eq(self.is_give),
            self.o.p.data[0].eq(limited),
            self.o.p.last.eq(self.ends & (self.registers[Register.C] == part.channels - 1)),
        ]
