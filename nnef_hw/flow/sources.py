"""``build --source``: which inputs come from where in place of the host."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nnef_hw.architecture.architecture import AcceleratorPlan, Port
from nnef_hw.architectures import find_architecture
from nnef_hw.boards import Board
from nnef_hw.boards.hardware.pins import plan_pins
from nnef_hw.boards.interfaces import ChosenSource, Feed, HostLink, SinkWish, SourceWish
from nnef_hw.errors import ShortageError, UsageError
from nnef_hw.hardware.devices import find_device
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents
from nnef_hw.ir.operators import CanonicalOperator, FrontAttributes, Trait, operator

__all__ = ["bind_sources", "check_rates", "explained_rate", "wanted_rate", "with_interfaces"]


def with_interfaces(board: Board, link: HostLink, wishes: Sequence[SourceWish | SinkWish]) -> Board:
    """Return a board with room set aside for its link, sources and sinks.

    Raises
    ------
    TargetError
        If it lacks pins for them or for the link.
    """
    plan_pins(board, (link, *wishes))
    luts, blocks = (
        sum(wish.luts for wish in wishes), sum(wish.blocks for wish in wishes),
    )  # fmt: skip
    lut, bram = link.budget(board.link_lut, board.link_bram)
    return replace(board, link_lut=lut + luts, link_bram=bram + blocks)


def bind_sources(
    wishes: Sequence[SourceWish], graph: Graph, plan: AcceleratorPlan | None = None
) -> tuple[ChosenSource, ...]:
    """Return the sources of a network, for a plan of it if there is one.

    Raises
    ------
    UsageError
        If an input does not exist, is to be named and is not, or has several sources.
    TargetError
        If a source cannot give what its input takes.
    """
    found: dict[str, ChosenSource] = {}
    for wish in wishes:
        name = _input(wish, graph)
        if name in found:
            raise UsageError(f"input {name!r} has two sources", remedy="give one --source for it")
        found[name] = wish.kind.of(_feed(graph, name, plan), **dict(wish.options))
    return tuple(found.values())


def wanted_rate(
    target_fps: float | None, wishes: Sequence[SourceWish], fixed: Graph
) -> float | None:
    """Return the frames per second that a plan has to reach: the user's, or those of a sensor.

    Raises
    ------
    UsageError, TargetError
        If there cannot be such a source.
    """
    if target_fps is not None:
        return target_fps
    rates = [source.frames_per_second for source in bind_sources(wishes, fixed)]
    return max(rates, default=None)


@contextlib.contextmanager
def explained_rate(
    target_fps: float | None, wishes: Sequence[SourceWish], fixed: Graph
) -> Iterator[None]:
    """Add to a refusal which sensors want the rate, where the user has not said any.

    Raises
    ------
    ShortageError
        As the block does.
    """
    try:
        yield
    except ShortageError as error:
        if target_fps is not None or not wishes:
            raise
        given = " and ".join(
            f"{source.title} gives {source.frames_per_second:g} frames per second"
            for source in bind_sources(wishes, fixed)
        )
        raise ShortageError(f"{given}; {error.claim}", error.arch, error.lack) from error


def check_rates(sources: Sequence[ChosenSource], plan: AcceleratorPlan) -> None:
    """Refuse a plan that takes longer for a frame than its sources do.

    Raises
    ------
    TargetError
        With the numbers.
    """
    for source in sources:
        source.check_interval(plan.interval, round(plan.clock_mhz * 1e6))


def _input(wish: SourceWish, graph: Graph) -> str:
    names = ", ".join(graph.inputs)
    if wish.input is None and len(graph.inputs) > 1:
        raise UsageError(
            f"the network has {len(graph.inputs)} inputs ({names}): which one is of the "
            f"{wish.title} is not clear",
            remedy=f"write --source {graph.inputs[0]}={wish.kind.name}",
        )
    if wish.input is not None and wish.input not in graph.inputs:
        raise UsageError(
            f"the network has no input {wish.input!r} for the {wish.title}",
            remedy=f"its inputs are {names}",
        )
    return wish.input or str(graph.inputs[0])


def _feed(graph: Graph, name: str, plan: AcceleratorPlan | None) -> Feed:
    """Return the facts about an input that a source has to know."""
    tensor = graph.tensor(name)
    shape = tuple(sample_extents(tensor.shape))
    picture = _picture(tensor.shape)
    fronts = _fronts(graph, name)
    rates = {front.rate for front in fronts} - {None}
    rate = rates.pop() if len(rates) == 1 else None
    feed = Feed(name, math.prod(shape), rate, shape, picture, tensor.qtype, hears=bool(fronts))
    if plan is None:
        return feed
    [port] = [x for x, other in zip(plan.inputs, graph.inputs, strict=True) if other == name]
    rows, columns, channels = port.image
    return replace(
        feed,
        picture=picture if picture == (channels, rows, columns) else None,
        image=port.image,
        alone=find_architecture(plan.arch).takes_whole,
        interval=plan.interval,
        clk_hz=round(plan.clock_mhz * 1e6),
        may_wait=_may_wait(port, plan),
    )


def _may_wait(port: Port, plan: AcceleratorPlan) -> bool:
    """Whether a plan leaves block RAM for a frame of an input."""
    device = find_device(plan.device)
    frame = tile_memory(device.ram, port.beats, port.bits * port.lanes)
    return plan.resources.bram + frame.count <= device.bram


def _picture(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return channels, rows and columns of an input whose stream is a picture row by row."""
    if len(shape) != 4 or shape[0] != 1:
        return None
    if shape[3] == 1 and shape[1] > 1 and shape[2] > 1:
        return 1, shape[1], shape[2]
    return shape[1], shape[2], shape[3]


def _fronts(graph: Graph, name: str) -> list[FrontAttributes]:
    """Return the front ends of audio that read an input."""
    found, samples = [], {name}
    for node in graph.nodes:
        if samples.isdisjoint(node.inputs):
            continue
        known = operator(node.op)
        parsed = known.parsed if isinstance(known, CanonicalOperator) else None
        if parsed is not None and issubclass(parsed, FrontAttributes):
            found.append(node.attributes(parsed))
        elif node.has(Trait.KEEPS_FORMAT) or node.has(Trait.ONE_FORMAT):
            # moved, or joined with samples of earlier steps
            samples.update(node.outputs)
    return found
