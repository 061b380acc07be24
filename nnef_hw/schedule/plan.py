"""The Plan: which hardware runs which layer, with which folding, and the cycles that follow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from nnef_hw.window import Window

__all__ = ["SHALLOW_FIFO", "Block", "Plan", "Port", "Resources", "Source", "queued_ports"]


SHALLOW_FIFO = 16
"""Most items of a FIFO that is made of registers, not of block RAM."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Primitives of a device: LUT4s, flip-flops, DSP blocks, block RAMs, single-port RAMs."""

    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram: int = 0
    spram: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.lut + other.lut,
            self.ff + other.ff,
            self.dsp + other.dsp,
            self.bram + other.bram,
            self.spram + other.spram,
        )

    def to_json(self) -> dict[str, int]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a block's operand comes from.

    Parameters
    ----------
    tensor
        Name of the stream: the input's, or of the tensor that another block computes.
    depth
        Items of the FIFO in front of the block; 0 without one.
    """

    tensor: str
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """The hardware of one layer.

    Parameters
    ----------
    name, op, kind
        Layer and operator of the model; ``conv``, ``depthwise``, ``max_pool``, ``avg_pool``,
        ``running_max``, ``running_sum``, ``table``, ``interpolated_table``, ``sum``,
        ``table_sum``, ``product``, ``extremum``, ``concat``, ``slice``, ``pad``, ``upsample``,
        ``depth_to_space``, ``transpose``, ``softmax``, ``tflite_softmax`` or ``argmax``; ``dot``
        is a convolution of one output channel at a time.
    sources, tensor
        What it reads, and the name of what it computes.
    channels, out_channels
        Of the image that enters and of the one that leaves.
    x_bits, x_signed, out_bits, out_signed
        Formats of codes in and out.
    runs
        Codes that a concatenation takes of each operand in turn; those that a slice drops, gives
        and drops again in a turn.
    factors
        How often rows and columns are given, or how many a pixel's channels become; of a
        transposition, which axes (row, column, channel) are given in turn.
    stages, y_bits, constants
        Of an element-wise pipeline: registers; width of the second operand, and how many codes it
        has if it is a constant. Of an interpolated table: registers; width of the differences
        between its entries.
    window, depth, parallel, lines
        Geometry and memory words of the line buffer, or image and memory of a block that moves
        codes or pools them as they come; None and 0 without one. A parallel one gives
        all taps of a window in one word, and so does a banked one, which keeps that many rows.
    single_port
        Whether a running pool keeps its results in a single-port RAM, not in block RAM.
    rows, lanes, taps, group_rows, kept_passes
        Output channels at once, channels and window positions per word, rows that share a weight
        memory, passes whose sums the array holds.
    weight_bits, acc_bits
        Widths of weights and sums.
    digit_bits, digit_stages
        Bits of ``mult`` that each of the requantizer's stages takes per cycle; those stages.
    interval, round_stages
        Cycles per requantized result, 0 without requantizer; registers in which it rounds, more
        than one if it does so as TensorFlow Lite.
    in_dsp, weight_style, weight_delay
        Multipliers in DSP blocks; weights in ``"block"`` RAM or ``"logic"``, and registers
        between them.
    queued_sums
        Whether a FIFO of two sums stands between array and requantizer.
    macs, multipliers
        Multiply-accumulates per frame; multipliers built for them.
    cycles, missing_words
        Cycles per frame when never starved or blocked; words of its line buffer that it waits for
        each frame, counted there with a cycle each.
    resources
        Estimate; ``dsp`` and ``bram`` are exact.
    """

    name: str
    op: str
    kind: str
    sources: tuple[Source, ...]
    tensor: str
    channels: int
    out_channels: int
    x_bits: int
    x_signed: bool
    out_bits: int
    out_signed: bool
    cycles: int
    resources: Resources
    window: Window | None = None
    depth: int = 0
    parallel: bool = False
    lines: int = 0
    single_port: bool = False
    rows: int = 0
    lanes: int = 1
    group_rows: int = 0
    kept_passes: int = 1
    weight_bits: int = 0
    acc_bits: int = 0
    digit_bits: int = 0
    digit_stages: int = 1
    interval: int = 0
    round_stages: int = 1
    in_dsp: bool = False
    weight_style: str = "block"
    weight_delay: int = 0
    queued_sums: bool = False
    missing_words: int = 0
    macs: int = 0
    multipliers: int = 0
    taps: int = 1
    stages: int = 0
    runs: tuple[int, ...] = ()
    factors: tuple[int, ...] = ()
    y_bits: int = 0
    constants: int = 0

    @property
    def is_move(self) -> bool:
        """Whether one component moves codes of one stream."""
        return self.kind in {"depth_to_space", "pad", "slice", "transpose", "upsample"}

    @property
    def is_running(self) -> bool:
        """Whether it pools pixels as they come."""
        return self.kind in {"running_max", "running_sum"}

    @property
    def has_windows(self) -> bool:
        """Whether a line buffer turns its image into windows."""
        return self.window is not None and not self.is_move and not self.is_running

    @property
    def beat_lanes(self) -> int:
        """Codes per beat that the line buffer takes."""
        return self.channels if self.parallel or self.kind == "dot" else self.lanes

    @property
    def pass_words(self) -> int:
        """Words of one pass over a window (T of the design)."""
        assert self.window is not None
        return 1 if self.parallel or self.lines else self.window.pass_words

    @property
    def tree_depth(self) -> int:
        """Register stages of a row's adder tree."""
        return (self.lanes - 1).bit_length()

    @property
    def groups(self) -> int:
        """Weight memories of an array."""
        return -(-self.rows // self.group_rows) if self.group_rows else 0

    @property
    def sums(self) -> int:
        """Sums that an array computes at once."""
        return self.lanes if self.sums_taps else self.rows

    @property
    def sums_taps(self) -> bool:
        """Whether it is an array that sums over taps, one channel at a time."""
        return self.kind in {"depthwise", "dot"}

    @property
    def result_spacing(self) -> int:
        """Least cycles between two sums that leave the array."""
        return max(self.interval, 1)

    @property
    def result_latency(self) -> int:
        """Cycles from the last word of a pass to its first sum."""
        if self.sums_taps:
            tree = (self.taps - 1).bit_length()
            return 4 + self.weight_delay + tree + (self.pass_words > 1) + (self.kept_passes > 1)
        return 7 + self.weight_delay + self.tree_depth

    @property
    def softmax_cycles(self) -> tuple[int, int]:
        """From a pixel's last code to its first probability, and from each one to the next."""
        if self.kind == "softmax":
            return self.channels + 18, 14
        steps = self.channels.bit_length() - 1
        return self.channels + 2 * steps + 273, steps + 37

    @property
    def utilization(self) -> float | None:
        """Share of multiplier cycles that do work; None without multipliers."""
        return self.macs / (self.cycles * self.multipliers) if self.multipliers else None


@dataclass(frozen=True, slots=True)
class Port:
    """A stream at the accelerator's border.

    Parameters
    ----------
    name
        Of the accelerator's port: ``i`` or ``o``; with the graph's name behind it if there are
        several.
    tensor
        Name in the graph of what it carries, behind reshapes that are left to the host.
    image
        (height, width, channels) of the stream.
    bits, signed, lanes
        Format of a beat.
    """

    name: str
    tensor: str
    image: tuple[int, int, int]
    bits: int
    signed: bool
    lanes: int = 1

    @property
    def beats(self) -> int:
        """Beats per frame."""
        height, width, channels = self.image
        return height * width * -(-channels // self.lanes)

    @property
    def queue_depth(self) -> int:
        """Beats that a FIFO for a frame holds, which has at least two."""
        return max(2, self.beats)


def queued_ports(inputs: Sequence[Port], outputs: Sequence[Port]) -> tuple[Port, ...]:
    """Return the ports of which a whole frame can wait in the host link, tensor after tensor.

    An accelerator may take all its inputs at once, and give all its outputs at once: those that the
    link carries ahead of others, or behind them, have to wait (docs/protocol.md, section 7).
    """
    return (*inputs[:-1], *outputs[1:])


@dataclass(frozen=True, slots=True)
class Plan:
    """A scheduled accelerator.

    Parameters
    ----------
    model, board, device
        Names.
    clock_mhz
        Clock the board gives it.
    inputs, outputs
        Its streams, in the order of the graph.
    blocks
        In stream order.
    interval, latency
        Predicted cycles between results in steady state, and from the first beat of any input to
        the last one of all outputs, of a frame in an empty pipeline.
    link
        What the host link takes.
    layer_counters
        Whether the board counts what every block does.
    """

    model: str
    board: str
    device: str
    clock_mhz: float
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    blocks: tuple[Block, ...]
    interval: int
    latency: int
    link: Resources
    layer_counters: bool = False
    arch: str = "streaming"

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame."""
        return sum(block.macs for block in self.blocks)

    @property
    def multipliers(self) -> int:
        """Multipliers built for multiply-accumulates."""
        return sum(block.multipliers for block in self.blocks)

    @property
    def mac_utilization(self) -> float:
        """``macs / (interval * multipliers)``; 0 for a network without multiplications."""
        return self.macs / (self.interval * self.multipliers) if self.multipliers else 0.0

    @property
    def resources(self) -> Resources:
        """Estimate of the whole design with its host link."""
        return sum((block.resources for block in self.blocks), self.link)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def dumps(self) -> str:
        """Return the text of ``plan.json``."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Plan:
        """Inverse of :meth:`to_json`."""
        blocks = tuple(_block(item) for item in value["blocks"])
        values: dict[str, Any] = {key: value[key] for key in (f.name for f in fields(cls))}
        for key in ("inputs", "outputs"):
            values[key] = tuple(
                Port(**{**port, "image": tuple(port["image"])}) for port in value[key]
            )
        return cls(**{**values, "blocks": blocks, "link": Resources(**value["link"])})


def _block(value: dict[str, Any]) -> Block:
    window = value["window"]
    return Block(**{
        **value,
        "resources": Resources(**value["resources"]),
        "sources": tuple(Source(**source) for source in value["sources"]),
        "runs": tuple(value["runs"]),
        "factors": tuple(value["factors"]),
        "window": None if window is None else Window.from_json(window),
    })
