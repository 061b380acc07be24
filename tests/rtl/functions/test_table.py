# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tables import unary_table
from nnef_hw.rtl.functions.table import Table

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
    part = parts.Table(
        in_bits=in_bits, in_signed=in_signed, out_bits=out_bits, out_signed=out_signed,
        lanes=lanes, ram=ram,
    )  # fmt: skip
    run = drive(part.build(entries=entries.tolist()), items, len(items), stall=stall)
    assert [list(item.data) for item in run.items] == entries[codes - source.lo].tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    assert (run.out_cycles - run.in_cycles == part.latency).all()
    assert (np.diff(run.in_cycles) == 1).all()


@pytest.mark.parametrize("count", [255, 257])
def test_needs_an_entry_per_code(count, ram):
    part = parts.Table(in_bits=8, in_signed=False, out_bits=8, out_signed=False, ram=ram)
    with pytest.raises(ValueError, match=re.escape(f"Table needs 256 entries, not {count}")):
        Table(part, entries=[0] * count)
