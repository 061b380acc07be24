"""Descriptions of a model: the results of ``check`` and ``inspect``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from nnef_hw.architecture.architecture import Architecture
from nnef_hw.architectures import ARCHITECTURES
from nnef_hw.errors import ErrorGroup, NnefHwError, SampleError, UnsupportedError, UsageError
from nnef_hw.frontend import detect_format, load
from nnef_hw.frontend.formats import find_format
from nnef_hw.frontend.named_states import NamedStates
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.ir import Graph, Node, Stage, Tensor, Trait
from nnef_hw.passes import rewrite, simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import quantize
from nnef_hw.quantize.calibration.source_quantization import unusable_formats
from nnef_hw.run.artifacts import BuildFolder

__all__ = [
    "check_file",
    "check_model",
    "check_refusals",
    "check_verdict",
    "inspect_build",
    "inspect_file",
    "inspect_model",
    "inspection",
    "print_inspection",
    "print_program",
]


def check_file(
    path: Path,
    *,
    dims: Mapping[str, int] | None = None,
    lenient: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
    states: NamedStates | None = None,
    stream: StreamTime | None = None,
    ask: Callable[[Graph], list[dict[str, Any]]] = lambda graph: [],
) -> dict[str, Any]:
    """Return what ``check --json`` prints: whether the model is valid and can be built.

    Validity is unknown (None) if a model uses features that cannot be read yet.

    Parameters
    ----------
    dims, lenient, inputs, outputs, bind, states
        How to read the model, see :func:`nnef_hw.frontend.load`.
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
    refusals: dict[str, list[str]] = {}
    boards: list[dict[str, Any]] = []
    try:
        graph = load(
            path,
            dims=dims,
            lenient=lenient,
            inputs=inputs,
            outputs=outputs,
            bind=bind,
            states=states,
        )
    except UsageError:
        raise
    except NnefHwError as error:
        problems = list(error.errors) if isinstance(error, ErrorGroup) else [error]
        name = path.resolve().name
        is_valid = None if all(isinstance(e, UnsupportedError) for e in problems) else False
    else:
        found = {one.name: check_model(graph, one, stream) for one in ARCHITECTURES}
        able = {name: not errors for name, errors in found.items()}
        refusals = {name: list(map(str, errors)) for name, errors in found.items() if errors}
        problems = [] if any(able.values()) else found[ARCHITECTURES[0].name]
        name = graph.name
        is_valid = True
        boards = [] if problems else ask(graph)
    return {
        "model": name,
        "valid": is_valid,
        "architectures": able,
        "problems": [str(problem) for problem in problems],
        "refusals": refusals,
        "boards": boards,
    }


def check_refusals(result: Mapping[str, Any]) -> Iterator[str]:
    """Say in a line each why a model that can be built cannot be with an architecture."""
    if not result["problems"]:
        for name, errors in result["refusals"].items():
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            yield f"not with --arch {name}: {errors[0].splitlines()[0]}{more}"


def check_verdict(path: Path, result: Mapping[str, Any]) -> str:
    """Sum up what :func:`check_file` found in a line."""
    validity = "cannot be read"
    if result["valid"] is not None:
        validity = f"{'' if result['valid'] else 'not '}valid {find_format(path).name}"
    count = len(result["problems"])
    names = ", ".join(name for name, is_able in result["architectures"].items() if is_able)
    verdict = f"{count} problem{'s' * (count > 1)}" if count else f"can be built ({names})"
    return f"{result['model']}: {validity}; {verdict}"


def check_model(
    graph: Graph, architecture: Architecture[Any], stream: StreamTime | None = None
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


def _problems_of_integers(graph: Graph, architecture: Architecture[Any]) -> list[NnefHwError]:
    """Return what only integers show: those of a model whose author chose every format."""
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


def inspect_file(
    path: Path,
    *,
    dims: Mapping[str, int] | None = None,
    lenient: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
    states: NamedStates | None = None,
    stream: StreamTime | None = None,
) -> dict[str, Any]:
    """Return what ``inspect --json`` prints: the format of a file and the model in it.

    Parameters
    ----------
    dims, lenient, inputs, outputs, bind, states
        How to read the model, see :func:`nnef_hw.frontend.load`.
    stream
        How it runs step by step, if it is to: then its layers are those of a step.
    """
    graph = load(
        path,
        dims=dims,
        lenient=lenient,
        inputs=inputs,
        outputs=outputs,
        bind=bind,
        states=states,
    )
    described = {"format": detect_format(path, lenient=lenient), **inspect_model(graph)}
    rounding = find_format(path).rounding
    described["rounding"] = rounding if described["quantized"] else ""
    if stream is None:
        return described
    step = stream.of_model(simplify(graph) if graph.stage == Stage.FLOAT else graph)
    return {
        **described,
        **{key: value for key, value in inspect_model(step).items() if key != "quantized"},
        "stream": {
            "rows": {name: found.rows for name, found in step.rows.items()},
            "window_rows": {
                name: graph.tensor(name).shape[found.axis] + found.front
                for name, found in step.rows.items()
            },
            "window_macs": described["macs"],
        },
    }


def inspect_build(folder: BuildFolder) -> dict[str, Any]:
    """Return what ``inspect --json`` prints of a build: what runs the network, in its order."""
    plan = folder.plan
    return {
        "model": plan.model, "board": plan.board, "device": plan.device, "arch": plan.arch,
        "clock_mhz": plan.clock_mhz, "multipliers": plan.multipliers,
        "cycles_per_inference": plan.interval, "latency_cycles": plan.latency,
        "program": folder.architecture.program(plan),
    }  # fmt: skip


def print_program(description: dict[str, Any], console: Console) -> None:
    """Print what :func:`inspect_build` found as a table."""
    console.print(
        f"{description['model']} on {description['board']} ({description['device']}), "
        f"{description['arch']}: {description['multipliers']:,} multipliers, "
        f"{description['cycles_per_inference']:,} cycles per inference",
        highlight=False,
    )
    rows = description["program"]
    table = Table(box=None, pad_edge=False)
    numbers = [key for key in rows[0] if not any(isinstance(row[key], str) for row in rows)]
    for key in rows[0]:
        table.add_column(key, justify="right" if key in numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*("" if x is None else x if isinstance(x, str) else f"{x:,}"
                        for x in row.values()))  # fmt: skip
    console.print(table)


def inspect_model(graph: Graph) -> dict[str, Any]:
    """Describe a model: its interface, what it keeps and how it is quantized, and its layers."""
    layers = [_layer(graph, node) for node in graph.nodes]
    standard = standard_operators()
    return {
        "model": graph.name,
        "stage": str(graph.stage),
        "inputs": {name: list(graph.tensor(name).shape) for name in graph.inputs},
        "outputs": {name: list(graph.tensor(name).shape) for name in graph.outputs},
        "parameters": _parameters(graph),
        "macs": sum(layer["macs"] for layer in layers),
        "states": {name: list(graph.tensor(name).shape) for name in graph.states},
        "quantized": {
            name: tensor.quant.op for name, tensor in graph.tensors.items() if tensor.quant
        },
        "extended_operators": sorted({node.op for node in graph.nodes} - set(standard)),
        "layers": layers,
    }


def print_inspection(description: Mapping[str, Any], console: Console) -> None:
    """Print the description as a table."""
    for part in inspection(description):
        console.print(part)


def inspection(description: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield what shows a description: a title, remarks, a table of layers."""
    shapes = [
        f"{name} {shape}"
        for key in ("inputs", "outputs")
        for name, shape in description[key].items()
    ]
    kind = ", ".join(filter(None, (description.get("format"), description["stage"])))
    yield Text(f"{description['model']} ({kind}): {' -> '.join(shapes)}")
    for title, text in _remarks(description):
        yield Text(f"{title}: {text}")
    table = Table(box=None, pad_edge=False)
    for heading in ("layer", "op", "shape"):
        table.add_column(heading, no_wrap=True)
    for heading in ("parameters", "MACs"):
        table.add_column(heading, justify="right")
    for layer in description["layers"]:
        shape = "x".join(map(str, layer["shape"]))
        table.add_row(
            layer["name"], layer["op"], shape, f"{layer['parameters']:,}", f"{layer['macs']:,}"
        )
    table.add_section()
    total = (f"{description['parameters']:,}", f"{description['macs']:,}")
    table.add_row("total", "", "", *total)
    yield table


def _remarks(description: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if description["states"]:
        yield (
            "states",
            ", ".join(f"{name} {shape}" for name, shape in description["states"].items()),
        )
    if "stream" in description:
        stream = description["stream"]
        rows = ", ".join(f"{name} {count}" for name, count in stream["rows"].items())
        yield (
            "step",
            f"rows of {rows}; {description['macs']:,} MACs, {stream['window_macs']:,} of a window",
        )
    if description["quantized"]:
        ops = ", ".join(sorted(set(description["quantized"].values())))
        count = len(description["quantized"])
        yield "quantized", f"{count} tensor{'s' * (count > 1)} ({ops})"
    if description.get("rounding"):
        yield "rounding", description["rounding"]
    if description["extended_operators"]:
        yield "not in NNEF 1.0.5", ", ".join(description["extended_operators"])


def _parameters(graph: Graph) -> int:
    own = sum(tensor.volume for tensor in graph.tensors.values() if _is_parameter(tensor))
    return own + sum(_parameters(node.attrs["body"]) for node in graph.nodes if node.op == "scan")


def _layer(graph: Graph, node: Node) -> dict[str, Any]:
    tensors = [graph.tensor(name) for name in node.inputs]
    parameters = sum(tensor.volume for tensor in tensors if _is_parameter(tensor))
    if node.op == "scan":
        parameters += _parameters(node.attrs["body"])
    return {
        "name": node.name,
        "op": node.op,
        "shape": list(graph.tensor(node.outputs[0]).shape),
        "parameters": parameters,
        "macs": graph.steps(node.name) * _macs(graph, node),
        "location": str(node.location) if node.location else None,
    }


def _is_parameter(tensor: Tensor) -> bool:
    """Whether a tensor is a variable, or what was computed of variables: several real constants."""
    is_computed = tensor.data is not None and tensor.dtype == "scalar" and tensor.volume > 1
    return tensor.label is not None or is_computed


def _macs(graph: Graph, node: Node) -> int:
    """Output elements x elements of a filter, padding included; other operators count none.

    A loop counts its body once for each iteration.
    """
    output = graph.tensor(node.outputs[0]).volume
    if node.has(Trait.WEIGHTS):
        shape = graph.tensor(node.inputs[1]).shape
        # a linear layer's filter may have axes of batches in front
        return output * prod(shape[1:] if node.has(Trait.WINDOW) else shape[-1:])
    if node.op == "deconv":
        return graph.tensor(node.inputs[0]).volume * prod(graph.tensor(node.inputs[1]).shape[1:])
    if node.has(Trait.CONTRACTS):
        return output * graph.tensor(node.inputs[0]).shape[1]
    if node.op == "matmul":
        first = graph.tensor(node.inputs[0]).shape
        return output * first[-2 if node.attrs["transposeA"] else -1]
    if node.op == "scan":
        body: Graph = node.attrs["body"]
        axis, step = node.attrs["scans"][0]
        iterations: int = graph.tensor(node.inputs[0]).shape[axis] // abs(step)
        return iterations * sum(_macs(body, inner) for inner in body.nodes)
    return 0
