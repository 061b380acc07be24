import itertools
import json
import re

import numpy as np
import pytest

from nnef_hw.hardware.geometry.window import Window


def random_window(rng):
    """Draw a window that fits, over all its parameters."""
    while True:
        by_channel = bool(rng.integers(2))
        blocks = int(rng.integers(1, 4))
        try:
            return Window(
                height=int(rng.integers(1, 9)),
                width=int(rng.integers(1, 9)),
                channel_blocks=blocks,
                kernel=tuple(rng.integers(1, 5, 2).tolist()),
                stride=tuple(rng.integers(1, 5, 2).tolist()),
                dilation=tuple(rng.integers(1, 4, 2).tolist()),
                padding=tuple(map(tuple, rng.integers(0, 4, (2, 2)).tolist())),
                passes=blocks if by_channel else int(rng.integers(1, 5)),
                by_channel=by_channel,
            )
        except ValueError:
            continue


def positions(extent, window, axis):
    """First coordinates of all windows along an axis of the padded image, by trying them."""
    reach = max(k * window.dilation[axis] for k in range(window.kernel[axis])) + 1
    return [first for first in range(0, extent, window.stride[axis]) if first + reach <= extent]


def stored_words(window):
    """For every window its words in memory, counted over two frames in stream order."""
    height, width = window.padded_height, window.padded_width
    index = np.arange(2 * height * width * window.channel_blocks)
    frames = index.reshape(2, height, width, window.channel_blocks)
    tops, lefts = positions(height, window, 0), positions(width, window, 1)
    for frame, top, left in itertools.product(frames, tops, lefts):
        rows = [top + k * window.dilation[0] for k in range(window.kernel[0])]
        columns = [left + k * window.dilation[1] for k in range(window.kernel[1])]
        yield frame[np.ix_(rows, columns)].reshape(-1)


@pytest.mark.parametrize("seed", range(40))
def test_properties_agree_with_a_padded_image(seed, rng):
    window = random_window(rng)
    image = np.ones((window.height, window.width, window.channel_blocks))
    padded = np.pad(image, (*window.padding, (0, 0)))
    assert (window.padded_height, window.padded_width) == padded.shape[:2]
    assert (window.beats, window.words) == (image.size, padded.size)
    rows = positions(padded.shape[0], window, 0)
    columns = positions(padded.shape[1], window, 1)
    assert (window.out_height, window.out_width) == (len(rows), len(columns))
    assert window.out_pixels == len(rows) * len(columns)

    words = list(stored_words(window))
    assert len(words[0]) == window.taps * window.channel_blocks
    assert window.pass_words == len(words[0]) // (window.passes if window.by_channel else 1)
    assert {int(window_words[-1] - window_words[0]) + 1 for window_words in words} == {window.span}
    assert window.min_depth == window.span
    first_beat = int(np.flatnonzero(padded.reshape(-1))[0])
    assert window.starts_in_padding == (words[0][-1] < first_beat)


@pytest.mark.parametrize(("left", "starts"), [(2, False), (3, True), (4, True)])
def test_a_window_starts_in_padding_from_its_own_reach_on(left, starts):
    window = Window(3, 3, 2, (1, 3), padding=((0, 0), (left, 0)))
    assert window.starts_in_padding is starts


@pytest.mark.parametrize("seed", range(40))
def test_steps_lead_from_each_window_to_the_next(seed, rng):
    window = random_window(rng)
    starts = [int(words[0]) for words in stored_words(window)]
    for n, (start, following) in enumerate(itertools.pairwise(starts), 1):
        if n % window.out_pixels == 0:
            expected = window.frame_step
        elif n % window.out_width == 0:
            expected = window.row_step
        else:
            expected = window.column_step
        assert following - start == expected
        assert following - start - window.span <= window.overdraft
    assert window.overdraft >= 0


@pytest.mark.parametrize("seed", range(5))
def test_json_round_trip(seed, rng):
    window = random_window(rng)
    assert Window.from_json(json.loads(json.dumps(window.to_json()))) == window


@pytest.mark.parametrize(
    ("width", "kernel", "stride", "tiles"),
    [
        (6, 2, 2, True), (7, 2, 2, True), (3, 3, 5, True), (5, 3, 4, True), (6, 2, 3, False),
        (6, 3, 2, False), (3, 2, 1, False), (2, 1, 2, False),
    ],
)  # fmt: skip
def test_windows_side_by_side(width, kernel, stride, tiles):
    """As many as there is room for: what lies between two of them would be taken for another."""
    window = Window(
        1, width, 2, kernel=(1, kernel), stride=(1, stride), passes=2, by_channel=True
    )  # fmt: skip
    assert window.tiles is tiles


REFUSED = {
    "window extents, kernel, stride, dilation and passes must be positive": [
        {"height": 0}, {"kernel": (0, 1)}, {"stride": (1, 0)}, {"dilation": (1, -1)}, {"passes": 0},
        {"channel_blocks": 0},
    ],
    "window padding must not be negative": [{"padding": ((0, -1), (0, 0))}],
    "window (5, 1) is larger than the padded image": [{"kernel": (5, 1)}],
    "window (1, 3) is larger than the padded image": [{"kernel": (1, 3), "dilation": (1, 2)}],
    "a window read by channel has one pass per channel block": [{"by_channel": True, "passes": 3}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "change"), [(message, c) for message, cases in REFUSED.items() for c in cases]
)
def test_refuses_what_is_no_window(message, change):
    with pytest.raises(ValueError, match=re.escape(message)):
        Window(**{"height": 4, "width": 4, "channel_blocks": 2, **change})
