"""Cocotb bench for a module with one input stream ``i`` and one output stream ``o``.

It needs cocotb and a simulator, nothing else. ``input.hex`` and ``expected.hex`` hold one payload
per line; they are looked for in the folder ``STREAM_BENCH_VECTORS``, or beside this file. Every
test feeds all input and compares the output exactly, with other pauses: the source idles and the
sink pushes back with the given probability per cycle, "changing" draws new ones now and then.
"""

import os
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

IDLE_LIMIT = int(os.environ.get("STREAM_BENCH_IDLE_LIMIT", "100000"))
QUIET_CYCLES = 64


def read_vectors(name):
    """Payloads of one file."""
    folder = Path(os.environ.get("STREAM_BENCH_VECTORS", Path(__file__).parent))
    return [int(line, 16) for line in (folder / name).read_text().split()]


class Pauses:
    """Decides in which cycles an end of a stream pauses."""

    def __init__(self, probability):
        self._changing = probability == "changing"
        self._probability = 0.0 if self._changing else probability

    def __call__(self):
        """Whether to pause in this cycle."""
        if self._changing and random.random() < 0.02:
            self._probability = random.choice((0.0, 0.5 * random.random(), 0.5))
        return random.random() < self._probability


class Source:
    """Offers payloads in order; an offer stands until it is taken."""

    def __init__(self, dut, payloads, pauses):
        self._dut, self._payloads, self._pauses = dut, payloads, pauses
        self._offered = False
        self.taken = 0

    @property
    def is_done(self):
        """All payloads were taken."""
        return self.taken == len(self._payloads)

    def drive(self):
        """Set the stream's signals for this cycle."""
        if not self._offered and not self.is_done:
            self._offered = not self._pauses()
            # while nothing is offered another payload shows: nobody may look at it
            shown = self.taken if self._offered else random.randrange(len(self._payloads))
            self._dut.i__payload.value = self._payloads[shown]
        self._dut.i__valid.value = int(self._offered)

    def observe(self):
        """Look at the settled signals; return whether a payload moves."""
        moves = self._offered and bool(self._dut.i__ready.value)
        if moves:
            self.taken += 1
            self._offered = False
        return moves


class Sink:
    """Takes payloads, compares them, and checks the rules of the stream."""

    def __init__(self, dut, expected, pauses):
        self._dut, self._expected, self._pauses = dut, expected, pauses
        self._ready = False
        self._held = None
        self.given = 0

    @property
    def is_done(self):
        """All expected payloads came."""
        return self.given == len(self._expected)

    def drive(self):
        """Set the stream's signals for this cycle."""
        self._ready = not self._pauses()
        self._dut.o__ready.value = int(self._ready)

    def observe(self):
        """Look at the settled signals; return whether a payload moves."""
        valid = bool(self._dut.o__valid.value)
        assert valid or self._held is None, f"o.valid fell while beat {self.given} was waiting"
        if not valid:
            return False
        payload = int(self._dut.o__payload.value)
        assert self._held in {None, payload}, f"o.payload of beat {self.given} changed"
        assert not self.is_done, f"surplus beat after the {self.given} expected ones"
        wanted = self._expected[self.given]
        assert payload == wanted, f"beat {self.given} is {payload:#x}, expected {wanted:#x}"
        self._held = None if self._ready else payload
        self.given += self._ready
        return self._ready


@cocotb.test()
@cocotb.parametrize((
    ("idle", "backpressure"),
    [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5), ("changing", "changing")],
))
async def matches_expected(dut, idle, backpressure):
    """Feed all input and compare all output, with pauses at both ends."""
    source = Source(dut, read_vectors("input.hex"), Pauses(idle))
    sink = Sink(dut, read_vectors("expected.hex"), Pauses(backpressure))
    dut.rst.value = 1
    dut.i__valid.value = 0
    dut.i__payload.value = 0
    dut.o__ready.value = 0
    Clock(dut.clk, 10, unit="ns").start()
    await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.rst.value = 0

    cycles = idle_cycles = quiet = 0
    while quiet < QUIET_CYCLES:
        source.drive()
        sink.drive()
        # what has settled in the low half of the clock is what its rising edge sees
        await ReadOnly()
        moves = [source.observe(), sink.observe()]
        idle_cycles = 0 if any(moves) else idle_cycles + 1
        done = source.is_done and sink.is_done
        quiet += done
        cycles += not done
        state = f"{source.taken} beats taken, {sink.given} given"
        assert done or idle_cycles < IDLE_LIMIT, f"nothing moves any more after {state}"
        await FallingEdge(dut.clk)
    dut._log.info("%d cycles, %s", cycles, state)
