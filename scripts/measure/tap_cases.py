"""Parts to measure that sum over taps, and the line buffers that give all taps at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cases import CODES, Case

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.arrays.depthwise import DepthwiseArray
from nnef_hw.parts.arrays.weights import WeightRom
from nnef_hw.parts.windows.banked import BankedLineBuffer

__all__ = ["tap_cases"]


def tap_cases(device: Device) -> Iterator[Case]:
    """Return all cases, over their parameters."""
    same = ((1, 1), (1, 1))
    buffers = [
        (1, 4, Window(14, 14, 8, kernel=(3, 3), padding=same, passes=8, by_channel=True)),
        (4, 4, Window(14, 14, 8, kernel=(3, 3), padding=same, passes=8, by_channel=True)),
        (1, 4, Window(25, 5, 64, kernel=(3, 3), padding=same, passes=64, by_channel=True)),
        (8, 4, Window(25, 5, 8, kernel=(3, 3), padding=same, passes=8, by_channel=True)),
        (1, 8, Window(28, 28, 6, kernel=(5, 5), passes=6, by_channel=True)),
        (2, 4, Window(32, 32, 3, kernel=(3, 3), stride=(2, 2), passes=3, by_channel=True)),
        (3, 4, Window(32, 32, 1, kernel=(3, 3), padding=same, passes=16)),
    ]
    for lanes, lines, window in buffers:
        yield Case(
            BankedLineBuffer(
                window=window,
                lanes=lanes,
                lines=lines,
                pad_code=0,
                ram=device.ram,
                long_wires=device.long_wires,
                **CODES,
            )
        )
    rng = np.random.default_rng(0)
    # channels, positions, lanes, taps, kept_passes, acc_bits, in_dsp, style
    spread: list[tuple[int, int, int, int, int, int, bool, str]] = [
        (8, 9, 1, 1, 1, 20, True, "block"),
        (8, 9, 4, 1, 1, 20, True, "block"),
        (64, 9, 1, 9, 1, 20, True, "block"),
        (64, 9, 2, 9, 2, 20, False, "block"),
        (64, 9, 4, 9, 2, 20, False, "block"),
        (8, 9, 1, 9, 1, 20, False, "logic"),
        (16, 9, 1, 9, 2, 20, False, "block"),
        (6, 25, 1, 25, 1, 20, False, "logic"),
        (6, 25, 1, 5, 1, 20, True, "block"),
        (16, 40, 1, 40, 1, 22, False, "block"),
        (24, 27, 1, 27, 1, 22, False, "block"),
        (64, 9, 4, 9, 2, 20, True, "block"),
        (8, 25, 1, 25, 1, 20, True, "logic"),
        (16, 60, 1, 60, 13, 20, True, "logic"),
    ]
    for channels, positions, lanes, taps, kept, acc_bits, in_dsp, style in spread:
        array = DepthwiseArray(
            channels=channels, positions=positions, lanes=lanes, taps=taps, kept_passes=kept,
            x_bits=8, x_signed=False, w_bits=8, acc_bits=acc_bits,
            in_dsp=lanes * taps if in_dsp else 0, weights=WeightRom(ram=device.ram, style=style),
            lut_ram=device.family.has_lut_ram,
            weight_delay=device.weight_delay,
        )  # fmt: skip
        values = np.clip(np.round(rng.normal(0, 38, (channels, positions))), -127, 127)
        yield Case(array, {"weights": values.astype(np.int64)})
