import numpy as np
import pytest

from nnef_hw.numerics import exp_table, softmax_codes
from nnef_hw.rtl.softmax import Softmax


def pixels(rng, channels, bits, signed):
    """All equal, one far above, one step apart, then noise."""
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    codes = rng.integers(lo, hi + 1, (5, channels))
    codes[0], codes[1] = lo, lo
    codes[1, -1] = hi
    codes[2] = hi
    codes[2, 0] = hi - 1
    return codes


def check(drive, ram, rng, *, channels, bits=8, signed=False, scale=0.05, **options):
    codes = pixels(rng, channels, bits, signed)
    table = exp_table(scale, 1 << bits)
    items = [
        {"data": [code], "last": n % (2 * channels) == 2 * channels - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    softmax = Softmax(channels=channels, bits=bits, signed=signed, table=table.tolist(), ram=ram)
    run = drive(softmax, items, codes.size, **options)
    expected = softmax_codes(codes, table)
    assert [item.data[0] for item in run.items] == expected.reshape(-1).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return softmax, run


@pytest.mark.parametrize("scale", [1e-4, 0.05, 3.0])
@pytest.mark.parametrize(("bits", "signed"), [(4, False), (8, True), (8, False)])
def test_probabilities(bits, signed, scale, stall, drive, ram, rng):
    check(drive, ram, rng, channels=4, bits=bits, signed=signed, scale=scale, stall=stall)


@pytest.mark.parametrize("channels", [1, 2, 10])
def test_channels(channels, stall, drive, ram, rng):
    check(drive, ram, rng, channels=channels, stall=stall)


@pytest.mark.verilator
@pytest.mark.parametrize("engine", ["verilator", "cocotb"])
def test_verilog(engine, drive, ram, rng):
    check(drive, ram, rng, channels=5, signed=True, stall=0.5, engine=engine)


@pytest.mark.parametrize("channels", [1, 2, 10])
def test_cycles(channels, drive, ram, rng):
    softmax, run = check(drive, ram, rng, channels=channels)
    final = run.in_cycles[channels - 1 :: channels]
    assert (run.out_cycles[::channels] - final == softmax.latency).all()
    assert (np.diff(final) == 16 * channels + 4).all()
