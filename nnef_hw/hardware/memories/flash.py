"""SPI NOR flash: read commands, chips, and how they are told apart."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "FAST_READ", "FLASH_CHIPS", "QUAD_IO", "QUAD_IO_DDR", "QUAD_OUTPUT", "READ", "W25Q128JV",
    "W25Q128JV_DTR", "W25Q32JV", "W25Q32JV_DTR", "W25Q64JV", "W25Q64JV_DTR", "FlashChip",
    "FlashRead", "find_flash",
]  # fmt: skip

ADDRESS_BITS = 24


@dataclass(frozen=True, kw_only=True)
class FlashRead:
    """A command that reads from an address on; its opcode is sent on one line.

    Parameters
    ----------
    name, opcode
        What the data sheet calls it, and its first byte.
    lines
        Data lines.
    address_lines
        Lines on which the address is sent, and the mode bits behind it.
    mode_bits
        8 or none. Sent as FFh: the next command begins with an opcode again.
    dummy_clocks
        Clocks between these and the data.
    double_rate
        Address, mode bits and data use both edges of the clock.
    max_mhz
        Fastest clock.
    """

    name: str
    opcode: int
    lines: int
    address_lines: int = 1
    mode_bits: int = 0
    dummy_clocks: int = 0
    double_rate: bool = False
    max_mhz: float = 104.0

    @property
    def bits_per_clock(self) -> int:
        """Data bits in a period of the clock."""
        return self.lines * (1 + self.double_rate)

    @property
    def setup_clocks(self) -> int:
        """Clocks before the first one that brings data."""
        per_clock = self.address_lines * (1 + self.double_rate)
        return 8 + (ADDRESS_BITS + self.mode_bits) // per_clock + self.dummy_clocks


# W25Q128JV, revision F, and W25Q128JV-DTR, revision C: 8.1.2 and 8.2 for the forms; 9.6 for the
# clocks, those that hold from 2.7 V on.
READ = FlashRead(name="Read Data", opcode=0x03, lines=1, max_mhz=50)
FAST_READ = FlashRead(name="Fast Read", opcode=0x0B, lines=1, dummy_clocks=8)
QUAD_OUTPUT = FlashRead(name="Fast Read Quad Output", opcode=0x6B, lines=4, dummy_clocks=8)
QUAD_IO = FlashRead(
    name="Fast Read Quad I/O", opcode=0xEB, lines=4, address_lines=4, mode_bits=8, dummy_clocks=4
)
QUAD_IO_DDR = FlashRead(
    name="DTR Fast Read Quad I/O", opcode=0xED, lines=4, address_lines=4, mode_bits=8,
    dummy_clocks=7, double_rate=True, max_mhz=66,
)  # fmt: skip

SINGLE_RATE = (READ, FAST_READ, QUAD_OUTPUT, QUAD_IO)


@dataclass(frozen=True, kw_only=True)
class FlashChip:
    """A chip, as its answer to ``Read JEDEC ID`` tells it from others.

    Parameters
    ----------
    name
        The data sheet's.
    jedec_id
        Manufacturer, type and capacity, the first byte on top.
    megabits
        Size.
    reads
        Read commands that it has.
    wake_us
        tRES1: from the end of ``Release Power-down`` to the next command.
    deselect_ns, write_deselect_ns
        tSHSL1 and tSHSL2: how long the chip has to be deselected between two commands, and after
        one that writes a register.
    output_ns
        tCLQV: from an edge of the clock to the data.
    """

    name: str
    jedec_id: int
    megabits: int
    reads: tuple[FlashRead, ...] = SINGLE_RATE
    wake_us: float = 3.0
    deselect_ns: float = 10.0
    write_deselect_ns: float = 50.0
    output_ns: float = 7.0

    @property
    def knows_ddr(self) -> bool:
        """Whether the flash has a command with data at both edges of the clock."""
        return any(read.double_rate for read in self.reads)

    def best_read(self, lines: int, clock_mhz: float, *, ddr: bool = False) -> FlashRead | None:
        """Return the command with the most data per clock, and of those the shortest.

        Parameters
        ----------
        lines
            Data lines that the board has.
        clock_mhz
            Clock of the flash.
        ddr
            Whether one with both edges may be taken.
        """
        usable = [
            read for read in self.reads
            if read.lines <= lines and read.max_mhz >= clock_mhz and ddr >= read.double_rate
        ]  # fmt: skip
        return max(usable, key=lambda x: (x.bits_per_clock, -x.setup_clocks), default=None)


def _winbond(size: str, megabits: int, capacity: int) -> tuple[FlashChip, FlashChip]:
    """Return both types of a size: the second one transfers at both edges, too."""
    return (
        FlashChip(name=f"W25Q{size}JV", jedec_id=0xEF4000 | capacity, megabits=megabits),
        FlashChip(
            name=f"W25Q{size}JV-DTR", jedec_id=0xEF7000 | capacity, megabits=megabits,
            reads=(*SINGLE_RATE, QUAD_IO_DDR),
        ),
    )  # fmt: skip


W25Q32JV, W25Q32JV_DTR = _winbond("32", 32, 0x16)
W25Q64JV, W25Q64JV_DTR = _winbond("64", 64, 0x17)
W25Q128JV, W25Q128JV_DTR = _winbond("128", 128, 0x18)
FLASH_CHIPS = (W25Q32JV, W25Q32JV_DTR, W25Q64JV, W25Q64JV_DTR, W25Q128JV, W25Q128JV_DTR)


def find_flash(jedec_id: int) -> FlashChip | None:
    """Return the chip that answers with this ID; None if it is not known."""
    return next((chip for chip in FLASH_CHIPS if chip.jedec_id == jedec_id), None)
