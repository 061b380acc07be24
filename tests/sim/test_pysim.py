# amaranth: UnusedElaboratable=no
import numpy as np
import pytest
from amaranth import Module, Signal, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from output_streams import Wire

from nnef_hw.errors import CheckError
from nnef_hw.sim.pysim import run_stream, run_streams

BEAT = data.StructLayout({"data": data.ArrayLayout(signed(8), 2), "last": 1})


class Kind(enum.Enum, shape=2):
    """What is neither a number nor a layout."""

    NONE = 0
    A = 1
    B = 2


class Register(wiring.Component):
    """One register deep; `fault` breaks a stream rule."""

    def __init__(self, shape=8, fault=""):
        self.fault = fault
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        full = Signal()
        payload = Signal.like(self.o.payload)
        age = Signal(2)
        m.d.comb += [
            self.i.ready.eq(~full | self.o.ready),
            self.o.valid.eq(full),
            self.o.payload.eq(payload),
        ]
        with m.If(self.i.ready):
            m.d.sync += [full.eq(self.i.valid), payload.eq(self.i.payload), age.eq(0)]
        with m.Else():
            m.d.sync += age.eq(age + 1)
        if self.fault == "drops":
            m.d.comb += self.o.valid.eq(full & (age != 2))
        elif self.fault == "changes":
            m.d.comb += self.o.payload.eq(payload ^ age[1])
        elif self.fault == "depends":
            m.d.comb += self.o.valid.eq(full & self.o.ready)
        elif self.fault == "looks early":
            with m.If(self.i.ready):
                m.d.sync += payload.eq(self.i.payload)
            with m.If(full & self.i.ready & ~self.i.valid):
                m.d.sync += full.eq(1)
        elif self.fault == "repeats late":
            silence = Signal(5)
            with m.If(self.i.valid | full):
                m.d.sync += silence.eq(0)
            with m.Else():
                m.d.sync += silence.eq(silence + 1)
            with m.If(silence == 20):
                m.d.sync += full.eq(1)
        elif self.fault == "counts pauses":
            pauses = Signal(8)
            with m.If(self.o.valid & ~self.o.ready):
                m.d.sync += pauses.eq(pauses + 1)
            with m.If(self.i.ready):
                m.d.sync += payload.eq(self.i.payload + pauses)
        elif self.fault == "depends late":
            taken = Signal(8)
            m.d.sync += taken.eq(taken + (full & self.o.ready))
            with m.If(taken > 60):
                m.d.comb += self.o.valid.eq(full & self.o.ready)
        elif self.fault == "stops":
            count = Signal(4)
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += count.eq(count + 1)
            with m.If(count >= 9):
                m.d.comb += [self.i.ready.eq(0), self.o.valid.eq(0)]
                m.d.sync += count.eq(count)
        return m


class Adder(wiring.Component):
    a: In(stream.Signature(8))
    b: In(stream.Signature(8))
    total: Out(stream.Signature(9))
    copy: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        accepted = Signal(2)
        go = Signal()
        both = self.a.valid & self.b.valid
        done = [accepted[0] | self.total.ready, accepted[1] | self.copy.ready]
        m.d.comb += [
            self.total.valid.eq(both & ~accepted[0]),
            self.copy.valid.eq(both & ~accepted[1]),
            self.total.payload.eq(self.a.payload + self.b.payload),
            self.copy.payload.eq(self.a.payload),
            go.eq(both & done[0] & done[1]),
            self.a.ready.eq(go),
            self.b.ready.eq(go),
        ]
        for k, out in enumerate([self.total, self.copy]):
            with m.If(go):
                m.d.sync += accepted[k].eq(0)
            with m.Elif(out.valid & out.ready):
                m.d.sync += accepted[k].eq(1)
        return m


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_payloads_pass_in_order(stall, rng):
    codes = rng.integers(-128, 128, (60, 2)).tolist()
    items = [{"data": pair, "last": n % 7 == 6} for n, pair in enumerate(codes)]
    out = run_stream(Register(BEAT), items, rng=rng, stall=stall)
    assert [[item.data[0], item.data[1]] for item in out] == codes
    assert [item.last for item in out] == [item["last"] for item in items]


def test_cycles_show_latency_and_rate(rng):
    out, accepted, sent = run_stream(Register(), range(20), rng=rng, cycles=True)
    assert out == list(range(20))
    assert accepted == list(range(20))
    assert sent == list(range(1, 21))


def test_stalls_slow_the_stream_down(rng):
    _, _, sent = run_stream(Register(), range(200), rng=rng, stall=0.5, cycles=True)
    assert 350 < sent[-1] < 900


def test_component_without_registers(rng):
    assert run_stream(Wire(8), range(9), rng=rng, stall=0.3) == list(range(9))


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_several_streams(stall, rng):
    a, b = rng.integers(0, 256, (2, 40))
    run = run_streams(
        Adder(), {"a": a.tolist(), "b": b.tolist()}, {"total": 40, "copy": 40}, rng=rng, stall=stall
    )
    np.testing.assert_array_equal(run.items["total"], a + b)
    np.testing.assert_array_equal(run.items["copy"], a)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("drops", r"o\.valid fell before the payload was taken in cycle"),
        ("changes", r"o\.payload changed while it was waiting"),
        ("depends", r"o\.valid depends on o\.ready"),
        ("depends late", r"o\.valid depends on o\.ready \(o gave [67]\d of 100"),
        ("stops", r"nothing moved for 50 cycles after i took \d+ of 100, o gave \d+ of 100"),
        ("looks early", r"o has surplus output"),
        ("repeats late", r"o has surplus output"),
    ],
    ids=lambda value: value.split()[0],
)
def test_broken_component_is_refused(fault, message, rng):
    with pytest.raises(CheckError, match=message):
        run_stream(Register(fault=fault), range(100), rng=rng, stall=0.6, idle_limit=50)


def test_pauses_change_no_payload(rng):
    assert run_stream(Register(), range(50), rng=rng, stall=(0.0, 0.5)) == list(range(50))
    component = Register(fault="counts pauses")
    with pytest.raises(CheckError, match=r"o gives something else under stalls of 0\.5"):
        run_stream(component, range(50), rng=rng, stall=(0.0, 0.5))


def test_payloads_of_every_shape(rng):
    """Mappings, sequences, constants and enumerations, with what they leave open being 0."""
    shape = data.StructLayout({
        "code": signed(5),
        "pair": data.ArrayLayout(signed(3), 2),
        "kind": Kind,
        "inner": BEAT,
    })
    items = [
        {"code": -16, "pair": [3, -4], "kind": Kind.B, "inner": {"data": [-128, 127], "last": 1}},
        {"kind": Kind.A, "pair": {1: -1}},
        shape.const({"code": 7, "inner": {"last": 1}}),
        {"code": 33, "pair": (-5, 9)},
    ]
    assert run_stream(Register(shape), items, rng=rng) == [shape.const(item) for item in items]
    assert run_stream(Register(Kind), [Kind.B, Kind.A], rng=rng) == [Kind.B, Kind.A]


def test_missing_output_is_refused(rng):
    with pytest.raises(CheckError, match=r"i took 5 of 5, o gave 5 of 6"):
        run_stream(Register(), range(5), expected=6, rng=rng, idle_limit=20)


def test_waveform(rng, tmp_path):
    run_stream(Register(), range(5), rng=rng, vcd=tmp_path / "wave.vcd")
    assert "$enddefinitions" in (tmp_path / "wave.vcd").read_text()
