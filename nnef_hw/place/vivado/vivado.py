"""The toolchain that ends with a Vivado project: yosys maps and counts, nothing is placed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import DEVICES, Device
from nnef_hw.hardware.families import Pin
from nnef_hw.place.mapper import Mapper
from nnef_hw.place.mapping import map_design
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.toolchain import Design, Mapped, Progress, Toolchain, say_nothing
from nnef_hw.place.vivado.project import project_script, vivado_constraints

__all__ = ["Vivado"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Vivado(Toolchain):
    """Yosys for the cells, and a project for Vivado, which maps the Verilog on its own.

    Parameters
    ----------
    mapper
        The family in the language of yosys.
    resources
        Regular expressions of the cells that count as a resource, with how many each of them takes.
    """

    mapper: Mapper
    resources: Mapping[str, Mapping[str, int]]

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        return vivado_constraints(pins, input_mhz)

    def map(
        self, design: Design, sources: Sequence[Path], folder: Path, logs: Path,
        *, pads: bool | None, progress: Progress = say_nothing,
    ) -> Mapped:  # fmt: skip
        progress("synthesizing (yosys)")
        ports = () if pads is None else self.mapper.ports(with_pins=pads)
        return map_design(self.mapper, design, sources, folder, logs, ports)

    def count(self, design: Design, folder: Path, log: Path) -> dict[str, tuple[int, int]]:
        del log
        netlist = json.loads((folder / design.netlist).read_text())
        cells = Counter(
            cell["type"]
            for module in netlist["modules"].values()
            if "top" in module["attributes"]
            for cell in module["cells"].values()
        )
        return self._fitting(design, cells)

    def place(
        self, design: Design, mapped: Mapped, folder: Path, logs: Path,
        *, seeds: Sequence[int], bitstream: bool, progress: Progress = say_nothing,
    ) -> SynthesisResult:  # fmt: skip
        del logs, seeds, bitstream
        progress("writing a project (Vivado)")
        self._fitting(design, mapped.cells)
        (folder / design.netlist).unlink()
        script = f"{design.top}.tcl"
        (folder / script).write_text(
            project_script(
                top=design.top, part=f"{design.part}{design.package}-{design.speed}",
                sources=f"{design.top}.v", constraints=f"{design.top}.{self.constraints_suffix}",
                define=self.mapper.family.define, frequency_mhz=design.frequency_mhz,
            )
        )  # fmt: skip
        files = {"project": script, "netlist": f"{design.top}_netlist.v", "yosys_log": "yosys.log"}
        return SynthesisResult.unplaced(
            design.frequency_mhz, mapped.cells, files, dict(mapped.seconds)
        )

    def _fitting(self, design: Design, cells: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Return how much there is and is used of each resource; refuse what does not fit."""
        device = self._device(design)
        found = {
            name: (sum(self._taken(name, cells)), getattr(device, name)) for name in self.resources
        }
        lacking = [
            f"{used:,} of {available:,} {name}"
            for name, (used, available) in found.items()
            if used > available
        ]
        if lacking:
            raise TargetError(
                f"{design.top} does not fit {device.name}: yosys maps it to {', '.join(lacking)}",
                remedy="ask for a lower --target-fps, or take a larger device",
            )
        return found

    def _taken(self, resource: str, cells: Mapping[str, int]) -> Iterator[int]:
        for kind, count in cells.items():
            for pattern, each in self.resources[resource].items():
                if re.fullmatch(pattern, kind):
                    yield each * count

    def _device(self, design: Design) -> Device:
        """Return the device of a part, whose name may have letters more."""
        [device] = (
            device
            for device in DEVICES
            if device.family is self.mapper.family and design.part.startswith(device.name)
        )
        return device
