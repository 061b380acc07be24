"""A build on a board, told to those who made the tool: results, cycles, and the clock."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed
from nnef_hw.report.model.checks import BoardReport
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.bench_device import bench_device
from nnef_hw.run.device import MAX_REPLAY, Device, open_device
from nnef_hw.samples.samples import load_samples
from nnef_hw.samples.scoring import labelled, score

__all__ = ["board_report", "measured_clock"]

_SECONDS = 2.0
"""Time that a replay for the clock should take."""
_LEAST_FRAMES = 10
"""Frames of that replay if they take longer: more than those of two batches."""
_UNSURE_SECONDS = 0.005
"""Error of the time between two replies: a poll, the link, and the computer's scheduler."""


def board_report(build: Path, port: str, samples: Path) -> BoardReport:
    """Run samples and replays on a board, and tell what came out.

    Raises
    ------
    CheckError, UsageError, LinkError
        As :func:`~nnef_hw.run.bench_device.bench_device`, but for samples whose results differ,
        which are counted.
    SampleError
        If the samples do not fit the network.
    """
    folder = BuildFolder.open(build)
    plan, fixed, report = folder.plan, folder.fixed, folder.report
    given = load_samples(samples, fixed)
    codes = quantize_inputs(fixed, given.inputs)
    speed = bench_device(build, port)
    with open_device(build, port) as device:
        found = device.run_codes(codes)
        clock = None if speed.simulated else measured_clock(device, plan.interval / plan.batch)
    expected = run_fixed(fixed, codes)
    count = len(given)
    equal = np.ones(count, bool)
    for name in fixed.outputs:
        same = found[name] == expected[name]
        equal &= same.reshape(count, -1).all(axis=1)
    scores = [
        score(*labelled(fixed, dequantize_outputs(fixed, x)[fixed.outputs[0]], given.labels))
        for x in (found, expected)
        if given.labels is not None
    ]
    return BoardReport(
        model=report.model,
        arch=plan.arch,
        model_hash=report.model_hash or "",
        tools=report.tools or (),
        speed=speed,
        clock_mhz=folder.clock_mhz,
        measured_clock_mhz=clock and clock[0],
        measured_clock_error_mhz=clock and clock[1],
        samples=count,
        equal_samples=int(equal.sum()),
        metric=scores[0].kind if scores else None,
        board_score=scores[0].value if scores else None,
        fixed_score=scores[1].value if scores else None,
    )


def measured_clock(device: Device, cycles_per_frame: float) -> tuple[float, float]:
    """Return the clock of a board in MHz by this computer's time, and its greatest error.

    The board feeds itself two frames, then as many as take two seconds: the difference of both
    times has no part of the link's.
    """
    wanted = round(_SECONDS * device.host.clock_hz() / cycles_per_frame)
    (few, seconds), (many, more) = (
        _timed(device, n) for n in (2, max(_LEAST_FRAMES, min(MAX_REPLAY, wanted)))
    )
    taken = more - seconds
    clock = (many - few) * cycles_per_frame / taken / 1e6
    return clock, clock * _UNSURE_SECONDS / taken


def _timed(device: Device, frames: int) -> tuple[int, float]:
    """Return how many frames a replay had, and the seconds until the board tells its end."""
    begin = time.perf_counter()
    counters = device.replay(frames)
    return counters.frames, time.perf_counter() - begin
