# amaranth: UnusedElaboratable=no
import re

import pytest

from nnef_hw import parts
from nnef_hw.rtl.state import State


def run_state(drive, rng, ram, *, count, style, frames=3, **options):
    """Drive some frames; return the run and what has to come out: the initial frame before them."""
    initial = [9] * count if style == "equal" else rng.integers(-128, 128, count).tolist()
    codes = rng.integers(-128, 128, frames * count).tolist()
    part = parts.State(count=count, bits=8, signed=True, ram=ram, style=style)
    expected = [
        {"data": [code], "last": n % count == count - 1} for n, code in enumerate(initial + codes)
    ]
    run = drive(part.build(codes=initial), expected[count:], len(expected), **options)
    assert [{"data": list(x.data), "last": bool(x.last)} for x in run.items] == expected
    return run


@pytest.mark.parametrize("style", ["equal", "logic", "block"])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_begins_with_the_initial_codes(count, style, stall, drive, ram, rng):
    run = run_state(drive, rng, ram, count=count, style=style, stall=stall)
    if not stall:
        assert run.out_cycles.tolist() == list(range(1, 4 * count + 1))
        assert run.in_cycles.tolist() == run.out_cycles[count:].tolist()


@pytest.mark.verilator
@pytest.mark.parametrize("engine", ["cocotb", "verilator"])
def test_verilog(engine, drive, ram, rng):
    run_state(drive, rng, ram, count=5, style="block", stall=0.5, engine=engine)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([7, 8], "State of 4 bits cannot hold 8"),
        ([7], "State needs 2 codes, not 1"),
        ([7, 6], "State of equal codes has several"),
    ],
)
def test_refuses_codes_that_do_not_fit(codes, message, ram):
    part = parts.State(count=2, bits=4, signed=True, ram=ram)
    with pytest.raises(ValueError, match=re.escape(message)):
        State(part, codes=codes)
