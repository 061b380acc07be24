"""Results of ``check``, ``inspect`` and ``plan``: a network before it is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from msgspec import UNSET, UnsetType

from nnef_hw.report.model.clock import ClockChoice
from nnef_hw.report.model.conversion import to_json

__all__ = [
    "BuildProgram",
    "LayerDescription",
    "ModelCheck",
    "ModelDescription",
    "Outlook",
    "StreamDescription",
]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The best design of a network on a board, or why there is none.

    Parameters
    ----------
    board, device
        Names of the board and its FPGA.
    clock_mhz
        Clock of the accelerator.
    arch, cycles_per_inference, latency_cycles, inferences_per_second, multipliers, mac_utilization
        The best plan; cycles are exact. None if there is none.
    lut, dsp, bram
        Shares of the device that it takes, 0..1, LUTs estimated; 0 of what the device has not.
    bottleneck
        The layer that takes most cycles.
    clock
        How the clock is decided; None without a plan.
    refusal, remedy
        Why there is no plan, and what would help.
    """

    board: str
    device: str
    clock_mhz: float
    arch: str | None = None
    cycles_per_inference: int | None = None
    latency_cycles: int | None = None
    inferences_per_second: float | None = None
    multipliers: int | None = None
    mac_utilization: float | None = None
    lut: float | None = None
    dsp: float | None = None
    bram: float | None = None
    bottleneck: str | None = None
    clock: ClockChoice | None = None
    refusal: str = ""
    remedy: str = ""

    @property
    def latency_seconds(self) -> float | None:
        """Seconds to the result of a lone frame; None without a plan."""
        return None if self.latency_cycles is None else self.latency_cycles / self.clock_mhz / 1e6

    @property
    def fits(self) -> bool:
        """Whether there is a plan."""
        return self.arch is not None

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values."""
        return {"fits": self.fits, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheck:
    """Whether a model is valid, and whether it can be built.

    Parameters
    ----------
    model
        Name of the network, or of the file if it cannot be read.
    valid
        Whether the file is valid; None if it uses features that cannot be read yet.
    architectures
        Of every architecture, whether it has hardware for the model.
    problems
        Why none of them has.
    refusals
        By architecture, why it has no hardware for the model.
    boards
        What boards would make of a model without problems.
    """

    model: str
    valid: bool | None
    architectures: Mapping[str, bool]
    problems: tuple[str, ...]
    refusals: Mapping[str, tuple[str, ...]]
    boards: tuple[Outlook, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain JSON values."""
        return {**to_json(self), "boards": [outlook.to_json() for outlook in self.boards]}


@dataclass(frozen=True, slots=True)
class LayerDescription:
    """A layer of a network.

    Parameters
    ----------
    name, op
        Name of the layer, and its operator.
    shape
        Shape of its (first) output.
    parameters
        Numbers that training has found for it.
    macs
        Multiply-accumulates per inference.
    location
        Place in the model's file; None if it has none.
    """

    name: str
    op: str
    shape: tuple[int, ...]
    parameters: int
    macs: int
    location: str | None


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """A network of windows that runs step by step.

    Parameters
    ----------
    rows, window_rows
        By input, rows of a step and rows of a window.
    window_macs
        Multiply-accumulates of a window.
    """

    rows: Mapping[str, int]
    window_rows: Mapping[str, int]
    window_macs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """A network: its interface, its states, its layers, and how it is quantized.

    Parameters
    ----------
    format
        Format of the file. Absent of a network without one.
    model
        Name of the network.
    stage
        ``float``, ``canonical`` or ``fixed``.
    inputs, outputs, states
        Shapes by name.
    parameters, macs
        Numbers that training has found, and multiply-accumulates per inference.
    quantized
        Operators that quantize tensors, by tensor.
    extended_operators
        Operators that are not in NNEF 1.0.5.
    layers
        The layers in the order that they are computed.
    rounding
        How the file's format rounds; empty if nothing is quantized. Absent without a file.
    stream
        Steps of a network of windows. Absent unless it is to run so.
    """

    format: str | UnsetType = UNSET
    model: str
    stage: str
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    parameters: int
    macs: int
    states: Mapping[str, tuple[int, ...]]
    quantized: Mapping[str, str]
    extended_operators: tuple[str, ...]
    layers: tuple[LayerDescription, ...]
    rounding: str | UnsetType = UNSET
    stream: StreamDescription | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgram:
    """The program that a build runs, step by step or layer by layer.

    Parameters
    ----------
    model, board, device, arch
        Names of the network, of the board, of its FPGA, and of the architecture.
    clock_mhz
        Clock of the accelerator.
    multipliers
        Multipliers that are built.
    cycles_per_inference, latency_cycles
        The interval between results, and cycles to the result of a lone frame.
    program
        Rows with the same keys.
    """

    model: str
    board: str
    device: str
    arch: str
    clock_mhz: float
    multipliers: int
    cycles_per_inference: int
    latency_cycles: int
    program: tuple[Mapping[str, int | float | str | None], ...]
