"""Logs that an error names, with programs that stand for tools that fail."""

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.verilator

YOSYS = """#!/bin/sh
if [ "$1" = --version ]; then echo "Yosys 0.70"; exit; fi
echo '{"design": {"num_cells_by_type": {}}}' > cells.json
cat > board_top.json <<EOF
{"modules": {"board_top": {"cells": {"pll": {"type": "SB_PLL40_2_PAD", "connections":
{"PLLOUTGLOBALB": [2]}}}, "netnames": {"clk": {"bits": [2]}}}}}
EOF
touch board_top_netlist.v
echo mapped
"""
NEXTPNR = """#!/bin/sh
if [ "$1" = --version ]; then echo "nextpnr 0.8"; exit; fi
echo "ERROR: Unable to find legal placement for all cells, design is probably at limit"
exit 1
"""


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Return a function that replaces the tools by others."""

    def install(**texts):
        for name, text in texts.items():
            path = tmp_path / "tools" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
            monkeypatch.setenv(f"NNEF_HW_{name}", str(path))

    return install


def test_log_that_an_error_names_stays(cli, built, tiny, failing, tmp_path):
    out = Path(shutil.copytree(built, tmp_path / "out"))
    command = ["build", tiny / "tiny.nnef.tgz", "--board", "icebreaker", "--out", "out"]
    command += ["--calibrate", tiny / "samples.npz"]
    failing(YOSYS=YOSYS, NEXTPNR_ICE40=NEXTPNR, ICEPACK=NEXTPNR)
    result = cli(*command)
    assert result.status == 2
    assert "cannot be placed and routed in up5k-sg48" in result.err
    assert "; see out/logs/nextpnr3.log)" in result.err
    assert "legal placement" in (out / "logs" / "nextpnr3.log").read_text()
    assert (out / "logs" / "yosys.log").read_text() == "mapped\n"

    failing(YOSYS=YOSYS.replace("mapped", "no\nexit 7"))
    result = cli(*command)
    assert result.status == 3
    assert "yosys 0.70 failed with status 7, see out/logs/yosys.log:\n    no\n" in result.err
    assert [path.name for path in (out / "logs").iterdir()] == ["yosys.log"]
