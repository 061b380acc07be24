"""Log-mel features of audio: one multiplier in turn."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.audio.log_mel import LogMelRequant
from nnef_hw.errors import UnsupportedError
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import LogMel, Part
from nnef_hw.streaming.layers.layer import Contents, Folding, PlainLayer, StreamContext, lowers

__all__ = ["LogMelLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class LogMelLayer(PlainLayer):
    """A front end of audio; ``frames`` of an inference, whose windows may go on from the last."""

    label = "log_mel"

    requant: LogMelRequant
    frames: int
    goes_on: bool

    def part(self, device: Device) -> Part:
        front = self.requant.front
        return LogMel(
            window=front.window, hop=front.hop, points=front.points,
            lengths=self.requant.bank.lengths, frames=0 if self.goes_on else self.frames,
            out_bits=self.target.bits, out_signed=self.target.signed,
            in_dsp=device.family.has_wide_products and device.dsp >= LogMel.DSP_BLOCKS,
            ram=device.ram,
        )  # fmt: skip

    def cycles(self, folding: Folding, device: Device) -> int:
        part = self.part(device)
        assert isinstance(part, LogMel)
        first = 0 if self.goes_on else part.window - part.hop
        return first + self.frames * part.frame_cycles

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {"log_mel": {"requant": self.requant}}


@lowers("log_mel")
def _lower_log_mel(context: StreamContext[layers.LogMelFront]) -> LogMelLayer:
    layer = context.layer
    front = layer.requant.front
    frames, _, _ = layer.result_image
    samples, _, _ = layer.image
    goes_on = context.rows is not None
    used = front.window + (frames - 1) * front.hop + (front.reach - front.window - layer.before)
    if samples != used or (not goes_on and front.emphasis and not layer.before):
        raise UnsupportedError(
            f"log_mel {layer.node.name!r}: {samples} samples are not {frames} frames of "
            f"{front.window} samples, every {front.hop} of them one, without a rest",
            remedy=f"give it {front.window + (frames - 1) * front.hop} samples, with padding = "
            f"[({int(front.emphasis > 0)}, 0), (0, 0)]",
            location=layer.node.location,
        )
    return LogMelLayer(**context.common, requant=layer.requant, frames=frames, goes_on=goes_on)
