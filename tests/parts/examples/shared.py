# amaranth: UnusedElaboratable=no
"""Examples of parts that several layers share, whose constants come from ports."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring

from examples.example import RAM, Example, ends, swept
from nnef_hw import parts
from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.arithmetic.softmax import exp_table
from nnef_hw.parts.functions.normalize import FAST_SPACINGS, SPACINGS

__all__ = ["SHARED", "SOFTMAX"]

PIXELS, ZERO_POINT = 4, 12
LAYERS = ((5, 21, 10, 3, 0, 255), (1 << 20, 26, 8, 28, 0, 15), (0, 23, 13, 205, 128, 254))
"""Epsilon, shift, fraction, zero point and limits of each layer."""


def highest(part):
    return 127 if part.out_signed else 255


class Fed(wiring.Component):
    """The part with the constants of each layer, of which each has some pixels."""

    def __init__(self, part, requants, constants, zero_point, pixels):
        self.part, self.requants, self.constants = part, requants, constants
        self.zero_point, self.pixels = zero_point, pixels
        self.inner = part.build()
        super().__init__({name: self.inner.signature.members[name] for name in "io"})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        part, lanes = self.part, self.part.lanes
        layer, sent = Signal(range(len(self.requants) + 1)), Signal(32)
        beat, taken = Signal(range(part.beats)), Signal(32)
        # A layer's codes are let in when all results of the one before have left.
        beats = self.pixels * part.beats
        m.d.comb += [
            inner.i.payload.eq(self.i.payload),
            inner.i.valid.eq(self.i.valid & (taken != beats)),
            self.i.ready.eq(inner.i.ready & (taken != beats)),
        ]
        wiring.connect(m, inner.o, wiring.flipped(self.o))
        with m.If(inner.i.valid & inner.i.ready):
            m.d.sync += taken.eq(taken + 1)
        with m.If(inner.o.valid & inner.o.ready):
            m.d.sync += sent.eq(sent + 1)
            with m.If(sent == beats - 1):
                m.d.sync += [sent.eq(0), taken.eq(0), layer.eq(layer + 1)]
        with m.If(inner.constant_taken):
            m.d.sync += beat.eq(beat + 1)
            with m.If(beat == part.beats - 1):
                m.d.sync += beat.eq(0)

        def of_layer(values):
            return Array(Const(value, lanes * part.constant_bits + 64) for value in values)[layer]

        words = [
            [
                sum(
                    own << n * part.constant_bits for n, own in enumerate(constants[first:][:lanes])
                )
                for first in range(0, part.channels, lanes)
            ]
            for constants in self.constants
        ]
        m.d.comb += [
            inner.epsilon.eq(of_layer([x.epsilon for x in self.requants])),
            inner.finer.eq(of_layer([part.fraction - x.fraction for x in self.requants])),
            inner.farther.eq(of_layer([x.shift - part.least_shift for x in self.requants])),
            inner.lowest.eq(of_layer([x.lo for x in self.requants])),
            inner.below.eq(of_layer([highest(part) - x.hi for x in self.requants])),
            inner.constant.eq(Array(map(of_layer, zip(*words, strict=True)))[beat]),
        ]
        if not part.centered:
            m.d.comb += inner.zero_point.eq(self.zero_point)
        return m


def normalize(channels, spacing, signed, centered, lanes=1):
    """Three layers in turn, each with some pixels, of which the second has equal codes."""
    rng = np.random.default_rng([channels, spacing, signed, centered])
    requants = [
        NormalizeRequant(
            channels=channels, centered=centered, epsilon=epsilon, shift=shift, fraction=fraction,
            zero_point=zero_point, lo=low, hi=high,
        )
        for epsilon, shift, fraction, zero_point, low, high in LAYERS
    ]  # fmt: skip
    mults = rng.integers(-65535, 65536, (3, channels))
    offsets = rng.integers(-1 << 15, 1 << 15, (3, channels))
    wholes = [
        parts.SharedNormalize.whole_offset(requant, int(offset))
        for requant, own in zip(requants, offsets, strict=True)
        for offset in own
    ]
    part = parts.SharedNormalize(
        channels=channels, bits=8, signed=signed, out_bits=8, out_signed=False, centered=centered,
        epsilon_bits=21, fraction=13, offset_bits=signed_bits(min(wholes), max(wholes)),
        spacing=spacing, ram=RAM, finer_steps=5, least_shift=21, farther_steps=5,
        lanes=lanes,
    )  # fmt: skip
    constants = [
        part.constants(requant, mult.tolist(), offset.tolist())
        for requant, mult, offset in zip(requants, mults, offsets, strict=True)
    ]

    def stimulus(rng):
        lo, hi = ends(8, signed)
        codes = rng.integers(lo, hi + 1, (3, PIXELS, channels))
        codes[:, 1] = codes[:, 0, :1]
        return [codes.reshape(-1, lanes)]

    def results(operands):
        codes = operands[0].reshape(3, PIXELS, channels)
        found = [
            requant.apply(own - ZERO_POINT, mult, offset, axis=1)
            for requant, own, mult, offset in zip(requants, codes, mults, offsets, strict=True)
        ]
        return {"o": np.concatenate(found).reshape(-1, lanes)}

    return Example(
        part=part, stimulus=stimulus, results=results, frames=3, timed=False,
        component=partial(Fed, part, requants, constants, ZERO_POINT, PIXELS),
    )  # fmt: skip


class OneLayer(wiring.Component):
    """A softmax that layers could share, of one: all channels, none of them hidden."""

    def __init__(self, part, table):
        self.part = part
        self.inner = part.build(table=table)
        super().__init__({name: self.inner.signature.members[name] for name in "io"})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        m.d.comb += inner.last_channel.eq(self.part.channels - 1)
        wiring.connect(m, wiring.flipped(self.i), inner.i)
        wiring.connect(m, inner.o, wiring.flipped(self.o))
        return m


def softmax(channels, stages, lanes):
    """Pixels whose results wait in two places behind the division."""
    table = exp_table(0.05, 256).tolist()
    part = parts.PipelinedSoftmax(
        channels=channels, bits=8, signed=True, ram=RAM, stages=stages, lanes=lanes, is_shared=True
    )

    def stimulus(rng):
        return [rng.integers(-128, 128, (24 * channels // lanes, lanes))]

    return Example(
        part=part, contents={"table": table}, stimulus=stimulus, frames=24,
        component=partial(OneLayer, part, table),
    )  # fmt: skip


SOFTMAX = swept(softmax, [4, 12], [1, 3, 9], [1, 2, 4], prefix="shared ")
SHARED: Mapping[str, Mapping[str, Example]] = {
    "SharedNormalize": {
        **swept(normalize, [1, 2, 6, 13], SPACINGS, [False, True], [False, True]),
        **swept(normalize, [8, 12], FAST_SPACINGS, [False], [False, True], [2, 4]),
    },
}
