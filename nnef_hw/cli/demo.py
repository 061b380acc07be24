"""The command demo: something to see before a compiler, a model or a board is at hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nnef_hw.cli.common import Commands, add_command, console, positive_number, print_json
from nnef_hw.errors import UsageError

if TYPE_CHECKING:
    from nnef_hw.demo import Demonstration

__all__ = ["add_commands"]

_ROW = 10
"""Images side by side."""
_HALVES = " ▀▄█"
"""A character for two pixels, of which the upper one counts 1, the lower one 2."""


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    sub = add_command(
        commands, "demo", _demo, "let the hardware of a network of ours read digits, in Python"
    )
    sub.add_argument("--board", default="icebreaker", help="for which board (default: icebreaker)")
    sub.add_argument(
        "--images", type=positive_number, default=20, metavar="N",
        help="how many images to simulate, a second or less each (default: 20)",
    )  # fmt: skip
    sub.add_argument(
        "--report", type=Path, default=Path("build/demo.html"), metavar="FILE.html",
        help="page of the design (default: build/demo.html)",
    )  # fmt: skip


def _demo(options: argparse.Namespace) -> int:
    from nnef_hw.demo import IMAGES, demonstrate
    from nnef_hw.report.progress import stages
    from nnef_hw.system.files import write_atomic

    if options.images > IMAGES:
        raise UsageError(f"there are {IMAGES} images", remedy=f"give --images {IMAGES} or fewer")
    with stages() as show:
        done = demonstrate(options.board, options.images, show)
    plan = done.plan
    write_atomic(options.report, plan.page)
    if options.json:
        print_json({
            "board": options.board, "arch": plan.arch, "interval": plan.interval,
            "clock_mhz": plan.clock_mhz, "inferences_per_second": plan.inferences_per_second,
            "cycles": done.cycles, "found": done.found.tolist(), "labels": done.labels.tolist(),
            "report": str(options.report),
        })  # fmt: skip
        return 0
    _show(done, options.report)
    return 0


def _show(done: Demonstration, page: Path) -> None:
    plan, count = done.plan, len(done.found)
    out = console()
    for first in range(0, count, _ROW):
        row = range(first, min(first + _ROW, count))
        for line in range(0, done.images.shape[1], 2):
            halves = (_line(done, image, line) for image in row)
            out.print("  ".join(halves), highlight=False, markup=False)
        said = (_verdict(int(done.found[image]), int(done.labels[image])) for image in row)
        out.print("  ".join(said), highlight=False)
        out.print()
    right = int((done.found == done.labels).sum())
    out.print(
        f"The simulated hardware read {right} of {count} digits in {done.cycles:,} cycles, as "
        "predicted;\nevery integer equals the fixed-point model's.\n"
        f"At {plan.clock_mhz:g} MHz the board {plan.report.board} would read "
        f"{plan.inferences_per_second:,.0f} in a second.\n"
        f"Report of its design: {page}\n"
        "With a C++ compiler: nnef-hw build MODEL --board BOARD --calibrate SAMPLES.npz",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


def _line(done: Demonstration, image: int, line: int) -> str:
    """Return two rows of an image as a line of characters."""
    dark = done.images[image, line : line + 2] > 0.35
    return "".join(_HALVES[int(upper) + 2 * int(lower)] for upper, lower in dark.T)


def _verdict(found: int, label: int) -> str:
    """Return the digit that was read, and the right one beside a wrong one, as wide as an image."""
    if found == label:
        return f"   {found}    "
    return f"[red]{f'{found} not {label}':^8}[/red]"
