# amaranth: UnusedElaboratable=no
import numpy as np
import pytest
from sweeps import covering

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tflite.short_functions import short_logistic, short_tanh
from nnef_hw.parts.functions.corrected_table import corrected_table
from nnef_hw.rtl.functions.corrected_table import CorrectedTable

SAMPLES = 300
FORMATS = [(9, False, 8, True), (10, True, 16, False), (11, False, 5, False), (12, True, 12, True)]


def check(drive, ram, entries, source, target, codes, **options):
    items = [{"data": [code], "last": n % 5 == 4} for n, code in enumerate(codes.tolist())]
    part = corrected_table(entries, source, target, ram)
    run = drive(part.build(entries=entries.tolist()), items, len(items), **options)
    assert [item.data[0] for item in run.items] == entries[codes - source.lo].tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    if run.flowing:
        assert (run.out_cycles - run.in_cycles == part.latency).all()
        assert (np.diff(run.in_cycles) == 1).all()


@pytest.mark.parametrize(("fmt", "smooth"), covering([(fmt,) for fmt in FORMATS], [True, False]))
def test_any_function(fmt, smooth, stall, drive, ram, rng):
    source, target = QType(fmt[0], fmt[1], 1.0), QType(fmt[2], fmt[3], 1.0)
    entries = rng.integers(target.lo, target.hi + 1, 1 << source.bits)
    if smooth:
        noise = rng.integers(-2, 2, len(entries))
        entries = np.clip(np.sort(entries) + noise, target.lo, target.hi)
    codes = rng.integers(source.lo, source.hi + 1, SAMPLES)
    codes[:4] = source.lo, source.hi, source.lo + 1, source.hi
    check(drive, ram, entries, source, target, codes, stall=stall)


@pytest.mark.parametrize("name", ["tanh", pytest.param("logistic", marks=pytest.mark.nightly)])
def test_functions_of_lstms(name, drive, rng, ecp5_ram):
    """All 16 bits, in 21 or 29 block RAMs; a table of all results would have 64."""
    qtype, codes = QType(16, True, 1.0), np.arange(-(1 << 15), 1 << 15)
    entries = short_tanh(codes, 4) if name == "tanh" else short_logistic(codes)
    part = corrected_table(entries, qtype, qtype, ecp5_ram)
    assert sum(memory.count for memory in part.memories) <= (29 if name == "tanh" else 21)
    check(drive, ecp5_ram, entries, qtype, qtype, rng.choice(codes, SAMPLES))


@pytest.fixture
def ecp5_ram():
    from nnef_hw.boards import find_board

    return find_board("ulx3s_85f").device.ram


@pytest.mark.verilator
def test_verilog(drive, ram, rng):
    source, target = QType(10, True, 1.0), QType(8, False, 1.0)
    entries = rng.integers(0, 256, 1 << source.bits)
    codes = rng.integers(source.lo, source.hi + 1, SAMPLES)
    check(drive, ram, entries, source, target, codes, stall=0.5, engine="verilator")


def test_entries_must_be_those_of_the_part(ram, rng):
    qtype = QType(9, False, 1.0)
    part = corrected_table(np.arange(512), qtype, qtype, ram)
    with pytest.raises(ValueError, match="needs 512 entries, not 511"):
        CorrectedTable(part, entries=list(range(511)))
    bent = np.arange(512)
    bent[::2] += 1  # as steep between knots as before
    bent[3::8] -= 2
    with pytest.raises(ValueError, match=r"corrections -3\.\.0 do not fit 1 bits"):
        CorrectedTable(part, entries=bent.tolist())
