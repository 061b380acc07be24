"""Whether a model is valid and can be built: the result of ``check``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nnef_hw.architecture.architecture import AnyArchitecture
from nnef_hw.architectures import ARCHITECTURES
from nnef_hw.errors import ErrorGroup, NnefHwError, SampleError, UnsupportedError, UsageError
from nnef_hw.frontend.formats import find_format
from nnef_hw.frontend.reading import AS_WRITTEN, Reading
from nnef_hw.ir import Graph, Node, Stage
from nnef_hw.passes import rewrite
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.quantize.calibration.source_quantization import unusable_formats
from nnef_hw.report.model.network import ModelCheck, Outlook

__all__ = ["check_file", "check_model", "check_refusals", "check_verdict"]


def check_file(
    path: Path,
    *,
    reading: Reading = AS_WRITTEN,
    stream: StreamTime | None = None,
    ask: Callable[[Graph], Sequence[Outlook]] = lambda graph: (),
) -> ModelCheck:
    """Say of a file whether its model is valid, and whether it can be built.

    Validity is unknown (None) if a model uses features that cannot be read yet.

    Parameters
    ----------
    reading
        How to read the model.
    stream
        How it runs step by step, if it is to.
    ask
        Tells what boards would make of a model without problems.

    Raises
    ------
    UsageError
        If there is no such file, or no axis of time in it.
    """
    is_valid: bool | None
    able = dict.fromkeys((architecture.name for architecture in ARCHITECTURES), False)
    refusals: dict[str, tuple[str, ...]] = {}
    boards: Sequence[Outlook] = ()
    try:
        graph = reading.load(path)
    except UsageError:
        raise
    except NnefHwError as error:
        problems = list(error.errors) if isinstance(error, ErrorGroup) else [error]
        name = path.resolve().name
        is_valid = None if all(isinstance(e, UnsupportedError) for e in problems) else False
    else:
        found = {one.name: check_model(graph, one, stream) for one in ARCHITECTURES}
        able = {name: not errors for name, errors in found.items()}
        refusals = {name: tuple(map(str, errors)) for name, errors in found.items() if errors}
        problems = [] if any(able.values()) else found[ARCHITECTURES[0].name]
        name = graph.name
        is_valid = True
        boards = () if problems else ask(graph)
    return ModelCheck(
        model=name,
        valid=is_valid,
        architectures=able,
        problems=tuple(map(str, problems)),
        refusals=refusals,
        boards=tuple(boards),
    )


def check_refusals(result: ModelCheck) -> Iterator[str]:
    """Say in a line each why a model that can be built cannot be with an architecture."""
    if not result.problems:
        for name, errors in result.refusals.items():
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            yield f"not with --arch {name}: {errors[0].splitlines()[0]}{more}"


def check_verdict(path: Path, result: ModelCheck) -> str:
    """Sum up what :func:`check_file` found in a line."""
    validity = "cannot be read"
    if result.valid is not None:
        validity = f"{'' if result.valid else 'not '}valid {find_format(path).name}"
    count = len(result.problems)
    names = ", ".join(name for name, is_able in result.architectures.items() if is_able)
    verdict = f"{count} problem{'s' * (count > 1)}" if count else f"can be built ({names})"
    return f"{result.model}: {validity}; {verdict}"


def check_model(
    graph: Graph, architecture: AnyArchitecture, stream: StreamTime | None = None
) -> list[NnefHwError]:
    """Return every reason why a valid model cannot be built so; none if it can.

    Raises
    ------
    UsageError
        If it is to run step by step, and no axis can be that of time.
    """
    errors: list[NnefHwError] = []
    if graph.stage == Stage.FLOAT:
        graph, errors = rewrite(graph)
        errors += unusable_formats(graph)
    if stream is not None and not errors:
        try:
            graph = stream.of_model(_canonical(graph))
        except (UnsupportedError, ErrorGroup) as error:
            return list(error.errors) if isinstance(error, ErrorGroup) else [error]
    # A layer that is refused already need not be told what else it lacks.
    named = {_subject(error) for error in errors}
    places = {node.location for node in graph.nodes if errors and not _is_real(graph, node)}
    more = [error for error in architecture.problems(graph) if error.location not in places]
    if not errors and not more and stream is None:
        more = _problems_of_integers(graph, architecture)
    return errors + [error for error in more if _subject(error) not in named]


def _problems_of_integers(graph: Graph, architecture: AnyArchitecture) -> list[NnefHwError]:
    """Return problems that only integers show, of a model whose author chose every format."""
    if graph.stage == Stage.FIXED or any(not graph.tensor(name).quant for name in graph.inputs):
        return []
    try:
        fixed = quantize(_canonical(graph), None)
    except SampleError:
        return []
    except NnefHwError as error:
        return list(error.errors) if isinstance(error, ErrorGroup) else [error]
    return architecture.problems(fixed)


def _is_real(graph: Graph, node: Node) -> bool:
    """Whether all that a node reads and computes are real numbers of one sample."""
    tensors = [graph.tensor(name) for name in (*node.inputs, *node.outputs)]
    return all(x.dtype == "scalar" and (x.data is not None or x.shape[:1] == (1,)) for x in tensors)


def _canonical(graph: Graph) -> Graph:
    return graph if graph.stage == Stage.FIXED else graph.replaced(stage=Stage.CANONICAL)


def _subject(error: NnefHwError) -> str:
    """Return the layer or port that an error begins with."""
    return error.reason.split(": ")[0].split(" has ")[0]
