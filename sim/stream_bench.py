"""Cocotb bench for a module with input streams ``i`` or ``i_...`` and output streams ``o...``.

It needs cocotb and a simulator, nothing else. A file per stream, such as ``i.hex``, holds one
payload per line: what is fed, or what is expected. They are looked for in the folder
``STREAM_BENCH_VECTORS``, or beside this file. Every test feeds all input and compares the output
exactly, with other pauses: every source idles and every sink pushes back with the given probability
per cycle, "changing" draws new ones now and then.
"""

import os
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly

IDLE_LIMIT = int(os.environ.get("STREAM_BENCH_IDLE_LIMIT", "100000"))
QUIET_CYCLES = 64


def read_vectors(kind):
    """Payloads of every stream, "i" or "o", by its name."""
    folder = Path(os.environ.get("STREAM_BENCH_VECTORS", Path(__file__).parent))
    paths = [*folder.glob(f"{kind}.hex"), *sorted(folder.glob(f"{kind}_*.hex"))]
    return {path.stem: [int(line, 16) for line in path.read_text().split()] for path in paths}


class Stream:
    """The ports of a stream."""

    def __init__(self, dut, name):
        self.name = name
        for part in ("payload", "valid", "ready"):
            setattr(self, part, getattr(dut, f"{name}__{part}"))


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


def stay_with_the_program(dut):
    """Let nobody write another program to an accelerator that would take one."""
    for name in ("load", "program__valid"):
        if hasattr(dut, name):
            getattr(dut, name).value = 0


class StreamSource:
    """Offers payloads in order; an offer stands until it is taken."""

    def __init__(self, stream, payloads, pauses):
        self._stream, self._payloads, self._pauses = stream, payloads, pauses
        self._offered = False
        self.sent = 0

    @property
    def is_done(self):
        """All payloads were accepted."""
        return self.sent == len(self._payloads)

    @property
    def progress(self):
        """Words that have been sent so far."""
        return f"{self._stream.name}: {self.sent} beats sent"

    def drive(self):
        """Set the stream's signals for this cycle."""
        if not self._offered and not self.is_done:
            self._offered = not self._pauses()
            # while nothing is offered another payload shows: nobody may look at it
            shown = self.sent if self._offered else random.randrange(len(self._payloads))
            self._stream.payload.value = self._payloads[shown]
        self._stream.valid.value = int(self._offered)

    def observe(self):
        """Look at the settled signals; return whether a payload moves."""
        moves = self._offered and bool(self._stream.ready.value)
        if moves:
            self.sent += 1
            self._offered = False
        return moves


class StreamSink:
    """Takes payloads, compares them, and checks the rules of the stream."""

    def __init__(self, stream, expected, pauses):
        self._stream, self._expected, self._pauses = stream, expected, pauses
        self._ready = False
        self._held = None
        self.received = 0

    @property
    def is_done(self):
        """All expected payloads were received."""
        return self.received == len(self._expected)

    @property
    def progress(self):
        """Words that have been received so far."""
        return f"{self._stream.name}: {self.received} beats received"

    def drive(self):
        """Set the stream's signals for this cycle."""
        self._ready = not self._pauses()
        self._stream.ready.value = int(self._ready)

    def observe(self):
        """Look at the settled signals; return whether a payload moves."""
        name, valid = self._stream.name, bool(self._stream.valid.value)
        assert valid or self._held is None, (
            f"{name}.valid fell while beat {self.received} was waiting"
        )
        if not valid:
            return False
        payload = int(self._stream.payload.value)
        assert self._held in {None, payload}, f"{name}.payload of beat {self.received} changed"
        assert not self.is_done, f"surplus beat of {name} after the {self.received} expected ones"
        wanted = self._expected[self.received]
        assert payload == wanted, (
            f"beat {self.received} of {name} is {payload:#x}, expected {wanted:#x}"
        )
        self._held = None if self._ready else payload
        self.received += self._ready
        return self._ready


@cocotb.test()
@cocotb.parametrize((
    ("idle", "backpressure"),
    [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5), ("changing", "changing")],
))
async def matches_expected(dut, idle, backpressure):
    """Feed all input and compare all output, with pauses at all ends."""
    ends = []
    for kind, end, probability in (("i", StreamSource, idle), ("o", StreamSink, backpressure)):
        for name, payloads in read_vectors(kind).items():
            stream = Stream(dut, name)
            ends.append(end(stream, payloads, Pauses(probability)))
            if end is StreamSource:
                stream.valid.value = stream.payload.value = 0
            else:
                stream.ready.value = 0
    stay_with_the_program(dut)
    dut.rst.value = 1
    Clock(dut.clk, 10, unit="ns").start()
    await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.rst.value = 0

    cycles = idle_cycles = quiet = 0
    while quiet < QUIET_CYCLES:
        for end in ends:
            end.drive()
        # what has settled in the low half of the clock is what its rising edge sees
        await ReadOnly()
        moves = [end.observe() for end in ends]
        idle_cycles = 0 if any(moves) else idle_cycles + 1
        done = all(end.is_done for end in ends)
        quiet += done
        cycles += not done
        state = ", ".join(end.progress for end in ends)
        assert done or idle_cycles < IDLE_LIMIT, f"nothing moves any more after {state}"
        await FallingEdge(dut.clk)
    dut._log.info("%d cycles, %s", cycles, state)
