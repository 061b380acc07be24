"""What differs from family to family in the language of yosys, nextpnr and packers."""

from dataclasses import fields

import pytest

from nnef_hw.hardware.families import FAMILIES
from nnef_hw.place.cells.ecp5_tiles import ECP5_TILES
from nnef_hw.place.nextpnr.dialect import Dialect
from nnef_hw.place.nextpnr.nextpnr import Nextpnr
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.system.tools import TOOLS

PLACED = [family for family in FAMILIES if isinstance(toolchain_of(family), Nextpnr)]
each_family = pytest.mark.parametrize("family", PLACED, ids=repr)
DIALECTS = [toolchain_of(family).dialect for family in PLACED]
ICE40, ECP5, GOWIN, ARORA = DIALECTS


def facts(dialect):
    return {field.name: getattr(dialect, field.name) for field in fields(dialect)}


@pytest.mark.parametrize("fact", [field.name for field in fields(Dialect)])
def test_a_fact_left_open_is_an_error(fact):
    known = facts(ICE40)
    del known[fact]
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{fact}'"):
        type(ICE40)(**known)


@pytest.mark.parametrize("question", sorted(Dialect.__abstractmethods__))
def test_a_question_left_open_is_an_error(question):
    answers = {name: None for name in Dialect.__abstractmethods__ if name != question}
    with pytest.raises(TypeError, match=f"abstract .*'?{question}'?"):
        type("Forgetful", (Dialect,), answers)(**facts(ICE40))


@each_family
def test_its_tools_can_be_found(family):
    toolchain = toolchain_of(family)
    dialect = toolchain.dialect
    assert toolchain.programs[0] is TOOLS["yosys"]
    assert [*toolchain.programs[1:]] == [dialect.router, dialect.packer, *dialect.libraries]
    for program, purpose in ((dialect.router, "place and route"), (dialect.packer, "bitstreams")):
        # Arora V has those of Gowin
        owner = next(x for x in FAMILIES if program in toolchain_of(x).programs)
        assert program.purpose == f"{purpose} for {owner.title}"
        assert program.remedy == f"pip install 'nnef-hw[{owner.name}]'"


def test_mappings_of_every_kind_of_ice40():
    def commands(part):
        return ICE40.mappings(part, "net")

    def mapped(options):
        command = f"synth_ice40 -device {options} -run"
        return [
            f"{command} begin:map_ram",
            "memory_libmap -lib +/ice40/brams.txt -lib +/ice40/spram.txt -no-auto-huge",
            "techmap -map memory.v",
            "techmap -map +/ice40/brams_map.v -map +/ice40/spram_map.v",
            "ice40_braminit",
            f"{command} map_ffram:",
        ]

    wire = "scratchpad -set synth_ice40.abc9.W 1760"
    for part in ("up5k", "u4k"):
        assert commands(part) == [[wire, *mapped("u -top net -dffe_min_ce_use 9")]]
    assert commands("hx8k") == [mapped("hx -top net")]
    assert commands("lp384") == [mapped("lp -top net")]


@pytest.mark.parametrize(
    ("dialect", "device", "pins", "free", "route", "packed"),
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
            ARORA, ["--device", "x6", "--vopt", "family=85k", "--vopt", "sspi_as_gpio"],
            ["--vopt", "cst=p"], [], ["--write", "c"],
            ["--cpu_as_gpio", "--done_as_gpio", "--mspi_as_gpio", "--ready_as_gpio",
             "--sspi_as_gpio", "-d", "85k", "-o", "b", "c"],
        ),
        (
            ECP5, ["--85k", "--package", "x", "--speed", "6"],
            ["--lpf", "p"], ["--lpf-allow-unconstrained"],
            ["--textcfg", "c", "--write", "c.json"],
            ["--compress", "c", "b"],
        ),
    ],
    ids=["ice40", "gowin", "arora", "ecp5"],
)  # fmt: skip
def test_options_of_the_tools(dialect, device, pins, free, route, packed):
    assert dialect.device_options("85k", "x", "6") == device
    assert dialect.pin_options("p") == pins
    assert dialect.pin_options(None) == free
    assert dialect.route_options("c") == route
    assert dialect.pack_arguments("85k", "c", "b") == packed


def test_an_ecp5_has_two_placers_and_three_placements():
    for dialect in (ICE40, GOWIN, ARORA):
        for seed in (1, 2):
            assert dialect.placings(seed) == [("--seed", str(seed))]
        assert dialect.ripup_options() == []
        assert dialect.planned() == ()
        assert dialect.tiles() is None
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
    assert (list(ICE40.files()), ICE40.ports(with_pins=False)) == (["memory.v"], ())
    assert (ECP5.files(), ECP5.ports(with_pins=False)) == ({}, ())


def test_memories_of_arora_are_block_rams_of_up_to_18_bits_and_constants_are_read_twice():
    [way] = ARORA.mappings("GW5A-25A", "net")
    assert all("-family gw5a -top net" in command for command in (way[0], way[-1]))
    assert not any("lutram" in command for command in way)
    assert "-map +/gowin/brams_map_gw5a.v" in way[2]
    for dialect, widths, blocks in ((GOWIN, "1 2 4 9 18 36", 2), (ARORA, "1 2 4 9 18", 3)):
        [text] = dialect.files().values()
        assert text.count(f"abits 14; widths {widths} per_port;") == blocks


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
