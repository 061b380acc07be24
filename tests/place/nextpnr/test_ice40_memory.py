"""An iCE40's block RAM is what yosys's own map makes of it, only sooner."""

import random
import re

import pytest

from nnef_hw.hardware.families import ICE40
from nnef_hw.place.nextpnr.ice40 import MEMORY
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.system.tools import run_tool

pytestmark = [pytest.mark.system, pytest.mark.synth]

OWN = f"techmap -map {MEMORY}"


def memory(read, write, *, edge="posedge", filled=True):
    """Return a memory of 4,096 bits that is read and written in words of such widths."""
    depth, narrower = 4096 // read, (read // write).bit_length() - 1
    contents = random.Random(read * 16 + write)
    words = [f"initial m[{n}] = {read}'d{contents.getrandbits(read)};" for n in range(depth)]
    part = f"[{write} * wa[{narrower - 1}:0] +: {write}]" if narrower else ""
    return f"""
module top(input clk, en, we, input [11:0] ra, wa, input [{write - 1}:0] d,
           output reg [{read - 1}:0] q);
  reg [{read - 1}:0] m [0:{depth - 1}];
  {" ".join(words) if filled else ""}
  always @({edge} clk) if (en) q <= m[ra];
  always @(posedge clk) if (we) m[wa[11:{narrower}]]{part} <= d;
endmodule
"""


def mapped(tmp_path, source, *, own):
    """Return the text of the block RAM of a mapped design, and of what it gives.

    Wires have numbers in the order in which they are in it.
    """
    dialect = toolchain_of(ICE40).dialect
    (tmp_path / MEMORY).write_text(dialect.files()[MEMORY])
    (tmp_path / "top.v").write_text(source)
    [way] = dialect.mappings("hx8k", "top")
    kept = [command for command in way[:-1] if own or command != OWN]
    assert len(kept) == len(way) - 2 + own
    script = [
        "read_verilog -sv top.v", *kept, "setundef -undriven -undef", "clean -purge",
        "rename -enumerate", "write_verilog -noattr out.v",
    ]  # fmt: skip
    (tmp_path / "map.ys").write_text("\n".join(script))
    run_tool("yosys", ["-s", "map.ys"], cwd=tmp_path, log=tmp_path / "log")
    if own:
        assert "memory.v" in (tmp_path / "log").read_text()
    text = (tmp_path / "out.v").read_text()
    [cell] = re.findall(r"SB_RAM40_4K.*?\);", text, re.DOTALL)
    given = "".join(re.findall(r"(?:assign q\b|q <=).*", text))
    numbers = {}
    return re.sub(
        r"\b_(\d+)_", lambda x: f"w{numbers.setdefault(x[1], len(numbers))}", cell + given
    )


@pytest.mark.parametrize(
    "design",
    [pytest.param(both, marks=pytest.mark.nightly) for both in ((4, 4), (8, 8))]
    + [pytest.param(both) for both in ((2, 2), (16, 16), (16, 4))],
    ids=str,
)
def test_it_is_yosys_own(tmp_path, design):
    source = memory(*design)
    found = mapped(tmp_path, source, own=True)
    assert found == mapped(tmp_path, source, own=False)
    assert "SB_RAM40_4K #(" in found
    assert len({line for line in found.splitlines() if ".INIT_" in line}) == 16


def test_memories_that_are_not_filled(tmp_path):
    source = memory(16, 16, filled=False)
    assert mapped(tmp_path, source, own=True) == mapped(tmp_path, source, own=False)


def test_the_other_edge_is_left_to_yosys(tmp_path):
    source = memory(16, 16, edge="negedge")
    found = mapped(tmp_path, source, own=True)
    assert "SB_RAM40_4KNR #(" in found
    assert found == mapped(tmp_path, source, own=False)
