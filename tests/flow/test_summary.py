from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.architecture.architecture import Port
from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import Uart
from nnef_hw.flow.summary import _link_rate, make_report
from nnef_hw.passes import simplify
from nnef_hw.place.result import Resource, SynthesisResult
from nnef_hw.quantize import quantize
from nnef_hw.report.model.layers import LayerSource
from nnef_hw.report.pages.html import write_html
from nnef_hw.streaming.architecture import Streaming
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

TARGET = find_board("icebreaker")


@pytest.fixture(scope="module")
def fixed():
    rng = np.random.default_rng(0)
    net = GraphBuilder("tiny")
    y = net.input("image", [1, 1, 6, 6])
    y = net.conv(y, rng.normal(size=(3, 1, 3, 3)), rng.normal(size=(1, 3)), name="conv1")
    y = net.pool("max_pool", y, name="pool1")
    y = net.reshape(y, [1, 12], name="flat")
    net.op("linear", y, rng.normal(size=(4, 12)), rng.normal(size=(1, 4)), name="scores")
    canonical = simplify(net.build())
    return quantize(canonical, {"image": rng.normal(size=(30, 1, 6, 6))})


@pytest.fixture(scope="module")
def plan(fixed):
    return schedule(fixed, TARGET)


@pytest.fixture
def report(fixed, plan):
    """Return ``report(**changes)``."""

    def report(**changes):
        known = {"synthesis": None, "simulation": None, "accuracy": None, "bitstream": None}
        known |= {"seconds": {}, "commands": [], "link": Uart(), "target": TARGET, "others": []}
        timeline = Streaming().timeline(plan)
        known |= {"insides": Streaming().report(plan, fixed, TARGET, timeline)}
        return make_report(plan=plan, **known | changes)

    return report


def port(image, bits=8, lanes=1):
    return Port("i", "x", image, bits, signed=True, lanes=lanes)


@pytest.mark.parametrize(
    ("sent", "received", "bytes_on_the_line"),
    [
        # one packet each way: request and reply of 7 bytes beside the payload, twice
        ((port((1, 1, 8)),), (port((1, 1, 4)),), 8 + 4 + 2 * 14),
        ((port((1, 1, 56)),), (port((1, 1, 1)),), 56 + 1 + 2 * 14),
        ((port((1, 1, 57)),), (port((1, 1, 1)),), 57 + 1 + 3 * 14),
        # 8x8 pixels in two packets, ten scores in one
        ((port((8, 8, 1)),), (port((1, 1, 10)),), 64 + 10 + 3 * 14),
        # the tensors of a frame share packets
        ((port((1, 1, 50)), port((1, 1, 6))), (port((1, 1, 4)),) * 2, 56 + 8 + 2 * 14),
        # codes of 9 to 16 bits take two bytes; filling lanes are sent too
        ((port((1, 1, 8), bits=9),), (port((1, 1, 4), bits=4),), 16 + 4 + 2 * 14),
        ((port((1, 1, 5), lanes=4),), (port((1, 1, 4)),), 8 + 4 + 2 * 14),
    ],
)
def test_link_rate(sent, received, bytes_on_the_line, plan):
    plan = replace(plan, inputs=sent, outputs=received)
    assert _link_rate(plan, Uart(1_000_000), plan.clock_mhz) == pytest.approx(
        100_000 / bytes_on_the_line
    )
    assert _link_rate(plan, Uart(115_200), plan.clock_mhz) == pytest.approx(
        11_520 / bytes_on_the_line
    )


def test_rate_over_the_link_is_that_of_the_slower_end(report, plan):
    slow, fast = report(), report(link=Uart(10**12))
    assert slow.link_inferences_per_second == _link_rate(plan, Uart(1_000_000), plan.clock_mhz)
    assert fast.link_inferences_per_second == fast.inferences_per_second
    assert slow.inferences_per_second == plan.clock_mhz * 1e6 / plan.interval


def test_nothing_is_used_before_synthesis(report):
    value = report()
    assert value.fmax_mhz is value.timing_met is None
    for row in value.resources.values():
        assert row.used is None
        assert 0 <= row.estimated <= row.available


def test_used_resources_after_synthesis(report, plan):
    result = SynthesisResult(
        fmax_mhz=20.0, frequency_mhz=24.0, timing_met=False, clocks={}, cells={}, files={},
        resources={"lut": Resource(1000, 5280), "dsp": Resource(2, 8)}, seconds={},
    )  # fmt: skip
    value = report(synthesis=result)
    assert (value.fmax_mhz, value.timing_met) == (20.0, False)
    used = {name: row.used for name, row in value.resources.items()}
    assert used == {"lut": 1000, "ff": 0, "dsp": 2, "bram": 0, "spram": 0}
    assert value.resources["lut"].available == 5280
    assert value.resources["bram"].estimated == plan.resources.bram


def test_layers_add_up(report, plan):
    value = report()
    conv, pool, linear = value.layers
    assert [layer.name for layer in value.layers] == [b.name for b in plan.blocks]
    assert (conv.parameters, conv.macs, conv.weight_bytes) == (30, 16 * 27, 27)
    assert (conv.input_image, conv.output_image) == ((6, 6, 1), (4, 4, 3))
    assert (linear.parameters, linear.macs, linear.weight_bytes) == (52, 48, 48)
    assert (pool.macs, pool.multipliers, pool.utilization) == (0, 0, None)
    assert pool.kernel == (2, 2)
    assert all(layer.location.startswith("tiny.nnef:") for layer in value.layers)
    assert value.macs == sum(layer.macs for layer in value.layers) == 480
    assert value.multipliers == sum(layer.multipliers for layer in value.layers)
    assert value.cycles_per_inference >= max(layer.cycles for layer in value.layers)
    for layer in (conv, linear):
        busy = layer.macs / (plan.interval * layer.multipliers)
        assert layer.utilization == pytest.approx(busy)
        assert 0 <= layer.in_dsp <= layer.multipliers


@pytest.fixture(scope="module")
def branching():
    """Give the plan of a network with a branch, depthwise multipliers and a sum; its report."""
    rng = np.random.default_rng(1)
    net = GraphBuilder("branching")
    x = net.input("image", [1, 8, 6, 6])
    y = net.op(
        "conv", x, rng.normal(size=(8, 1, 3, 3)), rng.normal(size=(1, 8)), border="constant",
        padding=[(1, 1), (1, 1)], stride=[1, 1], dilation=[1, 1], groups=8, name="depthwise",
    )  # fmt: skip
    net.op("add", x, y, name="sum")
    fixed = quantize(simplify(net.build()), {"image": rng.normal(size=(30, 8, 6, 6))})
    target = find_board("ulx3s_85f")
    plan = schedule(fixed, target)
    timeline = Streaming().timeline(plan)
    return plan, timeline, make_report(
        plan=plan, insides=Streaming().report(plan, fixed, target, timeline), target=target,
        link=Uart(), synthesis=None, simulation=None, accuracy=None, bitstream=None,
        seconds={}, commands=[], others=[],
    )  # fmt: skip


def test_layers_know_what_they_read(branching):
    plan, _, value = branching
    depthwise, total = value.layers
    tensor = plan.inputs[0].tensor
    codes = 6 * 6 * 8
    assert depthwise.sources == (LayerSource(tensor, 0, codes),)
    assert {source.tensor for source in total.sources} == {tensor, depthwise.tensor}
    depths = [source.depth for source in plan.blocks[1].sources]
    assert [source.fifo for source in total.sources] == depths
    assert max(depths) > 0
    assert depthwise.codes == total.codes == codes


def test_depthwise_multipliers_are_lanes_times_taps(branching):
    _, _, value = branching
    depthwise = value.layers[0]
    assert depthwise.kind == "depthwise"
    assert depthwise.multipliers == depthwise.lanes * depthwise.taps > 0


def test_activity_is_that_of_the_timeline(branching):
    plan, timeline, value = branching
    for layer, activity in zip(value.layers, timeline.blocks, strict=True):
        assert layer.busy_cycles == sum(activity.busy)
        assert layer.waiting_cycles == sum(activity.waiting)
        assert layer.busy_cycles + layer.waiting_cycles <= plan.interval


def test_boards_begin_with_that_of_the_build(branching):
    plan, _, value = branching
    own, *others = value.boards
    assert (own.board, own.device) == (plan.board, plan.device)
    assert own.cycles_per_inference <= plan.interval
    assert plan.board not in {row.board for row in others}


def test_stream_that_keeps_the_interval_from_being_halved_is_named(branching):
    plan, _, value = branching
    headroom = value.headroom
    assert headroom.wanted == plan.interval // 2
    beats = 288 // plan.inputs[0].lanes
    assert {limit.codes for limit in headroom.limits} == {beats}
    assert headroom.cycles >= beats
    assert value.roofs.streams == plan.macs / beats == value.roofs.input
    assert value.roofs.dsp_multipliers == 156 <= value.roofs.multipliers
    assert value.roofs.macs_per_multiplier == 2


def test_page_of_a_branching_network_has_its_fifo(branching, tmp_path):
    _, timeline, value = branching
    write_html(value, timeline, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    depth = max(source.fifo for source in value.layers[1].sources)
    assert f">FIFO {depth}<" in page or f">{depth}<" in page
