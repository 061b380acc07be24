"""The blocks that a layer could be."""

from dataclasses import replace

import pytest

from nnef_hw.architecture.architecture import Port
from nnef_hw.boards import find_board
from nnef_hw.streaming.beats.beats import simulate_beats
from nnef_hw.streaming.filters.arrays import ArrayFolding
from nnef_hw.streaming.filters.systolic import SystolicFolding
from nnef_hw.streaming.filters.taps import TapFolding
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.options import layer_options, useful_options
from nnef_hw.testing import GraphBuilder


@pytest.fixture(params=["half_up", "tflite"])
def layers(request, fix, rng, monkeypatch):
    """Return layers of every kind of array and line buffer, and pools."""
    monkeypatch.setattr("nnef_hw.streaming.filters.systolic.LEAST_UTILIZATION", 0.0)
    g = GraphBuilder("kinds")
    x = g.conv(g.input("x", [1, 1, 10, 10]), rng.normal(size=[6, 1, 3, 3]), padding=1)
    x = g.conv(g.op("relu", x), rng.normal(size=[6, 1, 3, 3]), groups=6)
    x = g.conv(g.op("relu", x), rng.normal(size=[9, 6, 1, 1]))
    x = g.pool("max_pool", x, 3, stride=1)
    if request.param == "half_up":
        x = g.pool("avg_pool", x, 3, stride=1)
    return lower(fix(g.build(g.pool("max_pool", x, 2)), rounding=request.param)).layers


@pytest.mark.parametrize("board", ["ice40", "ecp5"])
def test_all_kinds_of_arrays_and_line_buffers_are_options(board, layers):
    device = find_board(board).device
    blocks = [block for layer in layers for block in layer_options(layer, device)]
    kinds = {block.kind for block in blocks}
    assert {"conv", "dot", "depthwise", "max_pool", "running_max"} <= kinds
    buffers = {type(block.buffer).__name__ for block in blocks}
    assert {"LineBuffer", "ParallelLineBuffer", "BankedLineBuffer", "NoneType"} == buffers


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_sums_go_from_memory_to_memory_through_a_register_of_each(lanes, fix, rng):
    """A row without one behind it takes what the next memory's rows take, and these others."""
    g = GraphBuilder("pointwise")
    graph = fix(g.build(g.conv(g.input("x", [1, 24, 4, 4]), rng.normal(size=[32, 24, 1, 1]))))
    [layer] = lower(graph).layers
    blocks = layer_options(replace(layer, result_lanes=lanes), find_board("ecp5").device)
    foldings = [b.folding for b in blocks if isinstance(b.folding, SystolicFolding)]
    assert any(folding.group_rows < folding.rows for folding in foldings)
    assert all(folding.group_rows >= min(2 * lanes, folding.rows) for folding in foldings)


@pytest.mark.parametrize("board", ["ice40", "ecp5"])
def test_useful_options_are_those_that_none_beats(board, layers):
    device = find_board(board).device

    def amounts(block):
        used = block.resources
        return (block.cycles, block.missing_words, used.lut, used.dsp, used.bram, used.spram,
                block.multipliers)  # fmt: skip

    for layer in layers:
        options = layer_options(layer, device)
        useful = useful_options(layer, device)
        assert all(block in options for block in useful)
        points = {amounts(block) for block in useful}
        assert len(points) == len(useful)
        for block in options:
            point = amounts(block)
            beaten = any(all(a <= b for a, b in zip(p, point, strict=True)) for p in points)
            assert beaten
            assert point in points or any(
                p != point and all(a <= b for a, b in zip(p, point, strict=True)) for p in points
            )
        for point in points:
            assert not any(
                p != point and all(a <= b for a, b in zip(p, point, strict=True)) for p in points
            )


@pytest.mark.parametrize("board", ["ice40", "ecp5"])
def test_parts_that_foldings_share_are_those_that_each_would_make(board, layers, monkeypatch):
    device = find_board(board).device
    shared = [block.parts for layer in layers for block in layer_options(layer, device)]
    keeping = {
        (kind, name): method
        for kind in (ArrayFolding, SystolicFolding, TapFolding)
        for name, method in vars(kind).items()
        if hasattr(method, "__wrapped__")
    }
    assert len(keeping) >= 7
    for (kind, name), method in keeping.items():
        monkeypatch.setattr(kind, name, method.__wrapped__)
    assert shared == [block.parts for layer in layers for block in layer_options(layer, device)]


def test_where_products_are_made_does_not_matter_to_when(layers):
    device = find_board("ecp5").device
    times, sizes = {}, {}
    for layer in layers[1:3]:
        codes = layer.window.out_pixels * layer.out_channels
        ports = (
            [Port("i", layer.sources[0], (1, 1, layer.beats), 8, signed=True)],
            [Port("o", layer.node.outputs[0], (1, 1, codes), 8, signed=True)],
        )
        for block in layer_options(layer, device)[:40]:
            times.setdefault(block.timing, set()).add(simulate_beats([block], *ports, 2))
            sizes.setdefault(block.timing, set()).add(block.resources)
    assert all(len(found) == 1 for found in times.values())
    assert any(len(found) > 2 for found in sizes.values())


def test_options_are_listed_once(fix, rng):
    """Networks with some streams of the same widths have the same layers there."""
    g = GraphBuilder("linears")
    x = g.input("x", [1, 8])
    for n in range(2):
        x = g.op("linear", x, rng.normal(size=[8, 8]), rng.normal(size=[1, 8]), name=f"fc{n}")
    network, device = lower(fix(g.build(x))), find_board("ecp5").device
    first, second = network.layers
    assert useful_options(first, device) is useful_options(first, device, None)
    some = network.widened({first.sources[0]: 2})
    more = network.widened({first.sources[0]: 2, second.tensor: 4})
    assert some.layers[0] is more.layers[0] is not first
    assert some.layers[1] is second is not more.layers[1]
    other = network.at_clock(50.0)
    assert other is network.at_clock(50.0)
    assert other.widened({first.sources[0]: 2}).layers[0].clock_mhz == 50.0
