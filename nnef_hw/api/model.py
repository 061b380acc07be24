"""A network as its file has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from rich.console import RenderableType
from rich.text import Text

from nnef_hw.api.fixed import FixedModel
from nnef_hw.api.show import Shown
from nnef_hw.api.sources import as_file
from nnef_hw.architectures import ARCHITECTURES, AUTO
from nnef_hw.boards import BOARDS, find_board
from nnef_hw.build.fixed import device_budget, fix_model
from nnef_hw.build.options import check_wishes
from nnef_hw.build.survey import Outlook, roughly_fixed, survey
from nnef_hw.errors import UsageError
from nnef_hw.frontend import load as load_file
from nnef_hw.frontend import save
from nnef_hw.frontend.named_states import NamedStates
from nnef_hw.ir import Graph, Stage
from nnef_hw.quantize import Budget, Scheme
from nnef_hw.reference import run_float
from nnef_hw.report.models import check_model, inspect_model, inspection
from nnef_hw.report.progress import progress_bar
from nnef_hw.report.survey import survey_tables
from nnef_hw.samples import Given, take_samples
from nnef_hw.workers import processes_for

__all__ = ["Check", "Model", "Survey", "load"]


UNNAMED = {"main_graph", "model"}
"""What exporters call a network that has no name."""


@dataclass(frozen=True, repr=False)
class Check(Shown):
    """Whether a model can be built; true if it can.

    Parameters
    ----------
    model
        Its name.
    architectures
        Of every architecture, whether it has hardware for the model.
    problems
        Why none of them has; each with its place in the model and what helps.
    """

    model: str
    architectures: Mapping[str, bool]
    problems: Sequence[str]

    def __bool__(self) -> bool:
        return not self.problems

    def _parts(self) -> Iterator[RenderableType]:
        able = ", ".join(name for name, is_able in self.architectures.items() if is_able)
        yield Text(f"{self.model}: " + (f"can be built ({able})" if self else "cannot be built"))
        for problem in self.problems:
            yield Text(f"  {problem}")


@dataclass(frozen=True, repr=False)
class Survey(Shown):
    """What boards would make of a model, in the order they were asked.

    Parameters
    ----------
    outlooks
        One for each: ``board``, ``fits``, ``cycles_per_inference``, ``refusal``, ...
    """

    outlooks: Sequence[Outlook]

    @property
    def fitting(self) -> list[Outlook]:
        """Those that it fits, the fastest first."""
        found = [outlook for outlook in self.outlooks if outlook.fits]
        return sorted(found, key=lambda outlook: -(outlook.inferences_per_second or 0))

    def __getitem__(self, board: str) -> Outlook:
        """Return that of a board.

        Raises
        ------
        KeyError
            If it was not asked.
        """
        for outlook in self.outlooks:
            if outlook.board == board:
                return outlook
        raise KeyError(board)

    def _parts(self) -> Iterator[RenderableType]:
        yield from survey_tables(self.outlooks)


class Model(Shown):
    """A network of real numbers, or one that its author quantized; :func:`load` makes it.

    Parameters
    ----------
    graph
        The network.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def name(self) -> str:
        """Its name."""
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
    def description(self) -> dict[str, Any]:
        """What ``nnef-hw inspect --json`` says of it: layers, shapes, parameters, MACs."""
        return inspect_model(self.graph)

    def check(self) -> Check:
        """Say whether it can be built, and if not, every reason why."""
        found = {one.name: check_model(self.graph, one) for one in ARCHITECTURES}
        able = {name: not errors for name, errors in found.items()}
        problems = [] if any(able.values()) else found[ARCHITECTURES[0].name]
        return Check(self.name, able, [str(problem) for problem in problems])

    def run(self, inputs: Given) -> dict[str, NDArray[Any]]:
        """Compute in real numbers.

        Parameters
        ----------
        inputs
            Samples [N, ...] of the only input, arrays by the names of several, or a sample file;
            of a network with states sequences [N, T, ...].

        Returns
        -------
        dict
            Outputs [N, ...] by name.

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
        outputs: dict[str, NDArray[Any]] = {}
        outputs.update(run_float(self.graph, take_samples(inputs, self.graph).inputs))
        return outputs

    def quantize(
        self,
        samples: Given | None = None,
        *,
        scheme: Scheme | None = None,
        accuracy_drop: float | None = None,
        board: str | None = None,
        **options: Any,
    ) -> FixedModel:
        """Choose formats and round weights: the integers that the hardware computes.

        Parameters
        ----------
        samples
            Representative inputs, perhaps with labels; see :func:`~nnef_hw.samples.take_samples`.
            A fifth of them, 200 at most, calibrates, the others score. A model that its author
            quantized needs none.
        scheme
            Widths, and how ranges are found; see :class:`~nnef_hw.quantize.Scheme`.
        accuracy_drop
            Search the cheapest widths of weights that lose no more points of 100.
        board
            Board whose memory and multipliers the search saves.
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
            fixed, canonical = fix_model(
                self.graph, taken, wanted, budget=budget, progress=progress
            )
        return FixedModel(fixed, graph=self.graph, canonical=canonical, samples=taken)

    def plan(
        self,
        boards: str | Sequence[str] = (),
        samples: Given | None = None,
        *,
        arch: str = AUTO,
        clock_mhz: float | None = None,
        target_fps: float | None = None,
        **options: Any,
    ) -> Survey:
        """Say what boards would make of it, before anything is built.

        Parameters
        ----------
        boards
            A name or names; all that are known by default.
        samples
            As for :meth:`quantize`. Without them LUTs are a few in a hundred less exact; cycles,
            multipliers and block RAMs are those of a build.
        arch, clock_mhz, target_fps
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
        names = [boards] if isinstance(boards, str) else boards
        targets = [find_board(name) for name in names] or BOARDS
        taken = None if samples is None else take_samples(samples, self.graph)
        fixed = roughly_fixed(self.graph, taken, _scheme(Scheme(), options))
        with processes_for(len(targets)) as pool:
            found = survey(
                fixed, targets, arch=arch, clock_mhz=clock_mhz, target_fps=target_fps, pool=pool
            )
            return Survey(list(found))

    def save(self, path: Path | str) -> None:
        """Write it as NNEF: ``NAME.nnef.tgz``, ``NAME.nnef.tar`` or a folder.

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


def _scheme(scheme: Scheme, options: Mapping[str, Any]) -> Scheme:
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
        return replace(scheme, **options)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("Scheme ")) from error


def load(
    source: Any,
    *,
    example: Any = None,
    dims: Mapping[str, int] | None = None,
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
    states: NamedStates | None = None,
    lenient: bool = False,
) -> Model:
    """Read a model.

    Parameters
    ----------
    source
        A file or folder (NNEF, ONNX, TensorFlow Lite), the bytes of such a file, an
        ``onnx.ModelProto``, a ``torch.nn.Module`` with an ``example``, or a Keras model.
    example
        Inputs with which a module of PyTorch can be run: a tensor, or a tuple of them. Its batch
        extent becomes the model's, so it is usually 1.
    dims, outputs, bind, states, lenient
        See :func:`nnef_hw.frontend.load`.

    Raises
    ------
    UsageError
        If there is no such file or value, or the source is no model.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """

    def read(path: Path) -> Graph:
        return load_file(
            path, dims=dims, lenient=lenient, outputs=outputs, bind=bind, states=states
        )

    if isinstance(source, str | Path):
        return Model(read(Path(source)))
    graph = as_file(source, example, read)
    if graph.name in UNNAMED:
        graph = replace(graph, name=type(source).__name__)
    return Model(graph)
