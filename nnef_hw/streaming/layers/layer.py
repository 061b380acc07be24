"""Every stream layer answers alike: its foldings, the parts of each, its cycles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from nnef_hw.architecture.kept_rows import KeptRows
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.records import Fields, JsonObject
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir import Node, StreamOrder, layers
from nnef_hw.ir.operators import PerOperator
from nnef_hw.parts import Part
from nnef_hw.parts.streams.constant import Constant
from nnef_hw.streaming.layers.kept_caches import KeptCache

__all__ = [
    "AnyContext",
    "AnyLayer",
    "StreamContext",
    "Contents",
    "Folding",
    "StreamLayer",
    "PixelLayer",
    "PlainLayer",
    "WindowLayer",
    "lowers",
    "size_steps",
]

Contents = Mapping[str, Mapping[str, Any]]
"""What the parts of a layer are filled with: keyword arguments by label."""


@dataclass(frozen=True, kw_only=True)
class Folding:
    """Choice of the solver for a layer; this one is for layers that leave nothing to choose."""

    classes: ClassVar[dict[str, type[Folding]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the folding by name, as plans name it."""
        super().__init_subclass__()
        Folding.classes[cls.__name__] = cls

    @property
    def shape(self) -> dict[str, int]:
        """Rows, lanes, taps and lines, as reports show them."""
        return {"rows": 0, "lanes": 1, "taps": 1, "lines": 0}

    @property
    def products_per_multiplier(self) -> int:
        """Multiply-accumulates per cycle of a multiplier."""
        return 1

    def to_json(self) -> JsonObject:
        """Plain JSON values."""
        return {"folding": type(self).__name__, **asdict(self)}

    @staticmethod
    def from_json(value: JsonObject) -> Folding:
        """Inverse of :meth:`to_json`.

        Raises
        ------
        ValueError
            If there is no such folding, or it lacks a choice.
        """
        chosen = {key: item for key, item in value.items() if key != "folding"}
        kind = {**Folding.classes, "Folding": Folding}.get(value["folding"])
        if kind is None or {item.name for item in fields(kind)} != chosen.keys():
            raise ValueError(f"{value!r} is not a folding")
        folding: Folding = kind(**chosen)
        return folding


F = TypeVar("F", bound=Folding)


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamLayer(ABC, Generic[F]):
    """A node as hardware, before any folding.

    Parameters
    ----------
    name, node
        Name and node of the model.
    sources
        Streams that it reads: of an input, or of another layer, which gives its name to what it
        computes.
    source, target
        Formats of codes in and out.
    repeats
        How often it computes in a frame of the network; its own frame is a step then.
    operand_lanes, result_lanes
        Codes per beat of every operand, and of the result.
    clock_mhz
        Clock that it is to reach, where its beats have several codes; None if that is not known.

    Attributes
    ----------
    label
        The sort of hardware, unless that depends on the folding.
    closes_loop
        Whether it reads what a layer behind it gives, a frame later.
    leads
        Whether it gives codes of a frame before it takes any.
    keeps_lanes
        Whether beats of its result have as many codes as those of its operands.
    """

    label: ClassVar[str]
    closes_loop: ClassVar[bool] = False
    leads: ClassVar[bool] = False
    keeps_lanes: ClassVar[bool] = False

    name: str
    node: Node
    sources: tuple[str, ...]
    source: QType
    target: QType
    repeats: int = 1
    operand_lanes: int = 1
    result_lanes: int = 1
    clock_mhz: float | None = None

    @property
    def tensor(self) -> str:
        """Name of the tensor that the layer computes."""
        return self.node.outputs[0]

    @property
    def takes_lanes(self) -> bool:
        """Whether there is such hardware for beats of so many codes; most has one code in each."""
        lanes = self.result_lanes
        fits = self.together % lanes == 0 if self.keeps_lanes else lanes == 1
        return lanes == self.operand_lanes and fits

    @property
    def together(self) -> int:
        """Codes that it moves side by side: a beat has a divisor of their number; 0 for any."""
        return 0

    @property
    def joined(self) -> tuple[str, ...]:
        """Streams that it reads in beats of as many codes."""
        return self.sources

    @property
    def equally_wide(self) -> tuple[str, ...]:
        """Streams beside it whose beats have as many codes as those of its result."""
        return (*self.joined, self.tensor) if self.keeps_lanes else (self.tensor,)

    def widened(
        self, operand_lanes: int, result_lanes: int, clock_mhz: float | None = None
    ) -> AnyLayer:
        """Return the layer with so many codes per beat; itself if it has as many."""
        if (operand_lanes, result_lanes) == (self.operand_lanes, self.result_lanes):
            return self
        return replace(
            self, operand_lanes=operand_lanes, result_lanes=result_lanes, clock_mhz=clock_mhz
        )

    def kind(self, folding: F) -> str:
        """Name the sort of hardware, for reports."""
        del folding
        return self.label

    @abstractmethod
    def foldings(self, device: Device) -> Sequence[F]:
        """List every way to fold it onto a device: the candidates the solver chooses from."""

    @abstractmethod
    def parts(self, folding: F, device: Device) -> tuple[Part, ...]:
        """Return the parts of the layer, in stream order; the first part takes the operands."""

    @abstractmethod
    def cycles(self, folding: F, device: Device) -> int:
        """Cycles per frame when it is never starved or blocked."""

    def contents(self, folding: F) -> Contents:
        """Return the contents of the layer's parts."""
        del folding
        return {}

    def least_queue(self, device: Device) -> int:
        """Return the least items of the FIFO in front of every operand; 0 if it needs none."""
        del device
        return 0

    def most_queue(self, operand: int) -> int | None:
        """Return how many items of an operand need to wait at most; None if that is not known."""
        del operand
        return None

    def constant(self, device: Device) -> Constant | None:
        """Return the part that stands for a last operand which is constant."""
        del device
        return None

    def joins(self, parts: Sequence[Part]) -> int:
        """Return which part takes the operands beside the first one."""
        del parts
        return 0

    def lanes_of(self, operand: int) -> int:
        """Codes per beat of an operand."""
        del operand
        return self.operand_lanes

    def without_overlap(self, folding: F) -> F | None:
        """Return the folding that computes a frame at a time, if this one computes several."""
        del folding
        return None

    def pause(self, folding: F) -> int:
        """Most cycles on end in which it takes nothing, but for its line buffer's padding."""
        del folding
        return 0

    def operand_format(self, operand: int) -> QType:
        """Format of the codes of an operand."""
        del operand
        return self.source

    @property
    def image(self) -> Window | None:
        """The image that it takes, and windows over it; None if it goes code by code."""
        return None

    @property
    def kernel(self) -> tuple[int, int] | None:
        """Rows and columns of the window that a report shows; None without one."""
        return self.image.kernel if self.image else None

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame, padding taps included."""
        return 0

    @property
    def weights_of_model(self) -> int:
        """Weights that the model has here, without those that are 0 for other groups."""
        return 0

    def narrowed(self, bits: int) -> StreamLayer[F]:
        """Return the layer as if its weights had at most so many bits."""
        del bits
        return self

    @property
    def biases(self) -> int:
        """Biases that the model has here."""
        return 0

    @property
    def weight_bits(self) -> int:
        """Bits of a weight."""
        return 0


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainLayer(StreamLayer[Folding]):
    """A layer that is one part and leaves nothing to choose."""

    @abstractmethod
    def part(self, device: Device) -> Part:
        """Return the part."""

    def foldings(self, device: Device) -> Sequence[Folding]:
        del device
        return [Folding()]

    def parts(self, folding: Folding, device: Device) -> tuple[Part, ...]:
        del folding
        return (self.part(device),)

    @property
    def codes_format(self) -> Fields:
        """Format of the codes that come."""
        return {"bits": self.source.bits, "signed": self.source.signed}


@dataclass(frozen=True, eq=False, kw_only=True)
class PixelLayer(StreamLayer[F]):
    """A layer that gives as many codes as it takes, in beats of a divisor of the channels."""

    keeps_lanes = True

    pixels: int
    channels: int

    @property
    def takes_lanes(self) -> bool:
        return self.operand_lanes == self.result_lanes and self.channels % self.result_lanes == 0

    @property
    def beats(self) -> int:
        """Beats of the result."""
        return self.pixels * self.channels // self.result_lanes


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowLayer(StreamLayer[F]):
    """A layer that takes the image of ``window``."""

    window: Window

    @property
    def image(self) -> Window:
        return self.window


L = TypeVar("L", bound=layers.Layer, covariant=True)


@dataclass(frozen=True, slots=True)
class StreamContext(Generic[L]):
    """An integer layer of a fixed graph and what is known around it.

    ``cache`` is what stays in the weights of the layer, whose second operand it would be.
    """

    layer: L
    streams: Mapping[str, str]
    order: StreamOrder
    kept: Mapping[str, KeptRows] = field(default_factory=dict)
    cache: KeptCache | None = None

    @property
    def rows(self) -> KeptRows | None:
        """Rows of steps before that stay in front of the first operand."""
        return self.kept.get(self.layer.operands[0].name)

    def window(self, window: Window) -> Window:
        """Return windows over the first operand, of which rows may be kept of frames before."""
        rows = self.rows
        if rows is None:
            return window
        return replace(window, height=rows.new, history=rows.past, lag=rows.lag)

    @property
    def extents(self) -> Fields:
        """Pixels and channels of the first operand that is computed."""
        computed = next(x for x in self.layer.operands if x.data is None)
        height, width, channels = layers.image_of(computed)
        return {"pixels": height * width, "channels": channels}

    @property
    def names(self) -> Fields:
        """Fields that all layers have."""
        node, operands = self.layer.node, self.layer.operands
        names = [x.name for x in operands if x.data is None]
        if self.cache is not None:
            names = [names[0], self.cache.row, self.cache.place]
        return {
            "name": node.name,
            "node": node,
            "sources": tuple(self.streams[name] for name in names),
        }

    @property
    def common(self) -> Fields:
        """Fields common to layers, with the formats of the first operand and of the result."""
        return {**self.names, "source": self.layer.source, "target": self.layer.target}


AnyLayer: TypeAlias = StreamLayer[Any]
"""A layer, whatever its choices of foldings are."""
AnyContext: TypeAlias = StreamContext[Any]
"""Surroundings of a layer of any kind."""
lowers = PerOperator[Callable[[AnyContext], AnyLayer]]("layer")
"""How nodes of an operator become layers."""


def size_steps(extent: int, unit: int = 1) -> list[int]:
    """Sizes s for which no smaller one needs as few repetitions ``ceil(extent / s)``.

    They and the extent are multiples of a unit.
    """
    extent //= unit
    return sorted({unit * -(-extent // repetitions) for repetitions in range(1, extent + 1)})
