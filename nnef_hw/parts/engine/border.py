"""The borders of a shared engine: tensors that are loaded and sent, one or several frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact

__all__ = [
    "Batch", "Batched", "Choosing", "Loaded", "Loader", "PlaceInputs", "PortNumber", "Ports",
    "Sender", "Sent",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Loaded(Record):
    """Words that beats of an input become."""

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
    """Codes of an output that words become."""

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
class Choosing(Record):
    """Effects of an integer of an input on an instruction."""

    place: int = fact("number of the input whose integer is a place", counted=True)
    last_place: int = fact("the last place: integers beyond it are taken for that", counted=True)
    place_shift: int = fact("binary logarithm of the words from a place to the next one",
                            counted=True)  # fmt: skip
    place_rest: int = fact("1 more than that of words that are added to these; 0 if none are",
                           counted=True, constant=True)  # fmt: skip
    moves_weight: int = fact("weights begin at that place", bits=1)
    moves_write: int = fact("what is written begins there", bits=1)
    moves_read: int = fact("what is read begins there", bits=1, constant=True)
    hides: int = fact("a unit does not see channels behind it", bits=1)


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
class PlaceInputs(Feature):
    """Inputs whose integers are places: of rows, and of the last channel that is not hidden.

    Parameters
    ----------
    bits
        Widths of the integers, by the numbers of their inputs.
    reads
        Whether any of them tells where to read.
    sums
        Whether words from a place to the next one may be a sum of two powers of two.
    """

    label = "integers that are places"
    says = (Choosing,)

    bits: Mapping[int, int]
    reads: bool = False
    sums: bool = False

    def luts(self, engine: EngineSizes, device: Device) -> float:
        # one is chosen, compared, shifted, added to two addresses or three
        addresses = 2.0 + self.reads + self.sums
        return 5.0 * max(self.bits.values()) * len(self.bits) + addresses * engine.write_bits

    def flip_flops(self, engine: EngineSizes) -> float:
        return sum(self.bits.values())


@dataclass(frozen=True, kw_only=True)
class Batch(Feature):
    """Layers run for several frames one after the other: they have a loop more."""

    label = "batches"
    says = (Batched,)
    levels = 1
