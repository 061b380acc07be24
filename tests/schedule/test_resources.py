"""Resource estimates: their form, and what synthesis says about a small accelerator."""

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.schedule import Block, Resources, Source, find_board, schedule
from nnef_hw.schedule.costs import COSTS
from nnef_hw.schedule.features import component_features
from nnef_hw.schedule.resources import (
    block_parts,
    block_resources,
    component_resources,
)
from nnef_hw.testing import GraphBuilder
from nnef_hw.window import Window

BOARDS = ["icebreaker", "ulx3s_85f"]
CONV = Block(
    name="conv", op="conv", kind="conv", sources=(Source("x"),), tensor="y", channels=6,
    out_channels=12, x_bits=8, x_signed=False, out_bits=8, out_signed=False, cycles=1,
    resources=Resources(), depth=128,
    window=Window(10, 12, 3, kernel=(3, 3), padding=((1, 1), (1, 1)), passes=6),
    rows=2, lanes=2, group_rows=2, weight_bits=8, acc_bits=20, digit_bits=2,
    interval=8, in_dsp=True, multipliers=4,
)  # fmt: skip
PARALLEL = replace(
    CONV, parallel=True, lanes=54, channels=6, depth=14, multipliers=108,
    window=replace(CONV.window, channel_blocks=1),
)  # fmt: skip
OTHERS = [
    replace(CONV, kind="max_pool", acc_bits=0, lanes=1, interval=0),
    replace(CONV, kind="avg_pool", lanes=1),
    replace(CONV, kind="interpolated_table", window=None, x_bits=14, lanes=1, interval=0, y_bits=9),
    *(
        replace(CONV, kind=kind, window=None, lanes=1, interval=0, y_bits=8)
        for kind in (
            "table",
            "softmax",
            "tflite_softmax",
            "argmax",
            "sum",
            "table_sum",
            "product",
            "extremum",
            "concat",
        )
    ),
]


@pytest.fixture(scope="module")
def script():
    """The script that measures, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "scripts")
        return importlib.import_module("measure_resources")


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("block", [CONV, PARALLEL, *OTHERS], ids=lambda block: block.kind)
def test_every_feature_has_a_weight_and_every_weight_a_feature(block, board):
    device = find_board(board).device
    for part in block_parts(block):
        features = component_features(part, block, device)
        # The figure of the device stands for products.
        assert set(features) - {"products"} == set(COSTS[device.family][part])
        assert min(COSTS[device.family][part].values()) >= 0
        assert min(features.values()) >= 0


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize(
    "more",
    [
        {"rows": 4, "multipliers": 8},
        {"acc_bits": 24},
        {"digit_bits": 4},
        {"round_stages": 3},
        {"kept_passes": 2},
        {"out_channels": 40},
        {"in_dsp": False},
        {"weight_style": "logic"},
        {"group_rows": 1},
        {"depth": 1024},
        {"window": replace(CONV.window, height=40, width=40)},
        {"window": replace(CONV.window, padding=((2, 2), (2, 2)))},
    ],
    ids=lambda more: next(iter(more)),
)
def test_more_hardware_takes_no_fewer_luts(more, board):
    device = find_board(board).device
    less = block_resources(CONV, device).lut
    assert block_resources(replace(CONV, **more), device).lut >= less > 0


@pytest.mark.parametrize("board", BOARDS)
def test_lut_multipliers_cost_what_the_device_says(board):
    device = find_board(board).device
    in_dsp, in_lut = (
        component_resources("array", replace(CONV, in_dsp=dsp), device) for dsp in (True, False)
    )
    assert in_lut.lut - in_dsp.lut == 4 * device.lut_multiplier
    assert (in_dsp.dsp, in_lut.dsp) == (4 // device.products_per_dsp, 0)
    assert in_lut.bram == in_dsp.bram


@pytest.mark.parametrize("board", BOARDS)
def test_a_block_is_the_sum_of_its_parts(board):
    device = find_board(board).device
    assert block_parts(CONV) == ["pack", "line buffer", "array", "requantizer"]
    parts = [component_resources(part, CONV, device) for part in block_parts(CONV)]
    assert block_resources(CONV, device) == sum(parts, Resources())


def test_fit_finds_the_weights(script, rng, capsys):
    lines = [
        {
            "name": "toy",
            "typical": True,
            "features": {"bits": int(bits), "useless": 1 / bits, "fixed": 1},
            "found": {"lut": 3.0 * bits + 7},
        }
        for bits in rng.permutation(40)[:20] + 1
    ]
    script.fit([*lines, {**lines[0], "typical": False, "found": {"lut": 999}}])
    answer = capsys.readouterr().out
    assert '"bits": 3.00, "useless": 0.00, "fixed": 7.00' in answer
    assert "20 cases, mean error 0.0%, worst 0.0%" in answer


@pytest.mark.synth
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ("line buffer", {"depth": 256, "lanes": 1}),
        ("array", {"rows": 8, "group_rows": 8, "in_dsp": True}),
        ("requantizer", {"out_channels": 8, "digit_bits": 2, "digit_stages": 4}),
        ("requantizer", {"round_stages": 3, "digit_stages": 8}),
        ("tflite_softmax", {"channels": 10}),
        ("table_sum", {"acc_bits": 30}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_component_is_within_15_percent(part, wanted, board, script, tmp_path):
    device = find_board(board).device
    case = next(
        case
        for case in script.component_cases(device)
        if case.part == part and all(getattr(case.block, k) == v for k, v in wanted.items())
    )
    found = script.measure(case.build(), device.family, tmp_path)
    estimate = component_resources(part, case.block, device)
    error = estimate.lut / found.lut - 1
    assert abs(error) < 0.15, f"{error:+.1%}"
    assert (estimate.dsp, estimate.bram) == (found.dsp, found.bram)


@pytest.mark.synth
@pytest.mark.parametrize("board", BOARDS)
def test_whole_accelerator_is_within_15_percent(board, script, fix, rng, tmp_path):
    g = GraphBuilder()
    weights = rng.normal(size=[6, 2, 3, 3])
    x = g.conv(g.input("x", [1, 2, 12, 12]), weights, rng.normal(size=[1, 6]), padding=[(1, 1)] * 2)
    x = g.reshape(g.pool("max_pool", g.op("relu", x), 2), [1, 216])
    graph = fix(g.build(g.op("linear", x, rng.normal(size=[10, 216]), np.zeros((1, 10)))))
    target = find_board(board)
    plan = schedule(graph, target, target_fps=4000)
    found = script.measure(Accelerator(plan, graph), target.device.family, tmp_path)

    estimate = plan.resources
    link_lut = target.link_lut
    error = (estimate.lut - link_lut) / found.lut - 1
    assert abs(error) < 0.15, f"{error:+.1%}"
    assert found.dsp == estimate.dsp - plan.link.dsp > 0
    assert found.bram == estimate.bram - plan.link.bram > 0
