"""The PLL of a routed design: which clock it makes, what it reaches, and another setting."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from nnef_hw.arithmetic.records import JsonView
from nnef_hw.place.toolchain import Setting, Tuning

__all__ = ["GLOBAL", "clock_names", "set_parameters", "tuned_clocks"]

GLOBAL = "$glbnet$"
"""With what the name of a net begins that nextpnr leads over the wires of clocks."""


def clock_names(netlist: JsonView, outputs: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the net that a PLL's clock is, in a mapped design as yosys writes it.

    ``outputs`` are those of :class:`.Tuning`.
    """
    for module in netlist["modules"].values():
        for cell in module["cells"].values():
            if port := outputs.get(cell["type"]):
                bits = cell["connections"][port]
                nets = module["netnames"].items()
                return frozenset(name for name, net in nets if net["bits"] == bits)
    raise ValueError(f"the design has no PLL of {sorted(outputs)}")


def tuned_clocks(
    clocks: Mapping[str, tuple[float, float]], names: frozenset[str], tuning: Tuning
) -> tuple[dict[str, tuple[float, float]], Setting | None]:
    """Return every clock with the constraint that it has in the end, and the PLL's setting.

    Parameters
    ----------
    clocks
        Frequency and constraint of every clock, as nextpnr was asked for them.
    names
        Those of :func:`clock_names`.

    Notes
    -----
    Without a setting the PLL's clock keeps its constraint.
    """
    found = dict(clocks)
    setting = None
    for name, (reached, _) in clocks.items():
        if name.removeprefix(GLOBAL) not in names:
            found[name] = (reached, tuning.input_mhz)
        elif setting := tuning.choose(reached):
            found[name] = (reached, setting.clock_mhz)
    return found, setting


def set_parameters(netlist: Path, kind: str, parameters: Mapping[str, int]) -> None:
    """Change parameters of the one cell of a kind in nextpnr's netlist, each in as many bits.

    ``kind`` is a regular expression.
    """
    design = json.loads(netlist.read_text())
    cells = (cell for module in design["modules"].values() for cell in module["cells"].values())
    [pll] = (cell for cell in cells if re.fullmatch(kind, cell["type"]))
    for name, value in parameters.items():
        width = len(pll["parameters"][name])
        pll["parameters"][name] = f"{value:0{width}b}"
    netlist.write_text(json.dumps(design))
