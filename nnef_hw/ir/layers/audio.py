"""Front ends of networks that hear."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.audio.log_mel import LogMelRequant
from nnef_hw.arithmetic.audio.log_spectrum import mirror
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.ir.graph import Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers
from nnef_hw.ir.operators.audio import LogSpectrumAttributes, MicroFrontendAttributes

__all__ = ["LogMelFront", "MicroFront", "MicroFrontStep", "MicroNoise"]


@layers("log_mel", "log_bands")
@dataclass(frozen=True, eq=False, kw_only=True)
class LogMelFront(Layer):
    """Logarithms of the power in bands of a spectrum.

    Parameters
    ----------
    requant
        Its integers.
    before
        Zeros in front of its samples.
    mirrored
        Samples that are mirrored at the first one, and at the last one.
    """

    requant: LogMelRequant
    before: int
    mirrored: tuple[int, int]

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        found = node.attributes(LogSpectrumAttributes)
        return {
            "requant": node.attrs["requant"], "before": found.before, "mirrored": found.mirrored,
        }  # fmt: skip

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        samples = mirror(x[:, 0, :, 0], self.mirrored)
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


@layers("micro_frontend_step")
class MicroFrontStep(MicroFront):
    """The front end of TensorFlow Lite Micro, given the noise that steps before estimated."""

    def compute(self, *codes: Codes) -> Codes:
        x, noise = codes
        features, _ = self.front.go_on(x[:, 0, :, 0], noise[:, :, 0, 0])
        return self.requant.apply(features.transpose(0, 2, 1)[..., None])


@layers("micro_noise")
@dataclass(frozen=True, eq=False, kw_only=True)
class MicroNoise(Layer):
    """The noise that the front end of TensorFlow Lite Micro has estimated after a step.

    Parameters
    ----------
    front
        Its integers.
    """

    front: MicroFrontend

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"front": node.attributes(MicroFrontendAttributes).front}

    def compute(self, *codes: Codes) -> Codes:
        x, noise = codes
        _, found = self.front.go_on(x[:, 0, :, 0], noise[:, :, 0, 0])
        return found[..., None, None]
