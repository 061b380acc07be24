"""Memories in the shape of a device's block RAM, so that counts are exact by construction."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.hardware.geometry.blockram import SinglePortRam

__all__ = ["PacedMemory", "SinglePortMemory", "TiledMemory"]


class TiledMemory(wiring.Component):
    """Memory with one synchronous read port and, if ``writable``, one write port.

    Golden model: ``words[address]``, ``latency`` cycles later. Built from a grid of block RAM
    primitives (:class:`nnef_hw.hardware.geometry.blockram.Tiling`). One read and one write per
    cycle. A read in the cycle of a write to the same address gives an undefined word
    (``no_rw_check`` tells synthesis so): users must not rely on it. Where the tiling says so, a
    primitive holds the halves of words behind each other, and is read at two addresses.

    Parameters
    ----------
    tiling : Tiling
        Shape of the memory and of its primitives.
    words : list[int]
        Initial contents, unsigned; missing ones are 0.
    writable : bool
        Has a write port.
    part_bits : int
        Bits that are written together; all of a word if it is 0. Tiles have whole parts.
    registered : bool
        What a primitive reads passes a register before one of them is chosen: on an ECP5 one of its
        own.
    style : str
        ``"block"`` for block RAM, ``"distributed"`` for LUT RAM, ``"logic"`` for a look-up in LUTs
        (read-only memories). A tiling in LUTs has one of the last two.

    Members
    -------
    read_address : In(range(depth))
    read_enable : In(1)
        Without it what is read keeps its value.
    register_enable : In(1)
        Only if ``registered``: without it the register keeps its value. It is set where nothing is
        connected.
    read_data : Out(width)
        The word, ``latency`` cycles after its address.
    write_address, write_enable, write_data : In
        Only if ``writable``; an enable for each part, the lowest first.

    Attributes
    ----------
    latency : int
        Cycles from ``read_address`` to ``read_data``.
    """

    unproved = "no stream: a memory"

    def __init__(
        self, tiling, *, words=(), writable=False, part_bits=0, registered=False, style="block"
    ):
        if writable and style == "logic":
            raise ValueError("TiledMemory in logic is read-only")
        if writable and tiling.reads > 1:
            raise ValueError("TiledMemory that is read at two addresses is read-only")
        if part_bits and (tiling.width % part_bits or tiling.tile_width % part_bits):
            raise ValueError(f"TiledMemory tiles have no whole parts of {part_bits} bits")
        self.tiling = tiling
        self.words = list(words)
        self.writable = writable
        self.part_bits = part_bits
        self.latency = 2 if registered else 1
        if tiling.in_luts:
            style = "distributed" if writable else "logic"
        self.style = style
        members = {
            "read_address": In(range(tiling.depth)),
            "read_enable": In(1),
            "read_data": Out(tiling.width),
        }
        if registered:
            members["register_enable"] = In(1, init=1)
        if writable:
            members["write_address"] = In(range(tiling.depth))
            members["write_enable"] = In(tiling.width // part_bits if part_bits else 1)
            members["write_data"] = In(tiling.width)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        tiling = self.tiling
        select_bits = (tiling.tile_depth - 1).bit_length()
        read_row = Signal(range(tiling.rows))
        with m.If(self.read_enable):
            m.d.sync += read_row.eq(self.read_address >> select_bits)

        rows = []
        for row in range(tiling.rows):
            first = row * tiling.tile_depth
            depth = min(tiling.tile_depth, tiling.depth - first)
            parts = []
            for column in range(tiling.columns):
                low = column * tiling.tile_width
                width = min(tiling.tile_width, tiling.width - low)
                words = [(word >> low) & ((1 << width) - 1)
                         for word in self.words[first:first + depth]]
                # a word's halves lie behind each other, each behind an address of its own
                half = min(width, tiling.tile_width // tiling.reads)
                span = 1 << (depth - 1).bit_length()
                if width > half:
                    words = [word & ((1 << half) - 1) for word in words] + [0] * (
                        span - len(words)) + [word >> half for word in words]
                tile = memory.Memory(shape=unsigned(half), init=words,
                                     depth=depth if width == half else span + depth,
                                     attrs={"ram_style": self.style, "no_rw_check": 1})
                m.submodules[f"tile_{row}_{column}"] = tile
                ports = [tile.read_port() for _ in range(-(-width // half))]
                for upper, port in enumerate(ports):
                    address = self.read_address
                    if len(ports) > 1:
                        address = Cat(address[: (depth - 1).bit_length()], C(upper, 1))
                    m.d.comb += [
                        port.addr.eq(address),
                        port.en.eq(self.read_enable),
                    ]
                found = data = ports[0].data if len(ports) == 1 else Cat(
                    port.data for port in ports)[:width]
                if self.latency > 1:
                    found = Signal(width, name=f"found_{row}_{column}", reset_less=True)
                    with m.If(self.register_enable):
                        m.d.sync += found.eq(data)
                parts.append(found)
                if self.writable:
                    write = tile.write_port(granularity=self.part_bits or None)
                    enable = self.write_enable
                    here = (self.write_address >> select_bits) == row
                    if self.part_bits:
                        first_part = low // self.part_bits
                        enable = enable[first_part : first_part + len(write.en)]
                        here = here.replicate(len(write.en))
                    m.d.comb += [
                        write.addr.eq(self.write_address),
                        write.data.eq(self.write_data >> low),
                        write.en.eq(enable & here),
                    ]
            rows.append(Cat(parts))

        if self.latency > 1:
            found_row = Signal.like(read_row)
            with m.If(self.register_enable):
                m.d.sync += found_row.eq(read_row)
            read_row = found_row
        m.d.comb += self.read_data.eq(Array(rows)[read_row] if len(rows) > 1 else rows[0])
        return m


class SinglePortMemory(wiring.Component):
    """Memory that reads or writes a word per cycle: a single-port RAM of the device.

    Golden model: ``words[address]``, one cycle later. A cycle of neither leaves ``read_data``
    undefined, and so does a write.

    Parameters
    ----------
    ram : SinglePortRam
        The device's primitive.
    depth, width : int
        At most what it has.

    Members
    -------
    address : In(range(depth))
    read_enable, write_enable : In(1)
        Not both.
    write_data : In(width)
    read_data : Out(width)
        The word, in the cycle after its address.

    Attributes
    ----------
    latency : int
        Cycles from ``address`` to ``read_data``.
    """

    unproved = "no stream: a memory"

    latency = 1

    def __init__(self, ram: SinglePortRam, *, depth, width):
        if not ram.holds(depth, width):
            raise ValueError(f"SinglePortMemory has at most {ram.depth} words of {ram.width} "
                             f"bits, not {depth} of {width}")
        self.ram = ram
        self.depth = depth
        super().__init__({
            "address": In(range(depth)),
            "read_enable": In(1),
            "write_enable": In(1),
            "write_data": In(width),
            "read_data": Out(width),
        })

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            words = memory.Memory(shape=unsigned(len(self.write_data)), depth=self.depth, init=[])
            m.submodules.words = words
            read, write = words.read_port(), words.write_port()
            m.d.comb += [
                read.addr.eq(self.address), read.en.eq(self.read_enable),
                self.read_data.eq(read.data),
                write.addr.eq(self.address), write.en.eq(self.write_enable),
                write.data.eq(self.write_data),
            ]
            return m
        address = Signal(range(self.ram.depth))
        written, found = Signal(self.ram.width), Signal(self.ram.width)
        m.d.comb += [
            address.eq(self.address),
            written.eq(self.write_data),
            self.read_data.eq(found),
        ]
        m.submodules.ram = Instance(
            platform.prefix + "single_port_ram",
            i_clk=ClockSignal(), i_enable=self.read_enable | self.write_enable,
            i_write=self.write_enable, i_address=address, i_d=written, o_q=found,
        )
        return m


class PacedMemory(wiring.Component):
    """Memory that reads and writes a word, in two cycles if both: single-port RAMs side by side.

    Golden model: ``words[address]`` of the last word that was read, which stays.

    Parameters
    ----------
    ram : SinglePortRam
        The device's primitive.
    depth, width : int
        Words, at most as many as it has; bits of a word.

    Members
    -------
    read_enable, write_enable : In(1)
    read_address, write_address : In(range(depth))
    write_data : In(width)
    read_data : Out(width)
        From the cycle after the read on.
    waits : Out(1)
        Both are wanted: the word is written in this cycle, and read in the next one. All inputs
        stay until then.
    """

    unproved = "no stream: a memory"

    def __init__(self, ram: SinglePortRam, *, depth, width):
        self.columns = [
            SinglePortMemory(ram, depth=depth, width=min(ram.width, width - first))
            for first in range(0, width, ram.width)
        ]
        super().__init__({
            "read_enable": In(1),
            "read_address": In(range(depth)),
            "write_address": In(range(depth)),
            "write_enable": In(1),
            "write_data": In(width),
            "read_data": Out(width),
            "waits": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        is_second, writes, reads = Signal(), Signal(), Signal()
        m.d.comb += [
            writes.eq(self.write_enable & ~is_second),
            reads.eq(self.read_enable & ~writes),
            self.waits.eq(self.read_enable & writes),
        ]
        m.d.sync += is_second.eq(self.waits)
        found, first = [], 0
        for n, column in enumerate(self.columns):
            m.submodules[f"column{n}"] = column
            bits = len(column.read_data)
            m.d.comb += [
                column.address.eq(Mux(writes, self.write_address, self.read_address)),
                column.read_enable.eq(reads),
                column.write_enable.eq(writes),
                column.write_data.eq(self.write_data[first : first + bits]),
            ]
            found.append(column.read_data)
            first += bits
        # what the RAM shows in the cycle after a read alone
        is_fresh, word = Signal(), Signal.like(self.read_data, reset_less=True)
        m.d.comb += self.read_data.eq(Mux(is_fresh, Cat(found), word))
        m.d.sync += [is_fresh.eq(reads), word.eq(self.read_data)]
        return m
