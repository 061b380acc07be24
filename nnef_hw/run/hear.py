"""A board whose sensor plays a file of sound or motion, in simulation: ``sim --wav``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.boards.interfaces import (
    EventSink,
    HostLink,
    SampledSource,
    link_of,
    sink_of,
)
from nnef_hw.errors import CheckError, UsageError
from nnef_hw.host.link import Host
from nnef_hw.host.streams import from_stream
from nnef_hw.reference import run_fixed
from nnef_hw.report.model.hearing import Curve, Event, Heard, Hearing, Sound
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulated_board import sources_of, with_pads
from nnef_hw.samples.recordings import read_recording
from nnef_hw.sim.board_runner import BoardTransport

__all__ = ["hear", "require_heard"]


def hear(build: BuildFolder, recording: Path) -> Hearing:
    """Play a recording to the sensor of a build's simulated board; compare events with the model's.

    Parameters
    ----------
    recording
        A file of sound or motion, see :func:`.read_recording`.

    Raises
    ------
    UsageError
        If the build has no such sensor or no sink of events, or the file is not what it takes up.
    CheckError
        If the board has read fewer samples than there are.
    """
    manifest = build.manifest
    sources = sources_of(build.path)
    sinks = [sink_of(entry) for entry in manifest.get("sinks", ())]
    sampled = [(n, one) for n, one in enumerate(sources) if isinstance(one, SampledSource)]
    watched = [(n, sink) for n, sink in enumerate(sinks) if isinstance(sink, EventSink)]
    if not sampled or not watched:
        what = "no sink of events" if sampled else "no microphone, and no sensor of motion"
        raise UsageError(
            f"{str(build.path)!r} has {what}, so that --wav says nothing of it",
            remedy="build it with --source i2s --sink pin",
        )
    if len(sampled) > 1:
        raise UsageError(
            f"{str(build.path)!r} has {len(sampled)} sensors, and a file is of one",
            remedy="build it with one --source",
        )
    [(place, source)] = sampled
    samples = read_recording(
        recording, rate=source.rate, channels=source.channels, sensor=source.sensor_title
    )
    heard = source.heard(samples).ravel()
    steps = len(heard) // source.frame
    if not steps:
        raise UsageError(
            f"{recording} has {len(samples)} samples, and a step takes {source.samples}",
            remedy=f"give more of {source.medium}",
        )
    clk_hz = manifest["clock_mhz"] * 1e6
    verilog = (build.path / "board" / "board_top.v").read_text()
    verilog, top = with_pads(build.path, verilog)
    link = link_of(manifest["link"])
    assert isinstance(link, HostLink), "plain IP has no sources"
    with BoardTransport(
        verilog, clk_hz=clk_hz, link=link, others=[*sources, *sinks],
        numbers={source.name: source.played(samples)}, top=top,
    ) as board:  # fmt: skip
        board.advance(ceil(source.playing_cycles(steps, clk_hz)))
        told = [sink.told(board.received(len(sources) + n), clk_hz) for n, sink in watched]
        ends = source.frame_ends(board.received(place), steps, clk_hz)
        cycles, seconds = board.cycles, board.seconds
        # without a host the LED tells that something was lost
        lost = Host(board).counters().lost if link.has_host else int(board.has_sent)
    assert lost is not None, "a sensor does not wait"
    codes = _model_codes(build, source, heard[: steps * source.frame], steps)
    formats = {sink.output: _format(build, sink) for _, sink in watched}
    expected = [sink.occurrences(codes[sink.output], formats[sink.output]) for _, sink in watched]
    events, equal = [], True
    for (_, sink), found, wanted in zip(watched, told, expected, strict=True):
        at = [int(np.searchsorted(ends, cycle, "right")) - 1 for cycle, _ in found]
        says = [what for _, what in found]
        equal &= at == [event.step for event in wanted]
        equal &= says == [sink.says(event) for event in wanted]
        events += [
            Event(
                cycle / clk_hz, event.step, sink.output, event.number, sink.title_of(event),
                event.score,
            )
            for (cycle, _), event in zip(found, wanted, strict=False)
        ]  # fmt: skip
    told_events = tuple(sorted(events, key=lambda event: event.seconds))
    curves = tuple(
        Curve(
            output, formats[output].dequantize(codes[output]),
            tuple((sink.threshold, sink.title) for _, sink in watched if sink.output == output),
        )
        for output in formats
    )  # fmt: skip
    told_all = Heard(
        seconds=len(samples) / source.rate,
        steps=steps,
        cycles=cycles,
        cycles_per_second=round(cycles / seconds),
        duty=build.plan.interval * source.frames_per_second / clk_hz,
        equal=equal,
        lost=lost,
        medium=source.medium,
        events=told_events,
    )
    taken = build.fixed.tensor(source.input).qtype
    assert taken is not None
    sound = Sound(
        recording.name, source.rate, source.samples, heard.reshape(-1, source.channels),
        (taken.lo, taken.hi), tuple(source.channel_names), source.has_spectrum, curves,
    )  # fmt: skip
    return Hearing(told_all, sound)


def require_heard(found: Heard) -> None:
    """Fail a board whose events are not those of the fixed-point model.

    Raises
    ------
    CheckError
        If they differ, or samples were lost on the way.
    """
    if found.lost:
        raise CheckError(
            f"the board has lost {found.lost:,} samples of {found.seconds:.2f} s of "
            f"{found.medium}: its accelerator did not take them in time",
            remedy="please report this with the model: the schedule's timing model is wrong",
        )
    if not found.equal:
        raise CheckError(
            "the events on the board's pins are not those of the fixed-point model",
            remedy="please report this with the model: it is a defect of the generated hardware",
        )


def _model_codes(
    build: BuildFolder, source: SampledSource, heard: IntArray, steps: int
) -> Mapping[str, IntArray]:
    """Return the codes [steps, classes] of all outputs of the fixed-point model."""
    fixed = build.fixed
    shape = fixed.tensor(source.input).shape[1:]
    [port] = [
        port for port, name in zip(build.plan.inputs, fixed.inputs, strict=True)
        if name == source.input
    ]  # fmt: skip
    frames = from_stream(heard.reshape(steps, -1, 1), replace(port, lanes=1), shape)
    # one sequence of steps
    lead = (1, steps) if fixed.is_sequential else (steps,)
    codes = run_fixed(fixed, {source.input: frames.reshape(*lead, *shape)})
    return {name: code.reshape(steps, -1) for name, code in codes.items()}


def _format(build: BuildFolder, sink: EventSink) -> QType:
    """Return the format of a sink's output."""
    qtype = build.fixed.tensor(sink.output).qtype
    assert qtype is not None
    return qtype
