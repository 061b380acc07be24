# amaranth: UnusedElaboratable=no
"""Signals between components that are no ports: an error, since modules would read 0."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.codegen.verilog import to_verilog


class Counter(wiring.Component):
    """It counts, and some of what it counts is no port."""

    def __init__(self):
        super().__init__({"step": In(1), "count": Out(4)})
        self.odd = Signal()

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.count.eq(self.count + self.step)
        m.d.comb += self.odd.eq(self.count[0])
        return m


class Reader(wiring.Component):
    """It shows a signal of a counter, which is below it or beside it."""

    def __init__(self, shown, counter=None):
        self.shown, self.counter = shown, counter
        super().__init__({"level": Out(4)})

    def elaborate(self, platform):
        m = Module()
        if self.counter is not None:
            m.submodules.counter = self.counter
            m.d.comb += self.counter.step.eq(1)
        m.d.comb += self.level.eq(self.shown)
        return m


class Both(wiring.Component):
    """It has a counter, and a reader beside it."""

    def __init__(self, counter, reader):
        self.counter, self.reader = counter, reader
        super().__init__({"level": Out(4)})

    def elaborate(self, platform):
        m = Module()
        m.submodules += [self.counter, self.reader]
        m.d.comb += [self.counter.step.eq(1), self.level.eq(self.reader.level)]
        return m


def test_ports_pass():
    counter = Counter()
    assert "counter" in to_verilog(Reader(counter.count, counter))
    assert "level" in to_verilog(Reader(Signal(4, init=3)))  # nobody drives it


def test_what_is_no_port_is_refused():
    counter = Counter()
    with pytest.raises(ValueError, match="Reader reads 'odd', which Counter drives: it has to be"):
        to_verilog(Reader(counter.odd, counter))


def test_a_port_of_one_alone_is_refused():
    counter = Counter()
    with pytest.raises(ValueError, match=r"Reader reads 'count', which .* drives"):
        to_verilog(Both(counter, Reader(counter.count)))
