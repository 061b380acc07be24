"""Families: every fact and question is answered, in one place."""

import ast
import copy
import pickle
import pkgutil
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path

import pytest

from nnef_hw import parts
from nnef_hw.boards import BOARDS, find_board
from nnef_hw.hardware.devices import DEVICES, find_device
from nnef_hw.hardware.families import ARORA, FAMILIES, ICE40, Family

ROOT = Path(__file__).parents[3]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=repr)


def facts(family):
    return {field.name: getattr(family, field.name) for field in fields(family)}


@each_family
@pytest.mark.parametrize("fact", [field.name for field in fields(Family)])
def test_a_fact_left_open_is_an_error(family, fact):
    known = facts(family)
    del known[fact]
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{fact}'"):
        type(family)(**known)


@pytest.mark.parametrize("question", sorted(Family.__abstractmethods__))
def test_a_question_left_open_is_an_error(question):
    answers = {name: None for name in Family.__abstractmethods__ if name != question}
    with pytest.raises(TypeError, match=f"abstract .*'?{question}'?"):
        type("Forgetful", (Family,), answers)(**facts(ICE40))


@each_family
def test_there_is_one_object_of_each(family):
    assert pickle.loads(pickle.dumps(family)) is family
    assert copy.deepcopy(family) is family
    [device, *_] = [device for device in DEVICES if device.family is family]
    assert pickle.loads(pickle.dumps(device)) == device
    assert hash(replace(device)) == hash(device)


def test_a_family_prints_as_its_name():
    assert [repr(family) for family in FAMILIES] == ["ice40", "ecp5", "gowin", "arora", "amd7"]
    assert "family=ice40," in repr(DEVICES[0])


@each_family
def test_its_name_is_that_of_the_board_that_stands_for_it(family):
    assert find_board(family.name).device.family is family


def concrete(part):
    """Yield the parts that are components."""
    if hasattr(part, "component"):
        yield part
    for below in part.__subclasses__():
        yield from concrete(below)


@each_family
def test_weights_are_those_of_the_parts(family):
    for module in pkgutil.iter_modules(parts.__path__, "nnef_hw.parts."):
        import_module(module.name)
    assert family.lut_weights.keys() == {
        part.costs
        for part in concrete(parts.Part)
        # what consists of parts takes what these take
        if part.__module__.startswith("nnef_hw.parts.") and hasattr(part, "costs")
        if part.is_made_for(family)
    }


def test_nobody_else_names_a_family():
    """No table by name, no comparison with one; but the name is an alias of its board."""
    names = {name for family in FAMILIES for name in (family.name, family.define, family.title)}
    found = []
    for package in ("nnef_hw", "rtl", "sim", "boards", "scripts"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.parent == ROOT / "nnef_hw" / "hardware" / "families":
                continue
            if path == ROOT / "nnef_hw" / "codegen" / "vendors.py":
                continue  # a vendor's tool has its vendor's name
            tree = ast.parse(path.read_text())
            aliases = {
                node
                for keyword in ast.walk(tree)
                if isinstance(keyword, ast.keyword) and keyword.arg == "aliases"
                for node in ast.walk(keyword.value)
            }
            found += [
                (str(path.relative_to(ROOT)), node.value)
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and node.value in names and node not in aliases
            ]
    assert not found


def test_every_family_has_a_device_and_a_board():
    for things in (DEVICES, [board.device for board in BOARDS]):
        assert {device.family for device in things} == set(FAMILIES)


def test_a_plan_keeps_to_what_was_seen_to_be_placed():
    large, small = find_device("gw5ast-138c"), find_device("gw5a-25a")
    assert large.placed_lut < ARORA.stream_share * large.lut
    assert large.stream_share == large.lut_share == large.placed_lut / large.lut
    assert (small.stream_share, small.lut_share) == (ARORA.stream_share, ARORA.lut_share)
    assert replace(small, placed_lut=small.lut).stream_share == ARORA.stream_share
