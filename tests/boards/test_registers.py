"""The register file against a model of its table, and both front ends under random accesses."""

import pytest
from simulators import run_benches

from nnef_hw.boards.buses.axi_lite import AxiLite
from nnef_hw.boards.buses.register_file import RegisterFile
from nnef_hw.boards.buses.wishbone import Wishbone
from nnef_hw.registers.table import (
    CONSTANT,
    EVENT,
    POP,
    PULSE,
    PUSH,
    READ,
    WORD_BITS,
    WRITE,
    Field,
    Register,
    RegisterMap,
)

CYCLES = 3000
TABLE = RegisterMap("test", "All accesses.", (
    Register("fixed", ".", (Field("fixed", CONSTANT, ".", 4, 20, 0xABCDE),)),
    Register("mixed", ".", (
        Field("kept", WRITE, ".", 0, 11, 0x155), Field("once", PULSE, ".", 13, 4),
        Field("said", READ, ".", 18, 5), Field("event", EVENT, ".", 24, 3),
    )),
    Register("more", ".", (Field("more", WRITE, ".", 0, 32),)),
    Register("put", ".", (Field("put", PUSH, ".", 0, 32),)),
    Register("take", ".", (Field("take", POP, ".", 0, 32),)),
))  # fmt: skip


class Model:
    """What the fields of the table above hold."""

    def __init__(self):
        self.kept, self.more, self.event = 0x155, 0, 0

    def read(self, said, there, take):
        """Return the words."""
        mixed = self.kept | said << 18 | self.event << 24
        return [0xABCDE << 4, mixed, self.more, 0, take if there else 0]

    def write(self, address, data, bits):
        """Write a word; return the pulses."""
        cleared = pulses = 0
        if address == 1:
            self.kept = (self.kept & ~bits | data & bits) & 0x7FF
            pulses, cleared = ((data & bits) >> lowest for lowest in (13, 24))
        elif address == 2:
            self.more = self.more & ~bits | data & bits
        self.event &= ~cleared
        return pulses & 0xF


def number(rng, bits):
    return int(rng.integers(1 << bits))


def test_fields_do_what_their_accesses_say(rng):
    file = RegisterFile(TABLE)
    model = Model()

    async def test(ctx):
        pulses = 0
        for _ in range(CYCLES):
            kind = rng.choice(["none", "read", "write"])
            address, data, mask = number(rng, 3), number(rng, WORD_BITS), number(rng, 4)
            said, events, room, there = (number(rng, bits) for bits in (5, 3, 1, 1))
            take = number(rng, WORD_BITS)
            if rng.random() < 0.5:
                mask = 15
            if rng.random() < 0.7:
                events = 0
            for signal, value in (
                (file.bus.address, address), (file.bus.data, data), (file.bus.mask, mask),
                (file.bus.read, kind == "read"), (file.bus.write, kind == "write"),
                (file.mixed_said, said), (file.mixed_event_set, events), (file.put_room, room),
                (file.take, take), (file.take_there, there),
            ):  # fmt: skip
                ctx.set(signal, value)
            puts = kind == "write" and address == 3 and room and mask == 15
            takes = kind == "read" and address == 4 and there
            assert (ctx.get(file.put_strobe), ctx.get(file.take_strobe)) == (puts, takes)
            assert ctx.get(file.mixed_once) == pulses
            assert ctx.get(file.mixed_kept) == model.kept
            assert ctx.get(file.mixed_event) == model.event
            if kind != "none":
                possible = {3: puts, 4: takes}.get(address, address < 5)
                assert ctx.get(file.bus.refused) != possible
            if kind == "read" and address < 5:
                assert ctx.get(file.bus.result) == model.read(said, there, take)[address]
            bits = sum(0xFF << 8 * byte for byte in range(4) if mask >> byte & 1)
            pulses = model.write(address, data, bits) if kind == "write" else 0
            model.event |= events
            if puts:
                assert ctx.get(file.put) == data
            await ctx.tick()

    run_benches(file, test)


class Memory:
    """Words behind a front end, and what is done with them; address 7 is refused."""

    def __init__(self, registers):
        self.registers, self.words, self.done = registers, [0] * 8, []

    def answer(self, ctx):
        """Answer what is asked in this cycle."""
        port = self.registers
        address = ctx.get(port.address)
        ctx.set(port.result, self.words[address])
        ctx.set(port.refused, address == 7)
        if ctx.get(port.read):
            self.done.append(("read", address, self.words[address]))
        if ctx.get(port.write):
            assert not ctx.get(port.read)
            self.done.append(("write", address, ctx.get(port.data), ctx.get(port.mask)))
            self.words[address] = ctx.get(port.data)


def test_axi_lite_does_every_access_once_and_keeps_its_answers(rng):
    front = AxiLite(5)
    memory = Memory(front.registers)
    writes = [(number(rng, 3), number(rng, 32), number(rng, 4)) for _ in range(200)]
    reads = [number(rng, 3) for _ in range(200)]
    answered = []

    async def test(ctx):
        offers = {"aw": 0, "w": 0, "ar": 0}
        counts = {"aw": len(writes), "w": len(writes), "ar": len(reads)}
        valid = dict.fromkeys(offers, False)
        held, idle = {}, 0
        while len(answered) < len(writes) + len(reads):
            for channel, n in offers.items():
                valid[channel] |= n < counts[channel] and rng.random() < 0.4
                ctx.set(getattr(front, f"{channel}valid"), valid[channel])
            if valid["aw"]:
                ctx.set(front.awaddr, writes[offers["aw"]][0] << 2 | number(rng, 2))
            if valid["w"]:
                ctx.set(front.wdata, writes[offers["w"]][1])
                ctx.set(front.wstrb, writes[offers["w"]][2])
            if valid["ar"]:
                ctx.set(front.araddr, reads[offers["ar"]] << 2)
            memory.answer(ctx)
            moved = False
            for channel, fields in (("b", (front.bresp,)), ("r", (front.rresp, front.rdata))):
                ready = rng.random() < 0.4
                ctx.set(getattr(front, f"{channel}ready"), ready)
                answer = [ctx.get(field) for field in fields]
                if channel in held:
                    assert ctx.get(getattr(front, f"{channel}valid"))
                    assert answer == held.pop(channel)
                if ctx.get(getattr(front, f"{channel}valid")):
                    if ready:
                        answered.append((channel, *answer))
                        moved = True
                    else:
                        held[channel] = answer
            for channel in offers:
                if valid[channel] and ctx.get(getattr(front, f"{channel}ready")):
                    offers[channel] += 1
                    valid[channel] = False
                    moved = True
            idle = 0 if moved else idle + 1
            assert idle < 100
            await ctx.tick()

    run_benches(front, test)
    done = [entry[1:] for entry in memory.done if entry[0] == "write"]
    assert done == writes
    assert [entry[1] for entry in answered if entry[0] == "b"] == [2 * (x[0] == 7) for x in writes]
    done = [(address, value) for kind, address, value, *_ in memory.done if kind == "read"]
    assert [address for address, _ in done] == reads
    expected = [(2 * (address == 7), value) for address, value in done]
    assert [entry[1:] for entry in answered if entry[0] == "r"] == expected


@pytest.mark.parametrize("keeps_cycle", [False, True])
def test_wishbone_does_every_access_once(keeps_cycle, rng):
    front = Wishbone(5)
    memory = Memory(front.registers)
    wanted = []

    async def test(ctx):
        for _ in range(300):
            writes, address = bool(number(rng, 1)), number(rng, 3)
            data, mask = number(rng, 32), number(rng, 4)
            read = memory.words[address]
            wanted.append(("write", address, data, mask) if writes else ("read", address, read))
            for signal, value in (
                (front.cyc, 1), (front.stb, 1), (front.we, writes), (front.adr, address << 2),
                (front.dat_i, data), (front.sel, mask),
            ):  # fmt: skip
                ctx.set(signal, value)
            waited = 0
            while not ctx.get(front.ack | front.err):
                memory.answer(ctx)
                await ctx.tick()
                waited += 1
                assert waited < 3
            assert ctx.get(front.err) == (address == 7)
            if not writes:
                assert ctx.get(front.dat_o) == read
            memory.answer(ctx)
            await ctx.tick()
            if not keeps_cycle:
                for _ in range(number(rng, 2)):
                    ctx.set(front.cyc, 0)
                    ctx.set(front.stb, number(rng, 1))
                    memory.answer(ctx)
                    assert not ctx.get(front.ack | front.err)
                    await ctx.tick()

    run_benches(front, test)
    assert memory.done == wanted
