"""TensorFlow Lite Micro's audio front end: a program."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.errors import UnsupportedError
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import MicroFrontend as MicroFrontendPart
from nnef_hw.parts import Part
from nnef_hw.streaming.layers.layer import Contents, Folding, PlainLayer, StreamContext, lowers

__all__ = ["MicroFrontendLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MicroFrontendLayer(PlainLayer):
    """A front end of audio; ``frames`` of an inference, whose windows may go on from the last."""

    label = "micro_frontend"

    front: MicroFrontend
    requant: Requant
    frames: int
    goes_on: bool

    def part(self, device: Device) -> Part:
        return MicroFrontendPart(
            hop=self.front.hop, frames=0 if self.goes_on else self.frames,
            out_bits=self.target.bits, out_signed=self.target.signed,
            in_dsp=device.family.has_wide_products and device.dsp >= MicroFrontendPart.DSP_BLOCKS,
            ram=device.ram,
        )  # fmt: skip

    def cycles(self, folding: Folding, device: Device) -> int:
        part = self.part(device)
        assert isinstance(part, MicroFrontendPart)
        return self.frames * part.frame_cycles if self.goes_on else part.inference_cycles

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {"micro_frontend": {"front": self.front, "requant": self.requant}}


@lowers("micro_frontend_step", "micro_noise")
def _lower_step(context: StreamContext[layers.MicroFront]) -> MicroFrontendLayer:
    layer, rows = context.layer, context.rows
    if rows is None or layer.node.op == "micro_noise":
        raise UnsupportedError(
            f"{layer.node.op} {layer.node.name!r}: its samples and its noise are not those that it "
            "keeps of steps before",
            remedy="let --front FILE.toml put it in front of the network",
            location=layer.node.location,
        )
    fields = {**context.common, "sources": (context.streams[layer.node.inputs[0]],)}
    return MicroFrontendLayer(
        **fields, front=layer.front, requant=layer.requant, frames=rows.new // layer.front.hop,
        goes_on=True,
    )  # fmt: skip


@lowers("micro_frontend")
def _lower_micro_frontend(context: StreamContext[layers.MicroFront]) -> MicroFrontendLayer:
    layer = context.layer
    front = layer.front
    frames, _, _ = layer.result_image
    samples, _, _ = layer.image
    used = front.window + (frames - 1) * front.hop
    if samples != used:
        raise UnsupportedError(
            f"micro_frontend {layer.node.name!r}: {samples} samples are not {frames} frames of "
            f"{front.window} samples, every {front.hop} of them one, without a rest",
            remedy=f"give it {used} samples",
            location=layer.node.location,
        )
    return MicroFrontendLayer(
        **context.common, front=front, requant=layer.requant, frames=frames, goes_on=False
    )
