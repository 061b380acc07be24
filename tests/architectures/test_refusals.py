"""What every architecture refuses: all reasons, with remedies and the numbers that decide.

A further architecture has another row of ``REFUSED``.
"""

import contextlib
import re
from dataclasses import replace

import numpy as np
import pytest
from conformance_cases import (
    ARCHITECTURES,
    BOARDS,
    EACH,
    NETWORKS,
    fixed,
    planned,
)  # fmt: skip

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import NnefHwError, TargetError, UsageError
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.testing import GraphBuilder


def kept_value(net):
    old = net.state("old", np.zeros((1, 4, 4, 4)))
    net.update("old", net.op("add", net.input("x", (1, 4, 4, 4)), old, name="total"))
    return "total"


def refused_by_streaming(rng):
    """An input that nobody reads, and an output that depends on no input of its step."""
    net = GraphBuilder("refused")
    kept_value(net)
    net.input("unused", (1, 4))
    return net.build("total", net.op("tanh", "old", name="late"))


def refused_by_engine(rng):
    """An output that is a state, and a concatenation whose codes do not fill words."""
    net = GraphBuilder("refused")
    total = kept_value(net)
    x = net.conv(total, rng.normal(size=(3, 4, 1, 1)))
    x = net.op("concat", x, total, axis=1, shape=[1, 7, 4, 4], name="joined")
    return net.build(net.conv(x, rng.normal(size=(2, 7, 1, 1))), "old")


def refused_by_table(rng):
    """A state, and several outputs."""
    net = GraphBuilder("refused")
    kept_value(net)
    return net.build("total", net.op("tanh", "total", name="late"))


REFUSED = {
    "streaming": (refused_by_streaming, ("'unused'", "'late'")),
    "engine": (refused_by_engine, ("'old'", "'joined'")),
    "table": (refused_by_table, ("'old'", "2 outputs")),
}


@EACH
def test_all_reasons_are_told(name, rng):
    """Each with a remedy; before quantization as behind it, and by the plan as by the question."""
    architecture = ARCHITECTURES[name]
    network, told = REFUSED[name]
    canonical = simplify(network(rng))
    samples = {
        tensor: rng.normal(size=(8, 2, *canonical.tensor(tensor).shape[1:]))
        for tensor in canonical.inputs
    }
    graph = quantize(canonical, samples, Scheme())
    for errors in (architecture.problems(canonical), architecture.problems(graph)):
        assert all(error.remedy for error in errors)
        assert len(errors) == len(told)
        for error, what in zip(errors, told, strict=True):
            assert what in str(error)
    with pytest.raises(NnefHwError) as raised:
        architecture.plan(graph, find_board(BOARDS[1]))
    assert all(what in str(raised.value) for what in told)


@NETWORKS
def test_what_does_not_fit(name, network):
    """It is refused with the numbers that decide; what fits is not."""
    architecture, graph = ARCHITECTURES[name], fixed(network)
    assert not architecture.problems(graph)
    board = find_board(BOARDS[1])
    room = architecture.weight_room(board)
    assert room is None or (room.arch == name and room.bits > 0 and room.memories)
    assert architecture.may_fit(graph, board)
    device = replace(board.device, lut=board.link_lut + 20, dsp=0, bram=0, spram=0)
    with pytest.raises(TargetError) as raised:
        architecture.plan(graph, replace(board, device=device))
    assert board.name in str(raised.value)
    assert re.search(r"\d", str(raised.value))
    with pytest.raises(TargetError):
        architecture.plan(graph, board, target_fps=1e12)
    slow = architecture.plan(graph, board, target_fps=1.0)
    fast = planned(name, network, BOARDS[1])
    assert slow.interval >= fast.interval
    assert slow.resources.lut <= fast.resources.lut


@NETWORKS
def test_what_it_cannot_count_or_batch_is_a_mistake_of_the_user(name, network):
    """Counters of layers are bits of the component; otherwise the option is refused."""
    architecture, graph, board = ARCHITECTURES[name], fixed(network), find_board(BOARDS[1])
    plan = None
    with contextlib.suppress(UsageError):
        plan = architecture.plan(graph, board, layer_counters=True)
    if plan is not None:
        assert plan.layer_counters
        component = architecture.component(plan, graph, counted=True)
        assert len(component.busy) == len(component.waiting) == len(plan.stations)
        assert "busy" in to_verilog(component)
    with pytest.raises(UsageError):
        architecture.plan(graph, board, batch=0)
