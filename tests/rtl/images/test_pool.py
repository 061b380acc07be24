import numpy as np
import pytest
from sweeps import covering, few

from nnef_hw import parts

FORMATS = [(2, False), (4, True), (8, False), (8, True), (16, True)]


def windows(rng, *, words, lanes, bits, signed, count=9):
    """Windows of one value, of one outlier in every position, then noise."""
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    codes = rng.integers(lo, hi + 1, (count + words + 2, words, lanes))
    codes[0], codes[1] = lo, hi
    for n in range(words):
        codes[2 + n] = lo
        codes[2 + n, n] = hi
    return codes


def as_items(codes, frame=3):
    words = codes.shape[1]
    return [
        {
            "data": word.tolist(),
            "last": n == words - 1,
            "end": n == words - 1 and index % frame == frame - 1,
        }
        for index, window in enumerate(codes)
        for n, word in enumerate(window)
    ]


def check_max(drive, rng, *, words, lanes, bits, signed, **options):
    codes = windows(rng, words=words, lanes=lanes, bits=bits, signed=signed)
    pool = parts.MaxPool(bits=bits, signed=signed, lanes=lanes).build()
    run = drive(pool, as_items(codes), len(codes), **options)
    assert [list(item.data) for item in run.items] == codes.max(axis=1).tolist()
    assert [item.last for item in run.items] == [n % 3 == 2 for n in range(len(codes))]
    return run


@pytest.mark.parametrize(
    ("bits", "signed", "lanes", "words"), covering(list(FORMATS), [1, 3], [1, 2, 9])
)
def test_maximum(bits, signed, lanes, words, stall, drive, rng):
    check_max(drive, rng, words=words, lanes=lanes, bits=bits, signed=signed, stall=stall)


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_maximum_verilog(engine, drive, rng):
    check_max(drive, rng, words=4, lanes=2, bits=8, signed=True, stall=0.5, engine=engine)


@pytest.mark.parametrize("words", [1, 2, 9])
@pytest.mark.parametrize(("bits", "signed"), FORMATS)
def test_sum(bits, signed, words, stall, drive, rng):
    codes = windows(rng, words=words, lanes=1, bits=bits, signed=signed)
    acc_bits = bits + (words - 1).bit_length() + 1
    pool = parts.SumPool(bits=bits, signed=signed, acc_bits=acc_bits).build()
    run = drive(pool, as_items(codes), len(codes), stall=stall)
    assert [item.acc[0] for item in run.items] == codes.sum(axis=(1, 2)).tolist()
    assert [item.last for item in run.items] == [n % 3 == 2 for n in range(len(codes))]


@pytest.mark.parametrize("words", [1, 4])
@pytest.mark.parametrize(
    "part",
    [parts.MaxPool(bits=8, signed=False), parts.SumPool(bits=8, signed=False, acc_bits=11)],
    ids=["max", "sum"],
)
def test_takes_a_word_per_cycle(part, words, drive, rng):
    items = as_items(windows(rng, words=words, lanes=1, bits=8, signed=False))
    run = drive(part.build(), items, len(items) // words)
    assert (np.diff(run.in_cycles) == 1).all()
    assert (run.out_cycles - run.in_cycles[words - 1 :: words] == part.latency).all()
