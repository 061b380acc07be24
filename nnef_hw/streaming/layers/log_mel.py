"""Log-mel features of audio: one multiplier in turn."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.architecture.fronts import check_frames, log_mel_part
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import LogMel, Part
from nnef_hw.streaming.layers.layer import Contents, Folding, PlainLayer, StreamContext, lowers

__all__ = ["LogMelLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class LogMelLayer(PlainLayer):
    """A front end of audio; ``frames`` of an inference, whose windows may go on from the last."""

    label = "log_mel"

    layer: layers.LogMelFront
    frames: int
    goes_on: bool

    def part(self, device: Device) -> Part:
        return log_mel_part(self.layer, device, goes_on=self.goes_on)

    def cycles(self, folding: Folding, device: Device) -> int:
        part = self.part(device)
        assert isinstance(part, LogMel)
        first = 0 if self.goes_on else part.window - part.hop
        return first + self.frames * part.frame_cycles

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {"log_mel": {"requant": self.layer.requant}}


@lowers("log_mel", "log_bands")
def _lower_log_mel(context: StreamContext[layers.LogMelFront]) -> LogMelLayer:
    layer, goes_on = context.layer, context.rows is not None
    check_frames(layer, goes_on=goes_on)
    frames, _, _ = layer.result_image
    return LogMelLayer(**context.common, layer=layer, frames=frames, goes_on=goes_on)
