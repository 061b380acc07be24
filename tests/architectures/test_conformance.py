"""What every architecture promises to those above it: codes, cycles, plans, reports."""

import json
import re
from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import pytest
from conformance_cases import (
    ARCHITECTURES,
    BOARDS,
    EACH,
    FRAMES,
    NETWORKS,
    ONE_BOARD_EACH,
    PAIRS,
    SCHEMES,
    beats_of,
    codes_of,
    fixed,
    image,
    kinds,
    planned,
    several,
    vector,
)  # fmt: skip
from sweeps import few

from nnef_hw import architectures
from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.flow import options as build_options
from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build
from nnef_hw.frontend import save
from nnef_hw.ir import StreamOrder
from nnef_hw.ir.layers import layers_of
from nnef_hw.quantize import Scheme
from nnef_hw.reference import run_fixed
from nnef_hw.report.model.conversion import from_json, to_json
from nnef_hw.report.model.report import Insides
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulate import simulate
from nnef_hw.sim.pysim import run_streams

READ = (kinds, several, vector, image)
"""Networks whose plans are read again by day: all kinds of layers, several ports, few bits."""


def test_every_architecture_runs_some():
    assert {name for name, _ in PAIRS} == ARCHITECTURES.keys()
    runs = {name: {network for found, network in PAIRS if found == name} for name in ARCHITECTURES}
    assert runs["streaming"] == runs["engine"] == SCHEMES.keys()
    assert runs["table"] == {vector, image}


@ONE_BOARD_EACH
def test_codes_and_cycles(name, network, board, rng):
    """Codes are those of the fixed model under any stalls; cycles without are those of the plan."""
    architecture, graph = ARCHITECTURES[name], fixed(network)
    plan = planned(name, network, board)
    fed, expected = beats_of(graph, plan, codes_of(graph, rng))
    counts = {port.name: FRAMES * port.beats for port in plan.outputs}
    component = architecture.component(plan, graph)
    for port in (*plan.inputs, *plan.outputs):
        assert getattr(component, port.name).payload.shape().size == port.payload_bits
    done = run_streams(component, fed, counts, rng=rng, stall=(0.0, 0.4), idle_limit=4000)
    ends = []
    for port in plan.outputs:
        items = done.items[port.name]
        assert [code for item in items for code in item.data] == expected[port.name]
        assert [item.last for item in items] == [*[0] * (port.beats - 1), 1] * FRAMES
        ends.append(done.out_cycles[port.name][port.beats - 1 :: port.beats])
    frames = np.max(ends, axis=0)
    begin = min(cycles[0] for cycles in done.in_cycles.values())
    assert frames[0] - begin == plan.latency
    spacings = [architecture.predict_spacing(plan, n) for n in range(2, FRAMES + 1)]
    assert np.diff(frames).tolist() == spacings
    assert architecture.predict_interval(plan, 1) is None
    assert architecture.predict_interval(plan, 100) == plan.interval
    mean = -(-sum(spacings[-plan.period :]) // plan.period)
    assert mean == architecture.predict_interval(plan, FRAMES)
    assert plan.batch == 1
    if plan.settling is not None and plan.settling + plan.period < FRAMES:
        assert mean == plan.interval


@pytest.mark.parametrize(
    ("name", "network"),
    few(PAIRS, [(name, network) for name, network in PAIRS if network in READ]),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_plan_is_read_again(name, network):
    """From its text and the graph alone; it makes the same Verilog, with what runs the layers."""
    board = BOARDS[PAIRS.index((name, network)) % len(BOARDS)]
    architecture, graph = ARCHITECTURES[name], fixed(network)
    plan = planned(name, network, board)
    value = json.loads(plan.dumps())
    again = architecture.read_plan(value, graph)
    assert again.dumps() == plan.dumps()
    assert (value["arch"], value["board"], again.arch) == (name, board, name)
    assert (again.resources, again.interval, again.latency) == (
        plan.resources, plan.interval, plan.latency,
    )  # fmt: skip
    first, second = (to_verilog(architecture.component(p, graph)) for p in (plan, again))
    assert first == second
    for station in plan.stations:
        assert re.fullmatch(r"[A-Za-z_]\w*", station.instance)
        assert re.search(rf"\b{station.instance}\b", first)


@NETWORKS
def test_what_is_no_plan_is_refused(name, network):
    """One of another network, and one without something that it has."""
    architecture, graph = ARCHITECTURES[name], fixed(network)
    value = json.loads(planned(name, network, BOARDS[0]).dumps())
    for key in value.keys() - {"arch"}:
        with pytest.raises((ValueError, LookupError, TypeError)):
            architecture.read_plan({k: x for k, x in value.items() if k != key}, graph)
    others = [other for _, other in PAIRS if other is not network]
    with pytest.raises((ValueError, LookupError, TypeError)):
        architecture.read_plan(value, fixed(others[0]))


@pytest.mark.parametrize("board", BOARDS)
@NETWORKS
def test_facts_of_a_plan(name, network, board):
    """They agree with each other; the ports are those of the graph, and of the component."""
    graph = fixed(network)
    plan, target = planned(name, network, board), find_board(board)
    assert (plan.model, plan.board, plan.device) == (graph.name, board, target.device.name)
    assert plan.interval > 0
    assert plan.latency > 0
    busy = plan.interval * plan.multipliers
    assert plan.mac_utilization == (plan.macs / busy if busy else 0.0)
    assert plan.mac_utilization <= 2
    for kind in ("lut", "ff", "dsp", "bram", "spram"):
        assert getattr(plan.link, kind) <= getattr(plan.resources, kind)
        assert getattr(plan.resources, kind) <= getattr(target.device, kind, plan.resources.ff)
    for names, ports, first in (
        (graph.inputs, plan.inputs, "i"),
        (graph.outputs, plan.outputs, "o"),
    ):
        assert len(names) == len(ports)
        for tensor, port in zip(names, ports, strict=True):
            assert port.name == (first if len(names) == 1 else f"{first}_{tensor}")
            found = graph.tensor(tensor)
            assert port.beats * port.lanes == found.volume
            assert (port.bits, port.signed) == (found.qtype.bits, found.qtype.signed)
    codes = codes_of(graph, np.random.default_rng(1), 2)
    shaped = run_fixed(plan.graph_of(graph), codes)
    assert all((shaped[key] == x).all() for key, x in run_fixed(graph, codes).items())


@NETWORKS
def test_stations(name, network):
    """What runs the layers, and what it does in all of its time."""
    architecture, graph = ARCHITECTURES[name], fixed(network)
    plan = planned(name, network, BOARDS[0])
    timeline = architecture.timeline(plan)
    work = architecture.predict_work(plan, 1, 3, FRAMES)
    assert len(plan.stations) == len(work) == len(timeline.blocks) > 0
    assert len({station.name for station in plan.stations}) == len(plan.stations)
    for station in plan.stations:
        assert {"rows", "lanes", "taps", "lines"} <= station.shape.keys()
        assert station.cycles > 0
        assert station.describe(graph).strip()
    # fewer than two intervals where frames are half a cycle shorter in the mean
    (cycles,) = {found.busy + found.waiting + found.starved for found in work}
    assert -(-cycles // 2) == plan.interval
    assert min(min(found.busy, found.waiting, found.starved) for found in work) >= 0
    assert timeline.interval == plan.interval
    steps = -(-timeline.interval // timeline.step)
    for activity in (*timeline.inputs, *timeline.blocks):
        assert len(activity.busy) == len(activity.waiting) == steps
        for busy, waiting in zip(activity.busy, activity.waiting, strict=True):
            assert 0 <= busy + waiting <= timeline.step
    rows = architecture.program(plan)
    assert rows
    assert len({frozenset(row) for row in rows}) == 1


@NETWORKS
def test_report(name, network):
    """Layers add up to the plan; what it says survives JSON."""
    architecture, graph = ARCHITECTURES[name], fixed(network)
    plan, target = planned(name, network, BOARDS[1]), find_board(BOARDS[1])
    report = architecture.report(plan, graph, target, architecture.timeline(plan))
    assert from_json(to_json(report), Insides) == report
    assert [row.name for row in report.layers] == [station.name for station in plan.stations]
    for row in report.layers:
        assert row.busy_cycles + row.waiting_cycles <= max(plan.interval, row.cycles)
    assert sum(row.macs for row in report.layers) == plan.macs
    assert bool(report.shared) == report.in_turn
    luts = [row.lut for row in report.layers]
    shared = report.shared.lut if report.in_turn else 0
    assert max(*luts, shared) <= plan.resources.lut


def test_a_graph_is_ordered_and_lowered_once(monkeypatch):
    """Whatever architectures are asked of it, one after the other."""
    graph, made, board = fixed.__wrapped__(vector), [], find_board(BOARDS[1])
    usual = StreamOrder.__init__

    def counted(self, of):
        made.append(of)
        usual(self, of)

    monkeypatch.setattr(StreamOrder, "__init__", counted)
    layers = [layers_of(graph)]
    for architecture in ARCHITECTURES.values():
        assert not architecture.problems(graph)
        assert architecture.may_fit(graph, board)
        plan = architecture.plan(graph, board)
        architecture.read_plan(json.loads(plan.dumps()), graph)
        layers.append(layers_of(graph))
    assert made == [graph]
    assert all(found is layers[0] for found in layers)


@EACH
def test_what_decides_over_plans(name):
    """Boards of one device and link have one plan."""
    architecture, board = ARCHITECTURES[name], find_board("ulx3s_85f")
    same = replace(board, name="another")
    found = [architecture.decisive(one, 25.0, None) for one in (board, same)]
    assert found[0] == found[1]
    assert isinstance(found[0], Hashable)
    assert hash(found[0]) == hash(found[1])
    assert found[0] != architecture.decisive(find_board("icebreaker"), 25.0, None)


@pytest.mark.verilator
@pytest.mark.system
@EACH
def test_a_whole_build(name, tmp_path, rng, monkeypatch):
    """All that asks an architecture: emission, simulation, report and its pages, the folder."""
    every = tuple(ARCHITECTURES.values())
    monkeypatch.setattr(architectures, "ARCHITECTURES", every)
    monkeypatch.setattr(build_options, "ARCHITECTURES", every)
    save(vector(rng), tmp_path / "vector.nnef.tgz")
    np.savez(tmp_path / "samples.npz", x=rng.normal(size=(9, 4)))
    options = BuildOptions(
        model=tmp_path / "vector.nnef.tgz", board="ulx3s_85f", out=tmp_path / "out", arch=name,
        calibrate=tmp_path / "samples.npz", bitstream=False, frames=5,
        scheme=Scheme(activation_bits=3),
    )  # fmt: skip
    report = build(options)
    simulated = report.simulation
    assert report.arch == name
    assert simulated.bit_exact
    assert simulated.cycles_per_inference == report.cycles_per_inference
    assert simulated.latency_cycles == report.latency_cycles
    assert "table" in (options.out / "report.html").read_text() or name != "table"
    folder = BuildFolder.open(options.out)
    assert folder.plan.dumps() == (options.out / "plan.json").read_text()
    stalled = simulate(folder, options.calibrate, limit=3, stall=0.3)
    assert (stalled.bit_exact, stalled.frames) == (True, 3)
    assert "restarted" in (options.out / "board" / "board_top.v").read_text()
    manifest = json.loads((options.out / "manifest.json").read_text())
    assert (manifest["arch"], manifest["latency_cycles"]) == (name, folder.plan.latency)
