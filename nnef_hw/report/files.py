"""Report files, written atomically."""

from __future__ import annotations

import json
from pathlib import Path

from nnef_hw.report.model.conversion import to_json
from nnef_hw.report.model.report import Report
from nnef_hw.system.files import write_atomic

__all__ = ["write_json"]


def write_json(report: Report, path: Path) -> None:
    """Write the report with sorted keys; none of its numbers may be NaN or infinity."""
    write_atomic(path, json.dumps(to_json(report), indent=2, sort_keys=True) + "\n")
