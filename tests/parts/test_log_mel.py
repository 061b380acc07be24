# amaranth: UnusedElaboratable=no
"""What examples do not say of log-mel features: speech, many sounds, memories, cycles."""

import numpy as np
import pytest
from audio import read_wav
from example_bench import Bench
from examples.audio import FRONTS, HEARD, log_mel
from sweeps import covering

from nnef_hw.arithmetic.audio.log_mel import LogMel
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.hardware.devices import UP5K
from nnef_hw.parts.audio.log_mel import LogMelWords
from nnef_hw.sim.fast_runner import FastRunner


@pytest.mark.verilator
def test_a_wake_word(sense):
    """MLPerf Tiny's front end, on speech."""
    samples = read_wav(sense / "marvin.wav")[4_000 : 4_000 + 1_024 + 5 * 512]
    example = log_mel(LogMel(), 6)
    component = example.build()
    layout = component.i.payload.shape()
    items = [{"data": [x], "last": n == len(samples) - 1} for n, x in enumerate(samples.tolist())]
    beats = np.array([layout.const(item).as_bits() for item in items], np.uint64)[:, None]
    expected = example.part.compute(samples[:, None], **example.contents)
    runner = FastRunner(to_verilog(component))
    run = runner.run(beats, expected_beats=len(expected), idle_limit=70_000)
    results = component.o.payload.shape()
    found = [int(results.from_bits(word).data[0]) for word in run.payloads.reshape(-1).tolist()]
    assert found == expected[:, 0].tolist()
    assert run.out_cycles[40] - run.out_cycles[0] == example.part.frame_cycles


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("front", "goes_on", "single_port"),
    covering(list(FRONTS.values()), [False, True], [None, UP5K.single_port]),
)
def test_many_sounds_under_stalls(front, goes_on, single_port, rng):
    example = log_mel(front, 3, goes_on=goes_on, heard=HEARD, single_port=single_port)
    Bench(example, rng).check_verilog("verilator")


@pytest.mark.parametrize("front", [LogMel(), *FRONTS.values()], ids=["MLPerf Tiny", *FRONTS])
def test_factors_fill_their_memory(front):
    example = log_mel(front, 1)
    words = LogMelWords.of(example.contents["requant"]).words
    assert len(words) == example.part.word_memory.depth


def test_numbers_in_single_port_ram():
    """They take no block RAM then, and a step that reads and writes takes two cycles."""
    alone = log_mel(LogMel(), 1).part
    part = log_mel(LogMel(), 1, single_port=UP5K.single_port).part
    assert (part.spram, alone.spram) == (2, 0)
    assert part.memories == (alone.word_memory,)
    assert (alone.frame_cycles, part.frame_cycles) == (42_539, 59_924)
