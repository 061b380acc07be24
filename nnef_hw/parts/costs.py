"""What a unit of every feature of a component costs in LUTs, as measured per FPGA family.

``docs/resources.md`` tells how.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["COSTS"]

COSTS: Mapping[str, Mapping[str, Mapping[str, float]]] = MappingProxyType({
    "ice40": {
        "line buffer": {
            "pointer bits": 4.98, "base bits": 4.78, "counter bits": 1.12, "counters": 7.84,
            "padding bits": 0.29, "padded width": 0.72, "memory rows": 0.72, "fixed": 6.0,
        },
        "parallel line buffer": {
            "window bits": 1.14, "pixel bits": 0.5, "padded width": 0.25, "counter bits": 4.2,
            "fixed": 0.0,
        },
        "array": {
            "sum bits": 2.07, "kept bits": 1.06, "tree bits": 0.89, "hop bits": 1.32,
            "address bits": 2.11, "memory rows": 1.06, "table": 2.1, "fixed": 29.2,
        },
        "tap array": {
            "sum bits": 2.07, "kept bits": 1.06, "tree bits": 0.89, "hop bits": 1.32,
            "address bits": 2.11, "memory rows": 1.06, "table": 2.1, "columns": 0.0,
            "fixed": 29.2,
        },
        "requantizer": {
            "digit bits": 1.21, "stage bits": 1.07, "serial bits": 1.22, "short table": 1.36,
            "long table": 1.96, "round bits": 3.0, "fixed": 75.1,
        },
        "sum queue": {"payload bits": 2.0, "fixed": 8.0},
        "pack": {
            "register bits": 1.0, "lanes": 1.0, "filled bits": 0.0, "counter bits": 6.0,
            "fixed": 9.0,
        },
        "pool": {"code bits": 3.74, "fixed": 11.5},
        "argmax": {"code bits": 2.45, "index bits": 5.75, "fixed": 8.1},
        "softmax": {"index bits": 5.5, "fixed": 217.5},
        "pipelined softmax": {"index bits": 6.16, "division bits": 4.8, "fixed": 255.0},
        "tflite softmax": {"index bits": 4.2, "fixed": 726.0},
        "table": {"fixed": 6.0},
        "interpolated table": {"product bits": 1.27, "code bits": 5.8, "fixed": 0.0},
        "banked line buffer": {
            "window bits": 1.0, "written bits": 1.0, "offset bits": 2.0, "counter bits": 4.0,
            "fixed": 60.0,
        },
        "running pool": {"code bits": 3.0, "fixed": 50.0},
        "sum": {"tables": 39.0, "fixed": 1.0},
        "table sum": {"sum bits": 3.2, "fixed": 9.0},
        "extremum": {"code bits": 3.0, "fixed": 4.0},
        "product": {"fixed": 30.0},
        "concat": {"fixed": 20.0},
        "constant": {"fixed": 0.0},
        "slice": {"counter bits": 2.2, "fixed": 0.0},
        "pad": {"counter bits": 2.2, "compared bits": 3.0, "fixed": 0.0},
        "upsample": {"counter bits": 2.5, "fixed": 0.0},
        "depth to space": {"counter bits": 2.2, "fixed": 0.0},
        "transpose": {"counter bits": 2.5, "fixed": 0.0},
        "skid": {"payload bits": 2.0, "fixed": 8.0},
        "fifo": {"register bits": 1.0, "pointer bits": 3.0, "fixed": 0.0},
        "block fifo": {"pointer bits": 4.5, "code bits": 1.0, "fixed": 12.0},
    },
    "ecp5": {
        "line buffer": {
            "pointer bits": 7.13, "base bits": 7.18, "counter bits": 0.8, "counters": 12.53,
            "padding bits": 0.0, "padded width": 0.06, "memory rows": 0.17, "fixed": 10.6,
        },
        "parallel line buffer": {
            "window bits": 0.0, "pixel bits": 0.0, "padded width": 1.2, "counter bits": 4.0,
            "fixed": 0.0,
        },
        "array": {
            "sum bits": 2.27, "kept bits": 0.01, "tree bits": 0.84, "hop bits": 0.63,
            "address bits": 0.0, "memory rows": 1.74, "table": 1.21, "fixed": 0.0,
        },
        "tap array": {
            "sum bits": 4.27, "kept bits": 0.0, "tree bits": 0.96, "hop bits": 0.0,
            "address bits": 0.0, "memory rows": 0.0, "table": 0.0, "columns": 1.55, "fixed": 0.2,
        },
        "requantizer": {
            "digit bits": 0.23, "stage bits": 1.82, "serial bits": 0.44, "short table": 1.21,
            "long table": 1.31, "round bits": 3.0, "fixed": 80.0,
        },
        "sum queue": {"payload bits": 1.0, "fixed": 5.0},
        "pack": {
            "register bits": 0.0, "lanes": 1.0, "filled bits": 1.5, "counter bits": 3.0,
            "fixed": 4.0,
        },
        "pool": {"code bits": 2.65, "fixed": 6.0},
        "argmax": {"code bits": 3.58, "index bits": 5.15, "fixed": 0.0},
        "softmax": {"index bits": 7.2, "fixed": 194.3},
        "pipelined softmax": {"index bits": 17.04, "division bits": 3.89, "fixed": 169.7},
        "tflite softmax": {"index bits": 0.8, "fixed": 687.0},
        "table": {"fixed": 3.0},
        "interpolated table": {"product bits": 1.14, "code bits": 0.83, "fixed": 16.7},
        "banked line buffer": {
            "window bits": 0.85, "written bits": 0.0, "offset bits": 0.0, "counter bits": 0.0,
            "fixed": 258.0,
        },
        "running pool": {"code bits": 1.2, "fixed": 65.0},
        "sum": {"tables": 39.0, "fixed": 1.0},
        "table sum": {"sum bits": 1.1, "fixed": 9.0},
        "extremum": {"code bits": 3.0, "fixed": 4.0},
        "product": {"fixed": 30.0},
        "concat": {"fixed": 20.0},
        "constant": {"fixed": 0.0},
        "slice": {"counter bits": 2.6, "fixed": 0.0},
        "pad": {"counter bits": 2.6, "compared bits": 5.0, "fixed": 0.0},
        "upsample": {"counter bits": 3.0, "fixed": 0.0},
        "depth to space": {"counter bits": 2.5, "fixed": 0.0},
        "transpose": {"counter bits": 3.0, "fixed": 0.0},
        "skid": {"payload bits": 2.0, "fixed": 8.0},
        "fifo": {"register bits": 1.0, "pointer bits": 3.0, "fixed": 0.0},
        "block fifo": {"pointer bits": 4.5, "code bits": 1.0, "fixed": 12.0},
    },
})  # fmt: skip
"""LUTs per unit of every feature: ``COSTS[family][part][feature]``.

On an iCE40 a logic cell, whether its LUT, its flip-flop or only its carry is used; on an ECP5 a
LUT4 of a slice, so that flip-flops are free.
"""
