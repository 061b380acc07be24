"""Amaranth's simulator with benches, and whether another one is quicker."""

from amaranth.sim import Simulator

from nnef_hw.errors import ToolError
from nnef_hw.system.tools import find_tool

__all__ = ["is_worth_compiling", "run_benches"]

MANY_CYCLES = 1200
"""From here on compiling a design takes less time than Amaranth's simulator does."""


def is_worth_compiling(cycles):
    """Whether Verilator is quicker than Amaranth's simulator, and there to be used."""
    if cycles <= MANY_CYCLES:
        return False
    try:
        find_tool("verilator")
        find_tool("c++")
    except ToolError:
        return False
    return True


def run_benches(component, *benches, watching=(), period=1e-6):
    """Run benches at one clock to their end; those that watch end with the others."""
    simulator = Simulator(component)
    simulator.add_clock(period)
    for bench in benches:
        simulator.add_testbench(bench)
    for bench in watching:
        simulator.add_testbench(bench, background=True)
    simulator.run()
