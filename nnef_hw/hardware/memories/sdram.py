"""SDR SDRAM: geometry and timings."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["GW2AR_SDRAM", "SDRAM_256_MBIT", "SDRAM_CHIPS", "SdramChip"]

BANKS = 4


@dataclass(frozen=True, kw_only=True)
class SdramChip:
    """A chip of four banks; times in nanoseconds are the least, unless they say otherwise.

    Parameters
    ----------
    name
        Chips that it stands for.
    width, row_bits, column_bits
        Bits of a word, and of the addresses within a bank.
    cas_mhz
        Fastest clock with a CAS latency of 2, and of 3.
    t_rcd, t_rp, t_ras, t_rc, t_rfc, t_rrd, t_wr, t_mrd
        From ``ACTIVE`` to ``READ`` or ``WRITE``; from ``PRECHARGE`` to ``ACTIVE``; from ``ACTIVE``
        to ``PRECHARGE``; to the next one in the same bank; from ``REFRESH`` to any other command;
        between banks; from the last word written to ``PRECHARGE``; behind ``LOAD MODE REGISTER``.
    refresh_us
        Longest mean time from one refresh to the next.
    power_up_us
        Before the first command.
    access_ns, hold_ns
        tAC, the longest time from the clock to the data, and tOH, how long it stays.
    """

    name: str
    width: int
    row_bits: int
    column_bits: int
    cas_mhz: tuple[float, float]
    t_rcd: float
    t_rp: float
    t_ras: float
    t_rc: float
    t_rfc: float
    t_rrd: float
    t_wr: float
    t_mrd: float
    refresh_us: float
    power_up_us: float
    access_ns: float
    hold_ns: float

    @property
    def columns(self) -> int:
        """Words of a row of one bank."""
        return 1 << self.column_bits

    @property
    def words(self) -> int:
        """Words of all banks."""
        return BANKS << (self.row_bits + self.column_bits)

    def stands(self, clock_mhz: float) -> bool:
        """Whether a clock is not too fast for it."""
        return clock_mhz <= self.cas_mhz[-1]

    def cas_latency(self, clock_mhz: float) -> int:
        """Return the least CAS latency for a clock.

        Raises
        ------
        ValueError
            If the clock is too fast for the chip.
        """
        for latency, fastest in zip((2, 3), self.cas_mhz, strict=True):
            if clock_mhz <= fastest:
                return latency
        raise ValueError(f"{self.name} takes at most {self.cas_mhz[1]:g} MHz, not {clock_mhz:g}")

    def cycles(self, nanoseconds: float, clock_mhz: float) -> int:
        """Return the cycles that a least time takes, at least 1."""
        return max(1, math.ceil(nanoseconds * clock_mhz / 1000 - 1e-9))


# What ULX3S boards carry, by batch: IS42S16160G-7, AS4C16M16SA-7, W9825G6KH-6, MT48LC16M16A2-75.
# Every time is the longest of the four data sheets, so that one design runs on all of them.
SDRAM_256_MBIT = SdramChip(
    name="256 Mbit SDR SDRAM of grade -7 or -75", width=16, row_bits=13, column_bits=9,
    cas_mhz=(100.0, 133.0), t_rcd=21.0, t_rp=21.0, t_ras=45.0, t_rc=66.0, t_rfc=66.0, t_rrd=15.0,
    t_wr=15.0, t_mrd=15.0, refresh_us=64000 / 8192, power_up_us=200.0, access_ns=6.0, hold_ns=2.5,
)  # fmt: skip
# In the package of a GW2AR-18: 64 Mbit of 32 bits, with the times of a 2M x 32 chip of grade -6.
GW2AR_SDRAM = SdramChip(
    name="SDRAM of a GW2AR-18", width=32, row_bits=11, column_bits=8,
    cas_mhz=(100.0, 166.0), t_rcd=18.0, t_rp=18.0, t_ras=42.0, t_rc=60.0, t_rfc=60.0, t_rrd=12.0,
    t_wr=12.0, t_mrd=12.0, refresh_us=64000 / 4096, power_up_us=200.0, access_ns=6.0, hold_ns=2.5,
)  # fmt: skip

SDRAM_CHIPS = (SDRAM_256_MBIT, GW2AR_SDRAM)
