"""Drive the stream ports of one component, in Amaranth's simulator or as Verilog."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.sim.cocotb_bench import run_cocotb
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.pysim import run_stream


@dataclass(frozen=True)
class Run:
    """Payloads that came out, and the cycles in which items moved in and out."""

    items: list[Any]
    in_cycles: Any
    out_cycles: Any
    flowing: bool
    """Whether nothing paused in these cycles."""


@pytest.fixture
def stall():
    """Probabilities of an idle source and of a sink that is not ready, per cycle.

    A component is run with both; the cycles are those of the first.
    """
    return 0.0, 0.5


@pytest.fixture(scope="session")
def ram():
    """Block RAM so small that most memories take several."""
    return BlockRam("tiny", ((16, 16), (32, 8), (64, 4), (128, 2)))


@pytest.fixture
def drive(rng):
    """Return ``run(component, items, count, stall=, engine=)``.

    The engine "cocotb" has every kind of pauses of its own; it expects what ``pysim`` gave.
    """

    def run(component, items, count, *, stall=0.0, engine="pysim"):
        if engine == "verilator":
            return _run_verilator(component, items, count, stall, rng)
        run = _run_pysim(component, items, count, stall, rng)
        if engine == "cocotb":
            payloads = [item.as_bits() for item in run.items]
            expected = _words(component.o.payload.shape(), payloads)
            run_cocotb(to_verilog(component), {"i": _beats(component, items), "o": expected})
        return run

    return run


def _run_pysim(component, items, count, stall, rng):
    outputs, in_cycles, out_cycles = run_stream(
        component, items, expected=count, stall=stall, rng=rng, cycles=True
    )
    first, *_ = stall if isinstance(stall, tuple) else (stall,)
    return Run(outputs, np.array(in_cycles), np.array(out_cycles), first == 0.0)


def _run_verilator(component, items, count, stall, rng):
    result = component.o.payload.shape()
    done = FastRunner(to_verilog(component)).run(
        _beats(component, items), expected_beats=count, stall=stall,
        seed=int(rng.integers(1 << 30)), idle_limit=5000,
    )  # fmt: skip
    rows = done.payloads.reshape(count, -1).tolist()
    outputs = [
        result.from_bits(sum(word << (64 * n) for n, word in enumerate(row))) for row in rows
    ]
    return Run(outputs, done.in_cycles, done.out_cycles, stall == 0.0)


def _beats(component, items):
    layout = component.i.payload.shape()
    return _words(layout, [layout.const(item).as_bits() for item in items])


def _words(layout, payloads):
    """Payloads as rows of 64-bit words, lowest first."""
    count = -(-layout.size // 64)
    words = [[value >> (64 * n) & (2**64 - 1) for n in range(count)] for value in payloads]
    return np.array(words, np.uint64)
