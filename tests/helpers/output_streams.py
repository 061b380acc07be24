"""Helpers for tests of sinks: streams of outputs, and an accelerator that changes nothing."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.host.streams import to_stream


def beats(shape, lanes=1):
    """Return the layout of beats of codes."""
    return data.StructLayout({"data": data.ArrayLayout(shape, lanes), "last": 1})


CODES = beats(8)


@dataclass(frozen=True)
class Port:
    """A stream of an output."""

    image: tuple[int, int, int]
    lanes: int

    @property
    def beats(self):
        height, width, channels = self.image
        return height * width * -(-channels // self.lanes)


async def give_beat(ctx, dut, codes, last):
    """Give a beat as soon as it is taken."""
    ctx.set(dut.i.payload, {"data": codes, "last": last})
    ctx.set(dut.i.valid, 1)
    await ctx.tick().until(dut.i.ready)
    ctx.set(dut.i.valid, 0)


async def give(ctx, dut, frames, port, pause=0):
    """Give frames, as fast as they are taken, or with pauses."""
    for frame in to_stream(frames, port):
        for n, beat in enumerate(frame):
            await give_beat(ctx, dut, [int(code) for code in beat], n == len(frame) - 1)
        if pause:
            await ctx.tick().repeat(pause)


class Wire(wiring.Component):
    """Passes beats through; notes the platform it is elaborated for."""

    def __init__(self, layout=CODES):
        self.platform = None
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform):
        self.platform = platform
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m
