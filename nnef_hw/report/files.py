"""Report files, written atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nnef_hw.system.files import write_atomic

__all__ = ["write_json"]


def write_json(report: Mapping[str, Any], path: Path) -> None:
    """Write the report with sorted keys; it has to be plain values without NaN or infinity."""
    write_atomic(path, json.dumps(report, indent=2, sort_keys=True, allow_nan=False) + "\n")
