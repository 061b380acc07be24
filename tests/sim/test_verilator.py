import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nnef_hw.errors import ToolError
from nnef_hw.sim.verilator import Port, build_model

pytestmark = pytest.mark.verilator

COUNTER = """
module counter(input clk, input [99:0] wide__in, output reg [7:0] q);
  initial q = 0;
  always @(posedge clk) q <= q + {step} + wide__in[0];
endmodule
"""
MAIN = """
#include "Vtop.h"
#include <cstdio>
int main() {
    Vtop top;
    for (int k = 0; k < 5; ++k) { top.clk = 0; top.eval(); top.clk = 1; top.eval(); }
    std::printf("%d", top.q);
}
"""


@pytest.fixture
def harness(tmp_path):
    path = tmp_path / "main.cpp"
    path.write_text(MAIN)
    return path


def build(harness, step=3, **options):
    return build_model(COUNTER.format(step=step), top="counter", harness=harness, **options)


@pytest.mark.parametrize("options", [{}, {"trace": "vcd"}], ids=str)
def test_model_runs(options, harness):
    model = build(harness, **options)
    assert subprocess.run([model.executable], capture_output=True).stdout == b"15"


def test_ports_are_known(harness):
    assert build(harness).ports == {
        "clk": Port("in", 1, "clk"),
        "wide__in": Port("in", 100, "wide___05Fin"),
        "q": Port("out", 8, "q"),
    }


def test_equal_content_is_built_once(harness):
    step = time.time_ns() % 100_000
    first = build(harness, step)
    built = first.executable.stat().st_mtime_ns
    assert build(harness, step) == first
    assert first.executable.stat().st_mtime_ns == built
    assert build(harness, step + 1) != first
    assert build(harness, step, defines=["X"]) != first
    harness.write_text(MAIN + "\n")
    assert build(harness, step) != first


def test_processes_may_build_the_same(harness):
    step = time.time_ns() % 100_000
    code = (
        "from pathlib import Path; from nnef_hw.sim.verilator import build_model; "
        f"print(build_model({COUNTER.format(step=step)!r}, top='counter', "
        f"harness=Path({str(harness)!r})).executable)"
    )
    command = [sys.executable, "-c", code]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    paths = {worker.communicate()[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(paths) == 1


def test_syntax_error_is_shown_with_its_log(harness):
    with pytest.raises(ToolError, match="syntax error") as error:
        build_model("module top(;", harness=harness)
    log = re.search(r"see (.*\.log):", error.value.reason)[1]
    assert "syntax error" in Path(log).read_text()


def test_two_drivers_are_an_error(harness):
    verilog = """module top(input clk, output reg q);
      always @(posedge clk) q <= 0;
      always @(negedge clk) q <= 1;
    endmodule"""
    with pytest.raises(ToolError, match="MULTIDRIVEN"):
        build_model(verilog, harness=harness)


def test_unknown_trace_is_refused(harness):
    with pytest.raises(ValueError, match="trace must be 'vcd', 'fst' or '', not 'lxt'"):
        build(harness, trace="lxt")
