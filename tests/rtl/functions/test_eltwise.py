# amaranth: UnusedElaboratable=no
import re
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from sweeps import covering

from nnef_hw import parts
from nnef_hw.arithmetic.numerics import AddRequant
from nnef_hw.errors import CheckError
from nnef_hw.rtl.functions.eltwise import EltwiseSum
from nnef_hw.rtl.streams.fork import Fork
from nnef_hw.rtl.streams.stream import Fifo, beat_layout
from nnef_hw.sim.pysim import run_streams


def code_range(bits, signed):
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


@dataclass(frozen=True)
class Case:
    """A sum of two streams."""

    mult: tuple[int, int]
    shift: int
    in_zero_points: tuple[int, int]
    zero_point: int
    lo: int
    hi: int
    in_bits: tuple[int, int] = (8, 8)
    in_signed: tuple[bool, bool] = (True, True)
    out_bits: int = 8
    out_signed: bool = True

    @property
    def requant(self):
        return AddRequant(self.mult, self.shift, self.zero_point, self.lo, self.hi)

    def part(self, lanes=1):
        return parts.EltwiseSum(
            in_bits=self.in_bits, in_signed=self.in_signed, out_bits=self.out_bits,
            out_signed=self.out_signed, lanes=lanes,
        )  # fmt: skip

    def build(self, lanes=1):
        return EltwiseSum(
            self.part(lanes), requant=self.requant, in_zero_points=self.in_zero_points
        )

    def golden(self, a, b):
        (za, zb), (ma, mb) = self.in_zero_points, self.mult
        total = (int(a) - za) * ma + (int(b) - zb) * mb + (1 << self.shift - 1)
        return min(max((total >> self.shift) + self.zero_point, self.lo), self.hi)

    def stimulus(self, rng, noise=60):
        """Ends of the ranges and zero points in all pairs, then noise, each with a neighbour."""
        ranges = [code_range(*fmt) for fmt in zip(self.in_bits, self.in_signed, strict=True)]
        special = [sorted({lo, lo + 1, 0, zero, hi - 1, hi} & set(range(lo, hi + 1)))
                   for (lo, hi), zero in zip(ranges, self.in_zero_points, strict=True)]  # fmt: skip
        pairs = [(a, b) for a in special[0] for b in special[1]]
        for _ in range(noise):
            a, b = (int(rng.integers(lo, hi + 1)) for lo, hi in ranges)
            pairs += [(a, b), (min(a + 1, ranges[0][1]), b)]
        return pairs


CASES = {
    "typical": Case((31007, 40503), 16, (-3, 5), 11, -128, 127),
    "difference": Case((31007, -40503), 16, (-3, 5), 4, -128, 127),
    "both_negative": Case((-65535, -3), 17, (0, -128), 0, -128, 127),
    "relu": Case((20011, 9973), 14, (10, -20), -100, -100, 127),
    "unsigned": Case((65535, 40003), 16, (128, 7), 130, 0, 255, in_signed=(False, False),
                     out_signed=False),
    "one_of_each_sign": Case((777, -65535), 14, (0, 3), 0, -128, 127, in_signed=(False, True)),
    "least_shift": Case((1, 1), 1, (0, 0), 0, -128, 127),
    "halves": Case((1 << 15, -(1 << 15)), 16, (0, 0), -1, -128, 127),
    "greatest_shift": Case((65535, 40000), 46, (1, 2), 5, -128, 127),
    "powers_of_two": Case((1 << 14, 1 << 15), 15, (-128, 127), 0, -128, 127),
    "one_stream_is_ignored": Case((40000, 0), 15, (1, 99), 0, -128, 127),
    "narrow": Case((11, 13), 4, (1, 2), 1, 0, 3, in_bits=(2, 2), in_signed=(False, False),
                   out_bits=2, out_signed=False),
    "unequal_widths": Case((3001, 60001), 16, (7, 1), -2, -8, 7, in_bits=(8, 3),
                           in_signed=(True, False), out_bits=4),
    "odd_widths": Case((501, -77), 9, (0, 0), 0, -16, 15, in_bits=(5, 5), out_bits=5),
    "sixteen_bits": Case((65535, 51234), 17, (-30000, 123), 9, -32768, 32767, in_bits=(16, 16),
                         out_bits=16),
    "one_code_is_left": Case((333, 444), 6, (0, 0), 3, 3, 3),
}  # fmt: skip


def frames(pairs, lanes, length=3):
    """Beats of both streams; frames of ``length`` beats."""
    pairs = pairs[: len(pairs) // lanes * lanes]
    beats = np.array(pairs).reshape(-1, lanes, 2)
    last = [n % length == length - 1 for n in range(len(beats))]
    return [
        [{"data": beat.tolist(), "last": end}
         for beat, end in zip(beats[..., side], last, strict=True)]
        for side in (0, 1)
    ]  # fmt: skip


def check(component, golden, a, b, *, rng, stall=0.0):
    run = run_streams(component, {"a": a, "b": b}, {"o": len(a)}, rng=rng, stall=stall)
    assert [list(item.data) for item in run.items["o"]] == expected(golden, a, b)
    assert [item.last for item in run.items["o"]] == [beat["last"] for beat in a]
    return run


def expected(golden, a, b):
    return [
        [golden(x, y) for x, y in zip(left["data"], right["data"], strict=True)]
        for left, right in zip(a, b, strict=True)
    ]


def check_cycles(run, latency):
    in_cycles = run.in_cycles["a"]
    assert in_cycles == run.in_cycles["b"] == list(range(len(in_cycles)))
    assert run.out_cycles["o"] == [cycle + latency for cycle in in_cycles]


@pytest.mark.parametrize(("name", "lanes"), covering(list(CASES), [1, 3]))
def test_sum(name, lanes, stall, rng):
    case = CASES[name]
    a, b = frames(case.stimulus(rng), lanes)
    run = check(case.build(lanes), case.golden, a, b, stall=stall, rng=rng)
    check_cycles(run, case.part(lanes).latency)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_sum_is_that_of_the_numerics(case, rng):
    pairs = case.stimulus(rng)
    a, b = (np.array(pairs) - case.in_zero_points).T
    assert case.requant.apply(a, b).tolist() == [case.golden(*pair) for pair in pairs]


@pytest.mark.parametrize("name", ["typical", "unsigned", "halves", "relu"])
def test_stimulus_meets_limits_and_the_middle(name, rng):
    case = CASES[name]
    codes = {case.golden(a, b) for a, b in case.stimulus(rng)}
    assert {case.lo, case.hi} < codes


@pytest.mark.parametrize(("bits", "levels"), [((2, 2), 0), ((8, 8), 2), ((8, 9), 3), ((1, 4), 1)])
def test_latency_is_the_depth_of_the_tree_and_two(bits, levels):
    case = replace(CASES["typical"], in_bits=bits)
    assert case.part().latency == 2 + levels


@pytest.mark.parametrize(
    ("bits", "signed", "greatest", "lanes"),
    covering([(2, False), (8, True), (8, False), (16, True)], [False, True], [1, 4]),
)
def test_extremum(bits, signed, greatest, lanes, stall, rng):
    lo, hi = code_range(bits, signed)
    pairs = [(lo, hi), (hi, lo), (lo, lo), (hi, hi), *rng.integers(lo, hi + 1, (40, 2)).tolist()]
    a, b = frames(pairs, lanes)
    part = parts.EltwiseExtremum(greatest=greatest, bits=bits, signed=signed, lanes=lanes)
    run = check(part.build(), max if greatest else min, a, b, stall=stall, rng=rng)
    check_cycles(run, part.latency)


PRODUCTS = {
    "signed": ((-3, 5), (8, 8), (True, True)),
    "no_zero_point": ((0, 0), (8, 8), (True, True)),
    "far_zero_points": ((127, -128), (8, 8), (True, True)),
    "unsigned": ((128, 255), (8, 8), (False, False)),
    "one_of_each_sign": ((0, 7), (8, 5), (False, True)),
    "narrow": ((1, 0), (2, 2), (False, False)),
    "one_never_negative": ((-5, -128), (8, 8), (True, True)),
    "neither_ever_negative": ((0, -128), (8, 8), (False, True)),
    "sixteen_bits": ((-20000, 9), (16, 8), (True, False)),
}


def product_streams(zero_points, bits, signed, rng):
    """Component, beats of both streams, and products; all pairs of the ends of the ranges first."""
    component = parts.EltwiseProduct(in_bits=bits, in_signed=signed).build(
        in_zero_points=zero_points
    )
    ranges = [code_range(*fmt) for fmt in zip(bits, signed, strict=True)]
    pairs = [(a, b) for a in (*ranges[0], zero_points[0]) for b in (*ranges[1], zero_points[1])]
    pairs += [tuple(int(rng.integers(lo, hi + 1)) for lo, hi in ranges) for _ in range(50)]
    products = [(a - zero_points[0]) * (b - zero_points[1]) for a, b in pairs]
    return component, *frames(pairs, 1), products


@pytest.mark.parametrize("formats", PRODUCTS.values(), ids=PRODUCTS)
def test_product(formats, stall, rng):
    component, a, b, products = product_streams(*formats, rng)
    run = run_streams(component, {"a": a, "b": b}, {"o": len(a)}, rng=rng, stall=stall)
    assert [item.acc[0] for item in run.items["o"]] == products
    assert [item.last for item in run.items["o"]] == [beat["last"] for beat in a]
    check_cycles(run, component.part.latency)


BUILDERS = {
    "product": partial(
        parts.EltwiseProduct(in_bits=(8, 8), in_signed=(True, True)).build, in_zero_points=(1, 2)
    ),
    "sum": CASES["typical"].build,
    "max": parts.EltwiseExtremum(greatest=True, bits=8, signed=True).build,
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize("alone", ["a", "b"])
def test_takes_nothing_while_one_stream_has_nothing(build, alone, rng):
    beats = [{"data": [n], "last": 0} for n in range(3)]
    other = "b" if alone == "a" else "a"
    with pytest.raises(CheckError, match=f"{alone} took 0 of 3"):
        run_streams(build(), {alone: beats, other: []}, {"o": 1}, rng=rng, idle_limit=50)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_every_stage_fills_while_the_output_waits(build):
    component = build()

    async def bench(ctx):
        ctx.set(component.a.valid, 1)
        ctx.set(component.b.valid, 1)
        accepted = 0
        for _ in range(20):
            assert ctx.get(component.a.ready) == ctx.get(component.b.ready)
            accepted += ctx.get(component.a.ready)
            await ctx.tick()
        assert accepted == component.part.latency

    simulator = Simulator(component)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


class Diamond(wiring.Component):
    """Pairs of beats are forked, each branch keeps its half, and the operator joins them again."""

    def __init__(self, operator):
        self.operator = operator
        pair = data.StructLayout({
            "a": operator.a.payload.shape(), "b": operator.b.payload.shape(),
        })  # fmt: skip
        super().__init__({
            "i": In(stream.Signature(pair)),
            "o": Out(operator.o.signature),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fork = fork = Fork(self.i.payload.shape(), branches=2)
        m.submodules.operator = self.operator
        wiring.connect(m, wiring.flipped(self.i), fork.i)
        for name, branch, depth in (("a", fork.o0, 2), ("b", fork.o1, 5)):
            port = getattr(self.operator, name)
            m.submodules[f"fifo_{name}"] = fifo = Fifo(port.payload.shape(), depth=depth)
            m.d.comb += [
                fifo.i.valid.eq(branch.valid),
                fifo.i.payload.eq(branch.payload[name]),
                branch.ready.eq(fifo.i.ready),
            ]
            wiring.connect(m, fifo.o, port)
        wiring.connect(m, self.operator.o, wiring.flipped(self.o))
        return m


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("one_of_each_sign", "verilator"),
        pytest.param("unequal_widths", "cocotb", marks=pytest.mark.nightly),
    ],
)
def test_verilog_of_a_fork_and_a_sum(name, engine, drive, rng):
    case = CASES[name]
    a, b = frames(case.stimulus(rng), 2)
    items = [{"a": left, "b": right} for left, right in zip(a, b, strict=True)]
    run = drive(Diamond(case.build(2)), items, len(items), stall=0.5, engine=engine)
    assert [list(item.data) for item in run.items] == expected(case.golden, a, b)
    assert [item.last for item in run.items] == [beat["last"] for beat in a]


@pytest.mark.verilator
@pytest.mark.parametrize("name", ["signed", "one_never_negative", "neither_ever_negative"])
def test_verilog_of_a_fork_and_a_product(name, drive, rng):
    component, a, b, products = product_streams(*PRODUCTS[name], rng)
    items = [{"a": left, "b": right} for left, right in zip(a, b, strict=True)]
    run = drive(Diamond(component), items, len(items), stall=0.5, engine="verilator")
    assert [item.acc[0] for item in run.items] == products


@pytest.mark.verilator
def test_verilog_of_a_fork_and_a_minimum(drive, rng):
    a, b = frames([(-128, 127), (0, -1), *rng.integers(-128, 128, (60, 2)).tolist()], 2)
    component = parts.EltwiseExtremum(greatest=False, bits=8, signed=True, lanes=2).build()
    items = [{"a": left, "b": right} for left, right in zip(a, b, strict=True)]
    run = drive(Diamond(component), items, len(items), stall=0.5, engine="verilator")
    assert [list(item.data) for item in run.items] == expected(min, a, b)


def test_streams_have_the_formats_of_their_codes():
    add = CASES["unequal_widths"].build(3)
    assert add.a.payload.shape() == beat_layout(bits=8, signed=True, lanes=3)
    assert add.b.payload.shape() == beat_layout(bits=3, signed=False, lanes=3)
    assert add.o.payload.shape() == beat_layout(bits=4, signed=True, lanes=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lo": -129}, "EltwiseSum limits -129..127 must lie within -128..127"),
        ({"hi": 128}, "EltwiseSum limits -128..128 must lie within -128..127"),
        ({"out_signed": False}, "EltwiseSum limits -128..127 must lie within 0..255"),
    ],
)
def test_refuses_limits_beyond_the_output_format(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(CASES["typical"], **change).build()
