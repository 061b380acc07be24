"""Examples of front ends of audio."""

from __future__ import annotations

import numpy as np
from audio import sounds

from examples.example import RAM, Example, Measured
from nnef_hw import parts
from nnef_hw.arithmetic.audio.log_bands import LogBands
from nnef_hw.arithmetic.audio.log_mel import LogMel, choose_log_mel
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import QType, choose_requant
from nnef_hw.hardware.devices import UP5K

__all__ = ["AUDIO", "CODES", "FRONTS", "HEARD", "MEASURED", "log_mel"]

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
    "nine bits": LogMel(window=20, hop=7, points=32, emphasis=0.97, shape="ones", **SMALL),
    "floor": LogMel(window=24, hop=8, points=32, floor=0.03, **SMALL),
    "faint floor": LogMel(
        window=60, hop=30, points=64, floor=3e-10, gain=0.05, offset=0.6, **SMALL
    ),
    "magnitudes": LogMel(window=32, hop=16, points=32, power=1, **SMALL),
    "magnitudes of bands": LogBands(
        hop=40, points=64, shape=tuple(np.hanning(60)), first=(1, 2, 2, 2), lengths=(2, 1, 2, 20),
        factors=(0.5, 1.0, 0.9, 0.3, 0.7, *np.linspace(1, 0, 20)), floor=1e-3, gain=0.125,
        offset=0.75, lowest=0.0, highest=1.0, power=1,
    ),
    "bands of its own": LogBands(
        hop=15, points=64, emphasis=0.25, shape=tuple(np.hanning(50)), first=(1, 2, 9),
        lengths=(2, 9, 23), factors=(0.5, 1.0, *np.linspace(0, 0.9, 9), *np.linspace(0.8, 0, 23)),
        floor=1e-6, gain=0.125, offset=0.75, lowest=0.0, highest=1.0,
    ),
}  # fmt: skip
NIGHTLY = {"without emphasis", "faint floor", "magnitudes of bands"}
"""Fronts whose codes under stalls a test of many sounds sees; others are as long, or shorter."""
HEARD = ("noise", "quiet", "silence", "lowest", "swelling")


def log_mel(
    front, frames, target=CODES, *, goes_on=False, in_dsp=True, heard=HEARD, ram=RAM,
    single_port=None, **more,
):  # fmt: skip
    """Return an example: inferences of so many frames, whose windows may go on."""
    requant = choose_log_mel(front, target)
    part = parts.LogMel(
        window=front.window, hop=front.hop, points=front.points, lengths=requant.bank.lengths,
        frames=0 if goes_on else frames, out_bits=target.bits, out_signed=target.signed,
        in_dsp=in_dsp, ram=ram, magnitudes=front.power == 1, single_port=single_port,
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
        **{
            name: log_mel(front, 2, heard=["noise"], nightly=name in NIGHTLY)
            for name, front in FRONTS.items()
        },
        "floor of silence": log_mel(FRONTS["faint floor"], 2, heard=["silence", "quiet"]),
        "goes on": log_mel(FRONTS["radix 4"], 2, goes_on=True, heard=["noise"]),
        "single-port RAM": log_mel(
            FRONTS["radix 4"], 2, heard=["noise"], single_port=UP5K.single_port
        ),
        "single-port RAM, goes on": log_mel(
            FRONTS["radix 2 first"], 2, goes_on=True, heard=["noise"],
            single_port=UP5K.single_port, nightly=True,
        ),
        "single-port RAM, magnitudes": log_mel(
            FRONTS["magnitudes"], 2, goes_on=True, heard=["noise", "lowest"],
            single_port=UP5K.single_port, verilog=["verilator"],
        ),
        "single-port RAM, magnitudes of bands": log_mel(
            FRONTS["magnitudes of bands"], 2, goes_on=True, heard=["noise", "lowest"],
            single_port=UP5K.single_port, verilog=["verilator"], nightly=True,
        ),
        **{
            name: log_mel(
                FRONTS["radix 4"], 1, target, in_dsp=in_dsp, heard=["tone 0.3"],
                verilog=["verilator"],
            )
            for name, (target, in_dsp) in FORMATS.items()
        },
    },
}  # fmt: skip


SPREAD = [
    (32, 4, 1, 0.5, 2), (256, 20, 0, 0.96875, 2), (1024, 40, 0, 0.96875, 2), (512, 20, 0, 0.0, 1),
]  # fmt: skip
"""Points, bands, frames (none of what goes on), emphasis, power."""
MICRO_SPREAD = [
    (160, 0, QType(8, signed=True, scale=26 / 255, zero_point=-128), 256 / 666),
    (320, 4, QType(16, signed=False, scale=1.0), 1.0),
]  # fmt: skip
"""Hop, frames, codes, the factor to them."""


def large_log_mels(device):
    in_dsp = device.family.has_wide_products
    for points, bands, frames, emphasis, power in SPREAD:
        front = LogMel(
            window=points, hop=points // 2, points=points, bands=bands, emphasis=emphasis,
            power=power,
        )  # fmt: skip
        yield log_mel(
            front, frames or 1, goes_on=not frames, in_dsp=in_dsp, ram=device.ram
        )  # fmt: skip


def micro_frontends(device):
    for hop, frames, target, factor in MICRO_SPREAD:
        part = parts.MicroFrontend(
            hop=hop, frames=frames, out_bits=target.bits, out_signed=target.signed,
            in_dsp=device.family.has_wide_products, ram=device.ram,
        )  # fmt: skip
        requant = choose_requant([factor], target, mult_bits=24)
        yield Example(part=part, contents={"front": MicroFrontend(hop), "requant": requant})


MEASURED: Measured = {"log_mel": large_log_mels, "micro_frontend": micro_frontends}
