"""The memory of activations over a frame: which tensor has which place, and when."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import units

__all__ = ["MapDrawing", "Tenant", "draw_memory_map"]

WIDTH, HEIGHT = 1040.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 6.0, 8.0, 22.0
CHARACTER = 7.4
LINE = 14.0
TICKS = 4


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tensor's rectangle, and its name if there is room for it."""

    x: float
    y: float
    width: float
    height: float
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class MapDrawing:
    """Geometry of the picture; ``steps`` are (position, number), ``ticks`` (position, bytes)."""

    width: float
    height: float
    box: tuple[float, float, float, float]
    tenants: tuple[Tenant, ...]
    steps: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    border: float | None


def draw_memory_map(report: Report) -> MapDrawing | None:
    """Draw tensors over the steps of the program, which all have the same width; None without."""
    plan = report.memory_map
    if not plan:
        return None
    names, bank = plan.steps, plan.bank_bytes
    used = max(tensor.begin + tensor.bytes for tensor in plan.tensors)
    size = plan.bytes if bank else used
    step = (WIDTH - LEFT - RIGHT) / len(names)
    room = HEIGHT - TOP - BOTTOM

    def y(place: float) -> float:
        return float(round(TOP + room * place / size, 1))

    tenants = []
    for tensor in plan.tensors:
        first, last = tensor.first, tensor.last
        x, width = LEFT + step * first, step * (last - first + 1)
        top, height = y(tensor.begin), y(tensor.begin + tensor.bytes)
        name = units.printable(tensor.name)
        until = f" to {names[last]}" if last > first else ""
        fits = height - top >= LINE and width >= 3 * CHARACTER
        tenants.append(
            Tenant(
                round(x, 1), top, round(width, 1), round(max(height - top, 0.8), 1),
                units.middle(name, int(width / CHARACTER) - 1) if fits else "",
                f"{tensor.name}: {units.count(tensor.bytes)} bytes from "
                f"{units.count(tensor.begin)} on, from {names[first]}{until}",
            )
        )  # fmt: skip
    every = -(-len(names) // 24)
    return MapDrawing(
        width=WIDTH, height=HEIGHT, box=(LEFT, TOP, WIDTH - LEFT - RIGHT, room),
        tenants=tuple(tenants),
        steps=tuple(
            (round(LEFT + step * (n + 0.5), 1), str(n)) for n in range(0, len(names), every)
        ),
        ticks=tuple(
            (y(size * n / TICKS), units.count(size * n // TICKS)) for n in range(TICKS + 1)
        ),
        border=y(bank) if bank else None,
    )  # fmt: skip
