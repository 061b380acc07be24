"""Access to the folder of a finished build."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from nnef_hw.architecture.architecture import AcceleratorPlan, AnyArchitecture
from nnef_hw.architectures import find_architecture
from nnef_hw.arithmetic.records import Fields, JsonObject
from nnef_hw.errors import UsageError
from nnef_hw.frontend import load
from nnef_hw.host.manifest import HEX_IMAGE, MODULE, read_manifest
from nnef_hw.ir import Graph
from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report

__all__ = ["BuildFolder"]

T = TypeVar("T")

FLOAT_MODEL = "float.nnef.tgz"
FIXED_MODEL = "model.nnef.tgz"


@dataclass(frozen=True)
class BuildFolder:
    """The folder of a finished build, and its contents."""

    path: Path

    @classmethod
    def open(cls, path: Path) -> BuildFolder:
        """Check that a path is a finished build.

        Raises
        ------
        UsageError
            If it is not a finished build.
        """
        if not path.exists():
            raise UsageError(f"build {str(path)!r} does not exist", remedy="run nnef-hw build")
        for name in ("manifest.json", "plan.json", FIXED_MODEL, "rtl/top.v"):
            if not (path / name).is_file():
                raise UsageError(
                    f"{str(path)!r} is not a finished build: it has no {name}",
                    remedy="run nnef-hw build",
                )
        return cls(path)

    @classmethod
    def just_made(
        cls, path: Path, fixed: Graph, canonical: Graph | None, plan: AcceleratorPlan
    ) -> BuildFolder:
        """Return the build of a model in memory, whose files need not be read again."""
        folder = cls.open(path)
        vars(folder).update(fixed=fixed, canonical=canonical, plan=plan)
        return folder

    @cached_property
    def manifest(self) -> Fields:
        """Contents of ``manifest.json``."""
        return self._read("manifest.json", dict)

    @cached_property
    def plan(self) -> AcceleratorPlan:
        """The schedule."""
        return self._read("plan.json", self._read_plan)

    @cached_property
    def report(self) -> Report:
        """Contents of ``report.json``."""
        return self.read_report(partial(from_json, kind=Report))

    def read_report(self, convert: Callable[[dict[str, object]], T]) -> T:
        """Convert the contents of ``report.json`` with a function.

        Raises
        ------
        UsageError
            If the file is missing or damaged, or lacks what the function looks for.
        """
        return self._read("report.json", convert)

    @property
    def clock_mhz(self) -> float:
        """The accelerator's clock: that of the report, or of the plan if there is none yet."""
        is_reported = (self.path / "report.json").is_file()
        return self.report.clock_mhz if is_reported else self.plan.clock_mhz

    @property
    def architecture(self) -> AnyArchitecture:
        """The architecture of the plan."""
        return find_architecture(self.plan.arch)

    @cached_property
    def fixed(self) -> Graph:
        """The quantized model that the hardware computes."""
        return load(self.path / FIXED_MODEL)

    @cached_property
    def canonical(self) -> Graph | None:
        """The real-valued model before quantization; None if the build began with a fixed one."""
        path = self.path / FLOAT_MODEL
        return load(path) if path.is_file() else None

    @cached_property
    def verilog(self) -> str:
        """The accelerator."""
        return (self.path / "rtl" / "top.v").read_text()

    @property
    def simulated(self) -> tuple[str, str]:
        """Verilog of the accelerator with the memories that it needs, and the module's name."""
        return self.with_memories(self.verilog)

    def with_memories(self, verilog: str) -> tuple[str, str]:
        """Return the same with another text of the accelerator."""
        if not self.plan.images:
            return verilog, self.module
        # Pads need Amaranth, which takes half a second to import.
        from nnef_hw.run.memories import with_memories

        return with_memories(verilog, self.plan, self.module, (self.path / HEX_IMAGE).resolve())

    def check_images(self) -> None:
        """Check that what a memory has to hold is that of the bitstream.

        Raises
        ------
        UsageError
            If a file is missing, or another one.
        """
        memory = read_manifest(self.path).memory
        if memory is not None:
            memory.read(self.path)

    @property
    def module(self) -> str:
        """Name of the accelerator's module."""
        return str(self.manifest.get("module", MODULE))

    def _read_plan(self, value: JsonObject) -> AcceleratorPlan:
        plan: AcceleratorPlan = find_architecture(value["arch"]).read_plan(value, self.fixed)
        return plan

    def _read(self, name: str, convert: Callable[[Any], T]) -> T:
        try:
            return convert(json.loads((self.path / name).read_text()))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{str(self.path / name)!r} is damaged", remedy="run nnef-hw build again"
            ) from error
        except FileNotFoundError as error:
            raise UsageError(
                f"{str(self.path / name)!r} does not exist", remedy="run nnef-hw build again"
            ) from error
