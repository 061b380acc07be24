"""``build --weights-of``: other weights for the bitstream of an earlier build."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from pathlib import Path

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.arithmetic.records import Fields
from nnef_hw.boards.interfaces import (
    DEFAULT_LINK,
    HostLink,
    PlainStreams,
    SinkWish,
    SourceWish,
    link_of,
    sink_of,
    source_of,
)
from nnef_hw.errors import UsageError, raise_all
from nnef_hw.flow.cache import cached_step, finished_step
from nnef_hw.flow.fixed import Judged, judge_model
from nnef_hw.flow.options import BuildOptions
from nnef_hw.hardware.families import Family
from nnef_hw.ir import Graph, Stage
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.report.model.conversion import from_json
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.samples.samples import Samples
from nnef_hw.system.files import digest

__all__ = ["base_digest", "base_options", "compile_weights", "copy_board", "inherit_bitstream"]

_DECIDED = {
    "device": "--device", "ip_name": "--ip-name", "clock_mhz": "--freq", "fastest": "--freq",
    "seeds": "--seeds", "target_fps": "--target-fps", "arch": "--arch", "sinks": "--sink",
    "sources": "--source", "token_loop": "--token-loop", "layer_counters": "--layer-counters",
    "batch": "--batch", "goal": "--goal", "streams": "--bus",
}  # fmt: skip
"""Options that a bitstream has decided."""


def base_options(options: BuildOptions) -> BuildOptions:
    """Return the options with what the bitstream of ``weights_of`` has decided.

    Raises
    ------
    UsageError
        If it is no finished build, or options would change its bitstream.
    """
    assert options.weights_of is not None
    defaults = {field.name: field.default for field in fields(BuildOptions)}
    decided = {name: option for name, option in _DECIDED.items()
               if getattr(options, name) != defaults[name]}  # fmt: skip
    for option in (*decided.values(), *_link_options(options.link)):
        raise UsageError(
            f"{option} would change the bitstream, which --weights-of keeps",
            remedy=f"omit {option}, or build without --weights-of",
        )
    base = BuildFolder.open(options.weights_of)
    if options.out.resolve() == base.path.resolve():
        raise UsageError(
            f"--out {str(options.out)!r} is the build whose bitstream is kept",
            remedy="give another folder",
        )
    manifest = base.manifest
    if options.board and Path(options.board).stem != manifest["board"]:
        raise UsageError(
            f"{str(base.path)!r} is a build for board {manifest['board']!r}, not {options.board!r}",
            remedy="omit --board",
        )
    link = link_of(manifest["link"])
    own: Fields = {"link": link}
    if isinstance(link, PlainStreams):
        own = {"streams": link, "device": manifest["device"], "ip_name": manifest["module"]}
    return replace(
        options, board=options.board or manifest["board"], arch=manifest["arch"],
        clock_mhz=manifest["clock_mhz"], **own,
        sinks=tuple(
            SinkWish(type(x), x.output, tuple(x.given.items()))
            for x in map(sink_of, manifest.get("sinks", ()))
        ),
        sources=tuple(
            SourceWish(type(x), x.input, tuple(x.given.items()))
            for x in map(source_of, manifest.get("sources", ()))
        ),
        token_loop="token_loop" in manifest,
        bitstream=False,
    )  # fmt: skip


def _link_options(link: HostLink) -> list[str]:
    """Return the options of the command line that make a link another one than the usual."""
    if link == DEFAULT_LINK:
        return []
    if type(link) is not type(DEFAULT_LINK):
        return ["--link"]
    names = [option.name for option in link.options]
    return [f"--{x}" for x in names if getattr(link, x) != getattr(DEFAULT_LINK, x)]


def base_digest(base: BuildFolder, family: Family) -> str:
    """Return the digest of everything that is taken from a build."""
    names = ["manifest.json", "plan.json", "rtl/top.v"]
    return digest(*(base.path / name for name in names), *_board_files(base, family))


def _board_files(base: BuildFolder, family: Family) -> list[Path]:
    """List the board's top and its constraints."""
    found = sorted((base.path / "board").glob("board_top.*"))
    kept = {".v", f".{toolchain_of(family).constraints_suffix}"}
    return [path for path in found if path.suffix in kept]


def compile_weights(
    base: BuildFolder, simple: Graph, samples: Samples | None, options: BuildOptions
) -> tuple[Judged, AcceleratorPlan]:
    """Return the fixed and the canonical graph of a model, and its plan on a bitstream.

    Raises
    ------
    UsageError
        If the bitstream does not run the model: what differs.
    UnsupportedError, ErrorGroup, SampleError
        As :func:`.judge_model`.
    """
    architecture = base.architecture
    raise_all(architecture.problems(simple))
    chosen = not any(tensor.quant is not None for tensor in simple.tensors.values())
    kept = architecture.kept(base.plan)
    scheme = options.scheme
    if simple.stage != Stage.FIXED:
        scheme = replace(
            scheme, largest_layer_factor=kept.layer_factor, largest_sum_factor=kept.sum_factor
        )
    is_free = chosen and simple.stage != Stage.FIXED

    def check(fixed: Graph) -> None:
        architecture.retrained(base.plan, fixed, free=is_free)

    made = judge_model(simple, samples, scheme, check=check)
    plan, fixed = architecture.retrained(base.plan, made.fixed, free=is_free)
    return replace(made, fixed=fixed), plan


def inherit_bitstream(base: BuildFolder, out: Path) -> SynthesisResult | None:
    """Copy the bitstream of a build, if it has one."""
    found = finished_step(base.path, "synthesize")
    if found is None:
        return None
    value, files = found

    def produce(scratch: Path) -> object:
        for file in files:
            (scratch / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(base.path / file, scratch / file)
        return value

    key = digest(*(base.path / file for file in files))
    return from_json(cached_step(out, "synthesize", key, produce)[0], SynthesisResult)


def copy_board(base: BuildFolder, folder: Path, family: Family) -> None:
    """Copy the board's top and its constraints into the folder of another build."""
    (folder / "board").mkdir(exist_ok=True)
    for path in _board_files(base, family):
        shutil.copyfile(path, folder / "board" / path.name)
