# amaranth: UnusedElaboratable=no
import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from sweeps import few

from nnef_hw import parts
from nnef_hw.rtl.streams.constant import Constant


class Scaled(wiring.Component):
    """A stream times a constant per channel."""

    def __init__(self, constant):
        self.constant = constant
        self.product = parts.EltwiseProduct(in_bits=(8, 8), in_signed=(True, True)).build(
            in_zero_points=(3, -1)
        )
        super().__init__({
            "i": In(self.product.a.signature.flip()), "o": Out(self.product.o.signature),
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.constant = self.constant
        m.submodules.product = self.product
        wiring.connect(m, wiring.flipped(self.i), self.product.a)
        wiring.connect(m, self.constant.o, self.product.b)
        wiring.connect(m, self.product.o, wiring.flipped(self.o))
        return m


def check(drive, rng, ram, *, channels, style="block", pixels=4, **options):
    factors = rng.integers(-128, 128, channels)
    values = rng.integers(-128, 128, (3, pixels, channels))
    size = pixels * channels
    items = [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(values.reshape(-1).tolist())
    ]
    constant = parts.Constant(
        count=channels, repeats=pixels, bits=8, signed=True, ram=ram, style=style
    )
    run = drive(Scaled(constant.build(codes=factors.tolist())), items, len(items), **options)
    products = (values - 3) * (factors + 1)
    assert [item.acc[0] for item in run.items] == products.reshape(-1).tolist()
    return run


@pytest.mark.parametrize("style", ["block", "logic"])
@pytest.mark.parametrize("channels", [1, 2, 7, 20])
def test_is_an_operand_per_channel(channels, style, stall, drive, ram, rng):
    run = check(drive, rng, ram, channels=channels, style=style, stall=stall)
    assert run.in_cycles.tolist() == list(range(1, len(run.items) + 1))


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_verilog(engine, drive, ram, rng):
    check(drive, rng, ram, channels=5, stall=0.5, engine=engine)


def test_frames_the_codes(ram):
    part = parts.Constant(count=3, repeats=2, bits=4, signed=True, ram=ram)
    constant = part.build(codes=[5, -6, 7])
    seen = []

    async def bench(ctx):
        ctx.set(constant.o.ready, 1)
        for _ in range(12):
            _, _, valid, payload = await ctx.tick().sample(constant.o.valid, constant.o.payload)
            if valid:
                seen.append((payload.data[0], payload.last))

    simulator = Simulator(constant)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    frame = [(5, 0), (-6, 0), (7, 0), (5, 0), (-6, 0), (7, 1)]
    assert seen == (frame * 2)[:11]


@pytest.mark.parametrize(
    ("codes", "message"),
    [([7, 8], "Constant of 4 bits cannot hold 8"), ([7], "Constant needs 2 codes, not 1")],
)
def test_refuses_codes_that_do_not_fit(codes, message, ram):
    part = parts.Constant(count=2, repeats=1, bits=4, signed=True, ram=ram)
    with pytest.raises(ValueError, match=re.escape(message)):
        Constant(part, codes=codes)
