"""Amaranth components as one self-contained Verilog text."""

from __future__ import annotations

import warnings
from typing import Any

from amaranth.back import verilog

from nnef_hw.rtl.primitives import PRIMITIVES

__all__ = ["VerilogOutput", "to_verilog"]


class VerilogOutput:
    """Stands for "elaborated for Verilog" where a component asks for its platform.

    Components that hold device primitives then instantiate the modules of ``rtl/primitives.v``;
    without a platform, in Amaranth's own simulator, they elaborate to plain logic.
    """


def to_verilog(component: Any, *, name: str = "top", ports: Any = None) -> str:
    """Convert a component; the text ends with the primitives it may instantiate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        text = verilog.convert(
            component, name=name, ports=ports, platform=VerilogOutput(), emit_src=False,
            strip_internal_attrs=True,
        )  # fmt: skip
    return f"{text}\n{PRIMITIVES.read_text()}"
