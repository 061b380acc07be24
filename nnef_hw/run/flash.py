"""A build's bitstream onto its board, through openFPGALoader."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nnef_hw.boards import Board, find_board
from nnef_hw.errors import ToolError, UsageError
from nnef_hw.host.manifest import read_manifest
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.system.doctor import library_error
from nnef_hw.system.tools import Tool, find_tool, run_tool

__all__ = ["Flashing", "flash", "plan_flashing"]

# What openFPGALoader says, in order of precedence, and what that means to the user.
CAUSES = (
    (
        ("permission", "LIBUSB_ERROR_ACCESS", "access denied", "Operation not permitted"),
        "the board's USB interface may not be opened by this user",
        (
            """put the line 'SUBSYSTEM=="usb", ATTRS{idVendor}=="0403|1209|1d50", TAG+="uaccess"'"""
            " into /etc/udev/rules.d/70-nnef-hw.rules, run 'sudo udevadm control --reload' and "
            "plug the board in again"
        ),
    ),
    (
        ("No DFU",),
        "no board waits for a bitstream over USB (DFU)",
        "hold the board's button while you plug it in, then try again",
    ),
    (
        ("device not found", "unable to open ftdi", "can't open device", "fail to open device"),
        "no board was found",
        "plug it in; if another program uses its USB interface, close that",
    ),
)


@dataclass(frozen=True, slots=True)
class Flashing:
    """The way of a build onto a board: arguments of openFPGALoader, the file being the last.

    Parameters
    ----------
    board, bitstream, arguments
        The board, its bitstream, and what openFPGALoader is told.
    image, image_arguments
        What its flash has to hold besides, and what openFPGALoader is told of that; None and
        nothing if the build has no such image.
    """

    board: Board
    bitstream: Path
    arguments: tuple[str, ...]
    image: Path | None = None
    image_arguments: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[tuple[str, ...], ...]:
        """Arguments of every run of openFPGALoader, files included; the bitstream is last."""
        runs = ((*self.arguments, str(self.bitstream.resolve())),)
        if self.image is None:
            return runs
        return ((*self.image_arguments, str(self.image.resolve())), *runs)

    @property
    def commands(self) -> tuple[str, ...]:
        """The command lines for a shell."""
        files = [path for path in (self.image, self.bitstream) if path is not None]
        return tuple(
            shlex.join(("openFPGALoader", *arguments, str(path)))
            for (*arguments, _), path in zip(self.runs, files, strict=True)
        )


def plan_flashing(build: Path, board: str | None = None, *, volatile: bool = False) -> Flashing:
    """Find the bitstream of a build and how its board takes it.

    Parameters
    ----------
    board
        File of a board outside of this package; by default the build's board.
    volatile
        Load the FPGA only: the flash keeps what it has, an image of weights included.

    Raises
    ------
    UsageError
        If the build is plain IP, is for another board or has no bitstream, or the board is not
        flashed this way; or the image of its weights is missing, or that of another build.
    """
    manifest = read_manifest(build)
    built, memory = manifest.board, manifest.memory
    if manifest.is_ip:
        raise UsageError(
            f"{str(build)!r} is plain IP for a design of your own: it has no bitstream",
            remedy="flash that design with its own tools, or build with --board NAME",
        )
    if memory is not None:
        memory.read(build)
    target = find_board(board or built)
    if target.name != built:
        raise UsageError(
            f"{str(build)!r} is a build for board {built!r}, not {target.name!r}",
            remedy="build it for that board",
        )
    toolchain = toolchain_of(target.device.family)
    if toolchain.bitstream_suffix is None:
        raise UsageError(
            f"{toolchain.title} makes no bitstream, so {str(build)!r} has none",
            remedy="make and load it with the tools of the FPGA's vendor",
        )
    bitstream = build / "board" / f"board_top.{toolchain.bitstream_suffix}"
    if not bitstream.is_file():
        raise UsageError(
            f"{str(build)!r} has no bitstream {bitstream.name}",
            remedy="run nnef-hw build without --no-bitstream",
        )
    if not target.flash:
        how = target.flash_by_hand.format(file=bitstream)
        if memory is not None and not memory.over_link:
            how += (
                f"; write {build / memory.file} to the flash, from byte {memory.address:#x} on, "
                "with a programmer"
            )
        raise UsageError(
            f"board {target.name!r} is not flashed by openFPGALoader",
            remedy=how or "use the tool of its maker",
        )
    writes = "-f" in target.flash
    if volatile and not writes:
        raise UsageError(f"board {target.name!r} always writes its flash", remedy="omit --volatile")
    arguments = tuple(item for item in target.flash if not (volatile and item == "-f"))
    if memory is None or memory.over_link or volatile:
        return Flashing(target, bitstream, arguments)
    # A raw file, which does not begin where bitstreams do.
    assert target.spi_flash is not None, "no other board's build has an image"
    option = target.spi_flash.write_option
    options = (option if item == "-f" else item for item in target.flash)
    raw = (*options, "--file-type", "raw", "-o", f"{memory.address:#x}")
    return Flashing(target, bitstream, arguments, build / memory.file, raw)


def flash(flashing: Flashing) -> float:
    """Write image and bitstream; return the seconds it took.

    Raises
    ------
    ToolError
        If openFPGALoader is missing, or fails: no board, no permission, ...
    """
    tool = find_tool("openfpgaloader")
    return sum(_run(tool, *run) for run in zip(flashing.runs, flashing.commands, strict=True))


def _run(tool: Tool, arguments: Sequence[str], command: str) -> float:
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
        log = Path(scratch) / "openfpgaloader.log"
        try:
            return run_tool(tool, list(arguments), cwd=Path(scratch), log=log)
        except ToolError as error:
            text = log.read_text(errors="replace")
            if lacking := library_error(tool, text):
                raise lacking from error
            text = text.lower()
            for signs, reason, remedy in CAUSES:
                if any(sign.lower() in text for sign in signs):
                    raise ToolError(reason, remedy=remedy) from error
            raise ToolError(
                f"openFPGALoader failed:\n{text.strip()[-1000:]}", remedy=f"try {command}"
            ) from error
