# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from sweeps import few

from nnef_hw import parts
from nnef_hw.rtl.streams.state import State


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
    assert run.out_cycles.tolist() == list(range(1, 4 * count + 1))
    assert run.in_cycles.tolist() == run.out_cycles[count:].tolist()


@pytest.mark.parametrize(("count", "steps"), [(1, 2), (3, 2), (4, 5)])
def test_begins_anew_after_the_steps_of_a_loop(count, steps, stall, drive, ram, rng):
    initial = rng.integers(-128, 128, count).tolist()
    later = rng.integers(-128, 128, (3, (steps - 1) * count))
    part = parts.State(count=count, bits=8, signed=True, ram=ram, style="logic", steps=steps)
    expected = [code for loop in later.tolist() for code in initial + loop] + initial
    items = [
        {"data": [code], "last": n % count == count - 1}
        for n, code in enumerate(later.reshape(-1).tolist())
    ]
    run = drive(part.build(codes=initial), items, len(expected), stall=stall)
    assert [x.data[0] for x in run.items] == expected
    assert [n for n, x in enumerate(run.items) if x.last] == [
        *range(count - 1, len(expected), count)
    ]
    begins = run.out_cycles[:: steps * count]
    assert (np.diff(begins) == steps * count + 1).all()


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
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
