import os
from pathlib import Path

import numpy as np
import pytest
from sweeps import covering

from nnef_hw.errors import CheckError, ToolError
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import pack_frames, unpack_frames

pytestmark = pytest.mark.verilator

INCREMENT = Path(__file__).with_name("increment.v").read_text()


def increment(lanes, *faults):
    return FastRunner(INCREMENT, defines=[f"LANES={lanes}", *faults])


def noise(rng, lanes, frames=20, beats=10):
    codes = rng.integers(-128, 128, (frames, beats, lanes))
    return codes, pack_frames(codes, 8, signed=True)


def check(result, codes):
    received = unpack_frames(result.payloads, codes.shape[2], 8, signed=True, beats=codes.shape[1])
    np.testing.assert_array_equal(received, (codes + 129) % 256 - 128)


@pytest.mark.parametrize(("lanes", "stall"), covering([1, 3, 6, 7, 8, 20], [0.0, 0.5]))
def test_beats_pass_in_every_width(lanes, stall, rng):
    codes, beats = noise(rng, lanes)
    check(increment(lanes).run(beats, stall=stall), codes)


def test_cycles_without_stalls(rng):
    _, beats = noise(rng, 3)
    result = increment(3).run(beats)
    np.testing.assert_array_equal(result.in_cycles, np.arange(200))
    np.testing.assert_array_equal(result.out_cycles, np.arange(1, 201))
    assert result.cycles == 201 + 64
    assert result.cycles_per_second > 0


def test_stalls_are_random_and_repeatable(rng):
    _, beats = noise(rng, 3, frames=100)
    runner = increment(3)
    one, same, other = (runner.run(beats, stall=0.5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.out_cycles, same.out_cycles)
    assert (one.out_cycles != other.out_cycles).any()
    # either end passes with probability 1/2, and one register decouples them little
    assert 2000 < one.cycles < 4500


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("DROP", r"o\.valid fell in cycle \d+ before the beat was taken"),
        ("CHANGE", r"o\.payload changed in cycle \d+ while the beat was waiting"),
        ("STOP", r"no beat moved on any side for 300 cycles, after i took 9 of 200 beats"),
        ("SURPLUS", r"one more beat than expected came from o in cycle"),
    ],
    ids=["drop", "change", "stop", "surplus"],
)
def test_broken_module_is_refused(fault, message, rng):
    _, beats = noise(rng, 3)
    with pytest.raises(CheckError, match=message):
        increment(3, fault).run(beats, stall=0.6, idle_limit=300)


def test_surplus_output_is_refused_only_while_watched(rng):
    _, beats = noise(rng, 3)
    runner = increment(3)
    with pytest.raises(CheckError, match="one more beat than expected came from o in cycle 101"):
        runner.run(beats, expected_beats=100)
    result = runner.run(beats, frames=10, drain=0)
    assert len(result.payloads) == len(result.out_cycles) == 100
    assert result.cycles == 101


def test_too_little_input_is_a_deadlock(rng):
    _, beats = noise(rng, 3)
    message = "after i took 200 of 200 beats, o gave 200 beats of 21 frames"
    with pytest.raises(CheckError, match=message):
        increment(3).run(beats, frames=21, idle_limit=100)


def test_run_is_limited(rng):
    _, beats = noise(rng, 3)
    with pytest.raises(CheckError, match="did not end within 50 cycles"):
        increment(3).run(beats, max_cycles=50)


def test_time_limit_completes_what_was_begun(rng):
    codes, beats = noise(rng, 3, frames=20, beats=10)
    runner = increment(3)

    def run(count, **limit):
        fed = {"i": beats[: count * 10]}
        return runner.run_streams(fed, {"o": count * 10}, stall=0.5, **limit)

    # the time is over before the first cycle
    cut = run(20, frames=20, seconds=0.0, least_frames=3)
    alone = run(3)
    assert cut.cycles == alone.cycles
    for key in ("payloads", "in_cycles", "out_cycles"):
        for name, values in getattr(alone, key).items():
            np.testing.assert_array_equal(getattr(cut, key)[name], values)
    assert len(cut.payloads["o"]) == 30

    whole = run(20, frames=20, seconds=1e6, least_frames=3)
    np.testing.assert_array_equal(whole.payloads["o"], run(20).payloads["o"])
    outputs = unpack_frames(whole.payloads["o"], 3, 8, signed=True, beats=10)
    np.testing.assert_array_equal(outputs, (codes + 129) % 256 - 128)


def test_time_limit_within_a_run(rng):
    """Somewhere in a long run: as many whole frames come out as went in."""
    frames, beats = 200_000, 4
    _, payloads = noise(rng, 1, frames=frames, beats=beats)
    result = increment(1).run_streams(
        {"i": payloads}, {"o": frames * beats}, frames=frames, seconds=1e-4
    )
    count = len(result.payloads["o"])
    assert 0 < count < frames * beats
    assert count % beats == 0
    assert len(result.in_cycles["i"]) == count


def test_waveform_is_written(rng, tmp_path):
    codes, beats = noise(rng, 3, frames=1)
    check(increment(3).run(beats, trace=tmp_path / "wave.vcd"), codes)
    assert "i__payload" in (tmp_path / "wave.vcd").read_text()


def test_compressed_trace(rng, tmp_path):
    codes = rng.integers(0, 256, (2, 5, 3))
    beats = pack_frames(codes, 8, signed=False)
    try:
        check(increment(3).run(beats, trace=tmp_path / "wave.fst"), codes)
    except ToolError as error:
        if "lz4" not in str(error) or os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    assert (tmp_path / "wave.fst").stat().st_size > 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stall": 1.0}, r"stall must lie in \[0, 1\), not 1.0"),
        ({"trace": "wave.txt"}, r"a trace file must end in \.vcd or \.fst"),
        ({"frames": 1, "expected_beats": 1}, "cannot both be given"),
        ({"frames": 0}, "at least one frame"),
    ],
    ids=["stall", "trace", "both", "none"],
)
def test_wrong_arguments_are_refused(options, message, rng):
    _, beats = noise(rng, 3)
    with pytest.raises(ValueError, match=message):
        increment(3).run(beats, **options)


def test_wrong_payloads_are_refused():
    runner = increment(3)
    with pytest.raises(ValueError, match="a payload has more than 25 bits"):
        runner.run(np.array([1 << 25], np.uint64))
    with pytest.raises(ValueError, match=r"payloads of 25 bits must be uint64 \(1 words each\)"):
        runner.run(np.zeros((4, 2), np.uint64))


def test_missing_port_is_named():
    with pytest.raises(ValueError, match="module 'top' must have the input port 'rst'"):
        FastRunner("module top(input clk, output reg q); always @(posedge clk) q <= !q; endmodule")
