"""Front ends of audio as parts of hardware, whatever architecture has what follows."""

from __future__ import annotations

from nnef_hw.errors import UnsupportedError
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import SinglePortRam
from nnef_hw.ir.layers import LogMelFront
from nnef_hw.parts import LogMel

__all__ = ["check_frames", "log_mel_part"]


def check_frames(layer: LogMelFront, *, goes_on: bool) -> None:
    """Refuse samples of an inference that are not whole frames.

    Parameters
    ----------
    goes_on
        Windows go on from one inference to the next.

    Raises
    ------
    UnsupportedError
        With the numbers.
    """
    front = layer.requant.front
    frames, _, _ = layer.result_image
    samples, _, _ = layer.image
    if any(layer.mirrored):
        first, last = layer.mirrored
        raise UnsupportedError(
            f"{layer.node.op} {layer.node.name!r}: it mirrors {first} samples at the first one and "
            f"{last} at the last one, for which there is no hardware",
            remedy="export it with center=False, or let it run step by step, with samples of the "
            "stream in their place: --stream time=AXIS --continue-borders",
            location=layer.node.location,
        )
    used = front.window + (frames - 1) * front.hop + (front.reach - front.window - layer.before)
    if samples != used or (not goes_on and front.emphasis and not layer.before):
        raise UnsupportedError(
            f"{layer.node.op} {layer.node.name!r}: {samples} samples are not {frames} frames of "
            f"{front.window} samples, every {front.hop} of them one, without a rest",
            remedy=f"give it {front.window + (frames - 1) * front.hop} samples, with padding = "
            f"[({int(front.emphasis > 0)}, 0), (0, 0)]",
            location=layer.node.location,
        )


def log_mel_part(
    layer: LogMelFront, device: Device, *, goes_on: bool, single_port: SinglePortRam | None = None
) -> LogMel:
    """Return the part that computes log-mel features.

    Parameters
    ----------
    goes_on
        Windows go on from one inference to the next.
    single_port
        The single-port RAM that holds its numbers; None if block RAM does.
    """
    front = layer.requant.front
    frames, _, _ = layer.result_image
    return LogMel(
        window=front.window, hop=front.hop, points=front.points,
        lengths=layer.requant.bank.lengths, frames=0 if goes_on else frames,
        out_bits=layer.target.bits, out_signed=layer.target.signed,
        in_dsp=device.family.has_wide_products and device.dsp >= LogMel.DSP_BLOCKS,
        ram=device.ram, magnitudes=front.power == 1, single_port=single_port,
    )  # fmt: skip
