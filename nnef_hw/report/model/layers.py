"""Facts about each layer."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

__all__ = ["LayerReport", "LayerFigures", "Overlap", "LayerSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFigures:
    """Figures of a layer that two builds are compared by: reports of every version have them.

    Parameters
    ----------
    name
        Name of the layer in the model.
    cycles
        Cycles per frame when it is never starved or blocked.
    multipliers
        Multipliers that it has, or takes turns on.
    lut, bram
        Estimate of its LUTs; its block RAMs.
    """

    name: str
    cycles: int
    multipliers: int
    lut: int
    bram: int


@dataclass(frozen=True, slots=True)
class LayerSource:
    """A tensor that a layer reads.

    Parameters
    ----------
    tensor
        Name of the tensor.
    fifo
        Beats of the FIFO in front of the layer; 0 without one.
    codes
        Codes of the tensor per frame.
    """

    tensor: str
    fifo: int
    codes: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """Additional hardware of a layer that computes several frames at once.

    Parameters
    ----------
    cycles_alone
        Cycles per frame of the latter.
    lut, bram
        LUTs and block RAMs more.
    """

    cycles_alone: int
    lut: int
    bram: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport(LayerFigures):
    """A layer: its place in the model, its folding, its time, its hardware.

    Parameters
    ----------
    op, kind
        Its operator; what of it the hardware is, as ``depthwise`` of ``conv``.
    location
        Place in the model's file; null where it has none.
    sources
        Tensors that it reads.
    tensor, codes
        Tensor that it gives, and its codes per frame.
    input_image, output_image
        Height, width and channels of its first input and of its result.
    kernel
        Height and width of its window; null without one.
    parameters
        Weights and biases.
    macs
        Multiply-accumulates per frame, padding taps included.
    rows, lanes, taps
        Factors of its number of multipliers.
    lines
        Rows that its line buffer gives at once.
    in_dsp
        Multipliers that are in DSP blocks.
    busy_cycles, waiting_cycles
        Cycles of a steady frame in which it takes a word, and in which a word waits.
    utilization
        Share of its multipliers' cycles that are used; null without multipliers.
    line_buffer_bytes, weight_bytes
        Bytes of its line buffer and of its weights.
    dsp
        DSP blocks of its own.
    overlap
        What several frames at once gain and cost; null if it computes one at a time.
    stall_cycles
        Cycles per frame in which it waits for weights; only where layers share one array.
    memory_bytes
        Bytes per frame that come from a memory beside the FPGA; only where layers share one array.
    """

    op: str
    kind: str
    location: str | None
    sources: tuple[LayerSource, ...]
    tensor: str
    codes: int
    input_image: tuple[int, ...]
    output_image: tuple[int, ...]
    kernel: tuple[int, ...] | None
    parameters: int
    macs: int
    rows: int
    lanes: int
    taps: int
    lines: int
    in_dsp: int
    busy_cycles: int
    waiting_cycles: int
    utilization: float | None
    line_buffer_bytes: int
    weight_bytes: int
    dsp: int
    overlap: Overlap | None = None
    stall_cycles: int | UnsetType = UNSET
    memory_bytes: int | UnsetType = UNSET
