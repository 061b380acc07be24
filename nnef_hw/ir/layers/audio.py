"""Front ends of networks that hear."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.audio.log_mel import LogMelRequant
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.ir.graph import Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers
from nnef_hw.ir.operators.audio import LogMelAttributes, MicroFrontendAttributes

__all__ = ["LogMelFront", "MicroFront"]


@layers("log_mel")
@dataclass(frozen=True, eq=False, kw_only=True)
class LogMelFront(Layer):
    """Logarithms of the power in bands of the mel scale.

    Parameters
    ----------
    requant
        Its integers.
    before
        Zeros in front of its samples.
    """

    requant: LogMelRequant
    before: int

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {
            "requant": node.attrs["requant"],
            "before": node.attributes(LogMelAttributes).before,
        }

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        samples = x[:, 0, :, 0]
        if self.before or not self.requant.front.emphasis:
            features = self.requant.apply(samples)
        else:
            features = self.requant.apply(samples[:, 1:], before=samples[:, :1])
        return features.transpose(0, 2, 1)[..., None]


@layers("micro_frontend")
@dataclass(frozen=True, eq=False, kw_only=True)
class MicroFront(Layer):
    """The front end of TensorFlow Lite Micro, whose estimates of noise begin with 0.

    Parameters
    ----------
    front
        Its integers.
    requant
        How they become codes.
    """

    front: MicroFrontend
    requant: Requant

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {
            "front": node.attributes(MicroFrontendAttributes).front,
            "requant": node.attrs["requant"],
        }

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        features = self.front.apply(x[:, 0, :, 0]).transpose(0, 2, 1)[..., None]
        return self.requant.apply(features)
