"""Shapes of front ends of audio."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnef_hw.arithmetic.audio.log_spectrum import LogSpectrum
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.common import Shape
from nnef_hw.ir.operators.audio import LogBandsAttributes, LogMelAttributes, LogSpectrumAttributes

__all__ = ["AUDIO_RULES"]


def _log_mel(call: Call) -> list[Shape]:
    return _log_spectrum(call, LogMelAttributes)


def _log_bands(call: Call) -> list[Shape]:
    return _log_spectrum(call, LogBandsAttributes)


def _log_spectrum(call: Call, attributes: type[LogSpectrumAttributes]) -> list[Shape]:
    samples = _samples(call)
    try:
        front = attributes.read(call.attrs)
    except ValueError as error:
        raise call.error(str(error)) from error
    if call.attrs["border"] == "reflect" and attributes is LogBandsAttributes:
        return _mirrored(call, front, samples)
    emphasized = int(front.emphasis > 0)
    if call.attrs["padding"] not in ([(before, 0), (0, 0)] for before in range(emphasized + 1)):
        least = "[(1, 0), (0, 0)] or [(0, 0), (0, 0)]" if emphasized else "[(0, 0), (0, 0)]"
        raise call.error(f"padding {call.attrs['padding']} is not {least}", at="padding")
    found = attributes(front=front, before=call.attrs["padding"][0][0])
    frames = found.frames(samples)
    if not frames:
        raise call.error(
            f"{samples} samples are less than the {front.reach - found.before} of a frame",
            at="input",
        )
    return [(call.inputs[0].shape[0], len(front.weights), frames, 1)]


def _mirrored(call: Call, front: LogSpectrum, samples: int) -> list[Shape]:
    rows, columns = call.attrs["padding"]
    if front.emphasis or columns != (0, 0) or not all(0 <= n < samples for n in rows):
        raise call.error(
            f"padding {call.attrs['padding']} cannot be mirrored of {samples} samples"
            f"{' with an emphasis' if front.emphasis else ''}", at="padding"
        )  # fmt: skip
    frames = LogBandsAttributes(front=front, mirrored=rows).frames(samples)
    if not frames:
        raise call.error(f"{samples} samples are less than a frame", at="input")
    return [(call.inputs[0].shape[0], len(front.weights), frames, 1)]


def _micro_frontend(call: Call) -> list[Shape]:
    samples = _samples(call)
    try:
        front = MicroFrontend(call.attrs["hop"])
    except ValueError as error:
        raise call.error(str(error), at="hop") from error
    if not front.frames(samples):
        raise call.error(
            f"{samples} samples are less than the {front.window} of a frame", at="input"
        )
    return [(call.inputs[0].shape[0], front.channels, front.frames(samples), 1)]


def _micro_frontend_step(call: Call) -> list[Shape]:
    [shape] = _micro_frontend(call)
    _micro_noise(call)
    return [shape]


def _micro_noise(call: Call) -> list[Shape]:
    [(batch, channels, _, _)] = _micro_frontend(call)
    noise = call.inputs[1]
    if noise.shape != (batch, channels, 1, 1):
        raise call.error(
            f"{noise.name!r} of shape {list(noise.shape)} is not the noise of {channels} channels",
            f"give it the shape {[batch, channels, 1, 1]}",
            at="noise",
        )
    return [noise.shape]


def _samples(call: Call) -> int:
    """Return how many samples of audio there are."""
    shape = call.inputs[0].shape
    if len(shape) != 4 or shape[1] != 1 or shape[3] != 1:
        raise call.error(
            f"{call.inputs[0].name!r} of shape {list(shape)} is not audio of one channel",
            "reshape it to [1, 1, samples, 1]",
            at="input",
        )
    return shape[2]


AUDIO_RULES: Mapping[str, Callable[[Call], list[Shape]]] = {
    "log_bands": _log_bands,
    "log_mel": _log_mel,
    "micro_frontend": _micro_frontend,
    "micro_frontend_step": _micro_frontend_step,
    "micro_noise": _micro_noise,
}
