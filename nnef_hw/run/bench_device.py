"""Speed of a board: the core by replay, the link in real time, and what was predicted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np

from nnef_hw.errors import CheckError, UsageError
from nnef_hw.host.packets import LayerCounts
from nnef_hw.host.protocol import COUNTED_FRAMES, WARM_UP_FRAMES
from nnef_hw.reference import run_fixed
from nnef_hw.report.model.checks import BoardSpeed, LayerWork
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import open_device
from nnef_hw.run.simulate import random_codes

__all__ = ["bench_device"]

REPLAYED_FRAMES = 200
LINK_FRAMES = 16


def bench_device(
    build: Path, port: str, *, frames: int = REPLAYED_FRAMES, link_frames: int = LINK_FRAMES
) -> BoardSpeed:
    """Measure a board, and compare it with the plan.

    The core is fed by the board itself, ``frames`` times without a pause; the link carries
    ``link_frames`` random frames, the results of which have to be those of the fixed model.

    Raises
    ------
    CheckError
        If results over the link differ from the model's, or the core's cycles from the plan's.
    UsageError
        If there are too few frames to count what layers do; also as
        :func:`~nnef_hw.run.device.open_device`.
    LinkError
        The same as for :func:`~nnef_hw.run.device.open_device`.
    """
    folder = BuildFolder.open(build)
    plan, fixed = folder.plan, folder.fixed
    least = WARM_UP_FRAMES + COUNTED_FRAMES
    if plan.layer_counters and frames < least:
        raise UsageError(
            f"{frames} frames are too few to count what layers do",
            remedy=f"give --frames {least} or more",
        )
    codes = random_codes(fixed, link_frames)
    with open_device(build, port) as device:
        clock = device.host.clock_hz()
        begin = time.perf_counter()
        results = device.run_codes(codes)
        seconds = time.perf_counter() - begin
        counters = device.replay(frames)
        damaged = counters.damaged
        counts = device.layer_counts()
    expected = run_fixed(fixed, codes)
    if not all(np.array_equal(results[name], expected[name]) for name in fixed.outputs):
        raise CheckError(
            "results of the board differ from the fixed-point model",
            remedy="flash the build again; if that does not help please report this",
        )
    predicted = folder.architecture.predict_spacing(plan, frames)
    of = "inference" if plan.batch == 1 else f"batch of {plan.batch}"
    if counters.interval != predicted:
        raise CheckError(
            f"the board takes {counters.interval} cycles per {of}, not the predicted {predicted}",
            remedy="please report this with the model: the schedule's timing model is wrong",
        )
    return BoardSpeed(
        board=plan.board,
        simulated=port == "sim",
        frames=frames,
        cycles_per_inference=-(-counters.interval // plan.batch),
        predicted_cycles_per_inference=-(-predicted // plan.batch),
        latency_cycles=counters.latency,
        predicted_latency_cycles=plan.latency,
        inferences_per_second=plan.batch * clock / counters.interval,
        predicted_inferences_per_second=folder.clock_mhz * 1e6 / plan.interval,
        link_inferences_per_second=link_frames / seconds,
        damaged_packets=damaged,
        layers=tuple(_layers(folder, frames, counts)),
    )


def _layers(folder: BuildFolder, frames: int, counts: Sequence[LayerCounts]) -> Iterator[LayerWork]:
    """Yield the work of every layer in an inference: predicted, and measured if it was counted."""
    end = WARM_UP_FRAMES + COUNTED_FRAMES
    plan = folder.plan
    work_of = folder.architecture.predict_work
    predicted = work_of(plan, WARM_UP_FRAMES, end, max(frames, end))
    for station, work, found in zip_longest(plan.stations, predicted, counts):
        row = LayerWork(
            name=station.name,
            predicted_busy_cycles=_per_inference(work.busy),
            predicted_waiting_cycles=_per_inference(work.waiting),
            predicted_starved_cycles=_per_inference(work.starved),
        )
        if found is not None:
            starved = work.busy + work.waiting + work.starved - found.busy - found.waiting
            row = replace(
                row,
                busy_cycles=_per_inference(found.busy),
                waiting_cycles=_per_inference(found.waiting),
                starved_cycles=_per_inference(starved),
            )
        yield row


def _per_inference(cycles: int) -> float:
    """Return the mean over the counted frames, which nearly always is an integer."""
    mean, remainder = divmod(cycles, COUNTED_FRAMES)
    return cycles / COUNTED_FRAMES if remainder else mean
