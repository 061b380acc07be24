import numpy as np
import pytest

from nnef_hw import parts


def run_delay(drive, rng, *, count, frame, frames=4, **options):
    """Drive some frames; return the run, of which as many codes come out as go in."""
    codes = rng.integers(-128, 128, frames * frame).tolist()
    part = parts.Delay(count=count, code=-3, frame=frame, bits=8, signed=True)
    items = [{"data": [code], "last": n % frame == frame - 1} for n, code in enumerate(codes)]
    expected = [{**item, "last": n % frame == frame - 1}
                for n, item in enumerate([{"data": [-3]}] * count + items)]  # fmt: skip
    run = drive(part.build(), items, len(expected), **options)
    assert [{"data": list(x.data), "last": bool(x.last)} for x in run.items] == expected
    return run


@pytest.mark.parametrize(("count", "frame"), [(1, 1), (6, 2), (5, 3), (2, 7)])
def test_what_comes_is_given_later(count, frame, stall, drive, rng):
    run = run_delay(drive, rng, count=count, frame=frame, stall=stall)
    assert run.out_cycles.tolist() == list(range(1, count + 4 * frame + 1))
    np.testing.assert_array_equal(run.in_cycles, run.out_cycles[count:])


@pytest.mark.verilator
def test_verilog(drive, rng):
    run_delay(drive, rng, count=5, frame=3, stall=0.5, engine="verilator")
