"""What a report says of the layers of a streaming design, and of what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nnef_hw.architecture.architecture import Activity, Timeline
from nnef_hw.boards import BOARDS
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph, stream_image
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import LayerGraph, StreamingPlan
from nnef_hw.streaming.foldings.resources import usable_luts
from nnef_hw.streaming.search.ceiling import find_ceilings
from nnef_hw.streaming.search.headroom import find_headroom
from nnef_hw.streaming.search.loop_search import layers_in_loops

__all__ = ["report_plan"]


def report_plan(
    plan: StreamingPlan, graph: Graph, target: Target, timeline: Timeline
) -> dict[str, Any]:
    """Return what :meth:`.Architecture.report` says."""
    graph = plan.graph_of(graph)
    network = lower(graph)
    codes = {
        tensor: graph.steps(tensor) * graph.tensor(tensor).volume
        for tensor in (
            *(port.tensor for port in plan.inputs),
            *(block.tensor for block in plan.blocks),
        )
    }
    return {
        "layers": [
            {**_layer(graph, plan, block, codes, activity), "overlap": _overlap(block)}
            for block, activity in zip(plan.blocks, timeline.blocks, strict=True)
        ],
        "headroom": _headroom(plan, network, target, _beats(plan, codes)),
        "beat": _beat(plan, network),
        "roofs": _roofs(plan, target, _beats(plan, codes)),
        "boards": _boards(network, plan, target),
        "in_turn": False,
        "loop": _loop(plan),
    }


def _loop(plan: StreamingPlan) -> list[str]:
    """Return the layers of loops, if the time around one is what bounds the interval."""
    if plan.interval <= max(block.cycles for block in plan.blocks):
        return []
    looped = layers_in_loops(plan.blocks)
    return [block.name for block in plan.blocks if block.tensor in looped]


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
) -> dict[str, Any]:
    """Return what half the interval would take, with the busiest stream of every limit."""
    value = asdict(find_headroom(plan, network, target.device))
    blocks = {block.name: block for block in plan.blocks}
    for limit in value["limits"]:
        block = blocks[limit["name"]]
        streams = (block.tensor, *(source.tensor for source in block.sources))
        limit["codes"] = max(beats[tensor] for tensor in streams)
    return value


def _boards(network: LayerGraph, plan: StreamingPlan, target: Target) -> list[dict[str, Any]]:
    """Return the best that each board could make of the network, its own target's first."""
    targets = [target, *(board for board in BOARDS if board.name != target.name)]
    if _loop(plan):
        # What the way around a loop takes on other boards only a design for them would show.
        fps = plan.clock_mhz * 1e6 / plan.interval
        return [
            {
                "board": target.name, "device": target.device.name, "clock_mhz": plan.clock_mhz,
                "cycles_per_inference": plan.interval, "inferences_per_second": fps,
                "with_twice": {}, "floor": None,
            }
        ]  # fmt: skip
    ceilings = find_ceilings(network, targets, plan.blocks)
    rows = []
    for board in targets:
        ceiling = ceilings[board.name]
        row = {
            "board": board.name,
            "device": board.device.name,
            "clock_mhz": board.clock_mhz,
            "cycles_per_inference": None,
            "inferences_per_second": None,
            "with_twice": {},
            "floor": None,
        }
        if ceiling:
            row |= {
                "cycles_per_inference": ceiling.interval,
                "inferences_per_second": board.clock_mhz * 1e6 / ceiling.interval,
                "with_twice": dict(ceiling.with_twice),
                "floor": ceiling.floor,
            }
        rows.append(row)
    return rows


def _roofs(plan: StreamingPlan, target: Target, beats: Mapping[str, int]) -> dict[str, float]:
    """Return what bounds MACs per cycle: multipliers, and streams of one beat per cycle.

    As many LUTs may multiply as the rest of the design leaves, in multipliers like those it has.
    """
    device = target.device
    in_logic = sum(block.multipliers - block.in_dsp for block in plan.blocks)
    arrays = (part for block in plan.blocks for part in block.parts if part.in_logic)
    # A product with a matrix is made of adders alone.
    used = sum(part.product_luts(device) or part.resources(device).lut for part in arrays)
    free = usable_luts(device, plan.resources.lut) - plan.resources.lut
    each = used / in_logic if in_logic else device.lut_multiplier
    return {
        "dsp_multipliers": device.products,
        "multipliers": device.products + in_logic + max(0, int(free / each)),
        "macs_per_multiplier": 2 if device.sums_per_dsp else 1,
        "input": plan.macs / max(port.beats for port in plan.inputs),
        "streams": plan.macs / max(beats.values()),
    }


def _overlap(block: Block) -> dict[str, int] | None:
    """Return what a block of several frames at once has more than one of a frame at a time."""
    folding = block.layer.without_overlap(block.folding)
    if folding is None:
        return None
    alone = Block.of(block.layer, folding, block.device)
    more = {
        name: getattr(block.resources, name) - getattr(alone.resources, name)
        for name in ("lut", "bram")
    }
    return {"cycles_alone": alone.cycles, **more}


def _layer(
    graph: Graph,
    plan: StreamingPlan,
    block: Block,
    codes: Mapping[str, int],
    activity: Activity,
) -> dict[str, Any]:
    layer, folding = block.layer, block.folding
    node = layer.node
    return {
        "name": block.name,
        "op": block.op,
        "kind": block.kind,
        "location": str(node.location.in_file) if node.location else None,
        "sources": [
            {"tensor": source.tensor, "fifo": source.depth, "codes": codes[source.tensor]}
            for source in block.sources
        ],
        "tensor": block.tensor,
        "codes": codes[block.tensor],
        "input_image": list(stream_image(graph.tensor(node.inputs[0]).shape)),
        "output_image": list(stream_image(graph.tensor(node.outputs[0]).shape)),
        "kernel": list(layer.image.kernel) if layer.image else None,
        "parameters": layer.weights_of_model + layer.biases,
        "macs": block.macs,
        "multipliers": block.multipliers,
        **folding.shape,
        "in_dsp": block.in_dsp,
        "cycles": block.cycles,
        "busy_cycles": sum(activity.busy),
        "waiting_cycles": sum(activity.waiting),
        "utilization": block.macs / (plan.interval * block.multipliers)
        if block.multipliers
        else None,
        "line_buffer_bytes": -(-sum(part.kept_bits for part in block.parts) // 8),
        "weight_bytes": -(-layer.weights_of_model * layer.weight_bits // 8),
        "dsp": block.resources.dsp,
        "bram": block.resources.bram,
        "lut": block.resources.lut,
    }
