# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from sweeps import few

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout
from nnef_hw.sim.pysim import run_streams

RUNS = [(1, 1), (3, 2), (1, 4, 2), (5, 1, 1, 3), (8, 8)]
TURNS = 3
FRAMES = 4
by_runs = pytest.mark.parametrize("runs", RUNS, ids=str)


def codes(rng, runs):
    """Codes [frame, turn, position in the turn]."""
    return rng.integers(-128, 128, (FRAMES, TURNS, sum(runs)))


def beats(values):
    """Beats of codes [frame, ...]."""
    size = values[0].size
    return [
        {"data": [code], "last": n % size == size - 1}
        for n, code in enumerate(values.reshape(-1).tolist())
    ]


def pieces(values, runs):
    return np.split(values, np.cumsum(runs)[:-1], axis=2)


def as_dicts(items):
    return [{"data": list(item.data), "last": bool(item.last)} for item in items]


@by_runs
def test_concatenates(runs, stall, rng):
    values = codes(rng, runs)
    inputs = {f"i{n}": beats(piece) for n, piece in enumerate(pieces(values, runs))}
    concat = parts.Concat(runs=runs, bits=8, signed=True)
    run = run_streams(concat.build(), inputs, {"o": values.size}, stall=stall, rng=rng)
    assert as_dicts(run.items["o"]) == beats(values)
    in_cycles = sorted(cycle for cycles in run.in_cycles.values() for cycle in cycles)
    assert in_cycles == list(range(values.size))
    assert run.out_cycles["o"] == [cycle + concat.latency for cycle in in_cycles]


@by_runs
@pytest.mark.parametrize("dropped", [(), (0,), (-1,)], ids=["all", "not_first", "not_last"])
def test_splits(runs, dropped, stall, rng):
    values = codes(rng, runs)
    kept = [True] * len(runs)
    for n in dropped:
        kept[n] = False
    expected = {f"o{n}": beats(piece) for n, piece in enumerate(pieces(values, runs)) if kept[n]}
    split = parts.Split(runs=runs, turns=TURNS, kept=tuple(kept), bits=8, signed=True).build()
    counts = {name: len(items) for name, items in expected.items()}
    run = run_streams(split, {"i": beats(values)}, counts, stall=stall, rng=rng)
    assert {name: as_dicts(items) for name, items in run.items.items()} == expected
    assert run.in_cycles["i"] == list(range(values.size))


def split_all(runs):
    return parts.Split(runs=runs, turns=TURNS, kept=(True,) * len(runs), bits=8, signed=True)


class Rejoined(wiring.Component):
    """A split and a concatenation of its streams."""

    def __init__(self, runs):
        self.runs = runs
        beat = stream.Signature(beat_layout(bits=8, signed=True, lanes=1))
        super().__init__({"i": In(beat), "o": Out(beat)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.split = split = split_all(self.runs).build()
        m.submodules.concat = concat = parts.Concat(runs=self.runs, bits=8, signed=True).build()
        wiring.connect(m, wiring.flipped(self.i), split.i)
        for n in range(len(self.runs)):
            wiring.connect(m, getattr(split, f"o{n}"), getattr(concat, f"i{n}"))
        wiring.connect(m, concat.o, wiring.flipped(self.o))
        return m


@pytest.mark.verilator
@pytest.mark.parametrize("engine", few(["verilator", "cocotb"], ["verilator"]))
def test_verilog(engine, drive, rng):
    runs = (3, 1, 2)
    items = beats(codes(rng, runs))
    run = drive(Rejoined(runs), items, len(items), stall=0.5, engine=engine)
    assert as_dicts(run.items) == items


def test_columns_are_cropped_by_runs_of_pixels(rng):
    images = rng.integers(-128, 128, (2, 4, 5, 3))
    split = parts.Split(
        runs=(3, 9, 3), turns=4, kept=(False, True, False), bits=8, signed=True
    ).build()
    cropped = beats(images[:, :, 1:4])
    run = run_streams(split, {"i": beats(images)}, {"o1": len(cropped)}, rng=rng)
    assert as_dicts(run.items["o1"]) == cropped


def test_only_the_stream_whose_turn_it_is_is_waited_for(rng):
    concat = parts.Concat(runs=(2, 1), bits=8, signed=True).build()
    items = beats(np.zeros((1, 4), int))
    run = run_streams(concat, {"i0": items, "i1": items[:2]}, {"o": 6}, rng=rng)
    assert run.in_cycles == {"i0": [0, 1, 3, 4], "i1": [2, 5]}


@pytest.mark.parametrize("runs", [(), (3,), (2, 0)])
def test_concat_refuses_runs_without_beats(runs):
    message = f"Concat needs at least 2 runs of beats, not {runs!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        parts.Concat(runs=runs, bits=8, signed=True)


@pytest.mark.parametrize(
    ("runs", "kept"), [((2, 0), (True, True)), ((2, 1), (False, False)), ((2, 1), (True,))]
)
def test_split_refuses_to_give_nothing(runs, kept):
    message = f"Split cannot give runs {runs!r} of which {kept!r} are kept"
    with pytest.raises(ValueError, match=re.escape(message)):
        parts.Split(runs=runs, turns=2, kept=kept, bits=8, signed=True)
