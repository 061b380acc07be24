"""An accelerator that has not been built, run cycle by cycle in Amaranth's own simulator.

Nothing is compiled. A compiled simulation (:mod:`nnef_hw.run.rtl`) is some hundred times faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.architectures import find_architecture
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import UsageError
from nnef_hw.host.streams import fill_batch, from_stream, to_stream
from nnef_hw.ir import Graph
from nnef_hw.sim.pysim import run_streams

__all__ = ["ComponentRun", "run_component"]


@dataclass(frozen=True, slots=True, eq=False)
class ComponentRun:
    """Codes that a simulated accelerator gave, and its cycles.

    Parameters
    ----------
    codes
        Outputs [N, ...] by name.
    cycles
        From the first beat of any input to the last result.
    """

    codes: dict[str, NDArray[np.int64]]
    cycles: int


def run_component(
    plan: AcceleratorPlan,
    graph: Graph,
    codes: Mapping[str, Array],
    *,
    stall: float = 0.0,
    seed: int = 0,
) -> ComponentRun:
    """Simulate a batch of input codes [N, ...], back to back.

    ``stall`` is the probability per cycle that a source idles and that a sink is not ready.

    Raises
    ------
    UsageError
        If the network has states, whose sequences begin with a reset.
    CheckError
        If the hardware deadlocks or breaks the stream protocol.
    """
    if graph.is_sequential:
        raise UsageError(
            f"{graph.name} has states, which a build's simulation resets between sequences",
            remedy="build it, and run the build",
        )
    given = len(codes[graph.inputs[0]])
    codes = {name: fill_batch(x, plan.batch) for name, x in codes.items()}
    frames = len(codes[graph.inputs[0]])
    beats = {
        port.name: [
            {"data": beat, "last": n == port.beats - 1}
            for frame in to_stream(codes[name], port).tolist()
            for n, beat in enumerate(frame)
        ]
        for name, port in zip(graph.inputs, plan.inputs, strict=True)
    }
    run = run_streams(
        find_architecture(plan.arch).component(plan, graph),
        beats,
        {port.name: frames * port.beats for port in plan.outputs},
        rng=np.random.default_rng(seed),
        stall=stall,
        idle_limit=10_000 + 4 * plan.latency,
    )
    outputs = {}
    for name, port in zip(graph.outputs, plan.outputs, strict=True):
        items = [list(item.data) for item in run.items[port.name]]
        found = np.array(items, np.int64).reshape(frames, port.beats, port.lanes)
        outputs[name] = from_stream(found, port, graph.tensor(name).shape)[:given]
    begin = min(cycles[0] for cycles in run.in_cycles.values())
    end = max(cycles[-1] for cycles in run.out_cycles.values())
    return ComponentRun(outputs, end - begin)
