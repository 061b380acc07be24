"""What is written above the modules of ``top.v``: which layer they run, and how it is folded."""

from __future__ import annotations

import re

from nnef_hw import architecture
from nnef_hw.architecture import Port
from nnef_hw.ir import Graph, Node, Tensor, stream_image
from nnef_hw.streaming import Block, Plan
from nnef_hw.streaming.block import module_name

__all__ = ["module_comments", "port_lines", "printable"]


def module_comments(plan: Plan, graph: Graph) -> dict[str, str]:
    """Return the comment of every layer's module, by the name of its instance.

    The accelerator itself has the empty name; texts are printable. Its comment says in lines of
    their own what passes its ports.
    """
    nodes = {node.outputs[0]: node for node in graph.nodes}
    comments = {
        "": f"{plan.model}: {plan.interval} cycles per frame, latency of {plan.latency} cycles, "
        f"{plan.multipliers} multipliers"
    }
    for block in plan.blocks:
        parts = [_operator(block, nodes.get(block.tensor), graph), *_folding(block)]
        comments[module_name(block.name)] = f"{block.name}: {', '.join(parts)}"
    comments = {instance: printable(text) for instance, text in comments.items()}
    comments[""] = "\n".join([comments[""], *port_lines(plan, graph)])
    return comments


def port_lines(plan: architecture.Plan, graph: Graph) -> list[str]:
    """Say of every port which tensor passes it, in which codes and which order."""
    tensors = [
        *zip(plan.inputs, graph.inputs, strict=True),
        *zip(plan.outputs, graph.outputs, strict=True),
    ]
    return [printable(_port_line(port, graph.tensor(name))) for port, name in tensors]


def _port_line(port: Port, tensor: Tensor) -> str:
    shape = "x".join(map(str, tensor.shape))
    codes = f"{'signed' if port.signed else 'unsigned'} codes of {port.bits} bits"
    text = (
        f"{port.name}: {tensor.name}, {shape}, {codes}, {port.lanes} per beat, {port.beats} beats"
    )
    height, width, channels = port.image
    if channels == 1 or height * width == 1:
        return f"{text}, in the order of the tensor"
    image = f"as an image of {height} x {width} pixels of {channels} channels, pixel by pixel"
    # The layout that the tensor's shape says itself needs no words.
    if list(tensor.shape[1:]) in ([channels, height, width], [channels, height * width]):
        return f"{text}, {image}"
    return (
        f"{text}, {image}: NOT in the order of the tensor, whose element n is channel "
        f"n // {height * width} of pixel n % {height * width}"
    )


def _operator(block: Block, node: Node | None, graph: Graph) -> str:
    text = block.op
    if block.layer.image is not None:
        text += " " + "x".join(map(str, block.layer.image.kernel))
    if node is None:
        return text
    shapes = [stream_image(graph.tensor(name).shape) for name in (node.inputs[0], block.tensor)]
    text += ", " + " -> ".join("x".join(map(str, shape)) for shape in shapes)
    if node.location is None:
        return text
    # The folders of the file are this machine's, not the model's.
    return f"{text}, {re.sub(r'.*[/]', '', str(node.location))}"


def _folding(block: Block) -> list[str]:
    parts = []
    if block.multipliers:
        counts = {key: count for key, count in block.folding.shape.items() if key != "lines"}
        factors = " x ".join(f"{count} {unit}" for unit, count in counts.items() if count > 1)
        where = "DSP blocks" if block.folding.multiplies_in_dsp else "logic"
        parts.append(f"{factors or '1 multiplier'} in {where}")
    return [*parts, f"{block.cycles} cycles"]


def printable(text: str) -> str:
    """Spell out what could end the comment or is not ASCII."""
    return "".join(
        c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
