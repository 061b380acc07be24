"""Yosys and Vivado for AMD's 7 series."""

from __future__ import annotations

from collections.abc import Sequence

from nnef_hw.hardware.families import AMD7
from nnef_hw.place.mapper import Mapper
from nnef_hw.place.toolchain import CellModels
from nnef_hw.place.vivado.vivado import Vivado
from nnef_hw.system.tools import TOOLS

__all__ = ["TOOLCHAIN"]


class Amd7Mapper(Mapper):
    """7 series, of every size."""

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        del part
        # Multipliers are instantiated, never inferred: the scheduler has counted them.
        command = f"synth_xilinx -family xc7 -flatten -nodsp -noiopad -noclkbuf -top {top}"
        return [[command], [f"{command} -dff"]]


TOOLCHAIN = Vivado(
    title="Vivado's project",
    programs=(TOOLS["yosys"],),
    places=False,
    constraints_suffix="xdc",
    bitstream_suffix=None,
    outputs={
        "board_top.tcl": "Vivado project: vivado -mode batch -source board_top.tcl",
        "board_top_netlist.v": "netlist of cells, by yosys",
        "*.log": "log",
    },
    models=CellModels(
        files=("xilinx/cells_sim.v",), ours=("amd7_memory.v", "amd7_dsp.v"), defines=(),
        omitted=(r"RAMB(18|36)E[12]", r"DSP48E1"),
    ),
    ip_family="xilinx",
    ip_option="-nodsp",
    mapper=Amd7Mapper(family=AMD7, flip_flops=r"FD\w+"),
    resources={
        "lut": {
            r"LUT[1-6]|LUT6_2|INV|SRL16E?|SRLC(16|32)E": 1, r"RAM(32|64)X1S": 1,
            r"RAM(32|64)X1D": 2, r"RAM(32|64)M": 4, r"RAM128X1S": 2, r"RAM(128X1D|256X1S)": 4,
        },
        "ff": {r"FD\w+": 1},
        "dsp": {r"DSP48E1": 1},
        "bram": {r"RAMB18E1": 1, r"RAMB36E1": 2},
    },
)  # fmt: skip
