"""Options of a build, and their checks before any work."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.architectures import ARCHITECTURES, AUTO, find_architecture
from nnef_hw.boards import Board, find_board
from nnef_hw.boards.interfaces import (
    BUS_DATA,
    BUSES,
    DEFAULT_LINK,
    PLAIN_STREAMS,
    HostLink,
    PlainStreams,
    SinkWish,
    SourceWish,
)
from nnef_hw.codegen.board import check_clock, fastest_clock
from nnef_hw.codegen.ip import is_ip_name
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.flow.cache import is_build
from nnef_hw.flow.choice import Goal
from nnef_hw.flow.sources import with_interfaces
from nnef_hw.frontend.reading import AS_WRITTEN, Reading
from nnef_hw.hardware.devices import Target, find_device
from nnef_hw.ir import Graph
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import Scheme
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.report.model.limits import OtherArchitecture
from nnef_hw.samples.samples import Samples

__all__ = [
    "NO_BOARD", "BuildOptions", "PlannedModel", "check_goal", "check_link", "check_options",
    "check_wishes", "find_target",
]  # fmt: skip

DEFAULT_SCHEME = Scheme()
TINY = 1e-9
NO_BOARD = "none"


@dataclass(frozen=True, slots=True, eq=False)
class PlannedModel:
    """A model in memory that has been quantized and planned.

    Parameters
    ----------
    graph
        As it was read.
    samples
        What the fixed one was calibrated and is verified with.
    fixed, canonical
        What was made of them, see :func:`~nnef_hw.flow.fixed.fix_model`.
    plan, others
        The plan, and what is known of the architectures that were not taken.
    window
        The fixed network of a whole window, if it runs step by step.
    warnings
        Why to doubt the fixed one.
    """

    graph: Graph
    samples: Samples | None
    fixed: Graph
    canonical: Graph | None
    plan: AcceleratorPlan
    others: list[OtherArchitecture]
    window: Graph | None = None
    warnings: tuple[QualityWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options of a build, as the user gave them.

    Parameters
    ----------
    model, board, out
        Model file, or a model that has been read and planned; name or file of a board (None: that
        of ``weights_of``); folder that receives the build.
    device
        Device of plain IP, for the board ``none``.
    ip_name
        Prefix of its modules' names, by default the model's name.
    streams
        How a system reaches it: by its streams, and perhaps by registers on a bus.
    calibrate
        Sample file; needed for a float model, and used to verify the hardware.
    clock_mhz, target_fps
        Clock and speed, if not the board's default and the fastest.
    asked_mhz
        Clock that place and route is asked for, where the PLL follows what it reaches; by default
        a little more than the board's.
    searched
        The clock is one of several that placements are asked for, one after another.
    weights_of
        Build whose bitstream gets these weights; it decides the board, and all that is in it.
    fastest
        Find the fastest clock that place and route reaches.
    goal
        ``latency`` takes the clock and the rate with which a result comes soonest after its frame.
    seeds
        How many placements are tried until one meets the clock; else the fastest is taken.
    arch
        ``auto``, ``streaming`` or ``engine``.
    bitstream
        Synthesize, place and route.
    link
        Link to the host, with its options.
    sinks
        Where outputs go besides the host.
    sources
        Where inputs come from that are not the host's.
    token_loop
        Let the board feed a language model with the tokens it chooses.
    layer_counters
        Let the board count what every layer does.
    batch
        Frames that are computed together, by an engine.
    frames
        How many frames are simulated, spread evenly over the samples; None: as many as half a
        minute allows, and at least three.
    scheme
        Formats of tensors that the model's author did not quantize.
    accuracy_drop
        Points that may be lost by searching narrower weights; None: no search.
    reading
        How to read the model.
    stream
        How a network of windows runs step by step, if it is to.
    command
        Command line that gives this build, for the report.
    """

    model: Path | PlannedModel
    board: str | None
    out: Path
    device: str | None = None
    ip_name: str | None = None
    streams: PlainStreams = PLAIN_STREAMS
    calibrate: Path | None = None
    clock_mhz: float | None = None
    asked_mhz: float | None = None
    searched: bool = False
    target_fps: float | None = None
    weights_of: Path | None = None
    fastest: bool = False
    goal: Goal = "rate"
    seeds: int = 1
    arch: str = AUTO
    bitstream: bool = True
    link: HostLink = DEFAULT_LINK
    sinks: tuple[SinkWish, ...] = ()
    sources: tuple[SourceWish, ...] = ()
    token_loop: bool = False
    layer_counters: bool = False
    batch: int = 1
    frames: int | Literal["all"] | None = None
    scheme: Scheme = DEFAULT_SCHEME
    accuracy_drop: float | None = None
    reading: Reading = AS_WRITTEN
    stream: StreamTime | None = None
    command: str = ""

    @property
    def takes_soonest(self) -> bool:
        """Whether of two architectures that is taken whose result comes sooner.

        Where nobody asks for a rate: frames take turns on the link, or sensors say the rate.
        """
        return self.target_fps is None and (self.link.takes_turns or bool(self.sources))


def check_options(options: BuildOptions) -> Target:
    """Refuse what can be refused before any work; return where the design is to go.

    Raises
    ------
    UsageError
        If options make no sense, alone or together, or a folder cannot be used.
    TargetError
        If the board does not have a clock, a rate or a pin.
    """
    check_wishes(
        options.arch,
        {
            "--freq": options.clock_mhz,
            "--target-fps": options.target_fps,
            "--seeds": options.seeds,
            "--batch": options.batch,
            "--frames": None if options.frames == "all" else options.frames,
        },
    )
    if options.fastest and not options.bitstream:
        raise UsageError(
            "--freq auto takes the clock from place and route", remedy="omit --no-bitstream"
        )
    check_goal(options.goal, {
        "--target-fps": options.target_fps, "--freq auto": options.fastest or None,
        "--source": options.sources or None,
    })  # fmt: skip
    target = find_target(options.board, options.device)
    check_link(
        options.link, sources=options.sources, sinks=options.sinks, token_loop=options.token_loop,
        layer_counters=options.layer_counters, batch=options.batch,
    )  # fmt: skip
    _check_ip_name(options)
    _check_bus(options)
    if options.streams.with_program:
        target = replace(target, loads_program=True)
    if isinstance(target, Board):
        if options.clock_mhz is None:
            target = replace(target, clock_mhz=_first_clock(target, options.link))
        else:
            check_clock(target, options.clock_mhz, (options.link,))
        wishes = (*options.sources, *options.sinks)
        target = with_interfaces(target, options.link, wishes)
    elif options.sinks or options.sources:
        titles = " and ".join(wish.title for wish in (*options.sources, *options.sinks))
        raise UsageError(f"the {titles} needs a board", remedy="omit it, or choose a --board")
    elif options.token_loop:
        raise UsageError("--token-loop needs a board", remedy="omit it, or choose a --board")
    elif options.layer_counters:
        raise UsageError("--layer-counters needs a board", remedy="omit them, or choose a --board")
    elif options.fastest:
        raise UsageError("--freq auto needs a board to place a design for", remedy="give --freq")
    _check_folder(options.out)
    return target


def check_goal(goal: Goal, given: Mapping[str, object]) -> None:
    """Refuse what the goal ``latency`` decides itself: options that are given, by name.

    Raises
    ------
    UsageError
        If there is one.
    """
    for option, value in given.items():
        if goal == "latency" and value is not None:
            raise UsageError(
                f"the goal latency takes the rate and the clock with which a result comes soonest, "
                f"which {option} would decide", remedy=f"omit {option}, or the goal",
            )  # fmt: skip


def check_link(
    link: HostLink,
    *,
    sources: Sequence[SourceWish],
    sinks: Sequence[SinkWish],
    token_loop: bool,
    layer_counters: bool = False,
    batch: int = 1,
) -> None:
    """Refuse what a link without packets of ours cannot do, and a board that nobody talks to.

    Raises
    ------
    UsageError
        If there is such a wish.
    """
    if not link.has_host and not (sources and sinks):
        raise UsageError(
            "a board without a link does nothing unless a sensor feeds it and a sink takes its "
            "results",
            remedy="give --source and --sink, or use --link uart",
        )
    if link.needs_loop and not token_loop:
        raise UsageError(
            f"the {link.title} carries texts, and nothing on the board writes any",
            remedy="give --token-loop, or use --link uart",
        )
    if token_loop and sources:
        raise UsageError(
            f"--token-loop feeds all inputs, and the {sources[0].title} one of them",
            remedy="omit one of them",
        )
    wishes = {
        "--sink": sinks,
        "--source": sources,
        "--token-loop": token_loop,
        "--layer-counters": layer_counters,
        "--batch": batch > 1,
    }
    for option, is_given in wishes.items():
        if is_given and option in link.lacks:
            raise UsageError(
                f"the {link.title} has nothing for {option}",
                remedy="omit it, or use --link uart",
            )


def _first_clock(board: Board, link: HostLink) -> float:
    """Return the board's clock in MHz, or the next lower one with which the link works.

    Raises
    ------
    TargetError
        If it works with none of these: why not with the board's.
    """
    clock: float = board.clock_mhz
    try:
        check_clock(board, clock, (link,))
    except TargetError as error:
        try:
            return fastest_clock(board, clock, (link,))
        except TargetError:
            raise error from None
    return clock


def check_wishes(arch: str, positive: Mapping[str, float | None]) -> None:
    """Refuse an architecture that does not exist, and numbers that are given and not positive.

    Raises
    ------
    UsageError
        If there is one.
    """
    names = [AUTO, *(architecture.name for architecture in ARCHITECTURES)]
    if arch not in names:
        raise UsageError(
            f"there is no architecture {arch!r}", remedy=f"use --arch {' or '.join(names)}"
        )
    for name, value in positive.items():
        if value is not None and not (math.isfinite(value) and value > TINY):
            raise UsageError(f"{name} must be positive, not {value:g}")


def find_target(board: str | None, device_name: str | None = None) -> Target:
    """Return a board, or for plain IP what stands for one.

    Raises
    ------
    UsageError
        If there is no such board or device, or both are given, or none.
    """
    if board is None:
        raise UsageError("a build needs a --board", remedy="see nnef-hw boards; none for plain IP")
    if board != NO_BOARD:
        if device_name is not None:
            raise UsageError(
                f"--device {device_name} is for --board {NO_BOARD}", remedy="omit one of them"
            )
        found: Target = find_board(board)
        return found
    if device_name is None:
        raise UsageError(
            "plain IP needs a --device to fit", remedy="--device generic if it is not known yet"
        )
    device = find_device(device_name)
    return Target(
        name=NO_BOARD, title=f"IP for {device.name}", device=device,
        clock_mhz=device.family.ip_clock_mhz, link_lut=0, link_bram=0,
    )  # fmt: skip


def _check_ip_name(options: BuildOptions) -> None:
    if options.ip_name is None:
        return
    if options.board != NO_BOARD:
        raise UsageError(
            f"--ip-name {options.ip_name} is for --board {NO_BOARD}", remedy="omit one of them"
        )
    if not is_ip_name(options.ip_name):
        raise UsageError(
            f"--ip-name {options.ip_name!r} cannot begin the names of Verilog modules",
            remedy="use letters, digits and underscores, a letter or an underscore first",
        )


def _check_bus(options: BuildOptions) -> None:
    bus = options.streams.bus
    if bus is None and options.streams.with_data:
        raise UsageError(
            f"--bus-data {BUS_DATA[True]} needs a --bus",
            remedy=f"give --bus {' or '.join(bus.name for bus in BUSES)}",
        )
    if options.streams.with_program:
        if bus is None:
            raise UsageError(
                "--bus-program needs registers by which the program comes",
                remedy=f"give --bus {' or '.join(bus.name for bus in BUSES)}",
            )
        if options.arch == AUTO or not find_architecture(options.arch).loads_program:
            raise UsageError(
                f"--bus-program loads the program of an engine, and --arch {options.arch} need "
                "not have one", remedy="give --arch engine",
            )  # fmt: skip
    if bus is not None and options.board != NO_BOARD:
        raise UsageError(f"--bus {bus.name} is for --board {NO_BOARD}", remedy="omit one of them")


def _check_folder(out: Path) -> None:
    """Refuse a folder that cannot be made, or that holds anything but a build."""
    existing = next(path for path in (out, *out.parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(f"{str(existing)!r} is a file", remedy="choose another --out")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{str(existing)!r} cannot be written", remedy="choose another --out")
    if existing == out and not is_build(out) and any(out.iterdir()):
        raise UsageError(
            f"{str(out)!r} holds files that are not a build",
            remedy="give --out a new folder, so that none of them is overwritten",
        )
