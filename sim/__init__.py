"""Simulation: Verilator build cache, fast runner, stream drivers and monitors."""
