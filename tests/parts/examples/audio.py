"""Examples of front ends of audio."""

from __future__ import annotations

import numpy as np
from audio import sounds

from examples.example import RAM, Example
from nnef_hw import parts
from nnef_hw.arithmetic.audio.log_mel import LogMel, choose_log_mel
from nnef_hw.arithmetic.numerics import QType

__all__ = ["AUDIO", "CODES", "FRONTS", "HEARD", "log_mel"]

CODES = QType(8, signed=True, scale=1 / 255, zero_point=-128)
FORMATS = {
    "u16": (QType(16, signed=False, scale=1 / 65_535), True),
    "s4": (QType(4, signed=True, scale=1 / 15, zero_point=-8), False),
}  # fmt: skip
SMALL = {"rate": 8_000, "bands": 4, "high": 4_000.0}
FRONTS = {
    "radix 4": LogMel(window=32, hop=16, points=32, **SMALL),
    "radix 2 first": LogMel(window=60, hop=30, points=64, **SMALL),
    "without emphasis": LogMel(window=40, hop=40, points=64, emphasis=0.0, shape="hann", **SMALL),
    "other emphasis": LogMel(window=20, hop=7, points=32, emphasis=0.625, shape="ones", **SMALL),
}  # fmt: skip
HEARD = ("noise", "quiet", "silence", "lowest", "swelling")


def log_mel(front, frames, target=CODES, *, goes_on=False, in_dsp=True, heard=HEARD, **more):
    """Return an example: inferences of so many frames, whose windows may go on."""
    requant = choose_log_mel(front, target)
    part = parts.LogMel(
        window=front.window, hop=front.hop, points=front.points, lengths=requant.bank.lengths,
        frames=0 if goes_on else frames, out_bits=target.bits, out_signed=target.signed,
        in_dsp=in_dsp, ram=RAM,
    )  # fmt: skip
    length = frames * front.hop if goes_on else front.window + (frames - 1) * front.hop

    def stimulus(rng):
        found = sounds(rng, length)
        return [np.concatenate([found[name] for name in heard])[:, None]]

    return Example(
        part=part, contents={"requant": requant}, frames=len(heard), stimulus=stimulus, **more
    )


AUDIO = {
    "LogMel": {
        **{name: log_mel(front, 2, heard=["noise"]) for name, front in FRONTS.items()},
        "goes on": log_mel(FRONTS["radix 4"], 2, goes_on=True, heard=["noise"]),
        **{
            name: log_mel(
                FRONTS["radix 4"], 1, target, in_dsp=in_dsp, heard=["tone 0.3"],
                verilog=["verilator"],
            )
            for name, (target, in_dsp) in FORMATS.items()
        },
    },
}  # fmt: skip
