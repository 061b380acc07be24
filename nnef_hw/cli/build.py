"""The command build."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Literal

from nnef_hw.cli import common
from nnef_hw.cli.quantize import accuracy_drop, add_scheme, scheme

__all__ = ["add_commands"]

AUTO = "auto"


def add_commands(commands: common.Commands) -> None:
    """Declare the command."""
    from nnef_hw.boards.interfaces import BUS_DATA, BUSES, DEFAULT_LINK, link_names, link_options

    sub = common.add_command(
        commands,
        "build",
        _build,
        "build the accelerator, simulate it, make the bitstream",
        "model",
    )
    sub.set_defaults(refuse=sub.error)
    board = sub.add_argument(
        "--board",
        help="a name (see nnef-hw boards), a file of your own, or none for plain IP, with --device",
    )
    common.complete_boards(board)
    sub.add_argument(
        "--weights-of",
        type=Path,
        metavar="BUILD",
        help="keep that build's bitstream, whose weights are in flash or SDRAM or come through "
        "registers, and make the image of this model's weights: seconds instead of synthesis",
    )
    sub.add_argument("--device", help="device that plain IP must fit: up5k, ecp5-85k, generic, ...")
    sub.add_argument(
        "--ip-name",
        metavar="NAME",
        help="prefix of the names of plain IP's modules (default: the model's name)",
    )
    sub.add_argument(
        "--bus",
        choices=[bus.name for bus in BUSES],
        help="put registers on a bus beside plain IP: control, status, counters, an interrupt",
    )
    sub.add_argument(
        "--bus-data",
        choices=BUS_DATA,
        default=BUS_DATA[False],
        help="how frames come to it: by AXI4-Stream, or by the registers (default: streams)",
    )
    sub.add_argument(
        "--bus-program",
        action="store_true",
        help="let a processor load an engine's program and weights through the registers",
    )
    common.add_design(sub)
    sub.add_argument(
        "--freq",
        type=_frequency,
        metavar="MHZ|auto",
        help="clock (default: what is reached when the board's is asked for); auto: asks for more",
    )
    sub.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="placements to try until one meets the clock (default: 1)",
    )
    sub.add_argument(
        "--target-fps",
        type=float,
        metavar="N",
        help="make the smallest design that reaches N inferences per second",
    )
    common.add_goal(sub)
    sub.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="compute N frames together, by an engine: weights from flash or SDRAM are read once "
        "for all of them (default: 1)",
    )
    sub.add_argument(
        "--link",
        choices=link_names(),
        default=DEFAULT_LINK.name,
        help=f"host link (default: {DEFAULT_LINK.name})",
    )
    for option in link_options():
        sub.add_argument(f"--{option.name}", type=option.type, metavar="N", help=option.help)
    sub.add_argument(
        "--sink",
        action="append",
        default=[],
        dest="sinks",
        metavar="[OUTPUT=]NAME",
        help="where an output goes besides the host: led shows the class that the network finds "
        "on the board's LEDs; pin:number=0,threshold=0.9,mean=3,quiet=32 raises a pin while a "
        "class is heard, and event_led lights an LED; uart_text:names=yes/no,threshold=0.9 sends a "
        "line of text for each event; name the output if there are several",
    )
    sub.add_argument(
        "--source",
        action="append",
        default=[],
        dest="sources",
        metavar="[INPUT=]NAME",
        help="where an input comes from in place of the host: i2s, pdm, spi_adc, mcp3201 are "
        "microphones, for a network with a --front; dvp:camera=hm01b0,lines=8 is a camera; "
        "imu:rate=100,acceleration=4 is a sensor of motion; name the input if there are several",
    )
    sub.add_argument(
        "--token-loop",
        action="store_true",
        help="let the board itself write texts of a language model: it chooses each token, and "
        "feeds it back",
    )
    sub.add_argument(
        "--layer-counters",
        action="store_true",
        help="let the board count the busy cycles of every layer, for bench-device",
    )
    sub.add_argument(
        "--frames",
        type=_frames,
        metavar="N|all",
        help="simulate N of the samples, or all (default: what 30 seconds allow, at least 3)",
    )
    add_scheme(sub)
    sub.add_argument("--no-bitstream", action="store_true", help="stop before synthesis")
    sub.add_argument(
        "--out", type=Path, metavar="DIR", help="the build's folder (default: build/MODEL)"
    )


def _frequency(text: str) -> float | str:
    if text == AUTO:
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither MHz nor {AUTO!r}") from None


def _frames(text: str) -> int | Literal["all"]:
    return "all" if text == "all" else common.positive_number(text, "all")


def _build(options: argparse.Namespace) -> int:
    from nnef_hw.boards.interfaces import (
        find_link,
        find_sink,
        find_source,
        find_streams,
        link_options,
    )
    from nnef_hw.flow.options import BuildOptions
    from nnef_hw.flow.pipeline import UP_TO_DATE, build
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.report.progress import stages
    from nnef_hw.report.terminal import print_report

    if options.board is None and options.weights_of is None:
        options.refuse("one of the arguments --board, --weights-of is required")
    path = options.model.resolve()
    name = path.name.split(".")[0]
    wanted = BuildOptions(
        model=options.model,
        board=options.board,
        weights_of=options.weights_of,
        device=options.device,
        ip_name=options.ip_name,
        streams=find_streams(options.bus, options.bus_data, program=options.bus_program),
        out=options.out or Path("build") / (name if name != "model" else path.parent.name),
        calibrate=options.calibrate,
        clock_mhz=None if options.freq == AUTO else options.freq,
        fastest=options.freq == AUTO,
        seeds=options.seeds,
        target_fps=options.target_fps,
        goal=options.goal,
        arch=options.arch,
        bitstream=not options.no_bitstream,
        link=find_link(options.link, **{x.name: getattr(options, x.name) for x in link_options()}),
        sinks=tuple(map(find_sink, options.sinks)),
        sources=tuple(map(find_source, options.sources)),
        token_loop=options.token_loop,
        layer_counters=options.layer_counters,
        batch=options.batch,
        frames=options.frames,
        scheme=scheme(options),
        accuracy_drop=accuracy_drop(options),
        command=shlex.join(["nnef-hw", *options.arguments]),
        reading=common.reading(options),
        stream=common.streaming(options),
    )
    last = ""
    with stages() as show:

        def progress(what: str) -> None:
            nonlocal last
            last = what
            show(what)

        report = build(wanted, progress)
    if last == UP_TO_DATE:
        print(f"nnef-hw: {UP_TO_DATE}", file=sys.stderr)
    if options.json:
        common.print_json(to_json(report))
    else:
        print_report(report, common.console())
        if len(seeds := report.fmax_mhz_by_seed) > 1:
            reached = [clock for clock in seeds.values() if clock is not None]
            unrouted = [seed for seed, clock in seeds.items() if clock is None]
            more = f"; without a route: seeds {', '.join(unrouted)}" if unrouted else ""
            print(f"placements: {len(seeds)}, {min(reached):.1f} to {max(reached):.1f} MHz{more}")
        print(f"report: {wanted.out / 'report.html'}")
    if report.timing_met is False:
        print(
            f"nnef-hw: timing is not met: {report.fmax_mhz:.2f} MHz of "
            f"{report.clock_mhz:g} MHz; give a lower --freq",
            file=sys.stderr,
        )
        return 1
    if report.timing_met and report.inferences_per_second < (wanted.target_fps or 0.0) * (1 - 1e-9):
        print(
            f"nnef-hw: the clock that is reached, {report.clock_mhz:g} MHz, gives "
            f"{report.inferences_per_second:.5g} inferences/s of {wanted.target_fps:g}; give a "
            "lower --target-fps",
            file=sys.stderr,
        )
        return 1
    return 0
