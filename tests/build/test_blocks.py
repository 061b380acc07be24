"""DSP blocks and block RAMs are exchanged among their places, and the rest placed around them."""

import json
from itertools import permutations

import numpy as np
import pytest

from nnef_hw.build.blocks import exchange_blocks
from nnef_hw.build.placement import Placer
from nnef_hw.families import ECP5

KINDS = "DSP", "RAM"


def placed(cells):
    """Build a placed netlist from (type, place, bits) by name."""
    return {
        "modules": {
            "top": {
                "settings": {"target_freq": "100000000.000000"},
                "cells": {
                    name: {"type": kind, "attributes": {"NEXTPNR_BEL": place},
                           "connections": {"A": list(bits)}}
                    for name, (kind, place, bits) in cells.items()
                },
            },
        },
    }  # fmt: skip


def at(x, y, name="A"):
    return f"X{x}/Y{y}/{name}"


def test_blocks_go_to_their_logic():
    netlist = placed({
        "left": ("LUT", at(1, 1), [1, "0"]), "right": ("LUT", at(21, 1), [2]),
        "multiplies_left": ("DSP", at(20, 3), [1]), "multiplies_right": ("DSP", at(2, 3), [2]),
        "kept_left": ("RAM", at(5, 9), [1]),
    })  # fmt: skip
    exchange = exchange_blocks(netlist, KINDS)
    assert exchange.places == {
        "multiplies_left": at(2, 3), "multiplies_right": at(20, 3), "kept_left": at(5, 9),
    }  # fmt: skip
    assert (exchange.before, exchange.after) == (19 + 8 + 19 + 2, 4 + 8 + 1 + 2)
    assert exchange.saved == 33 / 48
    text = json.dumps(netlist)
    moved = json.loads(exchange.moved(text))
    found = exchange_blocks(moved, KINDS)
    assert (found.before, found.after, found.saved) == (15, 15, 0)
    assert moved["modules"]["top"]["cells"]["left"]["attributes"]["NEXTPNR_BEL"] == at(1, 1)
    fixed = json.loads(exchange.fixed(text))["modules"]["top"]["cells"]
    assert fixed["multiplies_left"]["attributes"]["BEL"] == at(2, 3)
    assert "BEL" not in fixed["left"]["attributes"]
    # what was fixed once is moved as well
    again = json.loads(exchange.moved(json.dumps({"BEL": at(20, 3), "LOC": at(20, 3)})))
    assert again == {"BEL": at(2, 3), "LOC": at(20, 3)}


def test_the_shortest_wires_of_all_exchanges_are_found():
    rng = np.random.default_rng(5)
    for _ in range(20):
        logic = {
            f"lut{n}": (
                "LUT",
                at(*rng.integers(0, 50, 2)),
                rng.choice(6, 2, replace=False).tolist(),
            )
            for n in range(8)
        }
        # no net has two blocks: what one of them costs does not depend on the others
        blocks = {f"dsp{n}": ("DSP", at(*rng.integers(0, 50, 2)), [n]) for n in range(5)}
        exchange = exchange_blocks(placed(logic | blocks), KINDS)
        places = [place for _, place, _ in blocks.values()]
        lengths = [
            exchange_blocks(
                placed(logic | {
                    name: ("DSP", place, bits)
                    for (name, (_, _, bits)), place in zip(blocks.items(), order, strict=True)
                }), (),
            ).before
            for order in permutations(places)
        ]  # fmt: skip
        assert exchange.after == min(lengths)
        assert exchange.before == lengths[0]


def test_wires_never_get_longer():
    rng = np.random.default_rng(6)
    stays = 0
    for _ in range(200):
        blocks = {
            f"block{n}": (
                KINDS[n % 2],
                at(*rng.integers(0, 9, 2), n),
                rng.integers(0, 5, 3).tolist(),
            )
            for n in range(8)
        }
        exchange = exchange_blocks(placed(blocks), KINDS)
        moved = json.loads(exchange.moved(json.dumps(placed(blocks))))
        assert exchange.after == exchange_blocks(moved, ()).before <= exchange.before
        assert sorted(exchange.places.values()) == sorted(place for _, place, _ in blocks.values())
        stays += exchange.saved == 0
    assert 0 < stays < 200


def test_without_blocks_nothing_moves():
    exchange = exchange_blocks(placed({"a": ("LUT", at(1, 1), [1])}), KINDS)
    assert (exchange.places, exchange.moves, exchange.saved) == ({}, {}, 0)


@pytest.mark.parametrize(
    ("blocks", "changes", "sources", "ends"),
    [
        (((0, 3), (20, 3)), False, ["top.json"], ((0, 3), (20, 3))),
        (((20, 3), (0, 3)), False, ["top.json", "seed2/fixed.json"], ((0, 3), (20, 3))),
        (((20, 3), (0, 3)), True, ["top.json", "seed2/fixed.json"], ((20, 3), (0, 3))),
    ],
    ids=["fine", "crossed", "crossed_again"],
)
def test_the_rest_is_placed_once_more_around_them(
    tmp_path, monkeypatch, blocks, changes, sources, ends
):
    cells = {
        "left": ("LUT", at(1, 1), [1]), "right": ("LUT", at(21, 1), [2]),
        "l": ("MULT18X18D", at(*blocks[0]), [1]), "r": ("MULT18X18D", at(*blocks[1]), [2]),
    }  # fmt: skip
    (tmp_path / "top.json").write_text(json.dumps(placed(cells)))
    seen, routed = [], []

    def nextpnr(tool, arguments, *, cwd, log, is_stuck):
        log.write_text("Info: Max frequency for clock 'clk': 99.00 MHz (FAIL at 100 MHz)\n")
        source = cwd / arguments[arguments.index("--json") + 1]
        if "--no-route" in arguments:
            seen.append(source.relative_to(cwd).as_posix())
            # places that are asked for are given
            netlist = json.loads(source.read_text())
            if changes and source.name == "fixed.json":
                placed_cells = netlist["modules"]["top"]["cells"]
                left, right = (placed_cells[name]["attributes"] for name in ("left", "right"))
                left["BEL"], right["BEL"] = right["NEXTPNR_BEL"], left["NEXTPNR_BEL"]
            for cell in netlist["modules"]["top"]["cells"].values():
                attributes = cell["attributes"]
                attributes["NEXTPNR_BEL"] = attributes.get("BEL", attributes["NEXTPNR_BEL"])
            (cwd / arguments[arguments.index("--write") + 1]).write_text(json.dumps(netlist))
            return 0.0
        routed.append(json.loads(source.read_text())["modules"]["top"]["cells"])
        fmax = {"clk": {"achieved": 101, "constraint": 100.5}}
        (cwd / "seed2" / "timing.json").write_text(json.dumps({"fmax": fmax}))
        for name in ("top.config", "top.config.json"):
            (cwd / "seed2" / name).write_text("")
        return 0.0

    monkeypatch.setattr("nnef_hw.build.placement.run_tool", nextpnr)
    placer = Placer("top", ECP5, "85k", "CABGA381", "6", 100.0, None)
    placer.place(tmp_path, 2, tmp_path / "nextpnr.log")
    assert seen == sources
    [found] = routed
    assert {name: found[name]["attributes"]["NEXTPNR_BEL"] for name in "lr"} == {
        "l": at(*ends[0]), "r": at(*ends[1]),
    }  # fmt: skip
    assert not (tmp_path / "seed2" / "fixed.json").exists()
