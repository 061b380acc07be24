"""A network as its file has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from rich.console import RenderableType

from nnef_hw.api.exploration import Exploration
from nnef_hw.api.fixed import FixedModel
from nnef_hw.api.show import Shown
from nnef_hw.api.survey import Check, Survey
from nnef_hw.architectures import ARCHITECTURES, AUTO
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import Fields
from nnef_hw.boards import BOARDS, Board, find_board, find_boards
from nnef_hw.errors import UsageError
from nnef_hw.explore import STAGES, Point, Sweep, explore
from nnef_hw.flow.choice import Goal
from nnef_hw.flow.fixed import buildable, device_budget, doubts, judge_model
from nnef_hw.flow.options import check_goal, check_wishes
from nnef_hw.flow.survey import outlooks
from nnef_hw.frontend import save
from nnef_hw.ir import Graph, Stage
from nnef_hw.ir.batch import join_batch, join_steps
from nnef_hw.quantize import Budget, Scheme
from nnef_hw.quantize.judgement.warnings import announce
from nnef_hw.reference import run_float
from nnef_hw.report.check import check_model
from nnef_hw.report.inspection import inspect_model, inspection
from nnef_hw.report.model.network import ModelDescription
from nnef_hw.report.pages.exploration import write_exploration
from nnef_hw.report.progress import progress_bar
from nnef_hw.samples.samples import Given, take_samples
from nnef_hw.system.workers import Pool, Processes

__all__ = ["Model"]


class Model(Shown):
    """A network of real numbers, or one that its author quantized; :func:`nnef_hw.load` makes it.

    Parameters
    ----------
    graph
        The network.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.graph.name

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Shape of every input, with its batch extent."""
        return {name: tuple(self.graph.tensor(name).shape) for name in self.graph.inputs}

    @property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Shape of every output, with its batch extent."""
        return {name: tuple(self.graph.tensor(name).shape) for name in self.graph.outputs}

    @cached_property
    def description(self) -> ModelDescription:
        """Layers, shapes, parameters and MACs of the network, as ``nnef-hw inspect`` shows them."""
        return inspect_model(self.graph)

    def check(self, boards: str | Sequence[str] = ()) -> Check:
        """Say whether the model can be built, and if not, every reason why.

        Parameters
        ----------
        boards
            A name or names, or ``all``: say of each, too, whether it fits, and why not.

        Raises
        ------
        UsageError
            If there is no such board.
        """
        targets = _targets(boards)
        found = {one.name: check_model(self.graph, one) for one in ARCHITECTURES}
        able = {name: not errors for name, errors in found.items()}
        problems = [] if any(able.values()) else found[ARCHITECTURES[0].name]
        rows = outlooks(self.graph, targets) if targets and not problems else []
        return Check(self.name, able, [str(problem) for problem in problems], rows)

    def run(self, inputs: Given) -> dict[str, Array]:
        """Compute in real numbers.

        Parameters
        ----------
        inputs
            Samples [N, ...] of the only input, arrays by the names of several, or a sample file;
            of a network with states sequences [N, T, ...].

        Returns
        -------
        dict
            Outputs [N, ...] by name, without a batch extent of 1, as those of
            :meth:`FixedModel.run`.

        Raises
        ------
        SampleError
            If an input is missing, or its shape or its numbers do not fit.
        UsageError
            If the model has integers only.
        """
        if self.graph.stage == Stage.FIXED:
            raise UsageError(
                f"model {self.name!r} holds only integers", remedy="quantize() it, and run that"
            )
        outputs: dict[str, Array] = {}
        taken = take_samples(inputs, self.graph).inputs
        join = join_steps if self.graph.is_sequential else join_batch
        for name, y in run_float(self.graph, taken).items():
            outputs[name] = join(y, self.graph.tensor(name).shape)
        return outputs

    def quantize(
        self,
        samples: Given | None = None,
        *,
        scheme: Scheme | None = None,
        accuracy_drop: float | None = None,
        board: str | None = None,
        advice: bool = True,
        **options: object,
    ) -> FixedModel:
        """Choose formats and round weights: the integers that the hardware computes.

        Parameters
        ----------
        samples
            Representative inputs, perhaps with labels; see
            :func:`~nnef_hw.samples.samples.take_samples`. A fifth of them, 200 at most, calibrates,
            or about 50 of fewer than 250; the others score. Fewer than 50 do both. A model that its
            author quantized needs none.
        scheme
            Widths, and how ranges are found; see :class:`~nnef_hw.quantize.Scheme`.
        accuracy_drop
            Search the cheapest widths of weights that lose no more points of 100.
        board
            Board whose memory and multipliers the search saves.
        advice
            Try other schemes if this one loses too much, for half a minute at most: what helps is
            said in :attr:`FixedModel.warnings`.
        **options
            Fields of the scheme, such as ``weight_bits=4``.

        Raises
        ------
        SampleError
            If samples are needed, or do not fit the model.
        UnsupportedError, ErrorGroup
            If the model has layers that cannot be built.
        UsageError
            If options make no sense.
        """
        wanted = _scheme(scheme or Scheme(), options)
        budget = None
        if accuracy_drop is not None:
            budget = Budget(accuracy_drop)
            if board is not None:
                budget = device_budget(accuracy_drop, find_board(board).device)
        elif board is not None:
            raise UsageError("board is for a search", remedy="give accuracy_drop, too")
        taken = None if samples is None else take_samples(samples, self.graph)
        with progress_bar() as progress:
            made = judge_model(
                self.graph,
                taken,
                wanted,
                budget=budget,
                progress=progress,
                advises=advice,
                check=buildable,
            )
        announce(made.warnings)
        return FixedModel(
            made.fixed, graph=self.graph, canonical=made.canonical, samples=taken,
            warnings=made.warnings,
        )  # fmt: skip

    def plan(
        self,
        boards: str | Sequence[str] = (),
        samples: Given | None = None,
        *,
        arch: str = AUTO,
        clock_mhz: float | None = None,
        target_fps: float | None = None,
        goal: Goal = "rate",
        **options: object,
    ) -> Survey:
        """Plan the model for boards: cycles, rates and resources, before anything is built.

        Parameters
        ----------
        boards
            A name or names; all that are known by default.
        samples
            As for :meth:`quantize`. Without them LUTs are a few in a hundred less exact; cycles,
            multipliers and block RAMs are those of a build.
        arch, clock_mhz, target_fps, goal
            See :meth:`FixedModel.schedule`.
        **options
            Fields of the quantization's scheme, such as ``weight_bits=4``.

        Raises
        ------
        UsageError
            If there is no such board, architecture or option.
        UnsupportedError, ErrorGroup
            If the model has layers that cannot be built, on whatever board.
        """
        check_wishes(arch, {"clock_mhz": clock_mhz, "target_fps": target_fps})
        check_goal(goal, {"target_fps": target_fps})
        targets = _targets(boards) or BOARDS
        taken = None if samples is None else take_samples(samples, self.graph)
        announce(doubts(self.graph, taken))
        found = outlooks(
            self.graph, targets, taken, _scheme(Scheme(), options),
            arch=arch, clock_mhz=clock_mhz, target_fps=target_fps, goal=goal,
        )  # fmt: skip
        return Survey(found, goal)

    def explore(
        self,
        samples: Given | None,
        boards: str | Sequence[str],
        *,
        weight_bits: Sequence[int] = (8,),
        target_fps: Sequence[float] = (),
        arch: str = AUTO,
        clock_mhz: float | None = None,
        seeds: int = 1,
        until: str = STAGES[-1],
        out: Path | str | None = None,
        pool: Pool | None = None,
        **options: object,
    ) -> Exploration:
        """Compare designs: boards, widths of weights, speeds.

        All are planned and scored, without synthesis; those that may be on the front of their
        board are synthesized, and those that still may be are placed. What the folder holds already
        is not computed again.

        Parameters
        ----------
        samples
            As for :meth:`quantize`.
        boards
            A name or names.
        weight_bits
            Widths, 1..8, each with each board.
        target_fps
            Rates for which the smallest designs are taken; without any the fastest design, and the
            smallest ones with its rate, a half, a quarter and an eighth of it.
        arch, clock_mhz
            See :meth:`FixedModel.schedule`.
        seeds
            Placements of each design.
        until
            ``planned``, ``mapped`` or ``placed``.
        out
            The sweep's folder, by default ``explore/NAME``.
        pool
            What runs the jobs: any object with ``submit(function, *arguments)`` that gives
            something with ``done()`` and ``result()``, such as a ``distributed.Client``. By default
            processes of this machine.
        **options
            Fields of the quantization's scheme, such as ``calibration="percentile"``.

        Raises
        ------
        UsageError, SampleError, TargetError
            If options, samples or clocks make no sense.
        UnsupportedError, ErrorGroup
            If the model has layers that cannot be built, on whatever board.
        ToolError
            If a tool is missing, or fails.
        """

        def call(point: Point) -> str:
            wish = "" if point.target_fps is None else f", target_fps={point.target_fps:.15g}"
            given = {"weight_bits": point.weight_bits, **options}
            said = ", ".join(f"{name}={value!r}" for name, value in given.items())
            return (
                f"model.quantize(samples, {said}).schedule({point.board!r}, arch={arch!r}, "
                f"clock_mhz={point.clock_mhz:.15g}{wish}).build(seeds={seeds})"
            )

        taken = None if samples is None else take_samples(samples, self.graph)
        warnings = doubts(self.graph, taken)
        announce(warnings)
        sweep = Sweep(
            graph=self.graph,
            samples=taken,
            boards=_targets(boards),
            weight_bits=weight_bits,
            target_fps=target_fps,
            arch=arch,
            clock_mhz=clock_mhz,
            scheme=_scheme(Scheme(), options),
            seeds=seeds,
            until=until,
            build=call,
        )
        folder = Path("explore") / self.name if out is None else Path(out)
        running: AbstractContextManager[Pool] = Processes() if pool is None else nullcontext(pool)
        with running as workers, progress_bar() as progress:
            points = explore(sweep, folder, workers, progress or (lambda what, done, total: None))
        found = Exploration(self.name, folder, points, tuple(warnings))
        write_exploration(found.explored, folder / "index.html")
        return found

    def save(self, path: Path | str) -> None:
        """Write the model as NNEF: ``NAME.nnef.tgz``, ``NAME.nnef.tar`` or a folder.

        Raises
        ------
        UsageError
            If it cannot be written there.
        UnsupportedError, ErrorGroup
            If NNEF cannot express it.
        """
        save(self.graph, path)

    def _parts(self) -> Iterator[RenderableType]:
        yield from inspection(self.description)


def _targets(boards: str | Sequence[str]) -> list[Board]:
    """Return the boards of a name or names."""
    return list(find_boards([boards] if isinstance(boards, str) else boards).values())


def _scheme(scheme: Scheme, options: Mapping[str, object]) -> Scheme:
    """Return a scheme with other values of some fields."""
    known = [field.name for field in fields(Scheme)]
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f"did you mean {close[0]!r}? " if close else ""
            raise UsageError(
                f"quantization has no option {name!r}",
                remedy=f"{meant}choose of {', '.join(known)}",
            )
    try:
        return replace(scheme, **Fields(options))
    except ValueError as error:
        raise UsageError(str(error).removeprefix("Scheme ")) from error
