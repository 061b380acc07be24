import numpy as np
import pytest

from nnef_hw.errors import CheckError
from nnef_hw.sim.frames import pack_frames, unpack_frames


def test_lane_zero_is_lowest_and_last_is_on_top():
    codes = np.array([[[1, -1], [-128, 127]]])
    assert pack_frames(codes, 8, signed=True).tolist() == [0x0FF01, 0x17F80]


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
@pytest.mark.parametrize(
    ("lanes", "bits"),
    [(1, 1), (3, 2), (7, 9), (5, 13), (8, 8), (9, 7), (63, 1), (64, 1), (13, 16), (1, 63), (1, 64)],
)
def test_round_trip(lanes, bits, signed, rng):
    lo, hi = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << min(bits, 63))
    codes = rng.integers(lo, hi - 1, (5, 4, lanes), endpoint=True)
    codes.flat[:2] = lo, hi - 1
    payloads = pack_frames(codes, bits, signed=signed)
    assert payloads.dtype == np.uint64
    assert payloads.shape == ((20,) if lanes * bits < 64 else (20, lanes * bits // 64 + 1))
    for beats in (None, 4):
        unpacked = unpack_frames(payloads, lanes, bits, signed=signed, beats=beats)
        np.testing.assert_array_equal(unpacked, codes)


def test_wide_payload_is_the_integer(rng):
    codes = rng.integers(0, 1 << 11, (1, 1, 19))
    row = pack_frames(codes, 11, signed=False)[0]
    value = sum(int(word) << 64 * k for k, word in enumerate(row))
    fields = [int(code) << 11 * k for k, code in enumerate(codes[0, 0])]
    assert value == sum(fields) + (1 << 209)


@pytest.mark.parametrize("code", [-129, 128])
def test_code_out_of_range_is_refused(code):
    with pytest.raises(ValueError, match=r"codes must lie in -128\.\.127"):
        pack_frames(np.array([[[0, code]]]), 8, signed=True)


def test_shape_is_checked():
    with pytest.raises(ValueError, match=r"codes must be integers \(frames, beats, lanes\)"):
        pack_frames(np.zeros((2, 2), int), 8, signed=True)
    with pytest.raises(ValueError, match="do not have 1 words"):
        unpack_frames(np.zeros(3), 8, 8, signed=True)


@pytest.mark.parametrize(
    ("payloads", "message"),
    [
        ([0, 0x100, 0, 0], "frames of 2 beats expected, but in 4 beats .* at beat 3"),
        ([0, 0x100, 0x100, 0x100], "frames of 2 beats expected, .* at beat 2"),
        ([0, 0x100, 0], "frames of 2 beats expected, but in 3 beats .* at beat 3"),
    ],
    ids=["missing", "early", "cut"],
)
def test_misplaced_last_is_refused(payloads, message):
    with pytest.raises(CheckError, match=message):
        unpack_frames(payloads, 1, 8, signed=False)
