"""The manifest: all that a host needs to know of a build."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.boards.interfaces import ChipLoop, ChosenSink, ChosenSource, Link
from nnef_hw.frontend import graph_hash
from nnef_hw.host.manifest import (
    FORMAT_VERSION,
    IMAGE,
    MODULE,
    PROGRAM,
    answer_hash,
    probe_codes,
)
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents
from nnef_hw.ir.input_readers import index_count
from nnef_hw.reference import run_fixed

__all__ = ["make_manifest"]


def make_manifest(
    graph: Graph,
    plan: AcceleratorPlan,
    *,
    generator: str,
    link: Link,
    sinks: Sequence[ChosenSink] = (),
    sources: Sequence[ChosenSource] = (),
    loop: ChipLoop | None = None,
    module: str = MODULE,
    bitstream: bytes | None = None,
    oscillator_mhz: float | None = None,
) -> dict[str, object]:
    """Describe a build: tensors with shapes and QTypes, streams, folding, link.

    The ``qtype`` of an input with scales for each feature has lists of them and of their zero
    points, and the ``axis`` of the input's shape that they lie along.

    ``port`` is the prefix of the accelerator's ports for a tensor.
    ``image`` is (height, width, channels) in stream order; a tensor of another shape is reshaped by
    the host in NCHW order. ``link`` is the way to the host, and ``sinks`` are where outputs go
    besides; ``sources`` are where inputs come from in place of the host; ``loop`` is the board's
    own between them, in sessions of texts;
    ``module`` is the accelerator's name in the Verilog; ``bitstream`` the hash of the
    manifest that a bitstream was made with, if that is another one; ``oscillator_mhz`` the clock
    of the host link, where the accelerator has one of its own that may follow after routing.
    """
    return {
        "format": FORMAT_VERSION,
        "generator": generator,
        "model": graph.name,
        "model_hash": graph_hash(graph),
        "module": module,
        "arch": plan.arch,
        "board": plan.board,
        "device": plan.device,
        "clock_mhz": plan.clock_mhz,
        **({} if oscillator_mhz is None else {"oscillator_mhz": oscillator_mhz}),
        "inputs": [
            _tensor(graph, name, port) for name, port in zip(graph.inputs, plan.inputs, strict=True)
        ],
        "outputs": [
            _tensor(graph, name, port)
            for name, port in zip(graph.outputs, plan.outputs, strict=True)
        ],
        **_states(graph),
        **_stream(graph),
        "folding": [
            {
                "layer": station.name,
                "rows": station.shape["rows"],
                "lanes": station.shape["lanes"],
                "cycles": station.cycles,
            }
            for station in plan.stations
        ],
        **({"batch": plan.batch} if plan.batch > 1 else {}),
        "cycles_per_inference": plan.interval,
        "latency_cycles": plan.latency,
        "link": {
            **link.to_json(),
            **({"counted_layers": len(plan.stations)} if plan.layer_counters else {}),
        },
        **({"sinks": [sink.to_json() for sink in sinks]} if sinks else {}),
        **({"sources": [source.to_json() for source in sources]} if sources else {}),
        **({"token_loop": loop.to_json()} if loop else {}),
        **_memories(graph, plan),
        **_program(plan),
        **({} if bitstream is None else {"bitstream": {"manifest": bitstream.hex()}}),
        "files": {
            "model": "model.nnef.tgz",
            "plan": "plan.json",
            "verilog": "rtl/top.v",
            "bench": "sim",
            **link.files(module),
        },
    }


def _states(graph: Graph) -> dict[str, object]:
    """Return the states that the network keeps from step to step; an ABORT resets them."""
    if not graph.is_sequential:
        return {}
    return {
        "states": [
            {"name": name, "shape": list(graph.tensor(name).shape)}
            for name, state in graph.states.items()
            if state.goes_on
        ]
    }


def _stream(graph: Graph) -> dict[str, object]:
    """Return how inputs take windows of a stream, if they do."""
    rows = {name: found.to_json() for name, found in graph.rows.items()}
    return {"stream": rows} if rows else {}


def _memories(graph: Graph, plan: AcceleratorPlan) -> dict[str, object]:
    """Return the contents of the board's memory, if it has to hold any."""
    for stored in plan.images:
        entry = {
            "kind": stored.kind, "file": IMAGE, "address": stored.address,
            "bytes": len(stored.data), "read": stored.read,
            "over_link": stored.is_loaded,
            "sha256": hashlib.sha256(stored.data).hexdigest(),
            "answer": _answer(graph),
        }  # fmt: skip
        return {"memory": entry}
    return {}


def _program(plan: AcceleratorPlan) -> dict[str, object]:
    """Return the program that a processor may load, if it may."""
    if plan.loaded is None:
        return {}
    sha256 = hashlib.sha256(plan.loaded).hexdigest()
    return {"program": {"file": PROGRAM, "bytes": len(plan.loaded), "sha256": sha256}}


def _answer(graph: Graph) -> str:
    """Return the digest that tells a host whether a board has these weights."""
    sources = []
    for name in graph.inputs:
        tensor = graph.tensor(name)
        assert tensor.qtype is not None
        sources.append((name, sample_extents(tensor.shape), tensor.qtype))
    found = run_fixed(graph, probe_codes(sources))
    return answer_hash([found[name] for name in graph.outputs])


def _tensor(graph: Graph, name: str, port: Port) -> dict[str, object]:
    tensor, features = graph.tensor(name), graph.features.get(name)
    assert tensor.qtype is not None
    return {
        "name": name,
        "port": port.name,
        "shape": list(tensor.shape),
        "qtype": {**tensor.qtype.to_json(), **(features.to_json() if features else {})},
        "image": list(port.image),
        "lanes": port.lanes,
        "beats": port.beats,
        **({"integers": count} if (count := index_count(graph, name)) else {}),
    }
