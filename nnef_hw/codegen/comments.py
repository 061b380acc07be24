"""What is written above the modules of ``top.v``: which layer they run, and how it is folded."""

from __future__ import annotations

import re

from nnef_hw.codegen.accelerator import module_name
from nnef_hw.ir import Graph, Node, stream_image
from nnef_hw.schedule import Block, Plan

__all__ = ["module_comments"]


def module_comments(plan: Plan, graph: Graph) -> dict[str, str]:
    """Return the comment of every block, by the pattern that its modules' names match whole.

    The accelerator itself has the empty name; texts are printable, without line ends.
    """
    nodes = {node.outputs[0]: node for node in graph.nodes}
    comments = {
        "": f"{plan.model}: {plan.interval} cycles per frame, latency of {plan.latency} cycles, "
        f"{plan.multipliers} multipliers"
    }
    for block in plan.blocks:
        parts = [_operator(block, nodes.get(block.tensor), graph), *_folding(block)]
        pattern = rf"{re.escape(module_name(block.name))}_[a-z]+\d*"
        comments[pattern] = f"{block.name}: {', '.join(parts)}"
    return {pattern: _printable(text) for pattern, text in comments.items()}


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


def _printable(text: str) -> str:
    """Spell out what could end the comment or is not ASCII."""
    return "".join(
        c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
