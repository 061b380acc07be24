import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.hardware.devices import Resources
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


@pytest.fixture
def graph(fix, rng):
    """A layer of every kind."""
    g = GraphBuilder("all_kinds")
    x = g.conv(g.input("x", [1, 2, 9, 8]), rng.normal(size=[3, 2, 3, 3]), padding=[(0, 1), (2, 0)])
    x = g.pool("avg_pool", g.pool("max_pool", g.op("tanh", x), 2), 2, stride=1)
    x = g.pool("max_pool", x, 2, stride=1)
    x = g.op("softmax", x, axes=[1])
    return fix(g.build(g.op("argmax_reduce", x, axes=[1])))


@pytest.fixture
def plan(graph):
    return schedule(graph, find_board("ice40"))


def test_kinds(plan):
    kinds = [block.kind for block in plan.blocks]
    assert kinds == ["conv", "table", "running_max", "avg_pool", "max_pool", "softmax", "argmax"]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda layers: layers.pop("tanh2"), "which are not the layers of the model"),
        (lambda layers: layers["tanh2"].update(fifos=[0, 0]), "layer 'tanh2' has 1 operands"),
        (lambda layers: layers["tanh2"].update(folding="Origami"), "is not a folding"),
        (lambda layers: layers["conv1"].pop("kept_passes"), "is not a folding"),
    ],
    ids=["layers", "fifos", "folding", "choice"],
)
def test_plans_of_other_layers_are_refused(damage, reason, plan, graph):
    value = plan.to_json()
    damage(value["layers"])
    with pytest.raises(ValueError, match=reason):
        StreamingPlan.from_json(value, lower(graph))


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
    assert table.multipliers == 0
    assert np.isfinite(table.interval)
