"""Log-mel features in integers beside those of real numbers."""

import json

import numpy as np
import pytest
from audio import sounds

from nnef_hw.arithmetic.audio.filter_bank import triangles
from nnef_hw.arithmetic.audio.log_bands import LogBands
from nnef_hw.arithmetic.audio.log_mel import LogMel, LogMelRequant, choose_log_mel
from nnef_hw.arithmetic.numerics import QType

FINE = QType(16, signed=False, scale=1 / 65535, zero_point=0)
CODES = QType(8, signed=True, scale=1 / 255, zero_point=-128)


def own_bands(points, bands):
    """Return weights of bands of equal widths, each as heavy as it is wide, as librosa has them."""
    edges = np.linspace(1, points / 2 - 1, bands + 2)
    bins = np.arange(points // 2 + 1)
    rows = [np.interp(bins, edges[n : n + 3], [0, 0.02, 0]) for n in range(bands)]
    return np.stack(rows)


FRONTS = {
    "wakeword": LogMel(),
    "short": LogMel(
        window=400, hop=160, points=512, shape="hann", periodic=True, emphasis=0.0, low=20.0,
        high=7_600.0, bands=32,
    ),
    "coarse": LogMel(rate=8_000, window=100, hop=100, points=128, bands=10, high=4_000.0),
    "floor": LogMel(
        window=480, hop=160, points=512, shape="hann", emphasis=0.0, floor=1e-6, gain=0.125,
        offset=0.76,
    ),
    "magnitudes": LogMel(
        window=400, hop=160, points=512, shape="hann", periodic=True, emphasis=0.0, low=20.0,
        high=7_600.0, bands=80, floor=1e-4, gain=20 / 64, offset=52 / 64, power=1,
    ),
    "own": LogBands.of(
        hop=100, points=256, window=np.hanning(200), weights=own_bands(256, 12), floor=1e-4,
        gain=0.1, offset=0.5, lowest=0.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("front", FRONTS.values(), ids=FRONTS)
def test_is_within_half_a_code_of_real_numbers(rng, front):
    """A code is 1 / 255 of the range; the integers are computed with 16 bits, then with 8."""
    fine, short = choose_log_mel(front, FINE), choose_log_mel(front, CODES)
    for name, samples in sounds(rng, 16_000).items():
        real = front.apply(samples / 32_768)
        assert real.shape == (front.frames(16_000), len(front.weights))
        error = np.abs(fine.apply(samples) / 65_535 - real) * 255
        assert error.max() < 0.5, name
        codes = short.apply(samples)
        rounded = np.floor(real * 255 + 0.5) - 128
        assert np.abs(codes - rounded).max() <= 1, name
        assert (codes != rounded).mean() < 0.03, name


def test_a_window_of_definition():
    """The values of a frame, written out once more."""
    front = FRONTS["wakeword"]
    n = np.arange(1024)
    samples = np.sin(n * 0.2) * 0.3
    emphasized = samples - (1 - 2**-5) * np.concatenate([[0.0], samples[:-1]])
    window = 0.54 - 0.46 * np.cos(2 * np.pi * n / 1023)
    power = np.abs(np.fft.rfft(emphasized * window)) ** 2 / 1024
    edges = 700 * (np.exp(np.linspace(0, 1127 * np.log(1 + 8000 / 700), 42) / 1127) - 1)
    for band in range(40):
        total = 0.0
        for k in range(1, 513):
            place = 1127 * np.log(1 + k * 15.625 / 700)
            low, middle, high = 1127 * np.log(1 + edges[band : band + 3] / 700)
            weight = min((place - low) / (middle - low), (high - place) / (high - middle))
            total += max(weight, 0) * power[k]
        expected = np.clip((10 * np.log10(total) + 52) / 64, 0, 1)
        assert front.apply(samples)[0, band] == pytest.approx(expected, abs=1e-9)


def test_a_sample_before_the_first_one_counts(rng):
    requant = choose_log_mel(FRONTS["wakeword"], CODES)
    samples = rng.integers(-32_768, 32_768, 1_024 + 2 * 512)
    whole = requant.apply(samples)
    later = requant.apply(samples[512:], before=samples[511])
    assert (whole[1:] == later).all()
    assert (requant.apply(samples[512:]) != later).any()


def test_numbers_never_wrap():
    """The loudest sound there is: an emphasis doubles it, and no number has more than 26 bits."""
    requant = choose_log_mel(FRONTS["wakeword"], CODES)
    samples = np.where(np.arange(1_024) % 2, 32_767, -32_768)
    windowed = requant.windowed(samples)
    assert 1 << 24 < np.abs(windowed).max() < 1 << 25
    assert np.abs(requant.fft.apply(windowed)).max() < 1 << 25
    real, imag = requant.fft.apply(windowed)
    exact = np.fft.rfft(windowed)[0] / 1_024 * requant.fft.gain
    assert np.abs(real + 1j * imag - exact).max() < 2.0**-14 * np.abs(exact).max()
    assert requant.sums(windowed).max() < 1 << 56


@pytest.mark.parametrize("name", ["short", "floor", "own"])
def test_integers_are_kept(name):
    requant = choose_log_mel(FRONTS[name], CODES)
    assert LogMelRequant.from_json(json.loads(json.dumps(requant.to_json()))) == requant


def test_triangles_add_up_to_one():
    weights = triangles(16_000, 1_024, 40, 0.0, 8_000.0)
    middles = weights.argmax(axis=1)
    assert weights[:, middles[0] : middles[-1]].sum(axis=0) == pytest.approx(1)
    assert not weights[:, 0].any()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": 1000}, "not 1000"),
        ({"window": 2048}, "2048 samples of a window, and 1024 points"),
        ({"hop": 0}, "not 0"),
        ({"hop": 1025}, "1 to 1024 samples"),
        ({"shape": "kaiser"}, "hamming, hann, ones, not 'kaiser'"),
        ({"high": 9_000.0}, "between 0 and 8000 Hz"),
        ({"emphasis": 1.5}, r"below 1, not 1\.5"),
        ({"bands": 400}, "of 400 bands have no bin of 15.625 Hz, the first of them band 0"),
        ({"gain": 0.0}, "positive"),
        ({"lowest": 1.0}, "none"),
        ({"floor": -1e-6}, "not negative: -1e-06"),
    ],
)
def test_says_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        LogMel(**wrong)


def test_refuses_a_step_that_is_too_small():
    with pytest.raises(ValueError, match="too small"):
        choose_log_mel(LogMel(), QType(16, signed=False, scale=1e-11, zero_point=0))


OWN = {
    "hop": 16, "points": 32, "shape": (0.5,) * 32, "first": (1, 3), "lengths": (3, 2),
    "factors": (0.1, 0.2, 0.3, 0.4, 0.5),
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shape": (1.5,) * 32}, "between 0 and 1"),
        ({"factors": (0.5,) * 4}, "4 weights are not the 5 of these"),
        ({"first": (0, 3)}, "between bin 1 and bin 15"),
        ({"lengths": (3, 14), "factors": (0.1,) * 17}, "between bin 1 and bin 15"),
    ],
)
def test_says_what_is_wrong_with_bands(wrong, message):
    LogBands(**OWN)
    with pytest.raises(ValueError, match=message):
        LogBands(**{**OWN, **wrong})


def test_powers_that_nothing_divides():
    """A network's own formula: its window and weights are of any size."""
    weights, window = own_bands(64, 5) * 7, 3 * np.hanning(64)
    front = LogBands.of(
        hop=32, points=64, window=window, weights=weights, floor=0.5, gain=2.0, offset=1.0
    )
    x = np.sin(np.arange(128) * 0.7)
    frames = np.stack([x[n : n + 64] for n in (0, 32, 64)]) * window
    power = np.abs(np.fft.rfft(frames)) ** 2
    expected = 2 * np.log10(power @ weights.T + 0.5) + 1
    assert front.apply(x) == pytest.approx(expected, abs=1e-9)
