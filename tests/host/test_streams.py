import numpy as np
import pytest

from nnef_hw.architecture.architecture import Port
from nnef_hw.host.streams import from_stream, to_stream


def port(image, lanes=1):
    return Port("i", "x", image, bits=8, signed=True, lanes=lanes)


def test_beats_are_row_column_channel():
    codes = np.arange(12).reshape(1, 3, 2, 2)  # channel c, row y, column x holds 4c + 2y + x
    beats = to_stream(codes, port((2, 2, 3)))
    assert beats.shape == (1, 12, 1)
    assert beats.reshape(-1).tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


def test_lanes_are_consecutive_channels_and_the_last_beat_is_filled_with_zeros():
    codes = 1 + np.arange(10).reshape(1, 5, 1, 2)
    beats = to_stream(codes, port((1, 2, 5), lanes=2))
    assert beats[0].tolist() == [[1, 3], [5, 7], [9, 0], [2, 4], [6, 8], [10, 0]]


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    ("image", "shape"),
    [
        ((4, 3, 5), (1, 5, 4, 3)),
        ((1, 1, 6), (1, 6)),
        ((1, 7, 2), (1, 2, 7)),
        ((2, 2, 4), (1, 16)),  # flattened by the network's first or last layer
        ((2, 3, 1), (1, 2, 3)),
        ((1, 1, 1), (1,)),
    ],
    ids=str,
)
def test_round_trip(image, shape, lanes, rng):
    codes = rng.integers(-128, 128, (3, *shape[1:]))
    stream = port(image, lanes)
    beats = to_stream(codes, stream)
    assert beats.shape == (3, stream.beats, lanes)
    assert beats.dtype == np.int64
    back = from_stream(beats, stream, shape)
    np.testing.assert_array_equal(back, codes)
    assert back.shape == codes.shape


def test_what_fills_the_last_beat_is_ignored(rng):
    stream = port((2, 2, 3), lanes=2)
    codes = rng.integers(-128, 128, (2, 3, 2, 2))
    beats = to_stream(codes, stream)
    beats.reshape(2, 4, 4)[..., 3] = 99
    np.testing.assert_array_equal(from_stream(beats, stream, (1, 3, 2, 2)), codes)


def test_reshape_at_the_border_keeps_the_order_of_elements():
    flat = np.arange(24).reshape(1, 24)
    image = flat.reshape(1, 2, 3, 4)
    stream = port((3, 4, 2))
    np.testing.assert_array_equal(to_stream(flat, stream), to_stream(image, stream))
    np.testing.assert_array_equal(from_stream(to_stream(image, stream), stream, (1, 24)), flat)


def test_wrong_number_of_elements_is_an_error():
    with pytest.raises(ValueError, match="cannot reshape array of size 25"):
        to_stream(np.zeros((1, 25)), port((3, 4, 2)))
