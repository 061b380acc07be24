"""A normalization whose constants come from outside: for one layer, then for another one."""

import numpy as np
import pytest
from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring
from examples.example import RAM
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.parts.functions.normalize import SPACINGS
from nnef_hw.sim.pysim import run_stream


def highest(part):
    return 127 if part.out_signed else 255


class Fed(wiring.Component):
    """The part with the constants of each layer, of which each has some pixels."""

    unproved = "of a test"

    def __init__(self, part, requants, constants, zero_point, pixels):
        self.part, self.requants, self.constants = part, requants, constants
        self.zero_point, self.pixels = zero_point, pixels
        self.inner = part.build()
        super().__init__({name: self.inner.signature.members[name] for name in "io"})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        part = self.part
        layer, sent = Signal(range(len(self.requants) + 1)), Signal(32)
        channel, taken = Signal(range(part.channels)), Signal(32)
        # A layer's codes are let in when all results of the one before have left.
        codes = self.pixels * part.channels
        m.d.comb += [
            inner.i.payload.eq(self.i.payload),
            inner.i.valid.eq(self.i.valid & (taken != codes)),
            self.i.ready.eq(inner.i.ready & (taken != codes)),
        ]
        wiring.connect(m, inner.o, wiring.flipped(self.o))
        with m.If(inner.i.valid & inner.i.ready):
            m.d.sync += taken.eq(taken + 1)
        with m.If(inner.o.valid & inner.o.ready):
            m.d.sync += sent.eq(sent + 1)
            with m.If(sent == codes - 1):
                m.d.sync += [sent.eq(0), taken.eq(0), layer.eq(layer + 1)]
        with m.If(inner.constant_taken):
            m.d.sync += channel.eq(channel + 1)
            with m.If(channel == part.channels - 1):
                m.d.sync += channel.eq(0)

        def of_layer(values):
            return Array(Const(value, part.constant_bits + 64) for value in values)[layer]

        m.d.comb += [
            inner.epsilon.eq(of_layer([x.epsilon for x in self.requants])),
            inner.finer.eq(of_layer([part.fraction - x.fraction for x in self.requants])),
            inner.farther.eq(of_layer([x.shift - part.least_shift for x in self.requants])),
            inner.lowest.eq(of_layer([x.lo for x in self.requants])),
            inner.below.eq(of_layer([highest(part) - x.hi for x in self.requants])),
            inner.constant.eq(Array(map(of_layer, zip(*self.constants, strict=True)))[channel]),
        ]
        if not part.centered:
            m.d.comb += inner.zero_point.eq(self.zero_point)
        return m


def check(rng, stall, *, channels, spacing, signed=True, centered=True, pixels=4):
    lo, hi = (-128, 127) if signed else (0, 255)
    codes = rng.integers(lo, hi + 1, (3, pixels, channels))
    codes[:, 1] = codes[:, 0, :1]
    requants = [
        NormalizeRequant(
            channels=channels, centered=centered, epsilon=epsilon, shift=shift, fraction=fraction,
            zero_point=zero_point, lo=low, hi=high,
        )
        for epsilon, shift, fraction, zero_point, low, high in (
            (5, 21, 10, 3, 0, 255), (1 << 20, 26, 8, 28, 0, 15), (0, 23, 13, 205, 128, 254),
        )
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
    )  # fmt: skip
    constants = [
        part.constants(requant, mult.tolist(), offset.tolist())
        for requant, mult, offset in zip(requants, mults, offsets, strict=True)
    ]
    zero_point = 12
    items = [{"data": [code], "last": 0} for code in codes.ravel().tolist()]
    component = Fed(part, requants, constants, zero_point, pixels)
    found = run_stream(component, items, expected=codes.size, stall=stall, rng=rng)
    expected = [
        requant.apply(own - zero_point, mult, offset, axis=1)
        for requant, own, mult, offset in zip(requants, codes, mults, offsets, strict=True)
    ]
    assert [item.data[0] for item in found] == np.ravel(expected).tolist()


@pytest.mark.parametrize(
    ("channels", "spacing", "signed", "centered"),
    covering([1, 2, 6, 13], SPACINGS, [False, True], [False, True]),
)
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_layers_in_turn(channels, spacing, signed, centered, stall, rng):
    check(
        rng, stall, channels=channels, spacing=spacing, signed=signed, centered=centered,
    )  # fmt: skip
