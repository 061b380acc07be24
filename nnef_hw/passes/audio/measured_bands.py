"""Measurements tell window, frames and bands of a spectrum that a function computes of samples.

Exporters write a spectrogram in a dozen ways: as filters, as frames that are gathered and
multiplied, with or without a root that is squared again. All of them give the same numbers, by
which they are told here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nnef_hw.arithmetic.audio.log_bands import LogBands
from nnef_hw.arithmetic.numerics import FloatArray

__all__ = ["MeasuredBands", "Power", "measure"]

Power = Callable[[FloatArray], FloatArray]
"""Sums [N, frames, bands], with what is added to them, of samples [N, samples]."""

_LOUD = 1e4
"""Amplitude beside which what is added is nothing."""
_MOST_POINTS = 2_048
_LEAST_POINTS = 32
_EXACT = 3e-5
"""Relative error of sums of many products whose factors have 24 bits."""
_NOTHING = 1e-6
"""Weights below this part of the greatest one are rounding."""
_DIGITS = 9
"""Digits of what is found: the others are rounding, and another one elsewhere."""
_SEED = 1
_SECTIONS = 32
"""Parts of the samples that are told apart at once."""
_AMPLITUDES = (0.01, 0.3, 1.0, 30.0)


@dataclass(frozen=True, kw_only=True)
class MeasuredBands:
    """Power or magnitudes in bands of frames' spectra: ``sum + floor``, or ``max(sum, floor)``.

    Parameters
    ----------
    hop, points
        Samples from a frame to the next one, and points of the transform.
    window
        Values of the window, from the first sample of the first frame on.
    weights
        Weights [bands, points / 2 + 1] of bins.
    floor
        What is added, or the least.
    is_least
        Whether the floor is the least sum.
    power
        2 for the power of bins, 1 for magnitudes.
    """

    hop: int
    points: int
    window: FloatArray
    weights: FloatArray
    floor: float
    is_least: bool
    power: int

    def logarithm(self, base: float) -> LogBands | None:
        """Return the operator for the logarithm; None if integers cannot compute it."""
        gain = math.log(10) / math.log(base)
        heaviest = float(f"{self.weights.max():.{_DIGITS}g}")
        weights = np.round(self.weights / self.weights.max(), _DIGITS) * heaviest
        floor = float(f"{self.floor:.{_DIGITS}g}")
        has_least = self.is_least and floor > 0
        try:
            return LogBands.of(
                hop=self.hop, points=self.points, window=np.round(self.window, _DIGITS),
                weights=weights, floor=0.0 if has_least else floor, gain=gain, offset=0.0,
                lowest=gain * math.log10(floor) if has_least else None, power=self.power,
            )  # fmt: skip
        except ValueError:
            return None

    def apply(self, x: FloatArray) -> FloatArray:
        """Return the sums [N, frames, bands] of samples [N, samples]."""
        frames = (x.shape[-1] - len(self.window)) // self.hop + 1
        spectra = _spectra(x, self.window, self.hop, frames, self.points) ** self.power
        sums = spectra @ self.weights.T
        return np.asarray(np.maximum(sums, self.floor) if self.is_least else sums + self.floor)


def measure(power: Power, samples: int, frames: int) -> MeasuredBands | None:
    """Measure a function of samples; return None if it gives no bands of a spectrum.

    Parameters
    ----------
    power
        The function.
    samples
        Samples that it takes.
    frames
        Frames that it gives.
    """
    return _Measurement(power, samples, frames).found


def _spectra(x: FloatArray, window: FloatArray, hop: int, frames: int, points: int) -> FloatArray:
    """Return the magnitudes of bins, [..., frames, points / 2 + 1]."""
    places = np.arange(frames)[:, None] * hop + np.arange(len(window))
    return np.asarray(np.abs(np.fft.rfft(x[..., places] * window, points)))


class _Measurement:
    """Measurements of a function, each of which is taken when another one needs it."""

    def __init__(self, power: Power, samples: int, frames: int) -> None:
        self._power, self._samples, self._frames = power, samples, frames
        self._rng = np.random.default_rng(_SEED)

    @cached_property
    def _floors(self) -> FloatArray:
        """The sums [frames, bands] of silence."""
        silent: FloatArray = self._power(np.zeros((1, self._samples)))
        return np.asarray(silent[0])

    @property
    def _floor(self) -> float:
        return float(self._floors.mean())

    def _heard(self, x: FloatArray) -> FloatArray:
        """Return the sums of loud samples, less the floor."""
        heard: FloatArray = self._power(x * _LOUD) - self._floors
        return heard

    @cached_property
    def _exponent(self) -> int | None:
        """The power of 2 by which twice the samples give more; None if that is not 1 or 2.

        Samples of another sign give the same. Of most functions this alone tells that they are
        something else.
        """
        x = self._rng.normal(size=(1, self._samples))
        once, twice, turned = self._heard(np.concatenate([x, 2 * x, -x]))
        greatest = np.abs(once).max()
        for power in (1, 2):
            error = max(np.abs(twice - 2**power * once).max(), np.abs(turned - once).max())
            if error <= _EXACT * greatest:
                return power
        return None

    def _begin(self, frame: int) -> int | None:
        """Return the first sample of which a frame depends."""
        return self._least(frame, lambda end: slice(0, end))

    def _end(self, frame: int) -> int:
        """Return the sample behind the last one of which a frame depends."""
        count = self._samples
        least = self._least(frame, lambda behind: slice(count - behind, count))
        assert least is not None
        return count - least

    def _least(self, frame: int, part: Callable[[int], slice]) -> int | None:
        """Return how many samples of a part a frame does not depend on; None if on none of all.

        Parameters
        ----------
        part
            As many samples as are given, of which the frame depends or not.
        """
        low, high = 0, self._samples
        noise = self._rng.normal(size=self._samples)
        while high - low > 1 or high == self._samples:
            ends = np.unique(np.linspace(low, high, _SECTIONS + 1).astype(int)[1:])
            x = np.zeros((len(ends), self._samples))
            for row, end in zip(x, ends, strict=True):
                row[part(int(end))] = noise[part(int(end))]
            # a square of a sample is far above the rounding of others
            is_heard = np.abs(self._heard(x)[:, frame]).max(axis=1) > 0
            if not is_heard[-1]:
                return None
            first = int(np.argmax(is_heard))
            low, high = int(ends[first - 1]) if first else low, int(ends[first])
            if high - low <= 1:
                break
        return high - 1

    @property
    def found(self) -> MeasuredBands | None:
        """The bands of the function; None if it has none."""
        silent = self._floors
        if silent.min() < 0 or np.ptp(silent) > _EXACT * silent.max():
            return None
        power = self._exponent
        begin = self._begin(0) if power is not None else None
        if power is None or begin is None:
            return None
        end = self._end(0)
        hop = self._hop(begin, end)
        if hop is None:
            return None
        window = self._window(begin, end, hop, power)
        points = 1 << max(end - begin - 1, _LEAST_POINTS - 1).bit_length()
        most = min(2 * points, _MOST_POINTS)
        while window is not None and points <= most:
            weights = self._weights(window, hop, points, power)
            for is_least in (False, True) if weights is not None else ():
                assert weights is not None
                found = MeasuredBands(
                    hop=hop, points=points, window=window, weights=weights, floor=self._floor,
                    is_least=is_least, power=power,
                )  # fmt: skip
                if self._is_right(found):
                    return self._whole(found)
            points *= 2
        return None

    def _hop(self, begin: int, end: int) -> int | None:
        """Return the distance of frames; None if they do not follow each other."""
        if self._frames == 1:
            return end - begin
        second, last = self._begin(1), self._begin(self._frames - 1)
        if second is None or second <= begin:
            return None
        hop = second - begin
        fits = last == begin + (self._frames - 1) * hop and hop <= end - begin
        return hop if fits and end + (self._frames - 1) * hop <= self._samples else None

    def _window(self, begin: int, end: int, hop: int, power: int) -> FloatArray | None:
        """Return the window, from the first sample on: what single samples give, or its roots."""
        places = np.arange(begin, end)
        # of each place, a frame of those that the fewest samples give
        frame = np.minimum(self._frames - 1, (end - 1) // hop - places // hop)
        chosen, index = np.unique(places + frame * hop, return_inverse=True)
        heard = np.zeros(end)
        for start in range(0, len(chosen), self._chunk):
            part = chosen[start : start + self._chunk]
            x = np.zeros((len(part), self._samples))
            x[np.arange(len(part)), part] = 1
            sums = self._heard(x).sum(axis=2)
            inside = (index >= start) & (index < start + len(part))
            heard[places[inside]] = sums[index[inside] - start, frame[inside]]
        if not heard.max() > 0 or heard.min() < -_EXACT * heard.max():
            return None
        return np.asarray((heard.clip(0, None) / heard.max()) ** (1 / power))

    @property
    def _chunk(self) -> int:
        """Inputs that are computed at once."""
        return max(1, (1 << 20) // self._samples)

    def _weights(self, window: FloatArray, hop: int, points: int, power: int) -> FloatArray | None:
        """Return the weights of bins that noise tells; None if there are none."""
        bins = points // 2 + 1
        count = -(-3 * bins // self._frames)
        x = self._rng.normal(size=(count, self._samples))
        heard = np.concatenate([
            self._heard(x[n : n + self._chunk]) for n in range(0, count, self._chunk)
        ])
        spectra = _spectra(x, window, hop, self._frames, points).reshape(-1, bins) ** power
        sums = heard.reshape(len(spectra), -1) / float(_LOUD**power)
        weights, _, _, _ = np.linalg.lstsq(spectra, sums, rcond=None)
        error = np.abs(spectra @ weights - sums).max()
        greatest = float(weights.max())
        if not greatest > 0 or error > _EXACT * np.abs(sums).max():
            return None
        if weights.min() < -_EXACT * greatest:
            return None
        weights[weights < _NOTHING * greatest] = 0
        return np.ascontiguousarray(weights.T)

    def _whole(self, found: MeasuredBands) -> MeasuredBands:
        """Let the last frame end with the samples, if the transform has room for zeros."""
        rest = self._samples - len(found.window) - (self._frames - 1) * found.hop
        if rest == 0 or len(found.window) + rest > found.points:
            return found
        return replace(found, window=np.pad(found.window, (0, rest)))

    def _is_right(self, found: MeasuredBands) -> bool:
        """Whether other noise, soft and loud, gives what is expected."""
        scale = self._floor ** (1 / found.power) if self._floor > 0 else 1.0
        for amplitude in (*_AMPLITUDES, *(scale * x for x in _AMPLITUDES)):
            x = self._rng.normal(size=(1, self._samples)) * amplitude
            x[0] *= np.linspace(0, 1, self._samples)
            given, expected = self._power(x)[0], found.apply(x)[0][: self._frames]
            if np.abs(given - expected).max() > _EXACT * np.abs(given).max():
                return False
        return True
