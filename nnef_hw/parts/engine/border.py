"""The borders of a shared engine: tensors that are loaded and sent, one or several frames."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.parts.engine.feature import Feature
from nnef_hw.parts.engine.fields import Record, fact

__all__ = ["Batch", "Batched", "Loaded", "Loader", "PortNumber", "Ports", "Sender", "Sent"]


@dataclass(frozen=True, kw_only=True)
class Loaded(Record):
    """How beats of an input become words."""

    rows: int = fact("rows that are loaded, less one", counted=True, constant=True)
    length: int = fact("beats of a row, padding included, less one", counted=True, constant=True)
    lead: int = fact("beats of padding in front of a row", counted=True, constant=True)
    real: int = fact("those and the beats that come", counted=True, constant=True)
    first_word: int = fact("beats up to the first word of a row, less one", counted=True,
                           constant=True)  # fmt: skip
    word_step: int = fact("beats from a word to the next one, less one", counted=True,
                          constant=True)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sent(Record):
    """How words become the codes of an output."""

    pixels: int = fact("pixels that are sent, less one", counted=True, constant=True)
    blocks: int = fact("words of a pixel, less one", counted=True, constant=True)
    last_lanes: int = fact("codes of its last word, less one", counted=True, constant=True)


@dataclass(frozen=True, kw_only=True)
class Batched(Record):
    """Frames that are sent one behind the other."""

    frames: int = fact("frames that are sent, less one", counted=True)


@dataclass(frozen=True, kw_only=True)
class PortNumber(Record):
    """Which input is loaded, or which output is sent."""

    port: int = fact("number of the input or output")


@dataclass(frozen=True, kw_only=True)
class Loader(Feature):
    """Writes the codes of a stream to memory."""

    label = "loader"
    component = "nnef_hw.rtl.engine.border:EngineLoader"
    says = (Loaded,)


@dataclass(frozen=True, kw_only=True)
class Sender(Feature):
    """Gives the codes of a tensor in memory to a stream."""

    label = "sender"
    component = "nnef_hw.rtl.engine.border:EngineSender"
    says = (Sent,)


@dataclass(frozen=True, kw_only=True)
class Ports(Feature):
    """Several inputs or outputs.

    Parameters
    ----------
    count
        The greater number of these.
    """

    label = "several ports"
    says = (PortNumber,)

    count: int

    def widths(self, engine: object) -> dict[str, int]:
        return {"port": max(1, (self.count - 1).bit_length())}


@dataclass(frozen=True, kw_only=True)
class Batch(Feature):
    """Layers run for several frames one after the other: they have a loop more."""

    label = "batches"
    says = (Batched,)
    levels = 1
