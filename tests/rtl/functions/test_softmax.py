import numpy as np
import pytest
from sweeps import covering, few

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import QType, exp_table, softmax_codes


def pixels(rng, channels, bits, signed):
    """All equal, one far above, one step apart, then noise."""
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    codes = rng.integers(lo, hi + 1, (5, channels))
    codes[0], codes[1] = lo, lo
    codes[1, -1] = hi
    codes[2] = hi
    codes[2, 0] = hi - 1
    return codes


STAGES = [0, 1, 2, 3, 5, 9]
"""Of the division; 0 is the softmax of one pixel at a time."""


def check(
    drive, ram, rng, *, channels, stages, bits=8, signed=False, scale=0.05, pixels=pixels,
    out=(8, 8), is_masked=False, **options
):  # fmt: skip
    codes = pixels(rng, channels, bits, signed)
    table = exp_table(scale, 1 << bits)
    items = [
        {"data": [code], "last": n % (2 * channels) == 2 * channels - 1}
        for n, code in enumerate(codes.reshape(-1).tolist())
    ]
    fields = {"channels": channels, "bits": bits, "signed": signed, "ram": ram}
    fields |= {"out_bits": out[0], "places": out[1]}
    part = parts.PipelinedSoftmax(stages=stages, **fields) if stages else parts.Softmax(**fields)
    masked = {"is_masked": True} if is_masked else {}
    run = drive(part.build(table=table.tolist(), **masked), items, codes.size, **options)
    hidden = (-(1 << bits - 1) if signed else 0) if is_masked else None
    qtype = QType(out[0], False, 2.0 ** -out[1])
    expected = softmax_codes(codes, table, qtype=qtype, hidden=hidden)
    assert [item.data[0] for item in run.items] == expected.reshape(-1).tolist()
    assert [item.last for item in run.items] == [item["last"] for item in items]
    return part, run


@pytest.mark.parametrize(
    ("bits", "signed", "scale", "stages"),
    covering([(4, False), (8, True), (8, False)], [1e-4, 0.05, 3.0], STAGES),
)
def test_probabilities(bits, signed, scale, stages, drive, ram, rng):
    check(
        drive, ram, rng, channels=4, bits=bits, signed=signed, scale=scale, stages=stages, stall=0.5
    )


@pytest.mark.parametrize(
    ("out_bits", "places", "stages"),
    covering([(8, 11), (8, 16), (12, 14), (16, 16)], [0, 1, 3, 17]),
)
def test_finer_probabilities(out_bits, places, stages, drive, ram, rng):
    """All are as exact as their format; those beyond it are its greatest."""
    check(
        drive, ram, rng, channels=9, stages=stages, out=(out_bits, places), scale=0.002, stall=0.3
    )


def behind_masks(rng, channels, bits, signed):
    """Some of the lowest code among others, none but that, and one beside it."""
    codes = rng.integers(1, 1 << bits, (6, channels))
    codes[rng.random(codes.shape) < 0.4] = 0
    codes[2] = codes[3] = 0
    codes[3, 0] = 1
    return codes - (1 << bits - 1) if signed else codes


@pytest.mark.parametrize(("stages", "signed"), covering([0, 1, 3], [False, True]))
def test_hidden_codes_have_no_weight(stages, signed, stall, drive, ram, rng):
    """Even where the greatest one is near to them; all are equal where there are no others."""
    options = {"pixels": behind_masks, "is_masked": True, "scale": 1e-3, "stall": stall}
    _, run = check(drive, ram, rng, channels=6, stages=stages, signed=signed, **options)
    found = np.reshape([item.data[0] for item in run.items], (6, 6))
    assert found[3].tolist() == [255, 0, 0, 0, 0, 0]
    assert found[2].tolist() == [43] * 6


@pytest.mark.parametrize(("channels", "stages"), covering([1, 2, 10], STAGES))
def test_channels(channels, stages, stall, drive, ram, rng):
    check(drive, ram, rng, channels=channels, stages=stages, stall=stall)


def noise(rng, channels, bits, signed):
    """Many pixels, some of few codes that differ much from those of the next."""
    codes = rng.integers(0, 1 << bits, (40, channels))
    codes[::3] //= 8
    return codes - (1 << bits - 1) if signed else codes


@pytest.mark.verilator
@pytest.mark.parametrize(("channels", "stages"), covering([1, 3, 6], [1, 2, 9]))
def test_many_pixels_under_stalls(channels, stages, drive, ram, rng):
    options = {"channels": channels, "stages": stages, "engine": "verilator", "pixels": noise}
    for stall in (0.1, 0.7):
        check(drive, ram, rng, signed=True, stall=stall, **options)


@pytest.mark.verilator
@pytest.mark.parametrize("stages", [0, 2])
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_verilog(engine, stages, drive, ram, rng):
    check(drive, ram, rng, channels=5, stages=stages, signed=True, stall=0.5, engine=engine)


@pytest.mark.parametrize("channels", [1, 2, 10])
def test_cycles(channels, drive, ram, rng):
    part, run = check(drive, ram, rng, channels=channels, stages=0)
    final = run.in_cycles[channels - 1 :: channels]
    assert (run.out_cycles[::channels] - final == part.latency).all()
    assert (np.diff(final) == part.pixel_cycles).all()


@pytest.mark.parametrize(("channels", "stages"), covering([1, 2, 10], STAGES[1:]))
def test_cycles_of_overlapping_pixels(channels, stages, drive, ram, rng):
    part, run = check(drive, ram, rng, channels=channels, stages=stages, pixels=noise)
    assert run.out_cycles[0] - run.in_cycles[channels - 1] == part.latency
    assert (np.diff(run.out_cycles[::channels])[3:] == part.pixel_cycles).all()
