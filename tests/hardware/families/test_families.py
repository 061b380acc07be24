"""Families: every fact and question is answered, in one place."""

import ast
import copy
import pickle
import pkgutil
from dataclasses import MISSING, fields, replace
from importlib import import_module
from pathlib import Path

import pytest

from nnef_hw import parts
from nnef_hw.boards import BOARDS, find_board
from nnef_hw.hardware.devices import DEVICES
from nnef_hw.hardware.families import ECP5, FAMILIES, GOWIN, ICE40, Family
from nnef_hw.hardware.families.ecp5_tiles import ECP5_TILES
from nnef_hw.system.tools import TOOLS

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
def test_nested_facts_have_no_defaults(family):
    for value in (family.router, family.models):
        assert all(field.default is MISSING for field in fields(value))


@each_family
def test_there_is_one_object_of_each(family):
    assert pickle.loads(pickle.dumps(family)) is family
    assert copy.deepcopy(family) is family
    [device, *_] = [device for device in DEVICES if device.family is family]
    assert pickle.loads(pickle.dumps(device)) == device
    assert hash(replace(device)) == hash(device)


def test_a_family_prints_as_its_name():
    assert [repr(family) for family in FAMILIES] == ["ice40", "ecp5", "gowin"]
    assert "family=ice40," in repr(DEVICES[0])


@each_family
def test_its_name_is_that_of_the_board_that_stands_for_it(family):
    assert find_board(family.name).device.family is family


@each_family
def test_its_tools_can_be_found(family):
    for program, purpose in ((family.router, "place and route"), (family.packer, "bitstreams")):
        spec = TOOLS[program.name]
        assert spec.purpose == f"{purpose} for {family.title}"
        assert spec.remedy == f"pip install 'nnef-hw[{family.name}]'"


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
    }


def test_mappings_of_every_kind_of_ice40():
    def commands(part):
        return ICE40.mappings(part, "net")

    wire = "scratchpad -set synth_ice40.abc9.W 1760"
    for part in ("up5k", "u4k"):
        assert commands(part) == [[wire, "synth_ice40 -device u -top net -dffe_min_ce_use 9"]]
    assert commands("hx8k") == [["synth_ice40 -device hx -top net"]]
    assert commands("lp384") == [["synth_ice40 -device lp -top net"]]


@pytest.mark.parametrize(
    ("family", "device", "pins", "free", "route", "packed"),
    [
        (
            ICE40, ["--85k", "--package", "x"], ["--pcf", "p"],
            ["--pcf-allow-unconstrained"], ["--asc", "c", "--write", "c.json"], ["c", "b"],
        ),
        (
            GOWIN, ["--device", "x6", "--vopt", "family=85k"],
            ["--vopt", "cst=p"], [], ["--write", "c"],
            ["--mspi_as_gpio", "-d", "85k", "-o", "b", "c"],
        ),
        (
            ECP5, ["--85k", "--package", "x", "--speed", "6"],
            ["--lpf", "p"], ["--lpf-allow-unconstrained"],
            ["--textcfg", "c", "--write", "c.json"],
            ["--compress", "c", "b"],
        ),
    ],
    ids=["ice40", "gowin", "ecp5"],
)  # fmt: skip
def test_options_of_the_tools(family, device, pins, free, route, packed):
    assert family.device_options("85k", "x", "6") == device
    assert family.pin_options("p") == pins
    assert family.pin_options(None) == free
    assert family.route_options("c") == route
    assert family.pack_arguments("85k", "c", "b") == packed


def test_an_ecp5_has_two_placers_and_three_placements():
    for family in (ICE40, GOWIN):
        for seed in (1, 2):
            assert family.placings(seed) == [("--seed", str(seed))]
        assert family.ripup_options() == []
        assert family.planned() == ()
        assert family.tiles() is None
    heap, other = (("--seed", seed, "--router", "router2") for seed in ("2", "1002"))
    static = "--placer", "static"
    timing = "--placer-heap-timingweight", "60"
    assert ECP5.placings(2) == [(*heap, *timing), (*heap, *static), (*other, *static)]
    assert ECP5.planned() == ("MULT18X18D", "DP16KD")
    assert ECP5.tiles() is ECP5_TILES
    assert ECP5.ripup_options() == ["--tmg-ripup"]


def test_pads_of_gowin_only_where_pins_are_known():
    [way] = GOWIN.mappings("GW1N-9C", "net")
    assert all("-noiopads -family gw1n -top net" in command for command in (way[0], way[-1]))
    assert all(f"-lib {name}" in way[1] for name in GOWIN.files())
    assert [command.split()[0] for command in GOWIN.ports(with_pins=True)] == ["iopadmap"]
    assert GOWIN.ports(with_pins=False) == ["delete -port w:*"]
    for family in (ICE40, ECP5):
        assert (family.files(), family.ports(with_pins=False)) == ({}, ())


def test_what_a_placed_design_uses_of_gowin():
    kinds = {"LUT4": 100, "ALU": 30, "RAM16SDP4": 2, "DFF": 50, "MULT9X9": 3, "BSRAM": 1, "IOB": 9}
    used = GOWIN.utilization({kind: (count, 1000) for kind, count in kinds.items()})
    assert used == {"lut": (138, 1000), "ff": (50, 1000), "dsp": (3, 1000), "bram": (1, 1000)}


def test_flip_flops_that_take_a_cell_of_gowin():
    cells = {
        "lut": {"type": "LUT3", "connections": {"F": [1]}},
        "behind_lut": {"type": "DFFE", "connections": {"D": [1]}},
        "second": {"type": "DFF", "connections": {"D": [1]}},
        "behind_pin": {"type": "DFFR", "connections": {"D": [2]}},
        "alu": {"type": "ALU", "connections": {"SUM": [3], "COUT": [4]}},
        "behind_alu": {"type": "DFF", "connections": {"D": [3]}},
    }
    netlist = {"modules": {"LUT3": {"attributes": {}}, "n": {"attributes": {"top": "1"}}}}
    netlist["modules"]["n"]["cells"] = cells
    assert GOWIN.lone_flip_flops(netlist) == pytest.approx(2.18)
    assert ECP5.lone_flip_flops(netlist) == 0


def test_nobody_else_names_a_family():
    """No table by name, no comparison with one; but the name is an alias of its board."""
    names = {name for family in FAMILIES for name in (family.name, family.define, family.title)}
    found = []
    for package in ("nnef_hw", "rtl", "sim", "boards", "scripts"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.parent == ROOT / "nnef_hw" / "hardware" / "families":
                continue
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
