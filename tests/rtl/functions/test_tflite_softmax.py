import numpy as np
import pytest

from nnef_hw import parts
from nnef_hw.arithmetic.tflite.numerics import tflite_exp_table, tflite_softmax_codes


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
    table = tflite_exp_table(scale, 1 << bits)
    items = [
        {"data": [code], "last": n % (2 * channels) == 2 * channels - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    part = parts.TfliteSoftmax(channels=channels, bits=bits, signed=signed, ram=ram)
    run = drive(part.build(table=table.tolist()), items, codes.size, **options)
    expected = tflite_softmax_codes(codes, table)
    assert [item.data[0] for item in run.items] == expected.reshape(-1).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return part, run


@pytest.mark.parametrize("scale", [1e-4, 0.05, 3.0])
@pytest.mark.parametrize(("bits", "signed"), [(4, False), (8, True)])
def test_probabilities_under_stalls(bits, signed, scale, drive, ram, rng):
    check(drive, ram, rng, channels=4, bits=bits, signed=signed, scale=scale, stall=0.5)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("engine", "channels"),
    [("verilator", 5), ("verilator", 130), pytest.param("cocotb", 3, marks=pytest.mark.nightly)],
)
def test_verilog(engine, channels, drive, ram, rng):
    check(drive, ram, rng, channels=channels, signed=True, stall=0.5, engine=engine)


@pytest.mark.parametrize("channels", [1, 2, 3, 10])
def test_cycles(channels, drive, ram, rng):
    part, run = check(drive, ram, rng, channels=channels)
    final = run.in_cycles[channels - 1 :: channels]
    assert (run.out_cycles[::channels] - final == part.latency).all()
    spacings = np.diff(run.out_cycles.reshape(-1, channels), axis=1)
    assert (spacings == part.spacing).all()
    assert (np.diff(final) == part.pixel_cycles).all()
