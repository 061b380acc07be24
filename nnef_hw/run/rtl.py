"""The accelerator's Verilog on whole batches, through the compiled fast runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph
from nnef_hw.run.streams import from_stream, to_stream
from nnef_hw.schedule import Plan
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import pack_frames, unpack_frames

__all__ = ["RtlOutcome", "run_rtl"]


@dataclass(frozen=True, slots=True, eq=False)
class RtlOutcome:
    """Output codes [N, ...] of a simulation, and its cycles.

    ``interval`` is the larger of the last two spacings of frames' final output beats, None for one
    frame; ``latency`` runs from the first input beat to the first frame's final output beat.
    """

    codes: NDArray[np.int64]
    interval: int | None
    latency: int
    cycles: int
    cycles_per_second: float


def run_rtl(
    verilog: str,
    plan: Plan,
    graph: Graph,
    codes: Mapping[str, NDArray[Any]],
    *,
    stall: float = 0.0,
    seed: int = 0,
    trace: Path | None = None,
) -> RtlOutcome:
    """Simulate a batch of input codes [N, ...], back to back.

    ``stall`` is the probability per cycle that the source idles and that the sink is not ready.

    Raises
    ------
    CheckError
        If the hardware deadlocks or breaks the stream protocol.
    ToolError
        If Verilator or the compiler is missing or fails.
    """
    source, sink = plan.input, plan.output
    beats = to_stream(codes[graph.inputs[0]], source)
    runner = FastRunner(verilog, speed=True)
    result = runner.run(
        pack_frames(beats, source.bits, signed=source.signed),
        expected_beats=len(beats) * sink.beats, stall=stall, seed=seed, trace=trace,
    )  # fmt: skip
    output = unpack_frames(
        result.payloads, sink.lanes, sink.bits, signed=sink.signed, beats=sink.beats
    )
    ends = result.out_cycles[sink.beats - 1 :: sink.beats]
    return RtlOutcome(
        codes=from_stream(output, sink, graph.tensor(graph.outputs[0]).shape),
        interval=int(np.diff(ends[-3:]).max()) if len(ends) > 1 else None,
        latency=int(ends[0] - result.in_cycles[0]),
        cycles=int(result.cycles),
        cycles_per_second=float(result.cycles_per_second),
    )
