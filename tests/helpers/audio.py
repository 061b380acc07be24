"""Sounds that front ends are tested with, and WAV files."""

import wave

import numpy as np


def read_wav(path):
    """Samples of the first channel of a WAV file of 16 bits."""
    with wave.open(str(path)) as file:
        assert file.getsampwidth() == 2
        data = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return data.reshape(-1, file.getnchannels())[:, 0].astype(np.int64)


def sounds(rng, length):
    """Sounds by name: what is loud, quiet, clipped, pure, sudden, or nothing at all."""
    n = np.arange(length)
    tones = {f"tone {w}": 32_767 * np.sin(w * n) for w in (0.01, 0.3, 2.5, 3.1)}
    found = {
        **tones,
        "silence": np.zeros(length),
        "noise": rng.integers(-32_768, 32_768, length),
        "quiet": rng.integers(-3, 4, length),
        "clipped": rng.normal(size=length) * 60_000,
        "square": np.where(n // 20 % 2, 32_767, -32_768),
        "impulses": np.where(n % 1_777 == 500, -32_768, 0),
        "lowest": np.full(length, -32_768),
        "swelling": rng.normal(size=length) * np.exp(n / length * 10),
        "tone in noise": 30_000 * np.sin(0.05 * n) + 2 * rng.normal(size=length),
    }
    return {name: np.rint(x).clip(-32_768, 32_767).astype(np.int64) for name, x in found.items()}
