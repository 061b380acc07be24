# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest

from nnef_hw.numerics import QType
from nnef_hw.rtl.table import ChannelTable, Table
from nnef_hw.tables import unary_table

FORMATS = [(2, False, 8, True), (4, True, 4, False), (8, False, 8, False), (8, True, 16, True)]


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize(("in_bits", "in_signed", "out_bits", "out_signed"), FORMATS)
def test_looks_up_every_code(
    in_bits, in_signed, out_bits, out_signed, lanes, stall, drive, ram, rng
):
    source = QType(in_bits, in_signed, 0.05)
    target = QType(out_bits, out_signed, 2.0 ** (1 - out_bits))
    entries = unary_table(np.tanh, source, target)
    codes = rng.permutation(np.arange(source.lo, source.hi + 1)).reshape(-1, lanes)
    items = [{"data": beat, "last": n % 5 == 4} for n, beat in enumerate(codes.tolist())]
    table = Table(
        entries=entries.tolist(), in_bits=in_bits, in_signed=in_signed, out_bits=out_bits,
        out_signed=out_signed, lanes=lanes, ram=ram,
    )  # fmt: skip
    run = drive(table, items, len(items), stall=stall)
    assert [list(item.data) for item in run.items] == entries[codes - source.lo].tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    if not stall:
        assert (run.out_cycles - run.in_cycles == table.latency).all()
        assert (np.diff(run.in_cycles) == 1).all()


@pytest.mark.parametrize("count", [255, 257])
def test_needs_an_entry_per_code(count, ram):
    with pytest.raises(ValueError, match=re.escape(f"Table needs 256 entries, not {count}")):
        Table(entries=[0] * count, in_bits=8, in_signed=False, out_bits=8, out_signed=False,
              lanes=1, ram=ram)  # fmt: skip


def check_channels(drive, ram, rng, channels, fmt, **options):
    """Codes of three frames of four pixels through a random function per channel."""
    in_bits, in_signed, out_bits, out_signed = fmt
    lowest, out_lowest = (
        -(1 << bits - 1) if signed else 0
        for bits, signed in ((in_bits, in_signed), (out_bits, out_signed))
    )
    entries = out_lowest + rng.integers(0, 1 << out_bits, (channels, 1 << in_bits))
    codes = lowest + rng.integers(0, 1 << in_bits, (12, channels))
    items = [
        {"data": [code], "last": n % (4 * channels) == 4 * channels - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    table = ChannelTable(
        entries=entries.tolist(), in_bits=in_bits, in_signed=in_signed, out_bits=out_bits,
        out_signed=out_signed, ram=ram,
    )  # fmt: skip
    run = drive(table, items, len(items), **options)
    expected = entries[np.arange(channels), codes - lowest].reshape(-1)
    assert [item.data[0] for item in run.items] == expected.tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return run


@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("fmt", FORMATS)
def test_channels_have_tables_of_their_own(channels, fmt, stall, drive, ram, rng):
    run = check_channels(drive, ram, rng, channels, fmt, stall=stall)
    if not stall:
        assert (run.out_cycles - run.in_cycles == ChannelTable.latency).all()
        assert (np.diff(run.in_cycles) == 1).all()


@pytest.mark.verilator
@pytest.mark.parametrize("engine", ["cocotb", "verilator"])
def test_verilog_of_tables_per_channel(engine, drive, ram, rng):
    check_channels(drive, ram, rng, 3, FORMATS[1], stall=0.5, engine=engine)
