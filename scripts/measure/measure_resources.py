"""Measure what each component costs after packing, and how far the estimates are off.

``components`` builds every component alone over a spread of parameters and prints one JSON line
per case: what was built, what nextpnr packs it into, and what its part says. ``fit`` reads such
lines, prints weights and the errors they leave, and writes them for the package (``--write``).
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from beside import Beside, LongPath
from component_cases import component_cases, network_cases
from lut_fit import PartCases, cases_of, fitted_text, weights_file
from measured_cases import cases_to_measure, describe

from nnef_hw.boards import Board, find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.frontend import load
from nnef_hw.hardware.devices import Resources
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.passes import simplify
from nnef_hw.place.toolchain import Design, toolchain_of
from nnef_hw.quantize import quantize
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule

__all__ = ["component_cases", "fit", "measure", "network_cases"]

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


def fit(cases: Mapping[str, PartCases]) -> None:
    """Print weights and errors of every component, least squares of relative errors."""
    for name, part in cases.items():
        weights = part.fitted()
        errors, validated = part.errors(weights), part.cross_validated()
        shown = ", ".join(f'"{x}": {w:.2f}' for x, w in zip(part.names, weights, strict=True))
        unseen = "-" if validated is None else f"{validated:.1%}"
        sys.stdout.write(
            f"{name}: {shown}\n    {len(errors)} cases, mean error {errors.mean():.1%}, "
            f"worst {errors.max():.1%}, mean of a case that is left out {unseen}\n"
        )


def load_plan(model: Path, samples: Path, board: str) -> tuple[StreamingPlan, Any]:
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
    command.add_argument(
        "--write", action="store_true",
        help="write the family's weights, those of --part anew whatever they were fitted to",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    if options.command == "fit":
        family = next(family for family in FAMILIES if family.name == options.family)
        cases = cases_of(family)
        named = [options.part] if options.part else []
        fit({name: cases[name] for name in named or cases})
        if options.write:
            weights_file(family).write_text(fitted_text(family, named))
        return
    target = find_board(options.family)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        meter = Meter(target, folder, options.beside)
        if options.command == "components":
            for case in cases_to_measure(target.device.family):
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


def _measure_case(case: Any, meter: Meter) -> None:
    found = meter.measure(case.build())
    _print(case.part.costs, describe(case), found, case.part.resources(meter.board.device))


def _print(name: str, case: dict[str, Any], found: Resources, estimate: Resources) -> None:
    line = {"name": name, "case": case, "found": found.to_json(), "estimate": estimate.to_json()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(sys.argv[1:])
