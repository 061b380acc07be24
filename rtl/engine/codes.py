"""The shared engine's memory of activations: in block RAM, or in two banks of single-port RAM."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.residual import TensorSums
from nnef_hw.rtl.base.memory import SinglePortMemory, TiledMemory
from nnef_hw.rtl.base.primitives import delayed

__all__ = ["EngineCodes"]


class EngineCodes(wiring.Component):
    """Words that are read and written in every cycle; and others, where tensors are added.

    In single-port RAM the upper half of the addresses is a bank of its own: what is read is never
    in the bank of what is written or of the others. A write waits for the cycle in which another
    word is read there; the next one comes later than that. Where tensors are added bit by bit, no
    other word is read there in the cycle of a write.

    Golden model: an array of words.

    Parameters
    ----------
    contents : list[int]
        The first words when the FPGA is configured; only of block RAM.

    Members
    -------
    read_address : In
    read_data : Out(lanes * 8)
        The word, ``code_cycles`` later.
    write_address, write_data, write_enable : In
        What is written, in cycle ``write_cycles``.
    packet_address, packet_enable : In
    packet_data : Out(lanes * 8)
        A word of the program, a cycle later, in a bank that nothing else reads then, unless it is
        written; only if packets may stay here.
    other_address, other_enable : In
    other_data : Out(lanes * 8)
        The other word, ``other_cycles`` of the sums later, and from then on unless tensors are
        added bit by bit; only where tensors are added.
    """

    unproved = "no stream: a memory"

    def __init__(self, part: Engine, *, contents=()):
        assert not (contents and part.codes.single_port), "single-port RAM is empty at first"
        self.part = part
        self.contents = contents
        address = range(part.codes.words)
        members = {
            "read_address": In(address), "read_data": Out(part.array.word_bits),
            "write_address": In(address), "write_data": In(part.array.word_bits),
            "write_enable": In(1),
        }  # fmt: skip
        if part.has(Residents):
            members |= {
                "packet_address": In(address), "packet_enable": In(1),
                "packet_data": Out(part.array.word_bits),
            }  # fmt: skip
        if part.has(TensorSums):
            members |= {
                "other_address": In(address), "other_enable": In(1),
                "other_data": Out(part.array.word_bits),
            }  # fmt: skip
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        if self.part.codes.single_port:
            self._banks(m)
        else:
            self._block_rams(m)
        return m

    def _block_rams(self, m):
        """Keep all words; and the first ones, which are added to others, once more if need be."""
        part, sums = self.part, self.part.find(TensorSums)
        memory = part.codes.memory(part)
        codes = self._copy(m, "codes", memory, part.pipeline.is_spread, self.contents)
        is_single = sums is not None and not sums.words
        place = self.read_address
        if is_single:
            place = Mux(self.other_enable, self.other_address, place)
        place = delayed(m, place, part.pipeline.address_cycles, name="place")
        m.d.comb += [
            codes.read_address.eq(place),
            codes.read_enable.eq(1),
        ]
        chosen = m.d.sync if part.pipeline.is_spread else m.d.comb
        chosen += self.read_data.eq(codes.read_data)
        if is_single:
            self._hold_other(m, sums, codes.read_data)
        elif sums is not None:
            self._second_copy(m, sums)

    def _hold_other(self, m, sums, found):
        """Keep the other word when it has been read, since others are read behind it."""
        late = sums.other_cycles(self.part) - 1
        comes = delayed(m, self.other_enable, late, name="other_comes", is_flag=True)
        if late:
            with m.If(comes):
                m.d.sync += self.other_data.eq(found)
            return
        fresh = delayed(m, self.other_enable, 1, name="other_is_fresh", is_flag=True)
        held = Signal(len(found), name="held_other", reset_less=True)
        m.d.comb += self.other_data.eq(Mux(fresh, found, held))
        m.d.sync += held.eq(self.other_data)

    def _second_copy(self, m, sums):
        """Keep the words that are added to others once more."""
        other_cycles = sums.other_cycles(self.part)
        is_registered = other_cycles > 1
        others = self._copy(m, "others", sums.other_memory(self.part), is_registered)
        if not is_registered:
            m.d.comb += [
                others.read_address.eq(self.other_address),
                others.read_enable.eq(self.other_enable),
                self.other_data.eq(others.read_data),
            ]
            return
        # The registers of block RAMs take what is read in every cycle.
        address = delayed(m, self.other_address, 1, name="other_address")
        m.d.comb += [others.read_address.eq(address), others.read_enable.eq(1)]
        with m.If(delayed(m, self.other_enable, other_cycles - 1, name="other_comes")):
            m.d.sync += self.other_data.eq(others.read_data)

    def _copy(self, m, name, tiling, is_registered, words=()):
        """Return a memory of the first words, which are written to it."""
        late = self.part.pipeline.write_cycles - 1
        memory = TiledMemory(tiling, words=words, writable=True, registered=is_registered)
        m.submodules[name] = memory
        writes = self.write_enable
        if tiling.depth < self.part.codes.words:
            writes &= self.write_address < tiling.depth
        m.d.comb += [
            memory.write_address.eq(delayed(m, self.write_address, late, name=f"{name}_place")),
            memory.write_data.eq(delayed(m, self.write_data, late, name=f"{name}_data")),
            memory.write_enable.eq(delayed(m, writes, late, name=f"{name}_write", is_flag=True)),
        ]
        return memory

    def _banks(self, m):
        ram = self.part.codes.single_port
        sums = self.part.find(TensorSums)
        is_at_once = sums is not None and not sums.is_serial
        writing = Signal()
        write_address, write_data = self.write_address, self.write_data
        others, other_address = Const(0), Const(0, len(self.write_address))
        m.d.comb += writing.eq(self.write_enable)
        if sums is not None:
            # The other word is in the bank that is written.
            others, other_address = self.other_enable, self.other_address
        if is_at_once:
            waiting = Signal()
            saved_address = Signal.like(write_address, reset_less=True)
            saved_data = Signal.like(write_data, reset_less=True)
            m.d.comb += writing.eq((self.write_enable & ~others) | waiting)
            m.d.sync += [
                waiting.eq(self.write_enable & others),
                saved_address.eq(write_address),
                saved_data.eq(write_data),
            ]
            write_address = Mux(waiting, saved_address, write_address)
            write_data = Mux(waiting, saved_data, write_data)
        found = []
        # The highest bit tells the bank, whose words may be fewer than those of the RAM.
        bits = min(len(write_address) - 1, (ram.depth - 1).bit_length())
        for bank in range(2):
            here = Signal(name=f"writes{bank}")
            other = Signal(name=f"other{bank}")
            m.d.comb += [
                here.eq(writing & (write_address[-1] == bank)),
                other.eq(others & (other_address[-1] == bank)),
            ]
            read_address = self.read_address
            if self.part.has(Residents):
                packet = Signal(name=f"packet{bank}")
                m.d.comb += packet.eq(self.packet_enable & (self.packet_address[-1] == bank))
                read_address = Mux(packet, self.packet_address, read_address)
            parts = []
            for column in range(self.part.array.word_bits // ram.width):
                memory = SinglePortMemory(ram, depth=ram.depth, width=ram.width)
                m.submodules[f"bank{bank}_{column}"] = memory
                m.d.comb += [
                    memory.address.eq(Mux(here, write_address,
                                          Mux(other, other_address, read_address))[:bits]),
                    memory.write_enable.eq(here),
                    memory.read_enable.eq(~here),
                    memory.write_data.eq(write_data.word_select(column, ram.width)),
                ]
                parts.append(memory.read_data)
            found.append(Cat(parts))

        def chosen(address, name):
            bank = Signal(name=name)
            m.d.sync += bank.eq(address[-1])
            return Mux(bank, found[1], found[0])

        m.d.comb += self.read_data.eq(chosen(self.read_address, "read_bank"))
        if self.part.has(Residents):
            # All of a packet is in one bank.
            m.d.comb += self.packet_data.eq(Mux(self.packet_address[-1], found[1], found[0]))
        if sums is not None:
            word = chosen(other_address, "other_bank")
        if is_at_once:
            fresh = Signal()
            held = Signal(self.part.array.word_bits, reset_less=True)
            m.d.sync += fresh.eq(others)
            word = Mux(fresh, word, held)
            m.d.sync += held.eq(word)
        if sums is not None:
            m.d.comb += self.other_data.eq(word)
