"""Sources, sinks and links: what stands between an accelerator and the pins of a board."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.interfaces.pins import Direction, PinUse

__all__ = ["ChosenSink", "ChosenSource", "FarEnd", "Feed", "Interface", "Option", "Result", "Sink",
           "Source", "far_end_header"]


def far_end_header(name: str) -> Path:
    """Return the path of a header of ``far_ends``."""
    return Path(__file__).parent / "far_ends" / f"{name}.h"


@dataclass(frozen=True)
class FarEnd:
    """Far end of an interface's wires in a simulated board.

    Parameters
    ----------
    path
        C++ header with a class for it, see ``far_end.h``.
    name
        The class.
    arguments
        Numbers that an object of it is made with.
    """

    path: Path
    name: str
    arguments: Sequence[float] = ()


@dataclass(frozen=True)
class Option:
    """An option of the command line that one interface has.

    Parameters
    ----------
    name
        Parameter of the interface; on the command line ``--name``.
    type
        Makes its value of a text.
    help
        What the command line says of it.
    """

    name: str
    type: Any
    help: str


@dataclass(frozen=True)
class Result:
    """An output of a network, as a sink is told of it.

    Parameters
    ----------
    name
        Its name.
    shape
        Extents of one sample.
    classes
        Where it is the number of a class, how many there are; None otherwise.
    image
        (height, width, channels) of its stream; None as long as there is no plan.
    qtype
        Its format; None as long as it has none.
    """

    name: str
    shape: tuple[int, ...]
    classes: int | None = None
    image: tuple[int, int, int] | None = None
    qtype: QType | None = None


@dataclass(frozen=True)
class Feed:
    """An input of a network, as a source is told of it.

    Parameters
    ----------
    name
        Its name.
    codes
        Codes of a frame, or of a step.
    rate
        Samples of audio per second that its reader expects; None if the network does not say.
    hears
        Its reader takes samples of audio, though perhaps of any rate.
    shape
        Extents of a frame.
    picture
        Channels, rows and columns, where its stream is a picture row by row; None otherwise.
    qtype
        Its format; None as long as it has none.
    image
        (height, width, channels) of its stream; None as long as there is no plan.
    alone
        A frame enters only when the one before has left; true as long as there is no plan.
    interval, clk_hz
        Cycles that the accelerator takes for a frame, and its clock; 0 as long as there is no plan.
    may_wait
        The design leaves block RAM for a frame of this input.
    """

    name: str
    codes: int
    rate: int | None = None
    shape: tuple[int, ...] = ()
    picture: tuple[int, int, int] | None = None
    qtype: QType | None = None
    image: tuple[int, int, int] | None = None
    alone: bool = True
    interval: int = 0
    clk_hz: int = 0
    may_wait: bool = False
    hears: bool = False

    @property
    def bits(self) -> int | None:
        """Bits of a code; None as long as it has no format."""
        return None if self.qtype is None else self.qtype.bits


class Interface(ABC):
    """Something beyond the accelerator, with hardware and pins of its own.

    What is asked here needs no Amaranth. The hardware is a component of its own, which is imported
    only when it is made. All pins of the component are members of its signature beside its
    streams, and have the names, directions and widths of :attr:`pins`. Those of both directions
    are behind its ``pads``: wires that are pulled low.
    """

    name: ClassVar[str]
    """Its name on the command line, and ``kind`` in the manifest."""
    sort: ClassVar[str]
    """Sort of the interface in messages: ``link``, ``source`` or ``sink``."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of the command line that it alone has; each is a parameter of the class."""
    hardware: ClassVar[str]
    """``module:class`` of its component."""
    keeps_time: ClassVar[bool] = True
    """Whether the interface's component depends on the frequency of the clock."""

    @property
    def title(self) -> str:
        """Name of the interface in messages: ``link spi``."""
        return f"{self.sort} {self.name}"

    @property
    @abstractmethod
    def pins(self) -> Mapping[str, PinUse]:
        """Pins that the interface needs, by the name that board and top have for them."""

    @abstractmethod
    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock that the hardware cannot work with.

        Raises
        ------
        TargetError
            With the numbers, and the option that would help.
        """

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """Return the entry in the manifest: ``kind``, and all that makes an equal object again."""

    @classmethod
    @abstractmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Interface":
        """Return the interface that an entry of the manifest describes."""

    @abstractmethod
    def far_end(self, clk_hz: float) -> FarEnd:
        """Return the device beyond the pins where the board is simulated with such a clock."""

    @abstractmethod
    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        """Return the arguments of the component for a clock, by name."""

    @classmethod
    def hardware_class(cls) -> Any:
        """Return the class of the component; its module is imported only now."""
        module, _, name = cls.hardware.partition(":")
        return getattr(import_module(module), name)


class Source(Interface):
    """Something that an input of an accelerator comes from.

    Its component, made with the ``layout`` of the input's beats as well, has a stream ``o`` of
    them: whole frames, each of which ends with ``last``; a reset makes it begin with a new one. The
    accelerator may let it wait for any time. A source that cannot wait, as a microphone cannot,
    counts the samples that it loses, in an output ``lost`` of 16 bits that stays at its greatest
    value; the link tells them. It may have an input ``inside``: a frame is inside the accelerator.
    """

    sort = "source"
    waits: ClassVar[bool] = True
    """Whether a source can wait for the accelerator, so that results may wait for the host."""


class ChosenSource(Source):
    """A source that a user chooses for an input, in place of the host."""

    board_pins: ClassVar[Mapping[str, Direction]]
    """Names of the pins that it needs of a board."""
    lut: ClassVar[int]
    """LUTs that are set aside for its hardware."""
    bram: ClassVar[int] = 0
    """Block RAMs that are set aside for its hardware."""
    input: str
    """Name of the input that it feeds."""

    @classmethod
    def luts(cls, **options: Any) -> int:
        """Return the LUTs that are set aside for its hardware, with such options."""
        del options
        return cls.lut

    @property
    def given(self) -> Mapping[str, object]:
        """Values of its options, by name."""
        return {}

    @classmethod
    @abstractmethod
    def of(cls, feed: Feed, **options: Any) -> "ChosenSource":
        """Return the source of an input, with its options as far as they are given.

        Raises
        ------
        TargetError
            If it cannot give what the input takes.
        """

    @property
    @abstractmethod
    def frames_per_second(self) -> float:
        """Frames that it gives per second: a plan has to be as fast."""

    @abstractmethod
    def check_interval(self, cycles: int, clk_hz: int) -> None:
        """Refuse an accelerator that takes so many cycles for a frame, if frames come faster.

        Raises
        ------
        TargetError
            With the numbers.
        """


class Sink(Interface):
    """Something that an output of an accelerator goes to.

    Its component, made with the ``layout`` of the output's beats as well, has a stream ``i`` of
    them. It gets every frame that the host gets, and none of a replay. While it lets the
    accelerator wait, other sinks of the output wait, too. A reset makes it wait for a new frame.
    """

    sort = "sink"


class ChosenSink(Sink):
    """A sink that a user chooses for an output, beside the host."""

    board_pins: ClassVar[Mapping[str, Direction]]
    """Names of the pins that any such sink needs of a board, however many of each."""
    lut: ClassVar[int]
    """LUTs that are set aside for its hardware."""
    output: str
    """Name of the output that goes there."""

    @classmethod
    def luts(cls, **options: Any) -> int:
        """Return the LUTs that are set aside for its hardware, with such options."""
        del options
        return cls.lut

    @classmethod
    def blocks(cls, **options: Any) -> int:
        """Return the block RAMs that are set aside for its hardware, with such options."""
        del options
        return 0

    @property
    def given(self) -> Mapping[str, object]:
        """Values of its options, by name."""
        return {}

    @classmethod
    @abstractmethod
    def of(cls, result: Result, available: Mapping[str, int], **options: Any) -> "ChosenSink":
        """Return the sink of an output.

        Parameters
        ----------
        result
            The output.
        available
            How many pins the board has under each name of :attr:`board_pins`.
        options
            Its options, as far as they are given.

        Raises
        ------
        TargetError
            If the sink can do nothing with such an output, or the pins are too few.
        """
