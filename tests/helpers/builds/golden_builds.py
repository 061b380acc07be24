"""Digests of whole builds, file by file: the engine's, and plain IP of both architectures."""

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import golden_networks as networks
from golden_digests import fixed_graph

from nnef_hw.architectures import find_architecture
from nnef_hw.boards.interfaces import DEFAULT_LINK, find_link
from nnef_hw.flow.emit import emit
from nnef_hw.flow.options import BuildOptions, find_target
from nnef_hw.flow.summary import make_report
from nnef_hw.report.model.conversion import to_json

__all__ = ["BUILDS", "GoldenBuild"]

BOARDS = ("icebreaker", "ulx3s_85f", "tang_nano_20k")


@dataclass(frozen=True)
class GoldenBuild:
    """A network, where it goes, and how it is built."""

    network: object
    arch: str
    board: str
    device: str | None = None
    batch: int = 1
    link: str = "uart"
    layer_counters: bool = False
    nightly: bool = False

    @property
    def name(self):
        """Key of its digests."""
        options = [
            self.device, f"batch {self.batch}" if self.batch > 1 else None,
            self.link if self.link != "uart" else None, "counters" if self.layer_counters else None,
        ]  # fmt: skip
        return ", ".join([self.network.__name__, self.arch, self.board, *filter(None, options)])

    def digests(self):
        """Return a digest of the program's listing, of the report, and of every file.

        The report of weights beside the FPGA is left out: it plans each board, a second or more.
        """
        architecture = find_architecture(self.arch)
        target = find_target(self.board, self.device)
        fixed = fixed_graph(self.network)
        plan = architecture.plan(
            fixed, target, batch=self.batch, layer_counters=self.layer_counters
        )
        options = BuildOptions(
            model=Path("unused"), board=self.board, device=self.device, out=Path("unused"),
            link=find_link(self.link),
        )  # fmt: skip
        found = {"program": _digest(json.dumps(architecture.program(plan)))}
        if not plan.images:
            insides = architecture.report(plan, fixed, target, architecture.timeline(plan))
            report = make_report(
                plan=plan, insides=insides, others=[], target=target, link=DEFAULT_LINK,
                synthesis=None, simulation=None, accuracy=None, bitstream=None, seconds={},
                commands=[],
            )  # fmt: skip
            found["report"] = _digest(json.dumps(to_json(report), sort_keys=True))  # as in a file
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            emit(folder, fixed, None, plan, None, target, options)
            for path in sorted(folder.rglob("*")):
                # archives depend on the machine's zlib; their hash is in the manifest
                if path.is_dir() or path.suffix == ".tgz":
                    continue
                found[path.relative_to(folder).as_posix()] = _digest(path.read_bytes())
        return found


def _digest(content):
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()[:16]


ON_CHIP = (
    networks.lenet, networks.residual, networks.separable, networks.branches, networks.pools,
    networks.outputs, networks.tflite, networks.perceptron,
)  # fmt: skip

USUAL = (networks.branches, networks.outputs, networks.tflite)
"""Slices and joins, several results, sums with another rounding; ``lenet`` has pools."""

BUILDS = (
    # some networks on a board each every time, and else at night
    *(
        GoldenBuild(
            network, "engine", board,
            nightly=(at + to) % len(BOARDS) != 0 or network not in USUAL,
        )
        for at, network in enumerate(ON_CHIP) for to, board in enumerate(BOARDS)
    ),
    # weights in flash; in SDRAM, with what a frame keeps on the chip; several frames together
    GoldenBuild(networks.wide, "engine", "icebreaker", nightly=True),
    GoldenBuild(networks.wide, "engine", "ulx3s_85f", nightly=True),
    GoldenBuild(networks.wide, "engine", "ulx3s_85f", batch=4),
    GoldenBuild(networks.wide, "engine", "icebreaker", link="spi", batch=2, nightly=True),
    GoldenBuild(networks.lenet, "engine", "none", device="ecp5-25k"),
    GoldenBuild(networks.outputs, "streaming", "none", device="up5k"),
    GoldenBuild(networks.outputs, "streaming", "tang_nano_20k"),
    GoldenBuild(networks.residual, "streaming", "ulx3s_85f", layer_counters=True, nightly=True),
)  # fmt: skip
