"""A board that sees pictures, in simulation: ``sim --images``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.boards.interfaces import Dvp, EventSink, link_of, sink_of, source_of
from nnef_hw.boards.interfaces.cameras.picture import camera_bytes
from nnef_hw.errors import CheckError, UsageError
from nnef_hw.host.link import Host, Timing
from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.streams import from_stream
from nnef_hw.reference import run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.memories import board_with_memories
from nnef_hw.samples.png import read_png
from nnef_hw.sim.board_runner import BoardTransport

__all__ = ["Seen", "SeenPicture", "require_seen", "see"]

_ERROR = 2
"""Sort of a report: the board's pin for errors."""
_OPENING_SECONDS = 5e-3
"""Time in which the host begins its session, and so restarts the camera."""
_SILENCE_SECONDS = 1e-4
"""Nothing was on the line before: this need not be long."""
_BEGIN = 20_000
"""Cycles until the host asks: the board's reset is over."""


@dataclass(frozen=True)
class SeenPicture:
    """A picture, and the board's answer to it.

    Parameters
    ----------
    name
        The picture's file.
    times
        How many times the board has computed it: the camera sends each one several times.
    number
        Number of the greatest result.
    scores
        Real results, in their order.
    equal
        Whether all codes are those of the fixed-point model.
    """

    name: str
    times: int
    number: int
    scores: tuple[float, ...]
    equal: bool


@dataclass(frozen=True)
class Seen:
    """The answer of a simulated board to pictures.

    Parameters
    ----------
    pictures
        In the order in which the camera has sent them.
    sent, computed, lost
        Pictures that the camera has sent, the network has computed, and the board has counted as
        lost: they came while it computed.
    told
        Seconds and text of what sinks of events have told.
    pictures_per_second
        Computed, per second of the time in which pictures were sent.
    cycles, cycles_per_second
        Simulated, and per second of real time.
    equal
        Whether all results are those of the fixed-point model.
    error
        Whether the board says that the camera does not acknowledge its registers.
    """

    pictures: tuple[SeenPicture, ...]
    sent: int
    computed: int
    lost: int
    told: tuple[tuple[float, str], ...]
    pictures_per_second: float
    cycles: int
    cycles_per_second: int
    equal: bool
    error: bool


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """The bytes and counts that a simulated board gave."""

    read: bytes
    sent: int
    lost: int
    cycles: int
    sending: int
    seconds: float
    error: bool
    told: tuple[tuple[float, str], ...]


def see(build: BuildFolder, folder: Path, *, answers: bool = True) -> Seen:
    """Show pictures to the camera of a build's simulated board; compare codes with the model's.

    Parameters
    ----------
    folder
        Has the pictures: PNG files, of the camera's size or that of the part that is seen.
    answers
        Whether the camera acknowledges its registers.

    Raises
    ------
    UsageError
        If the build has no camera, or there are no pictures that it sends.
    """
    manifest = build.manifest
    sources = [source_of(entry) for entry in manifest.get("sources", ())]
    cameras = [source for source in sources if isinstance(source, Dvp)]
    if not cameras or len(sources) > 1 or len(build.fixed.outputs) != 1:
        raise UsageError(
            f"{str(build.path)!r} has no camera as its only source, and one output",
            remedy="build it with --source dvp",
        )
    [source] = cameras
    paths = sorted(folder.glob("*.png")) if folder.is_dir() else []
    if not paths:
        raise UsageError(f"there are no pictures {folder}/*.png", remedy="give --images FOLDER")
    pictures = np.stack([_sent(source, path) for path in paths])
    clk_hz = manifest["clock_mhz"] * 1e6
    taken = source.pictures_taken(build.plan.interval, round(clk_hz))
    # as many times as it takes until one of them is taken, and once more
    every = ceil(clk_hz / (taken * source.picture_cycles(clk_hz)))
    repeats = 1 if every == 1 or not source.alone else 1 + every
    shown = pictures.repeat(repeats, axis=0)
    expected = _expected(build, source, pictures)
    outcome = _run(build, source, shown, clk_hz, answers=answers)
    return _judged(build, paths, expected, outcome)


def require_seen(found: Seen) -> None:
    """Fail a board whose codes are not those of the fixed-point model.

    Raises
    ------
    CheckError
        If they differ, or the camera does not answer.
    """
    if found.error:
        raise CheckError(
            "the camera does not acknowledge its registers: the board's pin cam_error is high",
            remedy="check its wires cam_scl, cam_sda and cam_xclk, and its supply",
        )
    if not found.equal:
        wrong = [picture.name for picture in found.pictures if not picture.equal]
        raise CheckError(
            f"results of {', '.join(wrong)} are not those of the fixed-point model",
            remedy="please report this with the model: it is a defect of the generated hardware",
        )


def _sent(source: Dvp, path: Path) -> NDArray[np.uint8]:
    """Return the camera's bytes of a file; a picture of the part's size is put in the middle."""
    pixels = read_png(path)
    mode, (rows, columns) = source.mode, pixels.shape[:2]
    if (rows, columns) == (source.rows, source.columns):
        whole = np.zeros((mode.rows, mode.columns, pixels.shape[2]), np.uint8)
        top, left = source.corner
        whole[top : top + rows, left : left + columns] = pixels
        pixels = whole
    elif (rows, columns) != (mode.rows, mode.columns):
        size = f"{source.columns}x{source.rows}"
        raise UsageError(
            f"{path} has {columns}x{rows} pixels; the camera sends {mode.columns}x{mode.rows}, and "
            f"the network sees {size} in the middle",
            remedy=f"resize it: ffmpeg -i {path} -vf scale={size.replace('x', ':')} resized.png",
        )
    sent: NDArray[np.uint8] = camera_bytes(pixels, source.format)
    return sent


def _expected(build: BuildFolder, source: Dvp, pictures: NDArray[np.uint8]) -> IntArray:
    """Return the model's codes [pictures, ...] of the part that is seen."""
    fixed = build.fixed
    tensor = fixed.tensor(source.input)
    assert tensor.qtype is not None
    top, left = source.corner
    part = pictures[:, top : top + source.rows, left : left + source.columns, : source.channels]
    codes = part.transpose(0, 3, 1, 2).astype(np.int64) + tensor.qtype.lo
    [found] = run_fixed(fixed, {source.input: codes.reshape(-1, *tensor.shape[1:])}).values()
    return np.asarray(found)


def _run(
    build: BuildFolder, source: Dvp, shown: NDArray[np.uint8], clk_hz: float, *, answers: bool
) -> _Outcome:
    """Send pictures to a simulated board."""
    manifest = build.manifest
    verilog = (build.path / "board" / "board_top.v").read_text()
    image = build.path / "sim" / "memory.hex"
    text, top = board_with_memories(verilog, build.plan, image)
    sinks = [sink_of(entry) for entry in manifest.get("sinks", ())]
    frame = source.picture_cycles(clk_hz)
    writing = source.writing_cycles(clk_hz)
    begin = _BEGIN + ceil(_OPENING_SECONDS * clk_hz) + writing
    numbers = source.sends(clk_hz, shown.tobytes(), len(shown), begin=begin, answers=answers)
    with BoardTransport(
        text, clk_hz=clk_hz, link=link_of(manifest["link"]), others=[source, *sinks],
        numbers={source.name: numbers}, top=top,
    ) as board:  # fmt: skip
        board.advance(_BEGIN)
        host = Host(board, Timing(silence=_SILENCE_SECONDS))
        host.open(read_manifest(build.path).hash)
        assert board.cycles + writing < begin, "the session begins before the pictures"
        end = begin + frame // 4
        if answers:
            end += len(shown) * frame + build.plan.latency
        read = bytearray()
        while board.cycles < end:
            read += host.read()
            board.advance(min(frame // 4, max(1, end - board.cycles)))
        while piece := host.read():
            read += piece
        lost = host.counters().lost
        reports = source.reported(board.received())
        events = [
            event
            for n, sink in enumerate(sinks, 1)
            if isinstance(sink, EventSink)
            for event in sink.told(board.received(n), clk_hz)
        ]
        cycles, seconds = board.cycles, board.seconds
    assert lost is not None, "a camera does not wait"
    levels = [level for _, sort, level in reports if sort == _ERROR]
    return _Outcome(
        read=bytes(read), sent=len(shown), lost=lost, cycles=cycles,
        sending=max(1, len(shown) * frame), seconds=seconds,
        error=bool(levels and levels[-1]),
        told=tuple((cycle / clk_hz, text) for cycle, text in sorted(events)),
    )  # fmt: skip


def _judged(
    build: BuildFolder, paths: Sequence[Path], expected: IntArray, outcome: _Outcome
) -> Seen:
    """Give every result to a picture: they come in the pictures' order."""
    [name] = build.fixed.outputs
    form = build.fixed.tensor(name).qtype
    assert form is not None
    codes = _codes(build, outcome.read, expected.shape[1:])
    place, times, is_equal, shown = 0, [0] * len(paths), True, []
    for one in codes:
        if not np.array_equal(one, expected[place]) and place + 1 < len(paths):
            place += 1
        is_equal &= np.array_equal(one, expected[place])
        times[place] += 1
        shown.append(place)
    pictures = tuple(
        SeenPicture(
            path.name, count, int(wanted.argmax()),
            tuple(float(x) for x in np.ravel(form.dequantize(wanted))), is_equal and count > 0,
        )
        for path, count, wanted in zip(paths, times, expected, strict=True)
    )  # fmt: skip
    says = [
        sink.says(event)
        for sink in map(sink_of, build.manifest.get("sinks", ()))
        if isinstance(sink, EventSink)
        for event in sink.occurrences(expected[shown], form)
    ]
    told = sorted(text for _, text in outcome.told)
    clk_hz = build.manifest["clock_mhz"] * 1e6
    return Seen(
        pictures=pictures,
        sent=outcome.sent,
        computed=len(codes),
        lost=outcome.lost,
        told=outcome.told,
        pictures_per_second=clk_hz * len(codes) / outcome.sending,
        cycles=outcome.cycles,
        cycles_per_second=round(outcome.cycles / outcome.seconds),
        equal=all(picture.equal for picture in pictures) and told == sorted(says),
        error=outcome.error,
    )


def _codes(build: BuildFolder, read: bytes, shape: tuple[int, ...]) -> IntArray:
    """Return the codes [results, ...] in the host's bytes."""
    [port] = build.plan.outputs
    code = -(-port.bits // 8)
    size = port.beats * port.lanes * code
    if len(read) < size:
        return np.zeros((0, *shape), np.int64)
    raw = np.frombuffer(read[: len(read) // size * size], f"<i{code}")
    beats = raw.reshape(-1, port.beats, port.lanes).astype(np.int64)
    if not port.signed:
        beats &= (1 << port.bits) - 1
    return from_stream(beats, port, shape)
