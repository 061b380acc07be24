import json

import numpy as np
import pytest

from nnef_hw.schedule import Plan, Resources, find_board, schedule
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def plan(fix, rng):
    """One block of every kind."""
    g = GraphBuilder("all_kinds")
    x = g.conv(g.input("x", [1, 2, 9, 8]), rng.normal(size=[3, 2, 3, 3]), padding=[(0, 1), (2, 0)])
    x = g.pool("avg_pool", g.pool("max_pool", g.op("tanh", x), 2), 2, stride=1)
    x = g.pool("max_pool", x, 2, stride=1)
    x = g.op("softmax", x, axes=[1])
    return schedule(fix(g.build(g.op("argmax_reduce", x, axes=[1]))), find_board("ice40"))


def test_json_round_trip(plan):
    text = plan.dumps()
    assert Plan.from_json(json.loads(text)) == plan
    assert Plan.from_json(json.loads(text)).dumps() == text
    kinds = [block.kind for block in plan.blocks]
    assert kinds == ["conv", "table", "running_max", "avg_pool", "max_pool", "softmax", "argmax"]


def test_ports_count_beats(plan):
    (source,), (sink,) = plan.inputs, plan.outputs
    assert (source.name, source.image, source.beats) == ("i", (9, 8, 2), 144)
    assert (sink.name, sink.beats) == ("o", 4)


def test_resources_add_up(plan):
    assert Resources(1, 2, 3, 4, 5) + Resources(10, 20, 30, 40, 50) == Resources(11, 22, 33, 44, 55)
    parts = [block.resources for block in plan.blocks] + [plan.link]
    for kind in ("lut", "ff", "dsp", "bram", "spram"):
        assert getattr(plan.resources, kind) == sum(getattr(part, kind) for part in parts)


def test_no_multipliers_no_utilization(fix):
    g = GraphBuilder()
    table = schedule(fix(g.build(g.op("tanh", g.input("x", [1, 3])))), find_board("ice40"))
    assert table.mac_utilization == 0.0
    assert table.blocks[0].utilization is None
    assert np.isfinite(table.interval)
