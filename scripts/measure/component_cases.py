"""Parts to measure: those whose sizes stand beside their examples, and those of networks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from nnef_hw.hardware.devices import Device
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.hardware.layer_module import build_parts

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path[:0] = [str(TESTS / "parts"), str(TESTS / "helpers")]
Example = import_module("examples.example").Example

__all__ = ["Example", "component_cases", "network_cases"]


def component_cases(device: Device) -> Iterator[Any]:
    """Every component over its parameters, one or two of them varied at a time."""
    for cases in import_module("examples").MEASURED.values():
        yield from cases(device)


def network_cases(plan: StreamingPlan) -> Iterator[Any]:
    """Every component of a network's blocks."""
    for block in plan.blocks:
        for part, component in zip(block.parts, build_parts(block), strict=True):
            note = {"network": plan.model, "component": f"{block.name}_{part.label}"}
            yield Example(part=part, note=note, component=lambda built=component: built)
