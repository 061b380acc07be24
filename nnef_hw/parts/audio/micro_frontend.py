"""TensorFlow Lite Micro's audio front end, computed by a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.audio import micro_frontend
from nnef_hw.arithmetic.numerics import IntArray, Requant
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.audio.front_cycles import FrontCycles, front_cycles
from nnef_hw.parts.audio.program import WORD_BITS
from nnef_hw.parts.base.part import LogicProducts, Pipe
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["MicroFrontend"]

_LIMB = 16


@dataclass(frozen=True, kw_only=True)
class MicroFrontend(Pipe):
    """Takes the samples of a hop, then computes the features of a frame by a program.

    Its contents are ``front`` and ``requant``.

    Parameters
    ----------
    hop
        Samples from a frame to the next.
    frames
        Frames of an inference; 0 where windows go on from one inference to the next.
    out_bits, out_signed
        Format of a result.
    in_dsp
        Whether DSP blocks multiply.
    ram
        The device's block RAM.
    """

    component = "nnef_hw.rtl.audio.micro_frontend:MicroFrontend"
    label = "micro_frontend"
    costs = "micro_frontend"
    unshown = "a frame takes 53,865 cycles: tests/parts/test_micro_frontend.py runs it in Verilator"

    DSP_BLOCKS: ClassVar[int] = 2
    """DSP blocks of its multiplier."""
    window: ClassVar[int] = micro_frontend.MicroFrontend.window
    channels: ClassVar[int] = micro_frontend.MicroFrontend.channels

    hop: int
    frames: int
    out_bits: int
    out_signed: bool
    in_dsp: bool
    ram: BlockRam

    def check(self, front: micro_frontend.MicroFrontend, requant: Requant) -> None:
        """Refuse contents of another front end.

        Raises
        ------
        ValueError
            If the hop is another, or a feature has more than one factor, or one of over 32 bits.
        """
        if front.hop != self.hop:
            raise ValueError(f"MicroFrontend has a hop of {self.hop} samples, not {front.hop}")
        if len(requant.mult) != 1 or requant.offset or requant.mult[0] >> 2 * _LIMB:
            raise ValueError(
                f"MicroFrontend takes one factor of 32 bits without an offset, not {requant.mult}"
            )

    def compute(
        self, samples: IntArray, *, front: micro_frontend.MicroFrontend, requant: Requant
    ) -> IntArray:
        """Return the codes [beats, 1] of the frames of samples [beats, 1]."""
        if self.frames:
            length = self.window + (self.frames - 1) * self.hop
            features = front.apply(samples.reshape(-1, length))
        else:
            past = np.zeros(self.window - self.hop, np.int64)
            features = front.apply(np.concatenate([past, samples[:, 0]]))
        return requant.apply(features.reshape(1, -1)).reshape(-1, 1)

    @property
    def cycles(self) -> FrontCycles:
        """Cycles of its program."""
        return front_cycles(self.hop)

    @property
    def data_memory(self) -> Tiling:
        """Memory of numbers."""
        return tile_memory(self.ram, self.cycles.numbers, _LIMB)

    @property
    def word_memory(self) -> Tiling:
        """Memory of factors."""
        return tile_memory(self.ram, self.cycles.words, _LIMB)

    @property
    def code_memory(self) -> Tiling:
        """Memory of instructions."""
        return tile_memory(self.ram, self.cycles.code, WORD_BITS)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.data_memory, self.word_memory, self.code_memory)

    def dsp(self, device: Device) -> int:
        del device
        return self.DSP_BLOCKS if self.in_dsp else 0

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return () if self.in_dsp else (LogicProducts(1, (_LIMB, _LIMB + 1)),)

    @property
    def frame_cycles(self) -> int:
        """Cycles from a frame's first sample to the next one's, in the middle of a stream."""
        return self.hop + self.cycles.again

    @property
    def inference_cycles(self) -> int:
        """Cycles of an inference, from its first sample to the next one's."""
        if not self.frames:
            return self.frame_cycles
        first = self.window - self.hop
        anew = self.cycles.clears_again
        return first + self.frames * self.frame_cycles + anew

    @property
    def features(self) -> Mapping[str, float]:
        return {}

    def flip_flops(self, device: Device) -> int:
        del device
        return 281 + (0 if self.in_dsp else 3 * _LIMB + 2)

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        cycles = self.cycles
        time = cycles.clears
        missing, frame = self.window if self.frames else self.hop, 0
        while True:
            for _ in range(missing):
                time = max(time + 1, (yield origin))
                origin.accept(time)
            before = 0
            for give in cycles.gives:
                time = yield target, time + give - before
                before = give
            frame += 1
            is_last = frame % (self.frames or frame + 1) == 0
            time += cycles.again - before + is_last * cycles.clears_again
            missing = self.window if is_last else self.hop
