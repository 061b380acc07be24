"""Sweeps: the designs of builds, nothing computed twice, whoever computes it."""

import json
import pickle
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from cli_cases import MODEL, SAMPLES

import nnef_hw as nh
from nnef_hw.boards import find_board
from nnef_hw.errors import SampleError, TargetError, ToolError, UsageError
from nnef_hw.explore import Sweep, explore, jobs
from nnef_hw.flow.emit import board_of
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.samples.samples import take_samples
from nnef_hw.system.files import digest
from nnef_hw.system.workers import Here
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


class Counting(Here):
    """Counts jobs by the function that they call."""

    def __init__(self):
        self.counts = {}

    def submit(self, function, expected, called, *arguments):
        self.counts[called.__name__] = self.counts.get(called.__name__, 0) + 1
        return super().submit(function, expected, called, *arguments)


def rows(folder):
    return [json.loads(line) for line in (folder / "points.jsonl").read_text().splitlines()]


def test_designs_are_those_of_a_plan(sweep_of, tmp_path):
    sweep = sweep_of(("icebreaker", "ulx3s_85f"), weight_bits=(8, 4), target_fps=(4e5, 5e4))
    points = explore(sweep, tmp_path / "out", Here())
    assert [(p.board, p.weight_bits, p.target_fps) for p in points] == [
        (board, bits, rate)
        for board in ("icebreaker", "ulx3s_85f") for bits in (8, 4) for rate in (4e5, 5e4)
    ]  # fmt: skip
    assert rows(tmp_path / "out") == json.loads(json.dumps([p.to_json() for p in points]))
    model = nh.Model(sweep.graph)
    for point in points:
        fixed = model.quantize(sweep.samples, weight_bits=point.weight_bits)
        plan = fixed.schedule(point.board, arch="streaming", target_fps=point.target_fps)
        assert (point.cycles_per_inference, point.latency_cycles) == (plan.interval, plan.latency)
        assert point.estimated["lut"] == plan.resources["lut"].estimated
        assert point.rate == plan.inferences_per_second >= point.target_fps
        compared = fixed.compare()
        assert point.quality.fixed == compared.accuracy.fixed
        assert point.quality.sqnr_db == compared.sqnr_db[point.quality.worst_layer]
        assert point.quality.sqnr_db == min(x for x in compared.sqnr_db.values() if x is not None)


def test_without_rates_there_is_a_ladder(sweep_of, tmp_path):
    points = explore(sweep_of(), tmp_path / "out", Here())
    fastest, *slower = points
    assert fastest.target_fps is None
    assert slower
    rates = [point.rate for point in slower]
    assert rates == sorted(rates, reverse=True)
    for point in slower:
        assert point.target_fps <= point.rate <= fastest.rate
        assert point.estimated["lut"] <= fastest.estimated["lut"]
    best = json.loads((tmp_path / "out" / "front.json").read_text())["front"]
    assert {row["number"] for row in best} == {point.number for point in points if point.is_front}


def test_what_is_there_is_not_computed_again(sweep_of, tmp_path):
    pool = Counting()
    first = explore(sweep_of(target_fps=(1e5,)), tmp_path / "out", pool)
    assert pool.counts == {"quantize_graph": 1, "score_fixed": 1, "plan_board": 1}
    text = (tmp_path / "out" / "points.jsonl").read_text()
    assert explore(sweep_of(target_fps=(1e5,)), tmp_path / "out", pool) == first
    assert pool.counts == {"quantize_graph": 1, "score_fixed": 1, "plan_board": 1}
    assert (tmp_path / "out" / "points.jsonl").read_text() == text
    # One more width: what is known of the other stays.
    explore(sweep_of(target_fps=(1e5,), weight_bits=(8, 5)), tmp_path / "out", pool)
    assert pool.counts == {"quantize_graph": 2, "score_fixed": 2, "plan_board": 2}
    # Other samples, another network in effect.
    sweep = sweep_of(target_fps=(1e5,))
    explore(replace(sweep, samples=sweep.samples[:10]), tmp_path / "out", pool)
    assert pool.counts["quantize_graph"] == 3
    # A file that was touched is no result.
    file = next((tmp_path / "out" / "jobs").glob("plan-*/plan.pickle"))
    file.write_bytes(b"touched")
    before = pool.counts["plan_board"]
    explore(sweep_of(target_fps=(1e5,), weight_bits=(8, 5)), tmp_path / "out", pool)
    explore(replace(sweep, samples=sweep.samples[:10]), tmp_path / "out", pool)
    assert pool.counts["plan_board"] == before + 1


def test_widths_that_give_the_same_network_are_one(sweep_of, tmp_path):
    """As of a network that its author quantized."""
    sweep = sweep_of(weight_bits=(8, 4), target_fps=(1e5,))
    fixed = nh.Model(sweep.graph).quantize(sweep.samples).graph
    own = replace(sweep, graph=fixed, weight_bits=(8,))
    (point,) = explore(own, tmp_path / "out", Here())
    assert point.quality.real is None
    assert point.quality.fixed is not None
    with pytest.raises(UsageError, match="is fixed"):
        explore(replace(own, weight_bits=(4,)), tmp_path / "other", Here())
    assert not (tmp_path / "other").exists()


def test_a_design_that_does_not_fit_is_a_point(sweep_of, tmp_path):
    points = explore(sweep_of(target_fps=(1e5, 1e9)), tmp_path / "out", Here())
    assert [point.stage for point in points] == ["refused", "planned"]
    assert "does not reach" in points[0].refusal
    assert points[1].is_front
    assert rows(tmp_path / "out")[0]["cycles_per_inference"] is None


def test_a_network_of_windows_step_by_step(tmp_path, rng):
    g = GraphBuilder("taps")
    x = g.conv(g.input("x", [1, 2, 12, 1]), rng.normal(size=[3, 2, 4, 1]))
    graph = g.build(g.conv(x, rng.normal(size=[2, 3, 9, 1])))
    samples = take_samples(rng.normal(size=[20, 2, 12, 1]), graph)
    sweep = Sweep(
        graph, samples, [find_board("ulx3s_25f")], (8,), arch="streaming", until="planned",
        target_fps=(1e5,),
    )  # fmt: skip
    (window,) = explore(sweep, tmp_path / "window", Here())
    (step,) = explore(replace(sweep, stream=StreamTime(None)), tmp_path / "step", Here())
    steps = nh.Model(graph).quantize(samples).steps()
    plan = steps.schedule("ulx3s_25f", arch="streaming", target_fps=1e5)
    assert step.cycles_per_inference == plan.interval
    assert step.quality.samples == window.quality.samples
    noise = steps.compare().sqnr_db
    assert step.quality.sqnr_db == noise[step.quality.worst_layer]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weight_bits": (9,)}, UsageError, "weight_bits must be in 1..8, not 9"),
        ({"target_fps": (-1.0,)}, UsageError, "--target-fps -1 must be positive"),
        ({"seeds": 0}, UsageError, "--seeds must be positive"),
        ({"until": "routed"}, UsageError, "no stage 'routed'"),
        ({"clock_mhz": 1e4}, TargetError, "cannot make 10000 MHz"),
        ({"samples": None}, SampleError, "give representative inputs"),
    ],
)
def test_wrong_wishes_leave_nothing(options, error, message, sweep_of, tmp_path):
    with pytest.raises(error) as caught:
        explore(replace(sweep_of(), **options), tmp_path / "out", Here())
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_files_stays_as_it_is(sweep_of, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="not of a sweep"):
        explore(sweep_of(), tmp_path, Here())
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_job_that_fails_lets_the_others_end(tmp_path, sweep_of, monkeypatch):
    """And what they found is kept."""
    pool = Counting()
    scored = jobs.score_fixed

    def fails(*arguments):
        raise TargetError("out of luck")

    monkeypatch.setattr(jobs, "score_fixed", fails)
    with pytest.raises(TargetError, match="out of luck"):
        explore(sweep_of(target_fps=(1e5,)), tmp_path / "out", pool)
    monkeypatch.setattr(jobs, "score_fixed", scored)
    explore(sweep_of(target_fps=(1e5,)), tmp_path / "out", pool)
    assert pool.counts == {"quantize_graph": 1, "fails": 1, "score_fixed": 1, "plan_board": 1}


def test_another_version_is_refused(tmp_path, sweep_of):
    class Elsewhere(Here):
        def submit(self, function, expected, *arguments):
            del expected
            return super().submit(function, digest("another"), *arguments)

    with pytest.raises(ToolError, match="a worker has another nnef-hw"):
        explore(sweep_of(), tmp_path / "out", Elsewhere())


@pytest.mark.synth
def test_a_design_is_mapped_and_placed_as_its_build(sweep_of, tmp_path):
    sweep = sweep_of(("icebreaker",), target_fps=(5e4,), until="placed", seeds=1)
    pool = Counting()
    (point,) = explore(sweep, tmp_path / "out", pool)
    assert pool.counts["map_board"] == pool.counts["place_board"] == 1
    assert (point.stage, point.timing_met) == ("placed", True)
    assert point.mapped["lut"] == pytest.approx(point.estimated["lut"], rel=0.1)
    assert point.mapped["dsp"] == point.estimated["dsp"]
    assert point.mapped["bram"] == point.estimated["bram"]
    assert explore(sweep, tmp_path / "out", pool) == [point]
    assert pool.counts["map_board"] == pool.counts["place_board"] == 1


@pytest.mark.nightly
@pytest.mark.synth
@pytest.mark.parametrize("board", ["icebreaker", "ulx3s_25f", "tang_nano_9k"])
def test_a_command_builds_what_was_explored(board, cli, tmp_path):
    found = cli(
        "explore", MODEL, "--calibrate", SAMPLES, "--boards", board, "--bits", "6", "--seeds", "2",
        "--target-fps", "4000", "--out", tmp_path / "out", "--json",
    ).json  # fmt: skip
    (point,) = found["points"]
    words = point["build"].split()
    assert words[:2] == ["nnef-hw", "build"]
    report = cli(*words[1:], "--out", tmp_path / "build", "--frames", "3", "--json").json
    assert report["cycles_per_inference"] == point["cycles_per_inference"]
    assert report["resources"]["lut"]["used"] == point["mapped"]["lut"]
    reached = report["fmax_mhz_by_seed"]  # up to the first seed that is in time
    assert reached == {seed: point["placed"]["fmax_mhz"][seed] for seed in reached}
    assert report["accuracy"]["fixed"] == point["quality"]["fixed"]


def test_the_board_of_a_design_is_that_of_its_build(cli, tiny, tmp_path):
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    common = ("--calibrate", samples, "--arch", "streaming")
    found = cli(
        "explore", model, *common, "--boards", "ulx3s_25f", "--bits", "5", "--until", "planned",
        "--out", tmp_path / "out", "--json",
    ).json  # fmt: skip
    point = found["points"][-1]
    words = point["build"].split()[1:]
    build = cli(*words, "--out", tmp_path / "build", "--no-bitstream", "--frames", "1", "--json")
    assert build.json["cycles_per_inference"] == point["cycles_per_inference"]
    assert build.json["resources"]["lut"]["estimated"] == point["estimated"]["lut"]
    files = {path.name: path for path in (tmp_path / "out" / "jobs").glob("*/*.pickle")}
    fixed = pickle.loads(files["fixed.pickle"].read_bytes())
    plans = [pickle.loads(path.read_bytes())
             for path in (tmp_path / "out" / "jobs").glob("*/plan.pickle")]  # fmt: skip
    [plan] = [plan for plan in plans if plan.interval == point["cycles_per_inference"]][:1]
    design = board_of(fixed, plan, find_board("ulx3s_25f"))
    assert design.verilog == (tmp_path / "build" / "board" / "board_top.v").read_text()


KILLED = """
import os, signal, sys
from nnef_hw.cli import main
from nnef_hw.explore.cache import JobCache
record = JobCache._record
def killed(self, *arguments):
    record(self, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)
JobCache._record = killed
main(sys.argv[1:])
"""


def test_a_killed_sweep_goes_on(cli, tiny, tmp_path):
    """What was recorded before is not computed again."""
    words = [
        "explore", tiny / "tiny.nnef.tgz", "--calibrate", tiny / "samples.npz", "--boards",
        "icebreaker", "--until", "planned", "--target-fps", "1e5", "--jobs", "1", "--out", "out",
    ]  # fmt: skip
    words = [str(word) for word in words]
    ended = subprocess.run([sys.executable, "-c", KILLED, *words], cwd=tmp_path, check=False)
    assert ended.returncode == -signal.SIGKILL
    [record] = (tmp_path / "out" / ".steps").glob("*.json")
    before = record.stat().st_mtime_ns
    assert cli(*words).status == 0
    assert record.stat().st_mtime_ns == before
    assert len(list((tmp_path / "out" / ".steps").glob("*.json"))) == 3
