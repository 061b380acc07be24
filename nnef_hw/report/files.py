"""Report files, written so that nobody sees half of one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["write_json", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8; others see the old contents or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        partial.chmod(0o644)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_json(report: Mapping[str, Any], path: Path) -> None:
    """Write the report with sorted keys; it has to be plain values without NaN or infinity."""
    write_text(path, json.dumps(report, indent=2, sort_keys=True, allow_nan=False) + "\n")
