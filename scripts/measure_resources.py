"""Measure what each component costs after packing, and how far the estimates are off.

``components`` builds every component alone over a spread of parameters and prints one JSON line
per case: what was built, what nextpnr packs it into, and what ``resources.py`` says. ``fit`` reads
such lines and prints the weights that ``resources.py`` should have, and the errors they leave.
``blocks`` does the same with the components that real networks are built of. ``networks`` compares
whole accelerators without host link.

``--beside BITS`` measures every component beside an adder of so many bits, which it then leaves
out of the count. Yosys spends LUTs, and on Gowin whole trees of multiplexers, to shorten what
takes longest. Alone, that is always a part of the component; in a design it seldom is.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from beside import Beside, LongPath
from cases import Case
from component_cases import component_cases, network_cases
from measured_cases import describe, measured_cases
from numpy.typing import NDArray

from nnef_hw.boards import Board, find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.frontend import load
from nnef_hw.hardware.devices import Resources
from nnef_hw.hardware.families import FAMILIES, Family
from nnef_hw.passes import simplify
from nnef_hw.place.toolchain import Design, toolchain_of
from nnef_hw.quantize import quantize
from nnef_hw.streaming.foldings.plan import Plan
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

__all__ = ["Case", "component_cases", "fit", "measure", "network_cases"]

CALIBRATION_SAMPLES = 200


def measure(component: Any, board: Board, folder: Path) -> Resources:
    """Synthesize and pack a component for a board's device; return what nextpnr would place."""
    toolchain = toolchain_of(board.device.family)
    source = folder / "top.v"
    source.write_text(to_verilog(component))
    design = Design(
        top="top", part=board.part, package=board.package, speed=board.speed, frequency_mhz=0
    )
    mapped = toolchain.map(design, [source], folder, folder, pads=False)
    counts = toolchain.count(design, folder, folder / "nextpnr.log")
    found = {name: used for name, (used, _) in counts.items() if name != "ff"}
    return Resources(**found, ff=mapped.flip_flops)


def fit(lines: Sequence[dict[str, Any]]) -> None:
    """Print weights and errors of every component, least squares of relative errors."""
    for part in dict.fromkeys(line["name"] for line in lines if line["features"]):
        cases = [line for line in lines if line["name"] == part and line["typical"]]
        names = list(cases[0]["features"])
        features = np.array([[line["features"][name] for name in names] for line in cases], float)
        found = np.array([line["found"]["lut"] for line in cases], float)
        weights = _least_squares(features / found[:, None])
        errors = features @ weights / found - 1
        shown = ", ".join(f'"{name}": {w:.2f}' for name, w in zip(names, weights, strict=True))
        sys.stdout.write(
            f"{part}: {shown}\n    {len(cases)} cases, mean error {np.abs(errors).mean():.1%}, "
            f"worst {np.abs(errors).max():.1%}\n"
        )


def _least_squares(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights >= 0 for which every row's sum is about 1."""
    kept = list(range(features.shape[1]))
    while True:
        solution = np.linalg.lstsq(features[:, kept], np.ones(len(features)), rcond=None)[0]
        if solution.min() >= 0:
            break
        kept.pop(int(np.argmin(solution)))
    weights = np.zeros(features.shape[1])
    weights[kept] = solution
    return weights


def load_plan(model: Path, samples: Path, board: str) -> tuple[Plan, Any]:
    """Quantize a network on its samples and schedule it."""
    graph = load(model)
    canonical = simplify(graph)
    inputs = np.load(samples)["inputs"]
    count = min(CALIBRATION_SAMPLES, max(1, len(inputs) // 5))
    fixed = quantize(canonical, {graph.inputs[0]: inputs[:count]})
    return schedule(fixed, find_board(board)), fixed


def main(arguments: list[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("components", "blocks", "networks"):
        command = commands.add_parser(name)
        command.add_argument("family", choices=sorted(family.name for family in FAMILIES))
        command.add_argument("--beside", type=int, default=0, help="bits of an adder")
        if name == "components":
            command.add_argument("--part", help="measure this part only")
        else:
            command.add_argument("folder", nargs="+", type=Path, help="has *.nnef.tgz, samples.npz")
    command = commands.add_parser("fit")
    command.add_argument("family", choices=sorted(family.name for family in FAMILIES))
    command.add_argument("--part", help="fit this part only")
    options = parser.parse_args(arguments)
    if options.command == "fit":
        family = next(family for family in FAMILIES if family.name == options.family)
        fit(_measured(family, options.part))
        return
    target = find_board(options.family)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        meter = Meter(target, folder, options.beside)
        if options.command == "components":
            for case in component_cases(target.device):
                if options.part in {None, case.part.costs}:
                    _measure_case(case, meter)
            return
        for network in options.folder:
            model = min(network.glob("*.nnef.tgz"), key=lambda path: len(path.name))
            plan, graph = load_plan(model, network / "samples.npz", target.name)
            if options.command == "blocks":
                for case in network_cases(plan):
                    _measure_case(case, meter)
                continue
            found = meter.measure(Accelerator(plan, graph))
            link = Resources(target.link_lut, target.link_ff, 0, target.link_bram)
            ours = {k: v - getattr(link, k) for k, v in plan.resources.to_json().items()}
            _print(network.name, {"interval": plan.interval}, found, Resources(**ours))


def _measured(family: Family, part: str | None) -> list[dict[str, Any]]:
    """Return cases and what was measured of them; LUT multipliers are the device's figure."""
    device = find_board(family.name).device
    lines = []
    for case, found in measured_cases(family):
        if part in {None, case.part.costs}:
            features = {**case.part.features, "fixed": 1}
            lut = found.lut - case.part.product_luts(device)
            lines.append({
                "name": case.part.costs, "typical": case.typical, "features": features,
                "found": {"lut": lut},
            })  # fmt: skip
    return lines


class Meter:
    """Measures components for a board's device, each beside an adder of ``bits`` if there are any.

    ``folder`` is where the tools work.
    """

    def __init__(self, board: Board, folder: Path, bits: int = 0) -> None:
        self.board = board
        self._folder = folder
        self._bits = bits
        self._path = measure(LongPath(bits), board, folder) if bits else Resources()

    def measure(self, component: Any) -> Resources:
        """Return what nextpnr would place of a component."""
        if not self._bits:
            return measure(component, self.board, self._folder)
        found = measure(Beside(component, self._bits), self.board, self._folder).to_json()
        path = self._path.to_json()
        return Resources(**{name: found[name] - path[name] for name in found})


def _measure_case(case: Case, meter: Meter) -> None:
    found = meter.measure(case.build())
    _print(case.part.costs, describe(case), found, case.part.resources(meter.board.device))


def _print(name: str, case: dict[str, Any], found: Resources, estimate: Resources) -> None:
    line = {"name": name, "case": case, "found": found.to_json(), "estimate": estimate.to_json()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(sys.argv[1:])
