"""Comments above the modules of ``top.v``: which layer each runs, and how it is folded."""

from __future__ import annotations

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.ir import Graph, Tensor

__all__ = ["module_comments", "port_lines", "printable"]


def module_comments(plan: AcceleratorPlan, graph: Graph) -> dict[str, str]:
    """Return the comment of every layer's module, by the name of its instance.

    The accelerator itself has the empty name; texts are printable. Its comment says in lines of
    their own what passes its ports.
    """
    comments = {
        "": f"{plan.model}: {plan.interval} cycles per frame, latency of {plan.latency} cycles, "
        f"{plan.multipliers} multipliers"
    }
    comments[""] = "\n".join([printable(comments[""]), *port_lines(plan, graph)])
    graph = plan.graph_of(graph)
    for station in plan.stations:
        # an instance may run several layers
        line = printable(f"{station.name}: {station.describe(graph)}")
        before = comments.get(station.instance)
        comments[station.instance] = line if before is None else f"{before}\n{line}"
    return comments


def port_lines(plan: AcceleratorPlan, graph: Graph) -> list[str]:
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


def printable(text: str) -> str:
    """Spell out what could end the comment or is not ASCII."""
    return "".join(
        c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )
