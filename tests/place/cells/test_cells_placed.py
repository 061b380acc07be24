"""Nextpnr takes the places that cells of logic tiles are given, and finds a route."""

import json

import pytest

from nnef_hw.hardware.families import ECP5
from nnef_hw.place.nextpnr.attempt import Placer
from nnef_hw.place.toolchain import Design, toolchain_of

pytestmark = [pytest.mark.system, pytest.mark.synth]

TOP = """
module top (input clk, input reset, input enable, input [7:0] x, output reg [7:0] y);
  reg [63:0] ram [0:15];
  reg [3:0] address;
  reg [15:0] sums [0:11];
  reg [63:0] held;
  reg [15:0] kept [0:23];
  integer n;
  always @(posedge clk) begin
    if (reset) address <= 0; else if (enable) address <= address + 1;
    if (enable) ram[address] <= {sums[1], sums[2], sums[3], x, y};
    if (enable) held <= ram[x[3:0]];
    sums[0] <= {held[7:0] ^ held[63:56] ^ kept[23][7:0], x};
    for (n = 1; n < 12; n = n + 1) sums[n] <= sums[n - 1] + {sums[(n * 7) % 12][14:0], x[n % 8]};
    if (reset) y <= 0; else y <= sums[11][15:8] ^ sums[5][7:0];
  end
  // a tile has one edge of the clock: these are not beside a RAM
  always @(negedge clk) begin
    kept[0] <= ram[x[3:0]][31:16];
    for (n = 1; n < 24; n = n + 1) kept[n] <= {kept[n - 1][14:0], kept[n - 1][15]};
  end
endmodule
"""


def test_nextpnr_takes_every_place(tmp_path):
    source = tmp_path / "top.v"
    source.write_text(TOP)
    toolchain = toolchain_of(ECP5)
    design = Design(top="top", part="25k", package="CABGA381", speed="6", frequency_mhz=50.0)
    toolchain.map(design, [source], tmp_path, tmp_path, pads=False)
    placer = Placer(toolchain.dialect, design)
    log, own = tmp_path / "nextpnr.log", tmp_path / "seed3"
    options = ["--freq", "50", *toolchain.dialect.placings(3)[0]]
    packed = placer._place_cells(
        tmp_path, toolchain.dialect.tiles(), 3, options, log, lambda: False
    )
    [top] = json.loads(packed.read_text())["modules"].values()
    given = {name: cell["attributes"].get("BEL") for name, cell in top["cells"].items()}
    write = ["--no-pack", "--textcfg", "seed3/top.config", "--write", "seed3/routed.json"]
    placer._run("seed3/packed.json", [*options, *write], own, log, lambda: False)
    assert (own / "top.config").stat().st_size
    [top] = json.loads((own / "routed.json").read_text())["modules"].values()
    kinds = dict.fromkeys(("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW"), 0)
    for name, cell in top["cells"].items():
        if cell["type"] in kinds:
            kinds[cell["type"]] += 1
            assert cell["attributes"]["NEXTPNR_BEL"] == given[name]
    flip_flops = [cell for cell in top["cells"].values() if cell["type"] == "TRELLIS_FF"]
    assert sum(cell["parameters"]["CLKMUX"] == "INV" for cell in flip_flops) == 192
    assert kinds["TRELLIS_COMB"] > 200
    assert kinds["TRELLIS_FF"] > 180
    assert kinds["TRELLIS_RAMW"] == 7
    assert sorted(path.name for path in tmp_path.iterdir() if "tiles" in path.name) == []
