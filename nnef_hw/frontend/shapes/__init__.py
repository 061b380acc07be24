"""Shapes of every operator's results; all front ends infer them here."""

from __future__ import annotations

from collections.abc import Callable

from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.extended import EXTENDED_RULES
from nnef_hw.frontend.shapes.regions import REGION_RULES
from nnef_hw.frontend.shapes.scan import SCAN_RULES
from nnef_hw.frontend.shapes.standard import STANDARD_RULES
from nnef_hw.frontend.shapes.windows import WINDOW_RULES

__all__ = ["SHAPE_RULES", "Call", "Rule"]

Rule = Callable[[Call], list[tuple[int, ...]]]

SHAPE_RULES: dict[str, Rule] = {
    **STANDARD_RULES,
    **WINDOW_RULES,
    **REGION_RULES,
    **EXTENDED_RULES,
    **SCAN_RULES,
}
"""Shapes of the results; each rule checks its call and completes ``call.attrs``."""
