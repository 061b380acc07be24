"""The source DVP: a camera with a parallel port (digital video port)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import ceil, floor
from struct import Struct
from typing import Any

from nnef_hw.boards.interfaces.cameras import CAMERAS, Camera, Mode
from nnef_hw.boards.interfaces.cameras.camera import PAUSE
from nnef_hw.boards.interfaces.interface import (
    ChosenSource,
    FarEnd,
    Feed,
    Option,
    far_end_header,
)
from nnef_hw.boards.interfaces.pins import Direction, PinUse
from nnef_hw.errors import TargetError, UsageError

__all__ = ["Dvp"]

LEAST_CYCLES = 4
"""Clock cycles of a period of the camera's pixel clock, at least: it is sampled."""
WRITE_LUTS = 2.2
"""LUTs for each register that is written, at most."""
_BITS = 8
_BUS_HZ = 100_000
_WAIT = 4096
"""Quarters of a bit on the two wires that a pause takes: 10 ms."""
_PICTURES = 1000
"""Pictures of which those are counted that are taken."""
_REPORT = Struct("<Q2B")
_DATA = "cam_data"


@dataclass(frozen=True)
class Dvp(ChosenSource):
    """A camera with a parallel port, whose registers the board writes: the middle of its pictures.

    The board gives the camera its clock, and samples the pixel clock that comes back.

    Parameters
    ----------
    input
        Input of the network that it feeds.
    rows, columns
        What is taken of a picture, in its middle.
    channels
        Bytes of a pixel that are taken: one is its brightness.
    camera
        Name of the camera.
    pixels
        Format of its pixels.
    lines
        Data lines.
    fps
        Pictures per second that the network has to keep up with; 0 is all of them.
    alone
        A picture is taken only when the one before has left the accelerator; others are dropped.
    waiting
        Where so few would be taken, a whole one may wait for that in block RAM.

    Raises
    ------
    UsageError
        If there is no such camera, format or number of lines.
    """

    input: str
    rows: int
    columns: int
    channels: int
    camera: str = CAMERAS[0].name
    pixels: str = ""
    lines: int = 8
    fps: float = 0.0
    alone: bool = True
    waiting: bool = False

    name = "dvp"
    waits = False
    options = (
        Option("camera", str, f"{' or '.join(x.name for x in CAMERAS)} ({CAMERAS[0].name})"),
        Option("pixels", str, "format of its pixels: grey, yuv422 or rgb565 (the camera's first)"),
        Option("lines", int, "data lines, 8 or 4 (8)"),
        Option("fps", float, "pictures per second that are wanted (all)"),
    )
    board_pins = {
        "cam_xclk": Direction.OUTPUT, "cam_pclk": Direction.INPUT, "cam_vsync": Direction.INPUT,
        "cam_href": Direction.INPUT, _DATA: Direction.INPUT, "cam_scl": Direction.OUTPUT,
        "cam_sda": Direction.BOTH, "cam_error": Direction.OUTPUT,
    }
    lut = 295
    hardware = "nnef_hw.boards.hardware.cameras.receiver:DvpReceiver"

    def __post_init__(self) -> None:
        known = {camera.name for camera in CAMERAS}
        if self.camera not in known:
            raise UsageError(f"source {self.name} knows no camera {self.camera!r}",
                             remedy=f"its cameras are {', '.join(sorted(known))}")
        found = self.model
        if self.pixels and self.pixels not in found.pixels:
            raise UsageError(f"{found.title} sends no {self.pixels!r}",
                             remedy=f"it sends {' or '.join(found.pixels)}: pixels=NAME")
        if self.lines not in found.lines:
            lines = " or ".join(map(str, found.lines))
            raise UsageError(f"{found.title} has no port of {self.lines} lines",
                             remedy=f"give lines={lines}")
        if self.fps < 0:
            raise UsageError(f"fps={self.fps:g} is no number of pictures")

    @classmethod
    def luts(cls, **options: Any) -> int:
        """Return the LUTs that are set aside: for the receiver, and for each register's value."""
        chosen = cls("", 0, 0, 1, **options)
        writes = chosen.model.writes(chosen.mode, chosen.format, chosen.lines)
        return cls.lut + ceil(WRITE_LUTS * len(writes))

    @classmethod
    def of(cls, feed: Feed, **options: Any) -> "Dvp":
        """Return the camera of an input of pictures.

        Raises
        ------
        TargetError
            If the input takes no bytes, or more than the camera's pictures have.
        """
        channels, rows, columns = feed.picture or (0, 0, 0)
        where = f"source {cls.name} cannot feed input {feed.name!r}"
        if not channels or (feed.bits or _BITS) != _BITS:
            shape = "x".join(map(str, feed.shape))
            raise TargetError(
                f"{where}: a camera gives bytes of a picture, and its shape is {shape} of "
                f"{feed.bits or _BITS} bits",
                remedy='put a front end before the network: --front FILE.toml with front = "image"')
        found = cls(feed.name, rows, columns, channels, alone=feed.alone, **options)
        camera = found.model
        if channels > camera.pixel_bytes:
            raise TargetError(
                f"{where}: it takes {channels} codes per pixel, and {camera.title} sends "
                f"{camera.pixel_bytes}",
                remedy='decode them in the network: --front FILE.toml with front = "image"')
        if camera.mode_for(rows, columns) is None:
            sizes = " or ".join(f"{mode.rows}x{mode.columns}" for mode in camera.modes)
            raise TargetError(
                f"{where}: it takes {rows}x{columns} pixels, and {camera.title} sends {sizes}",
                remedy="take a network of smaller pictures, or resize them: --front FILE.toml")
        most = found.most_pictures
        if found.fps > most:
            raise TargetError(
                f"{where}: {camera.title} sends {most:.4g} pictures per second at most, and "
                f"fps={found.fps:g} are wanted", remedy="give a smaller fps, or none for all")
        if feed.interval and feed.alone and feed.may_wait:
            waits = replace(found, waiting=True)
            taken, more = (one.pictures_taken(feed.interval, feed.clk_hz) for one in (found, waits))
            if more > taken and not 0 < found.fps <= taken:
                return waits
        return found

    @property
    def model(self) -> Camera:
        """The camera."""
        [found] = [camera for camera in CAMERAS if camera.name == self.camera]
        return found

    @property
    def mode(self) -> Mode:
        """The size of the camera's pictures."""
        found = self.model.mode_for(self.rows, self.columns)
        assert found is not None
        return found

    @property
    def given(self) -> Mapping[str, object]:
        return {option.name: getattr(self, option.name) for option in self.options}

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {name: PinUse(direction, self.lines if name == _DATA else 1)
                for name, direction in self.board_pins.items()}

    @property
    def frames_per_second(self) -> float:
        """Pictures that the accelerator has to compute per second.

        One that takes every second picture or fewer has to be done before the next one's rows.
        """
        seconds = 1 / self.most_pictures
        rows = seconds * self.rows / self.mode.lines
        if not self.fps:
            return 1 / rows
        every = floor(1 / (self.fps * seconds))
        return 1 / (every * seconds - rows) if every > 1 else self.fps

    @property
    def most_pictures(self) -> float:
        """Pictures per second that the camera sends with its fastest clock."""
        sensor = self.model.clock_hz[1] / self.model.divider
        return sensor / (self.mode.line * self.mode.lines)

    def pictures_taken(self, cycles: int, clk_hz: int) -> float:
        """Return the pictures per second that an accelerator takes at once, in so many cycles each.

        Without room for one that waits the accelerator has to be done as a picture's rows begin.
        """
        spacing, rows = self.picture_cycles(clk_hz), self._line_cycles(clk_hz) * self.rows
        load = min(cycles, self.rows * self.columns * self.channels)
        is_done = is_empty = taken = 0
        for begin in range(0, _PICTURES * spacing, spacing):
            if begin >= (is_empty if self.waiting else is_done):
                taken += 1
                is_empty = max(begin + rows, is_done + load)
                is_done = is_empty + cycles - load
        return taken * clk_hz / (_PICTURES * spacing)

    def picture_cycles(self, clk_hz: float) -> int:
        """Return the cycles from a picture to the next one."""
        return self._line_cycles(clk_hz) * self.mode.lines

    def check_interval(self, cycles: int, clk_hz: int) -> None:
        """Refuse an accelerator that takes too few pictures, or is slower than a picture's rows."""
        taken = self.pictures_taken(cycles, clk_hz)
        if self.alone and self.fps and taken < self.fps:
            waits = replace(self, waiting=True).pictures_taken(cycles, clk_hz)
            more = f" ({waits:.4g} if one could wait in block RAM)" if waits > taken else ""
            raise TargetError(
                f"{self.title} is to give {self.fps:g} pictures per second; at "
                f"{clk_hz / 1e6:g} MHz {self.model.title} sends "
                f"{clk_hz / self.picture_cycles(clk_hz):.4g}, and the network, with {cycles:,} "
                f"cycles each, takes {taken:.4g} of them{more}",
                remedy=f"give fps={floor(taken * 10) / 10:g}, or a greater --target-fps")
        most = self._line_cycles(clk_hz) * self.rows
        if not self.alone and cycles > most:
            raise TargetError(
                f"{self.title} gives the {self.rows} rows of a picture in {most:,} cycles at "
                f"{clk_hz / 1e6:g} MHz, and the network takes {cycles:,} for them",
                remedy=f"give --target-fps {clk_hz / most:.0f}, or --arch engine, which takes a "
                "picture at once and drops others")

    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock of which none for the camera can be made."""
        least, _ = self.model.clock_hz
        found = clk_hz / self._clock_divider(clk_hz)
        if found < least:
            raise TargetError(
                f"{self.model.title} needs a clock of {least / 1e6:g} MHz or more, and a pixel "
                f"clock of which {LEAST_CYCLES} cycles of the board's clock see each period; "
                f"{clk_hz / 1e6:g} MHz give it {found / 1e6:.3g}",
                remedy="choose a faster --freq")

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        camera, mode = self.model, self.mode
        step = camera.pixel_bytes
        top, left = self.corner
        return {
            "rows": self.rows, "columns": self.columns, "channels": self.channels, "step": step,
            "top": top, "left": left, "alone": self.alone, "waiting": self.waiting,
            "lines": self.lines,
            "clock_divider": self._clock_divider(clk_hz), "vsync_in_frame": camera.vsync_in_frame,
            "address": camera.address, "register_bytes": camera.register_bytes,
            "writes": tuple(camera.writes(mode, self.format, self.lines)),
            "quarter": ceil(clk_hz / (4 * _BUS_HZ)), "wait": _WAIT,
        }

    def to_json(self) -> dict[str, object]:
        return {"kind": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Dvp":
        return cls(**{field.name: entry[field.name] for field in fields(cls)})

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return a camera that sends no pictures, see :meth:`sends` and :meth:`reported`."""
        return FarEnd(far_end_header("dvp"), "DvpFarEnd", self.sends(clk_hz, b"", 0))

    def sends(
        self, clk_hz: float, pictures: bytes, count: int, *, begin: int = 0, answers: bool = True
    ) -> list[float]:
        """Return the arguments of a far end: a camera that sends pictures.

        Parameters
        ----------
        pictures
            Bytes of pictures of the mode's size, as many as its pixels have.
        count
            How many there are.
        begin
            Cycle in which the first one may begin.
        answers
            Whether it acknowledges what is written to its registers.
        """
        camera, mode = self.model, self.mode
        line, period = self._line_cycles(clk_hz), self.period(clk_hz)
        writes = [write for write in camera.writes(mode, self.format, self.lines) if write != PAUSE]
        head = [
            answers, camera.address, len(writes) * (camera.register_bytes + 1), self.lines,
            camera.vsync_in_frame, mode.rows, mode.columns * camera.pixel_bytes, period, line,
            mode.lines, count, begin,
        ]
        assert len(pictures) == count * mode.rows * mode.columns * camera.pixel_bytes
        return [*map(float, head), *map(float, pictures)]

    @staticmethod
    def reported(data: bytes) -> list[tuple[int, int, int]]:
        """Return (cycle, sort, byte) of all that a far end reports: see ``dvp.h``."""
        return list(_REPORT.iter_unpack(data))

    @property
    def format(self) -> str:
        """Format of the camera's pixels."""
        return self.pixels or next(iter(self.model.pixels))

    @property
    def corner(self) -> tuple[int, int]:
        """Row and column where the part begins that is taken: an even one, if pairs share bytes."""
        mode, step = self.mode, self.model.pixel_bytes
        left = (mode.columns - self.columns) // 2 // step * step
        return (mode.rows - self.rows) // 2, left

    def writing_cycles(self, clk_hz: float) -> int:
        """Return the cycles in which all registers are written at most."""
        writes = self.model.writes(self.mode, self.format, self.lines)
        bits = 4 * (9 * (2 + self.model.register_bytes) + 3)
        quarters = sum(_WAIT + 4 if write == PAUSE else bits for write in writes)
        return quarters * ceil(clk_hz / (4 * _BUS_HZ))

    def period(self, clk_hz: float) -> int:
        """Return the cycles of the pixel clock; half a byte takes half as many as a byte."""
        sensor = self._clock_divider(clk_hz) * self.model.divider
        return sensor * self.mode.byte * self.lines // _BITS

    def _clock_divider(self, clk_hz: float) -> int:
        """Cycles of the clock that the camera gets: an even number."""
        camera = self.model
        slowest = LEAST_CYCLES * (_BITS // self.lines) / (camera.divider * self.mode.byte)
        return 2 * ceil(max(2, clk_hz / camera.clock_hz[1], slowest) / 2)

    def _line_cycles(self, clk_hz: float) -> int:
        return self._clock_divider(clk_hz) * self.model.divider * self.mode.line
