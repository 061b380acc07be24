"""Amaranth components as one self-contained Verilog text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

from amaranth.back import verilog

from nnef_hw.rtl.primitives import PRIMITIVES

__all__ = ["VerilogOutput", "to_verilog"]


class VerilogOutput:
    """Stands for "elaborated for Verilog" where a component asks for its platform.

    Components that hold device primitives then instantiate the modules of ``rtl/primitives.v``;
    without a platform, in Amaranth's own simulator, they elaborate to plain logic.
    """


def to_verilog(
    component: Any,
    *,
    name: str = "top",
    ports: Any = None,
    comments: Mapping[str, str] | None = None,
) -> str:
    """Convert a component; the text ends with the primitives it may instantiate.

    ``comments`` stand above the modules whose names below the component match a pattern whole.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        text = verilog.convert(
            component, name=name, ports=ports, platform=VerilogOutput(), emit_src=False,
            strip_internal_attrs=True,
        )  # fmt: skip
    if comments:
        text = _commented(text, name, comments)
    return f"{text}\n{PRIMITIVES.read_text()}"


def _commented(text: str, name: str, comments: Mapping[str, str]) -> str:
    """Write every module's comment above it; where several patterns match, the longest counts."""
    patterns = sorted(comments, key=len, reverse=True)

    def comment(match: re.Match[str]) -> str:
        below = match[2].removeprefix(name).removeprefix(".")
        for pattern in patterns:
            if re.fullmatch(pattern, below):
                return f"// {comments[pattern]}\n{match[0]}"
        return match[0]

    return re.sub(r"^module (\\?)([^\s(;]+)", comment, text, flags=re.MULTILINE)
