"""The report of a streaming design says what its layers do, and what limits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nnef_hw.architecture.timeline import Activity, Timeline
from nnef_hw.boards import BOARDS
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph, stream_image
from nnef_hw.report.model.layers import LayerReport, LayerSource, Overlap
from nnef_hw.report.model.limits import BoardOutlook, Headroom, Limit, Roofs
from nnef_hw.report.model.report import Insides
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import LayerGraph, StreamingPlan
from nnef_hw.streaming.foldings.resources import usable_luts
from nnef_hw.streaming.search.ceiling import find_ceilings
from nnef_hw.streaming.search.headroom import find_headroom
from nnef_hw.streaming.search.loop_search import layers_in_loops

__all__ = ["report_plan"]


def report_plan(plan: StreamingPlan, graph: Graph, target: Target, timeline: Timeline) -> Insides:
    """Return the insides of a plan, as :meth:`.Architecture.report` says."""
    graph = plan.graph_of(graph)
    network = lower(graph).at_clock(plan.clock_mhz)
    codes = {
        tensor: graph.steps(tensor) * graph.tensor(tensor).volume
        for tensor in (
            *(port.tensor for port in plan.inputs),
            *(block.tensor for block in plan.blocks),
        )
    }
    return Insides(
        layers=tuple(
            _layer(graph, plan, block, codes, activity)
            for block, activity in zip(plan.blocks, timeline.blocks, strict=True)
        ),
        headroom=_headroom(plan, network, target, _beats(plan, codes)),
        beat=_beat(plan, network),
        roofs=_roofs(plan, target, _beats(plan, codes)),
        boards=tuple(_boards(network, plan, target)),
        in_turn=False,
        loop=_loop(plan),
    )


def _loop(plan: StreamingPlan) -> tuple[str, ...]:
    """Return the layers of loops, if the time around one is what bounds the interval."""
    if plan.interval <= max(block.cycles for block in plan.blocks):
        return ()
    looped = layers_in_loops(plan.blocks)
    return tuple(block.name for block in plan.blocks if block.tensor in looped)


def _beat(plan: StreamingPlan, network: LayerGraph) -> str:
    """Name what streams carry per cycle."""
    lanes = plan.lanes
    if not lanes:
        return "code"
    takes_pixels = all(lanes.get(name, 1) == image[2] for name, image in network.images.items())
    return "pixel" if takes_pixels else "beat"


def _beats(plan: StreamingPlan, codes: Mapping[str, int]) -> dict[str, int]:
    """Return the beats of a frame of every stream."""
    lanes = plan.lanes
    return {tensor: count // lanes.get(tensor, 1) for tensor, count in codes.items()}


def _headroom(
    plan: StreamingPlan, network: LayerGraph, target: Target, beats: Mapping[str, int]
) -> Headroom:
    """Return the needs of half the interval, with the busiest stream of every limit."""
    found = find_headroom(plan, network, target.device)
    blocks = {block.name: block for block in plan.blocks}

    def busiest(name: str) -> int:
        block = blocks[name]
        return max(beats[x] for x in (block.tensor, *(source.tensor for source in block.sources)))

    return Headroom(
        wanted=found.wanted,
        cycles=found.cycles,
        multipliers=found.multipliers,
        limits=tuple(Limit(x.name, x.cycles, busiest(x.name)) for x in found.limits),
        changes=found.changes,
        lacking=found.lacking,
        resources=found.resources,
    )


def _boards(network: LayerGraph, plan: StreamingPlan, target: Target) -> Iterator[BoardOutlook]:
    """Yield the best that each board could make of the network, its own target's first."""
    if _loop(plan):
        # What the way around a loop takes on other boards only a design for them would show.
        yield BoardOutlook(
            board=target.name, device=target.device.name, clock_mhz=plan.clock_mhz,
            cycles_per_inference=plan.interval,
            inferences_per_second=plan.clock_mhz * 1e6 / plan.interval, with_twice={},
        )  # fmt: skip
        return
    targets = [target, *(board for board in BOARDS if board.name != target.name)]
    ceilings = find_ceilings(network, targets, plan.blocks)
    for board in targets:
        name, device, clock = board.name, board.device.name, board.clock_mhz
        ceiling = ceilings[name]
        if ceiling is None:
            yield BoardOutlook(board=name, device=device, clock_mhz=clock, with_twice={})
        else:
            yield BoardOutlook(
                board=name, device=device, clock_mhz=clock, cycles_per_inference=ceiling.interval,
                inferences_per_second=clock * 1e6 / ceiling.interval,
                with_twice=ceiling.with_twice, floor=ceiling.floor,
            )  # fmt: skip


def _roofs(plan: StreamingPlan, target: Target, beats: Mapping[str, int]) -> Roofs:
    """Return the bounds of MACs per cycle: multipliers, and streams of one beat per cycle.

    As many LUTs may multiply as the rest of the design leaves, in multipliers like those it has.
    """
    device = target.device
    in_logic = sum(block.multipliers - block.in_dsp for block in plan.blocks)
    arrays = (part for block in plan.blocks for part in block.parts if part.in_logic)
    # A product with a matrix is made of adders alone.
    used = sum(part.product_luts(device) or part.resources(device).lut for part in arrays)
    free = usable_luts(device, plan.resources.lut) - plan.resources.lut
    each = used / in_logic if in_logic else device.lut_multiplier
    return Roofs(
        dsp_multipliers=device.products,
        multipliers=device.products + in_logic + max(0, int(free / each)),
        macs_per_multiplier=max(
            2 if device.sums_per_dsp else 1,
            *(block.folding.products_per_multiplier for block in plan.blocks),
        ),
        input=plan.macs / max(port.beats for port in plan.inputs),
        streams=plan.macs / max(beats.values()),
    )


def _overlap(block: Block) -> Overlap | None:
    """Return the gain of a block that works on several frames at once over one frame at a time."""
    folding = block.layer.without_overlap(block.folding)
    if folding is None:
        return None
    alone = Block.of(block.layer, folding, block.device)
    used, least = block.resources, alone.resources
    return Overlap(alone.cycles, lut=used.lut - least.lut, bram=used.bram - least.bram)


def _layer(
    graph: Graph,
    plan: StreamingPlan,
    block: Block,
    codes: Mapping[str, int],
    activity: Activity,
) -> LayerReport:
    layer, node = block.layer, block.layer.node
    used = block.macs / (plan.interval * block.multipliers) if block.multipliers else None
    return LayerReport(
        name=block.name,
        op=block.op,
        kind=block.kind,
        location=str(node.location.in_file) if node.location else None,
        sources=tuple(
            LayerSource(source.tensor, source.depth, codes[source.tensor])
            for source in block.sources
        ),
        tensor=block.tensor,
        codes=codes[block.tensor],
        input_image=tuple(stream_image(graph.tensor(node.inputs[0]).shape)),
        output_image=tuple(stream_image(graph.tensor(node.outputs[0]).shape)),
        kernel=layer.kernel,
        parameters=layer.weights_of_model + layer.biases,
        macs=block.macs,
        multipliers=block.multipliers,
        rows=block.shape["rows"],
        lanes=block.shape["lanes"],
        taps=block.shape["taps"],
        lines=block.shape["lines"],
        in_dsp=block.in_dsp,
        cycles=block.cycles,
        busy_cycles=sum(activity.busy),
        waiting_cycles=sum(activity.waiting),
        utilization=used,
        line_buffer_bytes=-(-sum(part.kept_bits for part in block.parts) // 8),
        weight_bytes=-(-layer.weights_of_model * layer.weight_bits // 8),
        dsp=block.resources.dsp,
        bram=block.resources.bram,
        lut=block.resources.lut,
        overlap=_overlap(block),
    )
