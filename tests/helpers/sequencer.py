"""Programs of audio run instruction by instruction, with a check of the gaps they must leave."""

from nnef_hw.parts.audio.program import (
    ADDRESS_BITS,
    WRITE_DELAY,
    Base,
    Factor,
    Kind,
    Load,
    Op,
    Register,
)

MASK = (1 << ADDRESS_BITS) - 1
TOP = 48


def reverse(place, pairs=4):
    """The places of a transform: pairs of bits above the lowest one, the other way round."""
    digits = [place >> 1 + 2 * n & 3 for n in range(pairs)]
    return place & 1 | sum(digit << 1 + 2 * (pairs - 1 - n) for n, digit in enumerate(digits))


class Sequencer:
    """A machine with a program; samples are given before a frame, codes come out of it."""

    def __init__(self, program):
        self.code, self.words = program.code, program.words
        self.data = [0] * (MASK + 1)
        self.written = [-9] * (MASK + 1)
        self.registers = dict.fromkeys(Register, 0)
        self.set_at = dict.fromkeys(Register, -9)
        self.pc, self.cycle = 0, 0
        self.sum = self.kept = self.count = self.sizes = self.root = self.rest = 0
        self.jump = None
        self.given = []
        self.hazards = []

    def run(self, samples=None, at=0):
        """Go on to where samples are taken; with samples, take them first."""
        if samples is not None:
            assert self.code[self.pc].kind == Kind.TAKE
            self.data[at : at + len(samples)] = [x & 0xFFFF for x in samples]
            self.pc += 1
        begin = self.cycle
        while self.code[self.pc].kind != Kind.TAKE:
            instruction, self.pc = self.code[self.pc], self.pc + 1
            if self.jump is not None:
                self.pc, self.jump = self.jump, None
            self.step(instruction)
            self.cycle += 1
        return self.cycle - begin

    def address(self, place):
        if place.by == Register.NONE:
            return place.at
        times = {Register.J2: 2, Register.J3: 3}.get(place.by, 1)
        name = Register.J if times > 1 else place.by
        name = Register.K if place.by == Register.REVERSED else name
        if place.by == Register.COUNT:
            return place.at + self.count & MASK
        if self.cycle < self.set_at[name]:
            self.hazards.append((self.pc - 1, name))
        value = self.registers[name]
        value = reverse(value) if place.by == Register.REVERSED else value
        return place.at + times * value & MASK

    def step(self, x):
        if x.kind == Kind.STEP:
            if self.cycle < self.set_at[x.register]:
                self.hazards.append((self.pc - 1, x.register))
            value = (0 if x.begins else self.registers[x.register]) + x.read.at & MASK
            self.registers[x.register] = value
            if x.jumps and value != x.word.at:
                self.jump = x.target.at
            return
        if x.kind == Kind.GIVE:
            self.given.append(self.sum)
            return
        read = self.address(x.read)
        is_used = x.op == Op.ADD or x.load != Load.NONE
        if is_used and self.cycle < self.written[read] + WRITE_DELAY:
            self.hazards.append((self.pc - 1, read))
        number, word = self.data[read], self.words[self.address(x.word) % len(self.words)]
        target = self.address(x.target)
        if x.signed and number >> 15:
            number -= 1 << 16
        if x.factor == Factor.WORD:
            factor = -(word & 0x7FFF) if x.signed_factor and word >> 15 else word
        else:
            factor = self.kept if x.factor == Factor.KEPT else 1 << (self.count & 15)
        product = number * factor
        before = self.sum
        if x.load == Load.SIZES and before >= 0:
            self.sizes |= before & 0x7FFF
        if x.op == Op.ADD:
            base = {
                Base.SELF: before, Base.ZERO: 0, Base.HALF: 1 << 14, Base.UP: before << 16,
                Base.SIZES: self.sizes << 17, Base.COUNT: self.count << 16,
                Base.ROOT: self.root + (self.rest > self.root and self.root != 0xFFFF),
            }[x.base]  # fmt: skip
            self.sum = base + (-product if x.minus else product)
            if x.base == Base.SIZES:
                self.sizes = 0
            if x.base == Base.ROOT:
                self.root = self.rest = 0
        elif x.op == Op.NORMALIZE and not before >> 31 & 1:
            self.sum, self.count = before << 1, self.count + 1
        elif x.op == Op.SHIFT and self.count:
            self.sum, self.count = before >> 1, self.count - 1
        elif x.op == Op.HALVE:
            self.sum = before >> 1
        elif x.op == Op.ROOT:
            rest = self.rest << 2 | before >> TOP - 2 & 3
            self.sum = (before << 2) & (1 << TOP) - 1
            trial = rest - (self.root << 2 | 1)
            self.root, self.rest = (self.root << 1 | (trial >= 0)), (trial if trial >= 0 else rest)
        elif x.op == Op.LIMIT:
            self.sum = max(before, 0)
        assert -(1 << TOP) <= self.sum < 1 << TOP, (self.pc - 1, x, self.sum)
        if x.load == Load.KEPT:
            self.kept = number
        elif x.load == Load.COUNT:
            self.count = product & 63
        elif x.load == Load.SEGMENT:
            self.registers[Register.J] = before >> 24 & 127
        elif x.load in (Load.M, Load.J, Load.L):
            name = Register[x.load.name]
            self.registers[name] = word
            self.set_at[name] = self.cycle + 2
        if x.writes:
            self.data[target] = self.sum >> x.bits.bit & 0xFFFF
            self.written[target] = self.cycle
