"""The front end of TensorFlow Lite Micro: its integers equal those of the original."""

import numpy as np
import pytest
from audio import read_wav, sounds

from nnef_hw.arithmetic.audio.micro_frontend import (
    MicroFrontend,
    gain_table,
    rounded_root,
    wide_gain,
)


def original(samples):
    """Features of the original, frame by frame."""
    module = pytest.importorskip("pymicro_features", reason="pip install nnef-hw[crosscheck]")
    front, frames = module.MicroFrontend(), []
    for chunk in samples[: samples.size // 160 * 160].reshape(-1, 160):
        found = front.process_samples(chunk.astype("<i2").tobytes()).features
        if found:
            frames.append(found)
    # it gives real numbers, 10 / 256 of the integers
    real = np.array(frames) / 0.0390625
    assert (real == np.rint(real)).all()
    return real.astype(np.int64)


def test_equals_the_original(rng):
    front = MicroFrontend()
    for name, samples in sounds(rng, 48_000).items():
        features = front.apply(samples)
        assert features.shape == (front.frames(48_000), 40)
        np.testing.assert_array_equal(features, original(samples), err_msg=name)


def test_equals_the_original_for_a_minute(rng):
    """Estimates of noise go on from frame to frame."""
    loudness = np.repeat(10 ** rng.uniform(0, 4.5, 60), 16_000)
    samples = (rng.normal(size=960_000) * loudness).clip(-32_768, 32_767).astype(np.int64)
    np.testing.assert_array_equal(MicroFrontend().apply(samples), original(samples))


def test_equals_the_original_for_speech(sense):
    for name in ("marvin.wav", "short_wav_easy10s.wav"):
        samples = read_wav(sense / name)
        np.testing.assert_array_equal(MicroFrontend().apply(samples), original(samples))


def test_a_hop_of_20_ms_skips_frames(rng):
    samples = rng.integers(-9_000, 9_000, 8_000)
    every, second = MicroFrontend().spectra(samples), MicroFrontend(320).spectra(samples)
    np.testing.assert_array_equal(second, every[::2])
    with pytest.raises(ValueError, match="not 480"):
        MicroFrontend(480)


def test_several_sounds_at_once(rng):
    samples = rng.integers(-9_000, 9_000, (3, 2_000))
    together = MicroFrontend().apply(samples)
    for sound, features in zip(samples, together, strict=True):
        np.testing.assert_array_equal(MicroFrontend().apply(sound), features)


def test_silence_has_no_features():
    assert not MicroFrontend().apply(np.zeros(4_000, np.int64)).any()


def test_roots_are_rounded_but_for_the_last_of_16_bits():
    numbers = np.array([0, 1, 2, 3, 6, 7, 2**32 - 1, 2**32, 65_535**2, (2**31) ** 2 - 1])
    expected = [0, 1, 1, 2, 2, 3, 65_535, 65_536, 65_535, 2**31]
    assert rounded_root(numbers).tolist() == expected


def test_gains_follow_the_curve():
    table = gain_table(7)
    noise = np.unique((2.0 ** np.linspace(0, 31.9, 2_000)).astype(np.int64))
    curve = 2.0**21 * (noise / 128 + 80) ** -0.95
    found = wide_gain(noise, table)
    # a parabola over an octave misses the curve by less than 64 of 32,767
    assert np.abs(found - curve).max() < 64
    assert wide_gain(np.array([0, 1, 2]), table).tolist() == [row[0] for row in table[:3]]
