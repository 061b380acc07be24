"""Cameras with a parallel port are data: sizes, clocks, registers."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PAUSE", "Camera", "Mode", "Write"]

Write = tuple[int, int]
"""A register and its value."""
PAUSE: Write = (-1, -1)
"""Wait for a while in place of a write, as after a reset."""


@dataclass(frozen=True)
class Mode:
    """A size of a camera's pictures.

    Parameters
    ----------
    rows, columns
        What is sent of a picture.
    line, lines
        Clocks of the sensor from a line to the next one, and lines from a picture to the next one.
    byte
        Clocks of the sensor from a byte of a line to the next one.
    writes
        Registers that choose it.
    """

    rows: int
    columns: int
    line: int
    lines: int
    byte: int
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Camera:
    """A camera with a parallel port, and registers behind two wires (I2C, SCCB).

    Parameters
    ----------
    name
        Its name for users.
    title
        Its name in messages.
    address
        Of seven bits, on the two wires.
    register_bytes
        Bytes of a register's number.
    lines
        How many data lines it can use, the usual number first.
    pixels
        Format of its pixels by name: registers that choose it. A first byte is grey in each.
    pixel_bytes
        Bytes of a pixel.
    modes
        Sizes of its pictures.
    begin, end
        Registers that are written before those of the mode and of the pixels, and behind them.
    by_lines
        Registers that choose a number of data lines.
    clock_hz
        Least and greatest frequency of the clock that it gets.
    divider
        Its sensor's clock is the clock that it gets, divided by this.
    vsync_in_frame
        Level of its VSYNC while a picture is sent.
    """

    name: str
    title: str
    address: int
    register_bytes: int
    lines: tuple[int, ...]
    pixels: dict[str, tuple[Write, ...]]
    pixel_bytes: int
    modes: tuple[Mode, ...]
    begin: tuple[Write, ...]
    end: tuple[Write, ...]
    by_lines: dict[int, tuple[Write, ...]]
    clock_hz: tuple[float, float]
    divider: int
    vsync_in_frame: bool

    def writes(self, mode: Mode, pixels: str, lines: int) -> Sequence[Write]:
        """Return the registers to write, in order."""
        return (
            *self.begin, *mode.writes, *self.pixels[pixels], *self.by_lines[lines], *self.end,
        )

    def mode_for(self, rows: int, columns: int) -> Mode | None:
        """Return the mode with the smallest pictures that hold so many rows and columns."""
        able = [mode for mode in self.modes if mode.rows >= rows and mode.columns >= columns]
        return min(able, key=lambda mode: mode.rows * mode.columns, default=None)
