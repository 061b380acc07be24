"""All that a shared engine may have, in the order of the fields of its instructions."""

from __future__ import annotations

from nnef_hw.parts.engine.array import MultiplierArray
from nnef_hw.parts.engine.border import Batch, Loader, PlaceInputs, Ports, Sender
from nnef_hw.parts.engine.codes import Codes, Residents
from nnef_hw.parts.engine.contraction import KeptMatrices, Matrices
from nnef_hw.parts.engine.feature import Feature
from nnef_hw.parts.engine.narrow import NarrowWeights, ShortWeights
from nnef_hw.parts.engine.pairs import Gather, Maxima, Minima, Products
from nnef_hw.parts.engine.requantizer import SecondRounding, SharedRequantizer
from nnef_hw.parts.engine.residual import SharedBank, TensorSums
from nnef_hw.parts.engine.sequencer import Divided, Sequencer
from nnef_hw.parts.engine.supply import Held, Ring, Written
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.parts.engine.units import StreamUnits

__all__ = ["FEATURES"]

FEATURES: tuple[type[Feature], ...] = (
    Sequencer, MultiplierArray, SharedRequantizer, Codes, Loader, Sender, SecondRounding,
    TensorSums, SharedBank, Tables, Held, Written, Ring, Divided, Residents, Maxima, Gather,
    Products, Minima, Matrices, KeptMatrices, Ports, PlaceInputs, NarrowWeights,
    ShortWeights, Batch, StreamUnits,
)  # fmt: skip
