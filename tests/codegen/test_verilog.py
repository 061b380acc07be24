# amaranth: UnusedElaboratable=no
"""The accelerator as Verilog: its text, its names, and the primitives it becomes."""

import re
from dataclasses import replace

import numpy as np
import pytest
from changed_plans import with_blocks

from nnef_hw.boards import find_board
from nnef_hw.codegen.comments import module_comments
from nnef_hw.codegen.hierarchy import _put_first
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.passes import simplify
from nnef_hw.place.synthesis import map_only
from nnef_hw.quantize import quantize
from nnef_hw.rtl.base.primitives import PRIMITIVES
from nnef_hw.streaming.filters.systolic import SystolicFolding, window_weights
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder
from nnef_hw.verilog.names import identifier
from nnef_hw.verilog.rtlil import Module, Wire


@pytest.fixture
def graph(rng):
    """A convolution, a table, a pool and a linear layer, fixed."""
    g = GraphBuilder()
    weights = rng.normal(size=[3, 2, 2, 2])
    x = g.op("tanh", g.conv(g.input("x", [1, 2, 5, 5]), weights, np.zeros((1, 3)), name="edges"))
    x = g.reshape(g.pool("max_pool", x, 2, name="shrink"), [1, 12])
    g.op("linear", x, rng.normal(size=[4, 12]), np.zeros((1, 4)), name="classes")
    canonical = simplify(g.build())
    return quantize(canonical, {"x": rng.normal(size=[8, 2, 5, 5])})


def fold(plan, target, changes):
    """Put changes into the foldings of a plan by name, and simulate its beats again."""
    blocks = [
        replace(block, folding=changes[block.name]) if block.name in changes else block
        for block in plan.blocks
    ]
    return with_blocks(plan, blocks)


def test_same_text_every_time(graph):
    plan = schedule(graph, find_board("ice40"))
    assert to_verilog(Accelerator(plan, graph)) == to_verilog(Accelerator(plan, graph))


def test_modules_say_which_layer_they_run(graph):
    plan = schedule(graph, find_board("ice40"))
    comments = module_comments(plan, graph)
    text = to_verilog(Accelerator(plan, graph), comments=comments)
    found = re.findall(r"^// (.*)\n(?:// [io]: .*\n)*module ([^\s(;]+)", text, re.MULTILINE)
    said = {module: comment for comment, module in found}
    assert said["top"].startswith(f"{plan.model}: {plan.interval} cycles per frame")
    edges, *_, classes = plan.blocks
    assert re.fullmatch(
        rf"edges: conv 2x2, 5x5x2 -> 4x4x3, \S+:\d+, .* in \w+.*, {edges.cycles} cycles",
        said["top_edges"],
    )
    assert said["top_shrink"].startswith("shrink: max_pool 2x2, 4x4x3 -> 2x2x3")
    assert said["top_classes_conv"].endswith(f"{classes.cycles} cycles")
    assert said["top_edges_array"].startswith("Multiply the windows of every channel")
    plain = to_verilog(Accelerator(plan, graph))
    assert _without_comments(text) == _without_comments(plain)


def _without_comments(text):
    return [line for line in text.splitlines() if not line.startswith("//")]


def test_comment_cannot_be_left(graph):
    plan = schedule(graph, find_board("ice40"))
    hostile = replace(plan, model="a\nendmodule \u202e\\")
    assert module_comments(hostile, graph)[""].startswith("a\\nendmodule \\u202e\\:")


def test_modules_carry_the_names_of_layers(graph):
    text = to_verilog(Accelerator(schedule(graph, find_board("ice40")), graph), name="net")
    # A module of primitives may have a text of its own for this family.
    others = re.sub(r"`ifdef NNEF_HW_GOWIN.*?`endif", "", text, flags=re.DOTALL)
    modules = re.findall(r"^module (\w+)", others, re.MULTILINE)
    assert len(modules) == len(set(modules))
    expected = {
        "net", "net_edges", "net_edges_window", "net_edges_array", "net_edges_requantize",
        "net_tanh2", "net_tanh2_table", "net_shrink_maximum", "net_classes_conv_array",
    }  # fmt: skip
    assert expected <= set(modules)


def test_primitives_come_once_and_no_source_path_does(graph):
    text = to_verilog(Accelerator(schedule(graph, find_board("ecp5")), graph))
    assert text.count(PRIMITIVES.read_text()) == 1
    assert len(re.findall(r"^module nnef_hw_product_pair\b", text, re.MULTILINE)) == 1
    assert ".py" not in text
    assert "src =" not in text


@pytest.mark.parametrize("word", ["before", "bit", "edge", "logic", "reg", "unique0", "wait"])
def test_no_name_is_a_reserved_word(word):
    assert identifier(word) == f"{word}_"


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        ("conv1", "conv1"),
        ("block/conv.2", "block_conv_2"),
        ("2d", "layer_2d"),
        ("a b", "a_b"),
        ("_x", "_x"),
    ],
)
def test_names_of_instances_are_identifiers(layer, name, graph):
    block = schedule(graph, find_board("ecp5")).blocks[0]
    assert replace(block, layer=replace(block.layer, name=layer)).instance == name


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_window_weights_fill_absent_lanes_with_zeros(lanes, graph):
    layer = lower(graph).layers[0]
    words = window_weights(layer, lanes)
    assert words.shape == (3, 4 * -(-2 // lanes), lanes)
    padded = words.reshape(3, 4, -1)
    assert (padded[:, :, :2] == layer.weights).all()
    assert not padded[:, :, 2:].any()


DIGITS = {"digit_bits": 1, "digit_stages": 1, "kept_passes": 1}
FOLDINGS = {
    "edges": SystolicFolding(
        rows=3, lanes=1, group_rows=2, in_dsp=3, weight_style="block", depth=64, **DIGITS
    ),
    "classes_conv": SystolicFolding(
        rows=1, lanes=2, group_rows=1, in_dsp=0, weight_style="logic", depth=64, **DIGITS
    ),
}


@pytest.mark.synth
@pytest.mark.parametrize(
    ("board", "dsp", "ram"),
    [
        ("ice40", "SB_MAC16", "SB_RAM40_4K"),
        ("ecp5", "MULT18X18D", "DP16KD"),
        ("gowin", "MULT9X9", "SDPX9B|SPX9"),
        ("arora", "MULT12X12", "SDPX9B|SPX9"),
        ("amd7", "DSP48E1", "RAMB18E1"),
    ],
)
def test_dsp_and_block_ram_counts_are_exact(board, dsp, ram, graph, tmp_path):
    target = find_board(board)
    plan = fold(schedule(graph, target, target_fps=1), target, FOLDINGS)
    source = tmp_path / "top.v"
    source.write_text(to_verilog(Accelerator(plan, graph)))
    cells = map_only(
        source, top="top", family=target.device.family, device=target.part, out_dir=tmp_path / "map"
    )
    assert cells[dsp] == plan.resources.dsp - plan.link.dsp
    rams = sum(count for cell, count in cells.items() if re.fullmatch(ram, cell))
    assert rams == plan.resources.bram - plan.link.bram


def test_clocks_are_a_modules_first_ports_whatever_the_order_of_its_domains():
    """Amaranth takes that from a set of names, so it was another one in every process."""
    names = ["board_rst", "data", "board_clk", "rst", "clk"]
    wires = {f"\\{name}": Wire(f"\\{name}", 1, False, "input", None) for name in names}
    module = Module("\\m", wires)
    _put_first(module, ["clk", "rst", "board_clk", "board_rst", "other_clk"])
    assert [name[1:] for name in module.wires] == ["clk", "rst", "board_clk", "board_rst", "data"]
    assert module.wires == wires
