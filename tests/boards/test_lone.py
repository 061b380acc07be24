# amaranth: UnusedElaboratable=no
"""A board without a link: a sensor, a network, sinks, and an LED that tells of losses."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from simulators import run_benches

from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.lone import LoneCore
from nnef_hw.boards.interfaces import (
    DEFAULT_LINK,
    NO_LINK,
    PinUse,
    find_link,
    find_sink,
    find_source,
    link_of,
)
from nnef_hw.boards.interfaces.pins import Direction
from nnef_hw.errors import TargetError
from nnef_hw.flow.sources import with_interfaces
from nnef_hw.rtl.streams.stream import beat_layout

LAYOUT = beat_layout(bits=8, signed=True, lanes=1)


class Slow(wiring.Component):
    """An accelerator that gives each item to its output a cycle later, while it is let."""

    i: In(stream.Signature(LAYOUT))
    o: Out(stream.Signature(LAYOUT))

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [self.o.payload.eq(self.i.payload), self.o.valid.eq(self.i.valid)]
        m.d.comb += self.i.ready.eq(1)
        return m


class Sensor(wiring.Component):
    """A sensor of one pin, whose loss is another one."""

    def __init__(self, layout):
        super().__init__({
            "level": In(1), "loses": In(1), "lost": Out(4), "o": Out(stream.Signature(layout)),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.o.p.data[0].eq(self.level), self.o.valid.eq(1), self.lost.eq(self.loses)]
        return m


class Lamp(wiring.Component):
    """A sink that shows the last item."""

    def __init__(self, layout, name):
        self.name = name
        super().__init__({"i": In(stream.Signature(layout)), name: Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        with m.If(self.i.valid):
            m.d.sync += getattr(self, self.name).eq(self.i.p.data[0])
        return m


@dataclass
class Stub:
    """An interface of a component with such pins."""

    make: object
    pins: dict
    title = "stub"
    waits = False
    keeps_time = False

    def hardware_class(self):
        return self.make

    def parameters(self, clk_hz):
        return {}


def lamp(name):
    return Stub(lambda layout: Lamp(layout, name), {name: PinUse(Direction.OUTPUT)})


SENSOR = Stub(Sensor, {name: PinUse(Direction.INPUT) for name in ("level", "loses")})


def core(sources, sinks, **more):
    return LoneCore(
        Slow(), clk_hz=1_000_000, link=NO_LINK, sources=sources, sinks=sinks,
        frames={"i": 1, "o": 1}, **more,
    )  # fmt: skip


@pytest.mark.parametrize("lamps", [["left"], ["left", "right"]])
def test_sinks_show_what_a_sensor_gives(lamps):
    dut = core({"i": SENSOR}, {"o": [lamp(name) for name in lamps]})

    async def bench(ctx):
        for level in (0, 1, 0, 1):
            ctx.set(dut.level, level)
            await ctx.tick().repeat(6)
            assert [ctx.get(getattr(dut, name)) for name in lamps] == [level] * len(lamps)
        assert not ctx.get(dut.led)
        # a loss is told for ever after
        ctx.set(dut.loses, 1)
        await ctx.tick()
        ctx.set(dut.loses, 0)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.led)
        ctx.set(dut.reset, 1)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.led)

    run_benches(dut, bench)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(TargetError, match="nobody feeds 1 of the network's inputs; give each a"):
        core({}, {"o": [lamp("left")]})
    with pytest.raises(ValueError, match="without a host there is nothing for batch"):
        core({"i": SENSOR}, {}, batch=2)
    filled = wiring.Signature({"image": In(stream.Signature(16))})
    with pytest.raises(TargetError, match="nobody fills a memory with the weights"):
        LoneCore(
            SimpleNamespace(signature=filled), clk_hz=1, link=NO_LINK, sources={}, sinks={},
            frames={},
        )  # fmt: skip


def test_it_is_a_link_by_its_name():
    assert find_link("none") == NO_LINK
    assert link_of(NO_LINK.to_json()) == NO_LINK
    assert not NO_LINK.pins


def test_it_leaves_the_room_of_a_link():
    board = find_board("icebreaker")
    wishes = [find_source("i2s"), find_sink("pin")]
    linked, alone = (with_interfaces(board, link, wishes) for link in (DEFAULT_LINK, NO_LINK))
    assert linked.link_lut - alone.link_lut == board.link_lut - NO_LINK.luts > 700
    assert linked.link_bram - alone.link_bram == board.link_bram
