"""Every number by which nextpnr is used, and where it comes from.

Numbers of our own placement stand beside it, in ``blocks`` and ``cells``.
"""

from __future__ import annotations

__all__ = [
    "EARLY", "FEW", "FEWEST_ENABLED", "FLOOD", "LEFT", "MANY", "MARGIN", "MOST_SEEDS", "PATIENCE",
    "REACH", "SECOND_SEED", "SHORTEST_WIRE", "SPAN", "SPLIT_SUMS", "TIMING_WEIGHT",
]  # fmt: skip

SHORTEST_WIRE = 1760
"""Picoseconds that ABC9 takes a wire of a UP5K for.

From nextpnr: its shortest wire of that device. With yosys's 750 ps ABC9 takes carry chains for the
slowest paths, and saves LUTs by lengthening others that are slower once they are routed.
"""
FEWEST_ENABLED = 9
"""Flip-flops of a clock enable on a UP5K; yosys makes that of fewer in LUTs.

From the device: eight flip-flops of a tile share a clock enable, so fewer with one of their own
would be scattered over tiles that are free, and take wires across the device.
"""
TIMING_WEIGHT = 60
"""HeAP's weight of timing on an ECP5.

Measured: with nextpnr's default of 10 the one wire of a handshake weighs less than the bus that it
governs, and ResNet-8 at 4,938 inferences/s is estimated at 68.2 MHz instead of 99.0.
"""
SECOND_SEED = 1000
"""What is added to a seed for the static placer's second chance.

Chosen: more than ``--seeds`` asks for, so that no two placements have one seed.
"""
MOST_SEEDS = 3
"""Placements that are tried if none of those asked for has a route.

Chosen: it bounds the time that a design without any route takes.
"""
MARGIN = 1.005
"""Factor by which the router aims higher: its delays are shorter than those of the report.

From nextpnr's source: it does not count what each further user of a wire adds; ``getPipDelay``
(ecp5/arch.h) does so for bound wires, and router2 binds at its end. Measured: 94.73 MHz where
nothing was late for 95 (ResNet-8 on an ECP5-85F), 90.96 for 92.125 (visual wake words), 89.04 for
90.45 (ResNet-8). A clock that is missed so is routed for again, with a higher aim.
"""
REACH = 1.5
"""Factor by which routes may be beyond the estimate, and more.

Measured on an ECP5-85F with the static placer, whose estimate may be of one register that is 95
columns away: 1.29 (ResNet-8 with weights of 4 bits), 1.27, 1.26. An aim of 1.301 had nothing late
after the first iteration (ResNet-8 at 4,938 inferences/s). What is too far costs some iterations.
"""
PATIENCE = 30
"""Iterations of router2 that bring nothing, after which it is stopped.

Chosen: it bounds the time that a placement without a route takes.
"""
MANY = 500
"""Wires in conflict beyond twice the fewest so far with which router2 goes astray.

Measured on an ECP5-85F: 812 wires that several nets want grew to 3,825 within 23 iterations, each
longer than the one before, since what gives way is late and taken up again. Routes that end well
had less and less of them, with at most some dozens more for a while.

While there are as many as this they halve within :data:`SPAN` iterations, or router2 crawls.
Measured there: 47 routes that ended well had at most 15% of those ten iterations before. Two
without an end had half of 2,700 at iteration 22 and 77% of 1,560 at 27.
"""
SPAN = 10
"""Iterations after which half as many wires are in conflict. Measured: see :data:`MANY`."""
FLOOD, EARLY, LEFT = 10_000, 3, 0.42
"""Above FLOOD contested wires, the router crawls if more than LEFT remain after EARLY iterations.

Measured there: routes that ended well left at most 41%, the last 16 of them 14% to 19%, those
without an end 42% to 69% (a layer of adders for every weight, whose iterations took minutes).
"""
FEW = 10
"""Wires in conflict that are worth a route in another order.

Measured there: one wire was wanted by two nets from iteration 30 to 56, with nothing late; another
route of the same placement had none after 29 iterations.
"""
SPLIT_SUMS = 0.18
"""Share of a Gowin design's flip-flops behind an adder that nextpnr does not place beside it.

Measured: 3,804 of 21,404 in thirteen designs (docs/resources.md).
"""
