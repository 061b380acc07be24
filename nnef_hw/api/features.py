"""Front ends for ``load(..., front=...)``: samples or pictures become features on the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnef_hw.errors import UsageError
from nnef_hw.frontend.audio_front import AudioFront, LogMelFront, MicroFront
from nnef_hw.frontend.front import Front
from nnef_hw.frontend.picture_front import ImageFront

__all__ = ["AudioFront", "Front", "image", "log_mel", "micro_frontend"]


def image(
    size: tuple[int, int],
    crop: tuple[int, int, int, int] | None = None,
    pixels: str = "grey",
    *,
    resize: str = "area",
    lowest: float | None = None,
    highest: float | None = None,
    network_input: str | None = None,
) -> Front:
    """Return a front end of a camera's pictures: a part of them, in the network's size and colours.

    Bytes are codes of the network's input: the lowest byte is its lowest code.

    Parameters
    ----------
    size
        Rows and columns of the camera's pictures.
    crop
        Top, left, rows and columns of the part that is seen; by default the largest one in the
        middle that fits.
    pixels
        What a pixel's bytes are: ``grey``, ``rgb888``, ``rgb565`` or ``yuv422``.
    resize
        ``area``: means of whole blocks of pixels; ``bilinear``: between four pixels each.
    lowest, highest
        What bytes of 0 and 255 mean to a network that is not quantized: 0 and 1 by default.
    network_input
        Input of the network that it computes, if there are several.

    Raises
    ------
    UsageError
        If a value does not fit.
    """
    with _checked(ImageFront):
        return ImageFront(
            size=size, crop=crop, pixels=pixels, resize=resize, lowest=lowest, highest=highest,
            network_input=network_input,
        )  # fmt: skip


def log_mel(
    *,
    rate: int = 16_000,
    window: int = 1_024,
    hop: int = 512,
    points: int = 1_024,
    shape: str = "hamming",
    periodic: bool = False,
    emphasis: float = 0.96875,
    bands: int = 40,
    low: float = 0.0,
    high: float = 8_000.0,
    floor: float = 0.0,
    gain: float = 10 / 64,
    offset: float = 52 / 64,
    lowest: float = 0.0,
    highest: float = 1.0,
    power: int = 2,
    network_input: str | None = None,
    time: int | None = None,
) -> AudioFront:
    """Return a front end of logarithms of the power in bands of the mel scale.

    By default it is that of MLPerf Tiny's streaming wake word. Features are
    ``log10(power in a band + floor) * gain + offset``, cut to ``lowest .. highest``.

    Parameters
    ----------
    rate
        Samples per second.
    window, hop
        Samples of a frame, and from a frame to the next one.
    points
        Points of the transform: a power of two, 32 to 2,048.
    shape
        The window's: ``hamming``, ``hann`` or ``ones``.
    periodic
        Whether the window's period is ``window`` samples, not ``window - 1``.
    emphasis
        How much of a sample is taken from the next one; hardware rounds it to 1/512.
    bands
        Features of a frame.
    low, high
        Frequencies in Hz between which the bands are.
    floor
        Power that is added before the logarithm.
    gain, offset, lowest, highest
        What becomes of the logarithm to the base of 10; -52 to 12 dB are 0 to 1.
    power
        2 for the power of bins, 1 for magnitudes.
    network_input
        Input of the network that it computes, if there are several.
    time
        Axis of frames in that input's shape, where the shape does not tell.

    Raises
    ------
    UsageError
        If a value does not fit.
    """
    with _checked(LogMelFront):
        return LogMelFront(
            rate=rate, window=window, hop=hop, points=points, shape=shape, periodic=periodic,
            emphasis=emphasis, bands=bands, low=low, high=high, floor=floor, gain=gain,
            offset=offset, lowest=lowest, highest=highest, power=power,
            network_input=network_input, time=time,
        )  # fmt: skip


def micro_frontend(
    *,
    hop: int = 160,
    scale: float = 10 / 256,
    network_input: str | None = None,
    time: int | None = None,
) -> AudioFront:
    """Return the front end of TensorFlow Lite Micro: that of micro_speech and microWakeWord.

    Parameters
    ----------
    hop
        Samples from a frame to the next one: 160 or 320.
    scale
        What a step of its integers stands for.
    network_input
        Input of the network that it computes, if there are several.
    time
        Axis of frames in that input's shape, where the shape does not tell.

    Raises
    ------
    UsageError
        If a value does not fit.
    """
    with _checked(MicroFront):
        return MicroFront(hop=hop, scale=scale, network_input=network_input, time=time)


@contextmanager
def _checked(kind: type[Front]) -> Iterator[None]:
    """Tell a user of a value that does not fit."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{kind.op}: {error}") from error
