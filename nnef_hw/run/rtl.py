"""The accelerator's Verilog on whole batches, through the compiled fast runner."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.host.streams import fill_batch, from_stream, to_stream
from nnef_hw.ir import Graph
from nnef_hw.reference import Sequences, check_inputs
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import pack_frames, unpack_frames
from nnef_hw.streaming.beats.steady import cycles_per_frame

__all__ = ["RtlOutcome", "Trace", "payloads", "run_rtl"]

LEAST_IDLE, IDLE_FRAMES = 2_000_000, 4
"""Cycles without a beat, and latencies of a frame, after which an accelerator is stuck."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A waveform to write, .vcd or .fst: of how many frames, and of which instances (or all)."""

    trace: Path
    trace_frames: int
    trace_scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RtlOutcome:
    """Output codes [N, ...] of a simulation by name, and its cycles.

    A frame ends with the last of all outputs' beats. ``interval`` is the mean spacing of the last
    of these ends, over the plan's period of frames, rounded up; None for one frame. ``latency``
    runs from the first beat of any input to the end of the first frame. There were ``frames`` of
    them. Of a network with states these are steps: ``steps`` is their number in each sequence, and
    codes are [N, T, ...], or [T, ...] of one; else it is None.
    """

    codes: dict[str, NDArray[np.int64]]
    interval: int | None
    latency: int
    cycles: int
    cycles_per_second: float
    frames: int
    steps: int | None = None


def payloads(
    names: Sequence[str], ports: Sequence[Port], codes: Mapping[str, Array]
) -> dict[str, NDArray[np.uint64]]:
    """Return the payloads of the ports for tensors of these names with codes [N, ...]."""
    return {
        port.name: pack_frames(to_stream(codes[name], port), port.bits, signed=port.signed)
        for name, port in zip(names, ports, strict=True)
    }


def run_rtl(
    verilog: str,
    plan: AcceleratorPlan,
    graph: Graph,
    codes: Mapping[str, Array],
    *,
    top: str = "top",
    stall: float = 0.0,
    seed: int = 0,
    trace: Trace | None = None,
    deadline: float | None = None,
    least_frames: int = 1,
) -> RtlOutcome:
    """Simulate a batch of input codes [N, ...], back to back.

    Those of a network with states are sequences [N, T, ...], or one [T, ...]; it is reset between
    them. Of a design that takes batches, the last one is filled up with frames of 0.

    ``top`` is the module; ``stall`` is the probability per cycle that the source idles and that the
    sink is not ready. After the deadline, a time of ``time.perf_counter``, no frame begins but the
    least ones: the outputs are those of fewer frames then.

    Raises
    ------
    CheckError
        If the hardware deadlocks or breaks the stream protocol.
    ToolError
        If Verilator or the compiler is missing or fails.
    """
    sequences = None
    if graph.is_sequential:
        sequences = Sequences.of(graph, check_inputs(graph, codes))
        codes = {name: x.reshape(-1, *x.shape[2:]) for name, x in sequences.inputs.items()}
    given = len(codes[graph.inputs[0]])
    codes = {name: fill_batch(x, plan.batch) for name, x in codes.items()}
    frames = len(codes[graph.inputs[0]])
    # What is simulated whole, and how many frames that is.
    units, steps = sequences.extents if sequences else (frames // plan.batch, 1)
    runner = FastRunner(
        verilog,
        top,
        inputs=[port.name for port in plan.inputs],
        outputs=[port.name for port in plan.outputs],
    )
    fed = payloads(graph.inputs, plan.inputs, codes)
    limit: dict[str, object] = {}
    if deadline is not None:
        seconds = max(deadline - time.perf_counter(), 0.0)
        least = min(-(-least_frames // plan.batch), units)
        limit = {"seconds": seconds, "least_frames": least, "frames": units}
    if sequences:
        limit["sequences"] = units
    result = runner.run_streams(
        fed, {port.name: frames * port.beats for port in plan.outputs},
        stall=stall, seed=seed, idle_limit=max(LEAST_IDLE, IDLE_FRAMES * plan.latency), **limit,
        **({} if trace is None else asdict(trace)),
    )  # fmt: skip
    outputs = {}
    for name, port in zip(graph.outputs, plan.outputs, strict=True):
        beats = unpack_frames(
            result.payloads[port.name], port.lanes, port.bits, signed=port.signed, beats=port.beats
        )
        outputs[name] = from_stream(beats, port, graph.tensor(name).shape)[:given]
        if sequences and not sequences.is_lone:
            x = outputs[name]
            outputs[name] = x.reshape(-1, steps, *x.shape[1:])
    ends = np.max(
        [result.out_cycles[port.name][port.beats - 1 :: port.beats] for port in plan.outputs],
        axis=0,
    )
    begin = min(cycles[0] for cycles in result.in_cycles.values())
    return RtlOutcome(
        codes=outputs,
        interval=cycles_per_frame(ends[-steps:] if sequences else ends, plan.period),
        latency=int(ends[0] - begin),
        cycles=int(result.cycles),
        cycles_per_second=float(result.cycles_per_second),
        frames=min(len(ends), given),
        steps=steps if sequences else None,
    )
