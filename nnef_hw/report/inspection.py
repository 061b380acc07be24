"""Descriptions of models and builds: the results of ``inspect``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from nnef_hw.frontend import detect_format
from nnef_hw.frontend.formats import find_format
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.frontend.reading import AS_WRITTEN, Reading
from nnef_hw.ir import Graph, Node, Stage, Tensor, Trait
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.report.model.network import (
    BuildProgram,
    LayerDescription,
    ModelDescription,
    StreamDescription,
)
from nnef_hw.run.artifacts import BuildFolder

__all__ = [
    "inspect_build",
    "inspect_file",
    "inspect_model",
    "inspection",
    "print_inspection",
    "print_program",
]


def inspect_file(
    path: Path,
    *,
    reading: Reading = AS_WRITTEN,
    stream: StreamTime | None = None,
) -> ModelDescription:
    """Describe a file: its format, and the model in it.

    Parameters
    ----------
    reading
        How to read the model.
    stream
        How it runs step by step, if it is to: then its layers are those of a step.
    """
    graph = reading.load(path)
    whole = inspect_model(graph)
    found = whole
    if stream is not None:
        step = stream.of_model(simplify(graph) if graph.stage == Stage.FLOAT else graph)
        found = replace(
            inspect_model(step),
            quantized=whole.quantized,
            stream=StreamDescription(
                rows={name: rows.rows for name, rows in step.rows.items()},
                window_rows={
                    name: graph.tensor(name).shape[rows.axis] + rows.front
                    for name, rows in step.rows.items()
                },
                window_macs=whole.macs,
            ),
        )
    return replace(
        found,
        format=detect_format(path, lenient=reading.lenient),
        rounding=find_format(path).rounding if whole.quantized else "",
    )


def inspect_build(folder: BuildFolder) -> BuildProgram:
    """Describe a build: the program that runs the network, in its order."""
    plan = folder.plan
    return BuildProgram(
        model=plan.model, board=plan.board, device=plan.device, arch=plan.arch,
        clock_mhz=plan.clock_mhz, multipliers=plan.multipliers,
        cycles_per_inference=plan.interval, latency_cycles=plan.latency,
        program=tuple(folder.architecture.program(plan)),
    )  # fmt: skip


def print_program(description: BuildProgram, console: Console) -> None:
    """Print the program of a build as a table."""
    console.print(
        f"{description.model} on {description.board} ({description.device}), "
        f"{description.arch}: {description.multipliers:,} multipliers, "
        f"{description.cycles_per_inference:,} cycles per inference",
        highlight=False,
    )
    rows = description.program
    table = Table(box=None, pad_edge=False)
    numbers = [key for key in rows[0] if not any(isinstance(row[key], str) for row in rows)]
    for key in rows[0]:
        table.add_column(key, justify="right" if key in numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*("" if x is None else x if isinstance(x, str) else f"{x:,}"
                        for x in row.values()))  # fmt: skip
    console.print(table)


def inspect_model(graph: Graph) -> ModelDescription:
    """Describe a model: its interface, what it keeps and how it is quantized, and its layers."""
    layers = tuple(_layer(graph, node) for node in graph.nodes)
    standard = standard_operators()
    return ModelDescription(
        model=graph.name,
        stage=str(graph.stage),
        inputs=_shapes(graph, graph.inputs),
        outputs=_shapes(graph, graph.outputs),
        parameters=_parameters(graph),
        macs=sum(layer.macs for layer in layers),
        states=_shapes(graph, graph.states),
        quantized={name: tensor.quant.op for name, tensor in graph.tensors.items() if tensor.quant},
        extended_operators=tuple(sorted({node.op for node in graph.nodes} - set(standard))),
        layers=layers,
    )


def _shapes(graph: Graph, names: Iterable[str]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(graph.tensor(name).shape) for name in names}


def print_inspection(description: ModelDescription, console: Console) -> None:
    """Print the description as a table."""
    for part in inspection(description):
        console.print(part)


def inspection(description: ModelDescription) -> Iterator[RenderableType]:
    """Yield the parts that show a description: a title, remarks, a table of layers."""
    ports = [
        f"{name} {list(shape)}"
        for shapes in (description.inputs, description.outputs)
        for name, shape in shapes.items()
    ]
    kind = ", ".join(str(each) for each in (description.format, description.stage) if each)
    yield Text(f"{description.model} ({kind}): {' -> '.join(ports)}")
    for title, text in _remarks(description):
        yield Text(f"{title}: {text}")
    table = Table(box=None, pad_edge=False)
    for heading in ("layer", "op", "shape"):
        table.add_column(heading, no_wrap=True)
    for heading in ("parameters", "MACs"):
        table.add_column(heading, justify="right")
    for layer in description.layers:
        shape = "x".join(map(str, layer.shape))
        table.add_row(layer.name, layer.op, shape, f"{layer.parameters:,}", f"{layer.macs:,}")
    table.add_section()
    total = (f"{description.parameters:,}", f"{description.macs:,}")
    table.add_row("total", "", "", *total)
    yield table


def _remarks(description: ModelDescription) -> Iterator[tuple[str, str]]:
    if description.states:
        shapes = (f"{name} {list(shape)}" for name, shape in description.states.items())
        yield "states", ", ".join(shapes)
    if stream := description.stream:
        rows = ", ".join(f"{name} {count}" for name, count in stream.rows.items())
        yield (
            "step",
            f"rows of {rows}; {description.macs:,} MACs, {stream.window_macs:,} of a window",
        )
    if description.quantized:
        ops = ", ".join(sorted(set(description.quantized.values())))
        count = len(description.quantized)
        yield "quantized", f"{count} tensor{'s' * (count > 1)} ({ops})"
    if description.rounding:
        yield "rounding", description.rounding
    if description.extended_operators:
        yield "not in NNEF 1.0.5", ", ".join(description.extended_operators)


def _parameters(graph: Graph) -> int:
    own = sum(tensor.volume for tensor in graph.tensors.values() if _is_parameter(tensor))
    return own + sum(_parameters(node.attrs["body"]) for node in graph.nodes if node.op == "scan")


def _layer(graph: Graph, node: Node) -> LayerDescription:
    tensors = [graph.tensor(name) for name in node.inputs]
    parameters = sum(tensor.volume for tensor in tensors if _is_parameter(tensor))
    if node.op == "scan":
        parameters += _parameters(node.attrs["body"])
    return LayerDescription(
        name=node.name,
        op=node.op,
        shape=tuple(graph.tensor(node.outputs[0]).shape),
        parameters=parameters,
        macs=graph.steps(node.name) * _macs(graph, node),
        location=str(node.location) if node.location else None,
    )


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
