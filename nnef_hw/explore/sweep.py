"""A sweep from wishes to the front: cycles are exact before synthesis, so little is placed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import chain, product
from pathlib import Path

from nnef_hw.architectures import AUTO
from nnef_hw.boards import Board
from nnef_hw.codegen.board import check_clock
from nnef_hw.errors import SampleError, UsageError
from nnef_hw.explore import jobs
from nnef_hw.explore.cache import Job, JobCache, Outcome
from nnef_hw.explore.front import front, near_front
from nnef_hw.flow.cache import is_build, remove_leftovers
from nnef_hw.flow.fixed import DEFAULT_SCHEME
from nnef_hw.flow.options import check_wishes
from nnef_hw.frontend import graph_hash
from nnef_hw.ir import Graph, Stage
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.place.synthesis import tool_identities
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.quantize import Scheme
from nnef_hw.report.model.exploration import Placed, Point
from nnef_hw.samples.samples import Samples, samples_digest
from nnef_hw.system.files import digest, locked, remove, write_atomic, writing
from nnef_hw.system.workers import Pool

__all__ = ["STAGES", "Sweep", "explore"]

STAGES = ("planned", "mapped", "placed")
"""Where a sweep may end."""
SLOWER = (1, 2, 4, 8)
"""Of the fastest design's rate, the parts for which smaller designs are planned."""
ESTIMATE_MARGIN = 0.06
"""LUTs are estimated to 3% either way."""
PACKING_MARGIN = 0.01
KINDS = ("lut", "ff", "dsp", "bram", "spram")
RATE_DIGITS = 5

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Designs that are to be explored.

    Parameters
    ----------
    graph, samples
        The network as it was read, and representative inputs.
    boards, weight_bits
        Boards, and widths of weights, each with each.
    target_fps
        Rates for which the smallest designs are planned; without any the fastest design of each
        board and width, and the smallest ones for a half, a quarter and an eighth of its rate.
    arch, clock_mhz, scheme, stream
        As for a build.
    seeds
        Placements of each design that is worth one.
    until
        One of :data:`STAGES`.
    build
        Says what builds a point.
    """

    graph: Graph
    samples: Samples | None
    boards: Sequence[Board]
    weight_bits: Sequence[int]
    target_fps: Sequence[float] = ()
    arch: str = AUTO
    clock_mhz: float | None = None
    scheme: Scheme = DEFAULT_SCHEME
    stream: StreamTime | None = None
    seeds: int = 1
    until: str = STAGES[-1]
    build: Callable[[Point], str] = field(default=lambda point: "")

    def check(self) -> None:
        """Refuse what can be refused before any work.

        Raises
        ------
        UsageError, TargetError, SampleError
            If a number, name or clock makes no sense.
        ToolError
            If a tool is missing.
        """
        rates = {f"--target-fps {rate:g}": rate for rate in self.target_fps}
        check_wishes(self.arch, {"--freq": self.clock_mhz, "--seeds": self.seeds, **rates})
        if self.until not in STAGES:
            raise UsageError(f"there is no stage {self.until!r}", remedy=f"use {', '.join(STAGES)}")
        for board in self.boards:
            check_clock(board, self.clock_mhz or board.clock_mhz)
            if self.until != STAGES[0]:
                _tools(board)
                toolchain = toolchain_of(board.device.family)
                if not toolchain.places:
                    raise toolchain.refusal(f"how far {board.name} comes beyond the plan")
        if (
            self.samples is None
            and self.graph.stage == Stage.FLOAT
            and not any(tensor.quant for tensor in self.graph.tensors.values())
        ):
            raise SampleError(
                f"model {self.graph.name!r} has real numbers: designs depend on how they are "
                "quantized",
                remedy="give representative inputs with --calibrate samples.npz",
            )
        for bits in self.weight_bits:
            self.scheme_of(bits)

    def scheme_of(self, bits: int) -> Scheme:
        """Return the scheme with weights of that width.

        Raises
        ------
        UsageError
            If there are no such widths.
        """
        try:
            return replace(self.scheme, weight_bits=bits)
        except ValueError as error:
            raise UsageError(str(error).removeprefix("Scheme ")) from error


@dataclass(frozen=True, slots=True)
class _Wish:
    """A design that is asked for; without a rate, the fastest one."""

    board: Board
    weight_bits: int
    target_fps: float | None

    @property
    def slowness(self) -> float:
        """The less, the faster."""
        return -math.inf if self.target_fps is None else -self.target_fps


@dataclass(slots=True, eq=False)
class _Design:
    """A point with the outcomes that later jobs need."""

    point: Point
    board: Board
    quantized: Outcome
    planned: Outcome
    mapped: Outcome | None = None


def explore(
    sweep: Sweep, folder: Path, pool: Pool, progress: Progress = lambda what, done, total: None
) -> list[Point]:
    """Plan, score, map and place designs, of each stage those that may be on the front.

    ``points.jsonl`` and ``front.json`` in the folder are written anew after every stage.

    Raises
    ------
    NnefHwError
        If options make no sense, the network cannot be built on whatever board, or a tool fails.
        A design that does not fit is a point with a ``refusal``.
    """
    sweep.check()
    is_new = not folder.exists()
    if not is_new and not (folder.is_dir() and (is_build(folder) or not any(folder.iterdir()))):
        raise UsageError(
            f"{str(folder)!r} holds files that are not of a sweep", remedy="choose another --out"
        )
    with writing(folder), locked(folder / ".steps" / "lock"):
        remove_leftovers(folder)
        run = _Run(sweep, JobCache(folder, pool), progress)
        try:
            run.all()
        finally:
            if is_new and not run.cache.computed:
                remove(folder)
    return [design.point for design in run.designs]


class _Run:
    """The stages of a sweep."""

    def __init__(self, sweep: Sweep, cache: JobCache, progress: Progress) -> None:
        self.sweep, self.cache, self.progress = sweep, cache, progress
        self.designs: list[_Design] = []

    def all(self) -> None:
        """Run the stages that are asked for, and write what is known after each."""
        self._plan(self._quantize())
        self._write()
        if self.sweep.until == "planned":
            return
        self._map(self._near(ESTIMATE_MARGIN, self.designs))
        self._write()
        if self.sweep.until == "placed":
            self._place(self._near(PACKING_MARGIN, [x for x in self.designs if x.point.mapped]))
            self._write()

    def _run(self, what: str, wanted: Sequence[Job]) -> list[Outcome]:
        return self.cache.run(wanted, lambda done, total: self.progress(what, done, total))

    def _quantize(self) -> dict[int, Outcome]:
        """Return the network at every width; of widths that give the same one, the first."""
        sweep = self.sweep
        given = digest(
            graph_hash(sweep.graph), samples_digest(sweep.samples), repr(sweep.stream), sweep.arch,
            version("numpy"),
        )  # fmt: skip

        def job(bits: int) -> Job:
            scheme = sweep.scheme_of(bits)
            return Job(
                "quantize", digest(given, repr(scheme)), jobs.quantize_graph,
                lambda: (sweep.graph, sweep.samples, scheme, sweep.stream, sweep.arch),
            )  # fmt: skip

        widths = list(dict.fromkeys(sweep.weight_bits))
        found = self._run("quantizing", [job(bits) for bits in widths])
        first: dict[str, int] = {}
        for bits, outcome in zip(widths, found, strict=True):
            first.setdefault(outcome.value["hash"], bits)
        return {
            bits: outcome
            for bits, outcome in zip(widths, found, strict=True)
            if first[outcome.value["hash"]] == bits
        }

    def _plan(self, quantized: Mapping[int, Outcome]) -> None:
        """Score every width, and plan it for every board and rate."""
        sweep = self.sweep
        scores = [
            Job("score", digest(x.value["hash"], samples_digest(sweep.samples)), jobs.score_fixed,
                partial(_files, x, jobs.FIXED, jobs.REAL))
            for x in quantized.values()
        ]  # fmt: skip
        asked: list[float | None] = [*sweep.target_fps] or [None]
        wishes = [
            _Wish(board, bits, rate)
            for board in sweep.boards
            for bits in quantized
            for rate in asked
        ]
        outcomes = self._run(
            "planning and scoring", [*scores, *(self._plan_job(quantized, x) for x in wishes)]
        )
        qualities = dict(zip(quantized, outcomes, strict=False))
        plans = outcomes[len(scores) :]
        if not sweep.target_fps:
            slower = [
                replace(wish, target_fps=_rounded_down(self._clock(wish.board) * 1e6 / cycles))
                for wish, found in zip(wishes, plans, strict=True)
                if (interval := found.value.get("cycles_per_inference"))
                for cycles in (part * interval for part in SLOWER)
            ]
            more = [self._plan_job(quantized, wish) for wish in slower]
            plans = plans + self._run("planning smaller ones", more)
            wishes += slower
        places = {(x.name, bits): n for n, (x, bits) in enumerate(product(sweep.boards, quantized))}
        seen = set()
        for wish, found in sorted(
            zip(wishes, plans, strict=True),
            key=lambda pair: (places[pair[0].board.name, pair[0].weight_bits], pair[0].slowness),
        ):
            text = json.dumps([wish.board.name, wish.weight_bits, found.value], sort_keys=True)
            if text not in seen:
                seen.add(text)
                bits = wish.weight_bits
                self._add(wish, quantized[bits], found, qualities[bits])

    def _clock(self, board: Board) -> float:
        return self.sweep.clock_mhz or board.clock_mhz

    def _plan_job(self, quantized: Mapping[int, Outcome], wish: _Wish) -> Job:
        arch, board, given = self.sweep.arch, wish.board, quantized[wish.weight_bits]
        clock, rate = self._clock(board), wish.target_fps
        return Job(
            "plan", digest(given.value["hash"], arch, repr((board, clock, rate))),
            jobs.plan_board, lambda: (given.files[jobs.FIXED], arch, board, clock, rate),
        )  # fmt: skip

    def _add(self, wish: _Wish, quantized: Outcome, planned: Outcome, scored: Outcome) -> None:
        board, device = wish.board, wish.board.device
        point = Point(
            number=len(self.designs) + 1, board=board.name, device=device.name,
            weight_bits=wish.weight_bits, target_fps=wish.target_fps,
            clock_mhz=self._clock(board), build="",
            available={kind: getattr(device, kind) for kind in KINDS},
            quality=jobs.quality(scored.value), **planned.value,
        )  # fmt: skip
        point.build = self.sweep.build(point)
        self.designs.append(_Design(point, board, quantized, planned))

    def _near(self, margin: float, designs: Sequence[_Design]) -> list[_Design]:
        """Return the designs that may be on the front."""
        left = [design for design in designs if not design.point.refusal]
        near = near_front([design.point for design in left], margin)
        return [design for design in left if design.point in near]

    def _map(self, designs: Sequence[_Design]) -> None:
        wanted = [
            Job(
                "map",
                digest(design.quantized.value["hash"], design.planned.files[jobs.PLAN],
                       repr(design.board), *_tools(design.board), version("amaranth")),
                jobs.map_board,
                partial(_joined, _files(design.quantized, jobs.FIXED),
                        _files(design.planned, jobs.PLAN), (design.board,)),
            )
            for design in designs
        ]  # fmt: skip
        for design, found in zip(designs, self._run("synthesizing", wanted), strict=True):
            design.mapped = found
            for name, value in found.value.items():
                setattr(design.point, name, value)

    def _place(self, designs: Sequence[_Design]) -> None:
        seeds = range(1, self.sweep.seeds + 1)
        wanted = []
        for design in designs:
            assert design.mapped is not None
            files = _files(design.mapped, jobs.NETLIST, jobs.CONSTRAINTS)
            clock = design.point.clock_mhz
            key = digest(*files, repr((design.board, clock)),
                         *_tools(design.board))  # fmt: skip
            wanted += [
                Job("place", digest(key, str(seed)), jobs.place_board,
                    partial(_joined, files, (design.board, clock, seed)))
                for seed in seeds
            ]  # fmt: skip
        found = self._run("placing", wanted)
        for number, design in enumerate(designs):
            own = found[number * len(seeds) : (number + 1) * len(seeds)]
            by_seed = {str(seed): x.value for seed, x in zip(seeds, own, strict=True)}
            clocks = {seed: x["fmax_mhz"] for seed, x in by_seed.items() if "fmax_mhz" in x}
            reasons = {seed: x for seed, x in by_seed.items() if "refusal" in x}
            design.point.placed = Placed(
                clocks, {seed: x["refusal"] for seed, x in reasons.items()}
            )
            if clocks:
                fastest = max(clocks, key=lambda seed: clocks[seed])
                design.point.mapped = by_seed[fastest]["mapped"]
            else:
                first = next(iter(reasons.values()))
                design.point.refusal, design.point.remedy = first["refusal"], first["remedy"]

    def _write(self) -> None:
        """Write all facts about every point, and the front of the points that came farthest."""
        points = [design.point for design in self.designs]
        alive = [point for point in points if not point.refusal]
        for stage in reversed(STAGES):
            if farthest := [point for point in alive if point.stage == stage]:
                break
        else:
            farthest = []
        best = front(farthest)
        for point in points:
            point.is_front = point in best
        lines = [json.dumps(point.to_json(), allow_nan=False) for point in points]
        folder = self.cache.folder
        write_atomic(folder / "points.jsonl", "".join(f"{line}\n" for line in lines))
        found = {
            "model": self.sweep.graph.name,
            "front": [point.to_json() for point in best],
        }
        write_atomic(folder / "front.json", json.dumps(found, indent=1, allow_nan=False) + "\n")


def _tools(board: Board) -> tuple[str, ...]:
    return tool_identities(board.device.family)


def _files(outcome: Outcome, *names: str) -> tuple[bytes, ...]:
    return tuple(outcome.files[name] for name in names)


def _joined(*parts: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(chain.from_iterable(parts))


def _rounded_down(rate: float) -> float:
    """Return a rate that is as good, of few digits."""
    step = 10.0 ** (math.floor(math.log10(rate)) - RATE_DIGITS)
    return float(f"{math.floor(rate / step) * step:.{RATE_DIGITS + 1}g}")
