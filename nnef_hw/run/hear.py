"""A board that hears a sound file, in simulation: ``sim --wav``."""

from __future__ import annotations

import wave
from collections.abc import Mapping
from math import ceil
from pathlib import Path

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.boards.interfaces import (
    EventSink,
    HostLink,
    Microphone,
    link_of,
    sink_of,
    source_of,
)
from nnef_hw.errors import CheckError, UsageError
from nnef_hw.host.link import Host
from nnef_hw.reference import run_fixed
from nnef_hw.report.model.hearing import Curve, Event, Heard, Hearing, Sound
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulated_board import with_memories
from nnef_hw.sim.board_runner import BoardTransport

__all__ = ["hear", "read_wav", "require_heard"]


def read_wav(path: Path, rate: int) -> IntArray:
    """Return the samples of the first channel of a WAV file of 16 bits.

    Raises
    ------
    UsageError
        If it is no such file, or has another rate or width.
    """
    convert = f"convert it: ffmpeg -i {path} -ar {rate} -c:a pcm_s16le -ac 1 converted.wav"
    try:
        with wave.open(str(path)) as file:
            found, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            data = file.readframes(file.getnframes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", remedy="name a file: --wav FILE") from error
    except (wave.Error, EOFError) as error:
        what = str(error) or "it ends too early"
        raise UsageError(f"{path} is no WAV file of integers: {what}", remedy=convert) from error
    if (found, width) != (rate, 2):
        raise UsageError(
            f"{path} has {found:,} samples of {8 * width} bits per second; the build's microphone "
            f"gives {rate:,} of 16 bits",
            remedy=convert,
        )
    return np.frombuffer(data, "<i2").reshape(-1, channels)[:, 0].astype(np.int64)


def hear(build: BuildFolder, wav: Path) -> Hearing:
    """Play a sound to the microphone of a build's simulated board; compare events with the model's.

    Raises
    ------
    UsageError
        If the build has no microphone or no sink of events, or the file is not what it hears.
    """
    manifest = build.manifest
    sources = [source_of(entry) for entry in manifest.get("sources", ())]
    sinks = [sink_of(entry) for entry in manifest.get("sinks", ())]
    microphones = [source for source in sources if isinstance(source, Microphone)]
    watched = [(n, sink) for n, sink in enumerate(sinks) if isinstance(sink, EventSink)]
    if not microphones or not watched:
        what = "no sink of events" if microphones else "no microphone"
        raise UsageError(
            f"{str(build.path)!r} has {what}, so that --wav says nothing of it",
            remedy="build it with --source i2s --sink pin",
        )
    [source] = microphones
    samples = read_wav(wav, source.rate)
    received = source.heard(samples)
    steps = len(received) // source.frame
    if not steps:
        raise UsageError(
            f"{wav} has {len(samples)} samples, and a step takes {source.frame}",
            remedy="give a longer sound",
        )
    clk_hz = manifest["clock_mhz"] * 1e6
    step_cycles = clk_hz * source.frame / source.rate
    verilog = (build.path / "board" / "board_top.v").read_text()
    verilog, top = with_memories(build.path, verilog)
    link = link_of(manifest["link"])
    assert isinstance(link, HostLink), "plain IP has no sources"
    with BoardTransport(
        verilog, clk_hz=clk_hz, link=link, others=[*sources, *sinks],
        numbers={source.name: source.played(samples)}, top=top,
    ) as board:  # fmt: skip
        # a step's last sample comes a little after its time: until the next step, less some
        board.advance(ceil((steps + 0.9) * step_cycles))
        told = [sink.told(board.received(len(sources) + n), clk_hz) for n, sink in watched]
        cycles, seconds = board.cycles, board.seconds
        # without a host the LED tells that something was lost
        lost = Host(board).counters().lost if link.has_host else int(board.has_sent)
    assert lost is not None, "a microphone does not wait"
    codes = _model_codes(build, source, received, steps)
    formats = {sink.output: _format(build, sink) for _, sink in watched}
    expected = [sink.occurrences(codes[sink.output], formats[sink.output]) for _, sink in watched]
    events, equal = [], True
    for (_, sink), found, wanted in zip(watched, told, expected, strict=True):
        at = [int(cycle / step_cycles) - 1 for cycle, _ in found]
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
    heard = Heard(
        seconds=len(samples) / source.rate,
        steps=steps,
        cycles=cycles,
        cycles_per_second=round(cycles / seconds),
        duty=build.plan.interval / step_cycles,
        equal=equal,
        lost=lost,
        events=told_events,
    )
    return Hearing(heard, Sound(wav.name, source.rate, source.frame, received, curves))


def require_heard(found: Heard) -> None:
    """Fail a board whose events are not those of the fixed-point model.

    Raises
    ------
    CheckError
        If they differ, or samples were lost on the way.
    """
    if found.lost:
        raise CheckError(
            f"the board has lost {found.lost:,} samples of {found.seconds:.2f} s of sound: its "
            "accelerator did not take them in time",
            remedy="please report this with the model: the schedule's timing model is wrong",
        )
    if not found.equal:
        raise CheckError(
            "the events on the board's pins are not those of the fixed-point model",
            remedy="please report this with the model: it is a defect of the generated hardware",
        )


def _model_codes(
    build: BuildFolder, source: Microphone, samples: IntArray, steps: int
) -> Mapping[str, IntArray]:
    """Return the codes [steps, classes] of all outputs of the fixed-point model."""
    fixed = build.fixed
    shape = fixed.tensor(source.input).shape[1:]
    heard = samples[: steps * source.frame]
    # one sequence of steps
    lead = (1, steps) if fixed.is_sequential else (steps,)
    codes = run_fixed(fixed, {source.input: heard.reshape(*lead, *shape)})
    return {name: code.reshape(steps, -1) for name, code in codes.items()}


def _format(build: BuildFolder, sink: EventSink) -> QType:
    """Return the format of a sink's output."""
    qtype = build.fixed.tensor(sink.output).qtype
    assert qtype is not None
    return qtype
