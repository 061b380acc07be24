"""One network, quantized, planned, and simulated cycle by cycle in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nnef_hw.api import FixedModel, Plan, load
from nnef_hw.arithmetic.arrays import FloatArray, IntArray

__all__ = ["IMAGES", "Demonstration", "demonstrate"]

_FOLDER = Path(__file__).parent
_MODEL = _FOLDER / "digits_cnn.nnef.tgz"
_SAMPLES = _FOLDER / "samples.npz"
IMAGES = 450
"""How many images there are."""


@dataclass(frozen=True, slots=True, eq=False)
class Demonstration:
    """A planned network, and the digits that its simulated hardware read.

    Parameters
    ----------
    fixed, plan
        The quantized network, and its accelerator on a board.
    images
        Inputs [N, 8, 8], from 0 to 1.
    labels
        Digits [N] that the images show.
    found
        Digits [N] that the hardware gave.
    cycles
        From the first beat of the first image to the last result.
    """

    fixed: FixedModel
    plan: Plan
    images: FloatArray
    labels: IntArray
    found: IntArray
    cycles: int


def demonstrate(board: str, images: int, say: Callable[[str], None]) -> Demonstration:
    """Quantize the network of digits, plan it on a board, and simulate the hardware.

    Parameters
    ----------
    board
        Name of a board, or file of one of your own.
    images
        How many images go through the hardware, at most ``IMAGES``.
    say
        Called with what is being done.

    Raises
    ------
    UsageError, TargetError
        If there is no such board, or the network does not fit it.
    CheckError
        If the hardware gives other integers than the fixed-point model, or takes other cycles than
        predicted: a defect of ours.
    """
    say("quantizing")
    fixed = load(_MODEL).quantize(_SAMPLES)
    say("planning")
    plan = fixed.schedule(board)
    with np.load(_SAMPLES) as samples:
        shown, labels = samples["inputs"][:images], samples["labels"][:images]
    say(f"simulating {images} images in Python, cycle by cycle")
    run = plan.simulate(shown)
    [scores] = run.outputs.values()
    found = scores.reshape(len(shown), -1).argmax(axis=1)
    return Demonstration(fixed, plan, shown[:, 0].astype(float), labels, found, run.cycles)
