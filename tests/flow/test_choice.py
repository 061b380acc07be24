"""Of the architectures that run a model, a build takes the one with the best plan."""

from types import SimpleNamespace

import pytest

from nnef_hw.errors import (
    ErrorGroup,
    ModelError,
    SampleError,
    ShortageError,
    TargetError,
    UsageError,
)
from nnef_hw.flow.choice import Candidates
from nnef_hw.hardware.devices import Resources
from nnef_hw.report.model.limits import OtherArchitecture


def plan(arch, interval, lut, latency=0):
    return SimpleNamespace(
        arch=arch, interval=interval, latency=latency, resources=Resources(lut=lut)
    )


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
