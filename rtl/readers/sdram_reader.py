"""Reader of a linear image in SDR SDRAM, and the way in which it gets there."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.parts.readers.sdram_reader import GRANULE, SETUP_REFRESHES
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.streams.fifo import BlockFifo
from nnef_hw.rtl.streams.stream import Fifo

__all__ = ["SdramReader"]

# RAS#, CAS# and WE#, the first one on top
MODE, REFRESH, PRECHARGE, ACTIVE, WRITE, READ, NOP = 0b000, 0b001, 0b010, 0b011, 0b100, 0b101, 0b111
ALL_BANKS = AUTO_PRECHARGE = 1 << 10
ADDRESS_BITS = 13
BANK_BITS = 2


class SdramReader(wiring.Component):
    """Keep an image in SDRAM and give its words; golden model: what was written.

    After a reset it initializes the memory. ``load`` takes the words of the image from ``i``, and
    some behind it up to a multiple of 16, and writes each on its own; ``start`` reads them all, a
    burst after the other, and those of the image come into a queue. Reads behind the first one, or
    the first one after a restart, leave out the words that come once. Refreshes come at fixed
    intervals, or behind the burst that is going on. :class:`.SdramWords` tells the cycle of every
    word that is read.

    Rows follow one another from bank to bank. The memory's clock is the opposite of the
    component's, CS# stays low, CKE high, DQM low. Between its ports and the pins belong the pads of
    ``pads.v``, with a register per direction; what is read is taken in the middle of a cycle.

    Members
    -------
    start, load : In(1)
        Begin to read, or to write, with the first word; heeded while ``idle``.
    restart : In(1)
        Forget the words of a read or of a load that is going on, for a cycle or more. Refreshes go
        on, so what the memory holds stays.
    idle : Out(1)
        Initialized, and nothing is going on, not even a refresh.
    i, o : stream.Signature(width)
    command : Out(3)
        WE#, CAS#, RAS#, the first one at the bottom.
    bank, address : Out
    dq_o : Out(width)
    dq_oe : Out(1)
    dq_i : In(width)
        What stood at the pins in the middle of a cycle.
    """

    unproved = "words follow what a chip answers at its pins; tests simulate the chip"

    def __init__(self, part: parts.SdramReader):
        self.part = part
        super().__init__(self._members(part))

    @staticmethod
    def _members(part):
        """Return the members."""
        width = part.chip.width
        return {
            "start": In(1), "load": In(1), "restart": In(1), "idle": Out(1),
            "i": In(stream.Signature(width)), "o": Out(stream.Signature(width)),
            "command": Out(3, init=NOP), "bank": Out(BANK_BITS), "address": Out(ADDRESS_BITS),
            "dq_o": Out(width), "dq_oe": Out(1), "dq_i": In(width),
        }

    def elaborate(self, platform):
        m = Module()
        part = self.part
        chip = part.chip
        # column, bank, row: the lowest bits first
        place = Signal(chip.column_bits + BANK_BITS + chip.row_bits)
        column = place[:chip.column_bits]
        row = place[chip.column_bits + BANK_BITS:]
        left = Signal(range(part.granules + 1))
        reading = Signal()
        loading = Signal()
        forgetting = Signal()
        is_read = Signal()
        is_between = Signal()
        has_room = Signal()
        refreshed = Signal()
        due = self._refreshes(m, refreshed)
        delay = Signal(range(max(part.refresh_command_cycles, part.write_cycles,
                                 part.precharge_cycles, part.mode_cycles, part.active_cycles)))
        setups = Signal(range(max(part.power_up_refreshes, SETUP_REFRESHES)))
        granule_end = place[:GRANULE.bit_length() - 1].all()
        image_end = granule_end & (left == 1)
        burst_end = place[:part.burst.bit_length() - 1].all() | image_end

        def issue(command, address, cycles, bank=0):
            m.d.sync += [self.command.eq(command), self.address.eq(address), delay.eq(cycles - 1),
                         self.bank.eq(bank)]

        first, granules, skips = self._begin(m, left)
        starts = self._starts()

        m.d.sync += [self.command.eq(NOP), self.dq_oe.eq(0), self.dq_o.eq(self.i.payload)]
        with m.If(delay != 0):
            m.d.sync += delay.eq(delay - 1)
        with m.Else():
            with m.FSM():
                with m.State("POWER_UP"):
                    with m.If(due):
                        m.d.comb += refreshed.eq(1)
                        m.d.sync += setups.eq(setups + 1)
                        with m.If(setups == part.power_up_refreshes - 1):
                            m.d.sync += setups.eq(SETUP_REFRESHES - 1)
                            issue(PRECHARGE, ALL_BANKS, part.precharge_cycles)
                            m.next = "SETUP"
                with m.State("SETUP"):
                    issue(REFRESH, 0, part.refresh_command_cycles)
                    m.d.sync += setups.eq(setups - 1)
                    with m.If(setups == 0):
                        m.next = "MODE"
                with m.State("MODE"):
                    # bursts of one word
                    issue(MODE, part.cas_latency << 4, part.mode_cycles)
                    m.next = "IDLE"
                with m.State("IDLE"):
                    m.d.comb += is_between.eq(1)
                    m.d.comb += self.idle.eq(~due & ~reading & ~loading & ~forgetting)
                    with m.If(due):
                        m.d.comb += refreshed.eq(1)
                        issue(REFRESH, 0, part.refresh_command_cycles)
                    with m.Elif(reading & has_room):
                        issue(ACTIVE, row, part.active_cycles, place[chip.column_bits:])
                        m.next = "READ"
                    with m.Elif(loading & self.i.valid):
                        issue(ACTIVE, row, part.active_cycles, place[chip.column_bits:])
                        m.next = "WRITE"
                with m.State("READ"):
                    m.d.comb += is_read.eq(1)
                    issue(READ, column, 1, place[chip.column_bits:])
                    with m.If(burst_end | forgetting & granule_end):
                        m.next = "PRECHARGE"
                    with m.If(image_end):
                        m.d.sync += reading.eq(0)
                with m.State("PRECHARGE"):
                    issue(PRECHARGE, ALL_BANKS, part.precharge_cycles)
                    m.next = "IDLE"
                with m.State("WRITE"):
                    m.d.comb += self.i.ready.eq(1)
                    m.d.sync += self.dq_oe.eq(1)
                    issue(WRITE, column | AUTO_PRECHARGE, part.write_cycles,
                          place[chip.column_bits:])
                    m.next = "IDLE"
                    with m.If(image_end):
                        m.d.sync += loading.eq(0)

        with m.If(is_read | self.i.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(granule_end):
                m.d.sync += left.eq(left - 1)
        with m.If(self.idle & (starts | self.load)):
            m.d.sync += [place.eq(first), left.eq(granules), reading.eq(starts),
                         loading.eq(~starts)]
        is_wanted = is_read & ~forgetting
        if part.once % GRANULE:
            is_early = column[:GRANULE.bit_length() - 1] < part.once % GRANULE
            is_wanted &= ~(skips & is_early)
        is_behind = self._is_behind(column[:GRANULE.bit_length() - 1])
        if is_behind is not None:
            is_wanted &= ~((left == 1) & is_behind)
        is_coming = self._queue(m, is_wanted, has_room, forgetting)
        with m.If(self.restart):
            m.d.sync += [reading.eq(0), loading.eq(0), forgetting.eq(1)]
        with m.Elif(is_between & ~is_coming):
            m.d.sync += forgetting.eq(0)
        return m

    def _starts(self):
        """Return whether a read begins, if nothing is going on."""
        return self.start

    def _is_behind(self, column):
        """Return whether a word of the last 16 is behind the image; None if none can be."""
        tail = self.part.words % GRANULE
        return column >= tail if tail else None

    def _begin(self, m, left):
        """Return with which word a read begins, its granules, and whether the first one goes on.

        The last of these is true of reads which leave out the words that come once.
        """
        part = self.part
        if not part.once:
            return 0, part.granules, Const(0)
        is_again, leaves_out = Signal(), Signal()
        with m.If(self.idle & (self.start | self.load)):
            m.d.sync += [leaves_out.eq(is_again & self.start), is_again.eq(self.start)]
        with m.If(self.restart):
            m.d.sync += is_again.eq(0)
        granule = part.once // GRANULE
        first = Mux(is_again & self.start, granule * GRANULE, 0)
        granules = Mux(is_again & self.start, part.granules - granule, part.granules)
        return first, granules, leaves_out & (left == part.granules - granule)

    def _refreshes(self, m, refreshed):
        """Return whether a refresh is due."""
        interval = self.part.refresh_cycles
        timer = Signal(range(interval))
        due = Signal()
        with m.If(refreshed):
            m.d.sync += due.eq(0)
        with m.If(timer == interval - 1):
            m.d.sync += [timer.eq(0), due.eq(1)]
        with m.Else():
            m.d.sync += timer.eq(timer + 1)
        return due

    def _queue(self, m, is_read, has_room, forgetting):
        """Put into the queue what comes back, and count what is on its way or in there.

        Returns whether anything is on its way.
        """
        part = self.part
        queue = BlockFifo(part.queue)
        m.submodules.queue = WithReset(queue, forgetting)
        # Whether a word is taken is known late, and the memory of the queue may be far away.
        output = Fifo(part.chip.width)
        m.submodules.output = WithReset(output, forgetting)
        level = Signal(range(part.depth + 1))
        taken = Signal()
        m.d.sync += taken.eq(self.o.valid & self.o.ready)
        with m.If(is_read != taken):
            m.d.sync += level.eq(Mux(taken, level - 1, level + 1))
        with m.If(forgetting):
            m.d.sync += level.eq(0)
        m.d.comb += has_room.eq(level <= part.depth - part.burst)
        arrives, on_way = is_read, []
        for stage in range(part.first_read_cycles):
            later = Signal(name=f"arrives{stage}")
            m.d.sync += later.eq(arrives)
            arrives = later
            on_way.append(later)
        m.d.comb += [
            queue.i.valid.eq(arrives),
            queue.i.payload.data[0].eq(self.dq_i),
            output.i.payload.eq(queue.o.payload.data[0]),
            output.i.valid.eq(queue.o.valid),
            queue.o.ready.eq(output.i.ready),
            self.o.payload.eq(output.o.payload),
            self.o.valid.eq(output.o.valid & ~forgetting),
            output.o.ready.eq(self.o.ready),
        ]
        return Cat(on_way).any()
