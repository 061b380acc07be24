"""Of the architectures that run a model, a build takes the one with the best plan."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import nnef_hw
from nnef_hw.boards.interfaces import find_link, find_source
from nnef_hw.errors import (
    ErrorGroup,
    ModelError,
    SampleError,
    ShortageError,
    TargetError,
    UsageError,
)
from nnef_hw.flow.choice import RATE_SLACK, Candidates, Pace, choose_plan, choose_soonest, quickest
from nnef_hw.flow.compilation import plan_quickest, read_inputs
from nnef_hw.flow.options import BuildOptions, check_options
from nnef_hw.flow.steps import Steps
from nnef_hw.flow.survey import outlooks, roughly_fixed
from nnef_hw.frontend import save
from nnef_hw.hardware.devices import Resources
from nnef_hw.report.model.limits import OtherArchitecture
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


def plan(arch, interval, lut, latency=0, clock_mhz=50.0):
    return SimpleNamespace(
        arch=arch, interval=interval, latency=latency, resources=Resources(lut=lut),
        clock_mhz=clock_mhz,
    )  # fmt: skip


PLANS = {"first": plan("first", 500, 900, 600), "second": plan("second", 400, 1000, 700)}


def candidates(*names):
    return Candidates([SimpleNamespace(name=name) for name in names])


def make(architecture):
    return PLANS[architecture.name]


def refuse(*names):
    def step(architecture):
        if architecture.name in names:
            raise TargetError(f"{architecture.name} is full")
        return architecture.name

    return step


def test_fewest_cycles_are_taken_unless_a_small_design_is_asked_for():
    best, others = candidates("first", "second").plan(make, smallest=False)
    assert best is PLANS["second"]
    assert others == [
        OtherArchitecture(arch="first", cycles_per_inference=500, lut=900, refused=None)
    ]
    best, others = candidates("first", "second").plan(make, smallest=True)
    assert best is PLANS["first"]
    assert [other.arch for other in others] == ["second"]


def test_frames_that_wait_for_each_other_take_the_shortest_latency():
    """A token that is fed back: an interval that is shorter gains nothing."""
    best, others = candidates("first", "second").plan(make, smallest=False, by_latency=True)
    assert best is PLANS["first"]
    assert others == [
        OtherArchitecture(arch="second", cycles_per_inference=700, lut=1000, refused=None)
    ]


class Architecture:
    """One that has a plan of :data:`PLANS`, and remembers what it was asked for."""

    def __init__(self, name):
        self.name = name

    def plan(self, fixed, target, **asked):
        self.asked = asked
        return PLANS[self.name]


@pytest.mark.parametrize(("takes_soonest", "taken"), [(True, "second"), (False, "first")])
def test_of_those_that_keep_up_the_soonest_may_be_taken(monkeypatch, takes_soonest, taken):
    """Not the smallest, which a user gets who asks for a rate."""
    monkeypatch.setitem(PLANS, "first", plan("first", 500, 900, 9000))
    both = [Architecture("first"), Architecture("second")]
    best, others = choose_plan(
        Candidates(both), None, None, target_fps=30.0, takes_soonest=takes_soonest
    )
    assert best.arch == taken
    assert {x.asked["target_fps"] for x in both} == {30.0}
    assert not any(x.asked["by_latency"] for x in both)
    cycles = {True: 9000, False: 400}[takes_soonest]
    assert [other.cycles_per_inference for other in others] == [cycles]


def test_where_nobody_asks_for_a_rate_the_soonest_result_may_count(tmp_path):
    options = BuildOptions(model=tmp_path, out=tmp_path, board="ulx3s_85f")
    assert not options.takes_soonest
    runner = replace(options, link=find_link("mlperf"))
    heard = replace(options, sources=(find_source("i2s"),))
    assert runner.takes_soonest
    assert heard.takes_soonest
    assert not any(replace(x, target_fps=50.0).takes_soonest for x in (runner, heard))


def test_the_first_of_equal_ones_is_taken():
    equal = candidates("first", "second")
    best, _ = equal.plan(lambda a: plan(a.name, 7, 7), smallest=False)
    assert best.arch == "first"


def test_one_that_was_refused_is_not_asked_again_but_reported():
    both = candidates("first", "second")
    assert both.each(refuse("second")) == ["first"]
    best, others = both.plan(make, smallest=False)
    assert best is PLANS["first"]
    refused = "second is full"
    assert others == [
        OtherArchitecture(arch="second", cycles_per_inference=None, lut=None, refused=refused)
    ]


def test_all_refusals_are_told_when_none_is_left():
    both = candidates("first", "second")
    both.each(refuse("first"))
    with pytest.raises(ErrorGroup) as found:
        both.each(refuse("second"))
    assert [str(error) for error in found.value.errors] == ["first is full", "second is full"]
    with pytest.raises(TargetError, match=r"^first is full$"):
        candidates("first").each(refuse("first"))


def test_what_each_lacks_is_one_error():
    """What was said of the first is not said again; those without hardware say why."""
    claims = {"first": "model 'm' does not fit b", "second": "model 'm' does not fit b"}

    def step(architecture):
        raise ShortageError(claims[architecture.name], architecture.name, "it takes 3 of 2")

    unable = {"third": [ModelError("softmax 's': not yet", remedy="omit it"), ModelError("x")]}
    both = Candidates([SimpleNamespace(name=name) for name in claims], lambda: unable)
    with pytest.raises(ShortageError) as found:
        both.each(step)
    assert str(found.value) == (
        "model 'm' does not fit b with --arch first: it takes 3 of 2; nor with --arch second: it "
        "takes 3 of 2; --arch third has no hardware for it: softmax 's': not yet (and 1 more)"
    )


def test_one_that_lacks_room_and_one_that_cannot_be_asked_for():
    def step(architecture):
        if architecture.name == "first":
            raise UsageError("--batch is for engines", remedy="omit it")
        raise ShortageError("model 'm' does not fit b", architecture.name, "it takes 3 of 2")

    with pytest.raises(ShortageError) as found:
        candidates("first", "second").each(step)
    assert str(found.value) == (
        "model 'm' does not fit b with --arch second: it takes 3 of 2; nor with --arch first: "
        "--batch is for engines"
    )


def test_a_reason_that_all_share_is_told_once():
    def step(_):
        raise SampleError("no samples were given")

    with pytest.raises(SampleError, match="no samples"):
        candidates("first", "second").each(step)


def latencies(fastest, cycles):
    """Return a planner: intervals from the fastest on, but 8, and cycles of latency by clock."""
    asked = []

    def make(pace):
        asked.append(pace)
        interval = 16
        if pace.target_fps is not None:
            interval = int(pace.clock_mhz * 1e6 / pace.target_fps)
            if interval < fastest or interval == 8:
                raise TargetError("the device is full")
        latency = cycles[pace.clock_mhz or 90] + interval
        return SimpleNamespace(interval=interval, latency=latency)

    return make, asked


@pytest.mark.parametrize(
    ("fastest", "cycles", "clock", "interval"),
    [
        (1, {90: 54, 60: 19, 40: 14}, 60, 1),
        (1, {90: 54, 60: 35, 40: 14}, 40, 1),
        (1, {90: 20, 60: 19, 40: 14}, 90, 1),
        (16, {90: 20, 60: 19, 40: 18}, 90, 16),
        (17, {90: 20, 60: 19, 40: 18}, None, None),
    ],
    ids=["slower", "slowest", "usual", "as_it_is", "none_faster"],
)
def test_the_soonest_result_is_taken(fastest, cycles, clock, interval):
    make, asked = latencies(fastest, cycles)
    pace, plan = quickest(make, 90.0, [60.0, 40.0])
    assert plan.latency == cycles[pace.clock_mhz or 90] + plan.interval
    if fastest >= 16:  # the usual design is the fastest
        assert pace == Pace()
    else:
        assert pace == Pace(clock, clock * 1e6 / interval * (1 - RATE_SLACK))
    assert asked[0] == Pace()
    assert len(asked) == len(set(asked))


def test_no_plan_at_all_is_an_error():
    def make(pace):
        raise TargetError("the device is full")

    with pytest.raises(TargetError):
        quickest(make, 90.0, [60.0])


@pytest.mark.parametrize(
    ("latencies_by_clock", "taken", "clock"),
    [
        # (architecture, clock): cycles; of 1 cycle per frame the first has fewer
        ({("a", 90.0): 54, ("a", 40.0): 40, ("b", 90.0): 53, ("b", 40.0): 50}, "b", 90.0),
        ({("a", 90.0): 54, ("a", 40.0): 22, ("b", 90.0): 53, ("b", 40.0): 50}, "a", 40.0),
    ],
    ids=["longer_interval", "slower_clock"],
)
def test_the_soonest_of_all_architectures_is_taken(latencies_by_clock, taken, clock):
    """Cycles of different clocks are compared as times; neither intervals nor LUTs count."""

    class Planner(SimpleNamespace):
        def plan(self, fixed, target, *, clock_mhz, target_fps, **wishes):
            assert (fixed, wishes) == ("net", given)
            mhz = clock_mhz or target.clock_mhz
            interval = 16 if target_fps is None else int(mhz * 1e6 / target_fps)
            if interval < {"a": 4, "b": 16}[self.name]:
                raise TargetError("the device is full")
            cycles = latencies_by_clock[self.name, mhz]
            return plan(self.name, interval, {"a": 10, "b": 20}[self.name], cycles, mhz)

    given = {"layer_counters": True, "batch": 2, "by_latency": False}
    pace, found, others = choose_soonest(
        Candidates([Planner(name="a"), Planner(name="b")]), "net", SimpleNamespace(clock_mhz=90.0),
        [40.0], **given,
    )  # fmt: skip
    assert (found.arch, found.clock_mhz, pace.arch) == (taken, clock, taken)
    assert (pace.clock_mhz or 90.0) == clock
    assert [other.arch for other in others] == [{"a": "b", "b": "a"}[taken]]


def test_a_network_of_vectors_is_soonest_at_a_slower_clock(tmp_path, rng):
    """Its matrix products have more adders between registers there; options follow from it."""
    g = GraphBuilder("vectors")
    x = g.input("x", [1, 8])
    for outputs, inputs in ((8, 8), (4, 8)):
        x = g.op("linear", x, rng.normal(size=[outputs, inputs]), np.zeros((1, outputs)))
    model = tmp_path / "vectors.nnef.tgz"
    save(g.build(x), model)
    np.savez(tmp_path / "samples.npz", x=rng.normal(size=(40, 8)))
    wanted = BuildOptions(
        model, "ulx3s_85f", tmp_path / "build", calibrate=tmp_path / "samples.npz",
        goal="latency", bitstream=False,
    )  # fmt: skip
    target = check_options(wanted)
    steps = Steps(tmp_path / "build")
    steps.folder.mkdir()
    found = plan_quickest(wanted, target, lambda what: None, steps)
    assert (found.goal, found.arch) == ("rate", "streaming")
    assert found.clock_mhz in target.frequencies
    assert found.clock_mhz < target.clock_mhz
    assert int(found.clock_mhz * 1e6 / found.target_fps) == 1

    def seconds(clock_mhz, target_fps):
        graph, samples = read_inputs(wanted)
        fixed = roughly_fixed(graph, samples)
        plan = schedule(fixed, target, clock_mhz=clock_mhz, target_fps=target_fps)
        return plan.latency / plan.clock_mhz

    least = seconds(found.clock_mhz, found.target_fps)
    assert least < seconds(None, None)
    assert least < seconds(None, target.clock_mhz * 1e6)
    graph, samples = read_inputs(wanted)
    (outlook,) = outlooks(graph, [target], samples, goal="latency")
    assert (outlook.clock_mhz, outlook.cycles_per_inference) == (found.clock_mhz, 1)
    assert outlook.latency_seconds == pytest.approx(least / 1e6)
    assert (outlook.clock.by, outlook.arch) == ("option", "streaming")
    soon = nnef_hw.load(model).quantize(dict(samples.inputs)).schedule("ulx3s_85f", goal="latency")
    assert (soon.clock_mhz, soon.interval) == (found.clock_mhz, 1)
    again = plan_quickest(wanted, target, lambda what: None, Steps(tmp_path / "build"))
    assert again == found
    fixed_clock = replace(wanted, clock_mhz=target.clock_mhz)
    assert plan_quickest(fixed_clock, target, lambda what: None, steps).clock_mhz == (
        target.clock_mhz
    )


@pytest.mark.parametrize(
    ("changes", "option"),
    [({"target_fps": 5.0}, "--target-fps"), ({"fastest": True}, "--freq auto")],
)
def test_what_a_goal_decides_is_not_asked_for(changes, option, tmp_path):
    wanted = BuildOptions(tmp_path / "model", "ulx3s_85f", tmp_path, goal="latency", **changes)
    with pytest.raises(UsageError, match=f"which {option} would decide"):
        check_options(wanted)
