# amaranth: UnusedElaboratable=no
"""Registers in hardware, as a table says."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.registers.table import (
    ACCESSES,
    CONSTANT,
    EVENT,
    POP,
    PULSE,
    PUSH,
    READ,
    WORD_BITS,
    WORD_BYTES,
    WRITE,
)

__all__ = ["RegisterBus", "RegisterFile"]


class RegisterBus(wiring.Signature):
    """One access of a cycle: what a front end asks, and what the registers answer at once.

    Parameters
    ----------
    address_bits : int
        Bits of an address in words.

    Members
    -------
    address : Out(address_bits)
        Which word.
    read, write : Out(1)
        It is read, or written; not both.
    data, mask : Out(32), Out(4)
        What is written, and to which of its bytes.
    result : In(32)
        What is read.
    refused : In(1)
        There is no such word, or it cannot take or give one now; nothing happens.
    """

    def __init__(self, address_bits):
        super().__init__({
            "address": Out(address_bits),
            "read": Out(1),
            "write": Out(1),
            "data": Out(WORD_BITS),
            "mask": Out(WORD_BYTES),
            "result": In(WORD_BITS),
            "refused": In(1),
        })


class _Constant:
    """A field of fixed value."""

    def members(self, name, field):
        return {}

    def build(self, m, file, name, field, access):
        return C(field.init, field.bits), C(0)


class _Read:
    """A field that the hardware says: member ``name`` in."""

    def members(self, name, field):
        return {name: In(field.bits)}

    def build(self, m, file, name, field, access):
        return getattr(file, name), C(0)


class _Write:
    """A field that software keeps: member ``name`` out."""

    def members(self, name, field):
        return {name: Out(field.bits, init=field.init)}

    def build(self, m, file, name, field, access):
        value = getattr(file, name)
        with m.If(access.write):
            m.d.sync += value.eq((value & ~access.bits) | (access.data & access.bits))
        return value, C(0)


class _Pulse:
    """A field whose ones last a cycle: member ``name`` out."""

    def members(self, name, field):
        return {name: Out(field.bits)}

    def build(self, m, file, name, field, access):
        m.d.sync += getattr(file, name).eq(Mux(access.write, access.data & access.bits, 0))
        return C(0, field.bits), C(0)


class _Event:
    """A field that hardware sets, by ``name_set`` in, and software clears: member ``name`` out."""

    def members(self, name, field):
        return {name: Out(field.bits), f"{name}_set": In(field.bits)}

    def build(self, m, file, name, field, access):
        value = getattr(file, name)
        cleared = Mux(access.write, access.data & access.bits, 0)
        m.d.sync += value.eq((value & ~cleared) | getattr(file, f"{name}_set"))
        return value, C(0)


class _Push:
    """A word that is handed on, by ``name`` and ``name_strobe`` out, if there is ``name_room``."""

    def members(self, name, field):
        return {name: Out(field.bits), f"{name}_strobe": Out(1), f"{name}_room": In(1)}

    def build(self, m, file, name, field, access):
        possible = access.bits.all() & getattr(file, f"{name}_room")
        m.d.comb += [
            getattr(file, name).eq(access.data),
            getattr(file, f"{name}_strobe").eq(access.write & possible),
        ]
        return C(0, field.bits), ~(possible & access.writes)


class _Pop:
    """A word that is taken, ``name`` in, by ``name_strobe`` out, if one is ``name_there``."""

    def members(self, name, field):
        return {name: In(field.bits), f"{name}_strobe": Out(1), f"{name}_there": In(1)}

    def build(self, m, file, name, field, access):
        possible = getattr(file, f"{name}_there")
        m.d.comb += getattr(file, f"{name}_strobe").eq(access.read & possible)
        return Mux(possible, getattr(file, name), 0), ~(possible & access.reads)


HARDWARE = {
    CONSTANT: _Constant(), READ: _Read(), WRITE: _Write(), PULSE: _Pulse(), EVENT: _Event(),
    PUSH: _Push(), POP: _Pop(),
}
if missing := [access.title for access in ACCESSES if access not in HARDWARE]:
    raise TypeError(f"there is no hardware for the accesses {missing}")


class _Access:
    """An access to a field: what of it is written, and whether the bus reads or writes.

    ``read`` and ``write`` say that it is done to this register; ``reads`` and ``writes`` that it
    would be, were it this one.
    """

    def __init__(self, bus, chosen, field):
        self.read, self.write = bus.read & chosen, bus.write & chosen
        self.reads, self.writes = bus.read, bus.write
        self.data = bus.data[field.lowest:field.highest + 1]
        bits = Cat(byte.replicate(8) for byte in bus.mask)
        self.bits = bits[field.lowest:field.highest + 1]


class RegisterFile(wiring.Component):
    """Registers of a table; golden model: an access does to each field what its access says.

    An access takes a cycle, and is answered in that cycle.

    Parameters
    ----------
    registers : RegisterMap
        The table.

    Members
    -------
    bus : In(RegisterBus)
        What software does.
    id, control_run, ...
        Fields by their labels, as the classes of this file say of each access.
    """

    def __init__(self, registers):
        self.registers = registers
        members = {}
        for register, field in registers.fields():
            members |= HARDWARE[field.access].members(register.label(field), field)
        word_bits = registers.address_bits - (WORD_BYTES - 1).bit_length()
        super().__init__({"bus": In(RegisterBus(word_bits)), **members})

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        m.d.comb += bus.refused.eq(1)
        words = []
        for number, register in enumerate(self.registers.registers):
            chosen = bus.address == number
            word, refusals = Signal(WORD_BITS, name=f"{register.name}_word"), []
            for field in register.fields:
                access = _Access(bus, chosen, field)
                value, refused = HARDWARE[field.access].build(
                    m, self, register.label(field), field, access)
                m.d.comb += word[field.lowest:field.highest + 1].eq(value)
                refusals.append(refused)
            words.append((word, Cat(*refusals).any()))
        with m.Switch(bus.address):
            for number, (word, refused) in enumerate(words):
                with m.Case(number):
                    m.d.comb += [bus.result.eq(word), bus.refused.eq(refused)]
        return m
