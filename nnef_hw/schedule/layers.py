"""The stream layers of a network: what has to be built, before any folding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Node
from nnef_hw.numerics import AddRequant, QType, Requant
from nnef_hw.schedule.plan import Port
from nnef_hw.tflite_numerics import TfliteRequant
from nnef_hw.window import Window

__all__ = [
    "ArgmaxLayer",
    "ConcatLayer",
    "ConvLayer",
    "DepthToSpaceLayer",
    "DepthwiseLayer",
    "EltwiseLayer",
    "Layer",
    "LayerGraph",
    "MoveLayer",
    "PadLayer",
    "PoolLayer",
    "SliceLayer",
    "SoftmaxLayer",
    "TableLayer",
    "TransposeLayer",
    "UpsampleLayer",
]


@dataclass(frozen=True, slots=True, eq=False)
class ConvLayer:
    """A convolution or linear layer.

    ``window`` has one channel block per channel and one pass; folding changes both. ``weights``
    is [out channels, taps, in channels] in window order, ``bias`` has the zero point folded in.
    Channels of other groups have weights of 0.
    """

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    requant: Requant | TfliteRequant
    source: QType
    target: QType
    weight_bits: int
    acc_bits: int
    groups: int = 1

    @property
    def in_channels(self) -> int:
        """Input channels."""
        return int(self.weights.shape[2])

    @property
    def out_channels(self) -> int:
        """Output channels."""
        return int(self.weights.shape[0])

    @property
    def parameters(self) -> int:
        """Weights of the model."""
        return int(self.weights.size) // self.groups

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame, padding taps included."""
        return self.window.out_pixels * self.parameters


@dataclass(frozen=True, slots=True, eq=False)
class DepthwiseLayer:
    """A convolution of every channel by itself.

    ``window`` is read by channel. ``weights`` is [channels, taps] in window order, ``bias`` has the
    zero point folded in.
    """

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    requant: Requant | TfliteRequant
    source: QType
    target: QType
    weight_bits: int
    acc_bits: int

    @property
    def parameters(self) -> int:
        """Weights of the model."""
        return int(self.weights.size)

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame, padding taps included."""
        return self.window.out_pixels * self.parameters


@dataclass(frozen=True, slots=True, eq=False)
class PoolLayer:
    """Maximum or average over windows, channel by channel.

    ``positions`` [row, column] tells which mult of ``requant`` a result takes, if it has several.
    """

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    source: QType
    target: QType
    pad_code: int
    requant: Requant | None
    bias: int = 0
    acc_bits: int = 0
    positions: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EltwiseLayer:
    """A function of two streams of one image, or of one and a constant.

    ``constant`` has one code for all channels, or one each; it stands for the second operand.
    ``requant`` is that of the operator, with mults in the order of the operands; None for max and
    min. With ``tables`` it is that of a sum of what they say of every code of both operands, lowest
    code first.
    """

    name: str
    node: Node
    sources: tuple[str, ...]
    pixels: int
    channels: int
    formats: tuple[QType, QType]
    target: QType
    requant: AddRequant | Requant | TfliteRequant | None
    constant: tuple[int, ...] = ()
    acc_bits: int = 0
    tables: tuple[NDArray[np.int64], ...] = ()

    @property
    def source(self) -> QType:
        """Format of the first operand."""
        return self.formats[0]


@dataclass(frozen=True, slots=True, eq=False)
class ConcatLayer:
    """Images side by side; each gives ``runs`` codes in turn (design: row, column, channel)."""

    name: str
    node: Node
    sources: tuple[str, ...]
    pixels: int
    channels: int
    runs: tuple[int, ...]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class SliceLayer:
    """Part of an image: of every ``sum(runs)`` codes those of the second run, ``turns`` times."""

    name: str
    node: Node
    sources: tuple[str, ...]
    pixels: int
    channels: int
    runs: tuple[int, int, int]
    turns: int
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class PadLayer:
    """One code around an image, which is that of ``window``, as is the padding."""

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    source: QType
    target: QType
    pad_code: int


@dataclass(frozen=True, slots=True, eq=False)
class UpsampleLayer:
    """Rows and columns of the image of ``window``, several times each."""

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    factors: tuple[int, int]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class TableLayer:
    """A function of one activation; ``entries`` is a table of :mod:`nnef_hw.tables`."""

    name: str
    node: Node
    sources: tuple[str, ...]
    pixels: int
    channels: int
    entries: NDArray[np.int64]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxLayer:
    """Softmax over channels."""

    name: str
    node: Node
    sources: tuple[str, ...]
    pixels: int
    channels: int
    table: NDArray[np.int64]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class ArgmaxLayer:
    """Index of the largest channel."""

    name: str
    node: Node
    sources: tuple[str, ...]
    pixels: int
    channels: int
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class DepthToSpaceLayer:
    """Channels (y, x, c) of the image of ``window``, spread over rows and columns."""

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    factors: tuple[int, int]
    source: QType
    target: QType


@dataclass(frozen=True, slots=True, eq=False)
class TransposeLayer:
    """The stream of the image of ``window`` with its axes in another ``order``.

    The image need not be that of a tensor: a flat one is divided into what it becomes.
    """

    name: str
    node: Node
    sources: tuple[str, ...]
    window: Window
    channels: int
    order: tuple[int, int, int]
    source: QType
    target: QType


MoveLayer = DepthToSpaceLayer | PadLayer | SliceLayer | TransposeLayer | UpsampleLayer
"""Layers that move the codes of one stream."""

Layer = (
    ConvLayer
    | DepthwiseLayer
    | PoolLayer
    | EltwiseLayer
    | ConcatLayer
    | MoveLayer
    | TableLayer
    | SoftmaxLayer
    | ArgmaxLayer
)


@dataclass(frozen=True, slots=True, eq=False)
class LayerGraph:
    """All layers in an order in which each follows those it reads, and the ports at the border.

    A layer's ``sources`` are names of streams: that of an input, or of another layer, which gives
    its name to what it computes. Reshapes at the borders of the graph are left to the host.
    """

    layers: tuple[Layer, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
