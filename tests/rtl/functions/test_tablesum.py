# amaranth: UnusedElaboratable=no
import re

import pytest

from nnef_hw import parts
from nnef_hw.rtl.functions.tablesum import TableSum
from nnef_hw.sim.pysim import run_streams

FORMATS = {
    "signed": ((8, 8), (True, True)),
    "unsigned": ((8, 8), (False, False)),
    "unequal": ((4, 6), (True, False)),
}


def build(rng, ram, in_bits, in_signed, acc_bits=29):
    """Two tables of noise, with the extremes that the sum may have."""
    limit = 1 << acc_bits - 2
    tables = [rng.integers(-limit, limit, 1 << bits) for bits in in_bits]
    for table in tables:
        table[0], table[-1] = -limit, limit - 1
    part = parts.TableSum(in_bits=in_bits, in_signed=in_signed, acc_bits=acc_bits, ram=ram)
    return part.build(entries=[table.tolist() for table in tables]), tables


@pytest.mark.parametrize(("in_bits", "in_signed"), FORMATS.values(), ids=FORMATS)
def test_values_of_both_codes_are_added(in_bits, in_signed, stall, ram, rng):
    component, tables = build(rng, ram, in_bits, in_signed)
    lowest = [-(1 << bits - 1) if s else 0 for bits, s in zip(in_bits, in_signed, strict=True)]
    addresses = [rng.integers(0, len(table), 60) for table in tables]
    for ends in addresses:
        ends[:2] = 0, len(tables[0]) - 1
    beats = [
        [{"data": [int(address) + low], "last": n % 5 == 4} for n, address in enumerate(one_stream)]
        for one_stream, low in zip(addresses, lowest, strict=True)
    ]
    a, b = beats
    run = run_streams(component, {"a": a, "b": b}, {"o": len(a)}, rng=rng, stall=stall)
    sums = sum(table[ends] for table, ends in zip(tables, addresses, strict=True))
    assert [item.acc[0] for item in run.items["o"]] == sums.tolist()
    assert [item.last for item in run.items["o"]] == [beat["last"] for beat in a]
    in_cycles = run.in_cycles["a"]
    assert in_cycles == run.in_cycles["b"] == list(range(len(a)))
    assert run.out_cycles["o"] == [cycle + component.part.latency for cycle in in_cycles]


def test_refuses_a_table_of_another_size(ram):
    message = "TableSum has 15 entries for the 16 codes of b"
    part = parts.TableSum(in_bits=(4, 4), in_signed=(True, True), acc_bits=8, ram=ram)
    with pytest.raises(ValueError, match=re.escape(message)):
        TableSum(part, entries=([0] * 16, [0] * 15))
