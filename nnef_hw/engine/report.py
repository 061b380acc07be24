"""The report of an engine says what its layers do, and what limits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nnef_hw.architecture.timeline import Activity, Timeline
from nnef_hw.boards import BOARDS
from nnef_hw.engine.planning.plan import EnginePlan, HeadStation, LayerStation, TailStation
from nnef_hw.engine.planning.resources import array_resources
from nnef_hw.engine.planning.solver import schedule_engine
from nnef_hw.engine.timing.timing import Span
from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph, stream_image
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.readers.reader import Reader
from nnef_hw.report.model.device import Memory, MemoryMap, TensorPlace
from nnef_hw.report.model.layers import LayerReport, LayerSource
from nnef_hw.report.model.limits import BoardOutlook, Headroom, Roofs
from nnef_hw.report.model.report import Insides

__all__ = ["make_timeline", "report_plan"]

MOST_STEPS = 220


def report_plan(plan: EnginePlan, graph: Graph, target: Target) -> Insides:
    """Return the insides of a plan, as :meth:`.Architecture.report` asks for them."""
    design = plan.design
    results = sum(layer.target.words(design.shape.lanes) for layer in design.frame_layers)
    beats = sum(port.beats for port in plan.inputs)
    beats += sum(sink.codes for sink in design.network.sinks)
    return Insides(
        layers=tuple(_layer(plan, graph, station) for station in plan.stations),
        headroom=Headroom(
            wanted=-(-plan.interval // 2), cycles=plan.interval, multipliers=plan.multipliers,
            changes=(), limits=(), lacking=(),
        ),
        beat="beat" if any(port.lanes > 1 for port in plan.inputs) else "code",
        roofs=Roofs(
            dsp_multipliers=target.device.products, multipliers=plan.multipliers,
            macs_per_multiplier=1, input=plan.macs / beats,
            streams=plan.macs / max(1, results * design.shape.lanes),
        ),
        boards=tuple(_boards(plan, graph, target)),
        in_turn=True,
        memory=_memory(plan),
        memory_map=_memory_map(plan),
        shared=array_resources(design),
    )  # fmt: skip


def _memory(plan: EnginePlan) -> Memory | None:
    """Return the traffic of a memory beside the FPGA per frame, and the waits of the engine for it.

    Of batches the means, rounded up.
    """
    for stored in plan.images:
        stalled = -(-sum(span.stalled for span in plan.spans) // plan.batch)
        return Memory(
            kind=stored.kind, read=stored.read, address=stored.address,
            bytes=-(-2 * plan.design.packets.frame_words // plan.batch),
            resident_bytes=2 * plan.design.packets.once_words, stall_cycles=stalled,
            bytes_per_cycle=_bytes_per_cycle(stored.part),
        )  # fmt: skip
    return None


def _bytes_per_cycle(reader: Reader) -> float:
    """Return the rate at which what comes over and over does, from a reader that never waits."""
    words, ends, count = reader.words_from(), [], 0
    for _ in range(3):
        words.begin(0)
        count = words.left
        ends.append(words.take_all(count, 0))
    return 2 * count / (ends[2] - ends[1])


def _memory_map(plan: EnginePlan) -> MemoryMap:
    """Return the places of tensors in the memory of codes, in bytes, and the steps of a frame."""
    design = plan.design
    lanes, steps = design.shape.lanes, design.placement.steps
    words = design.engine.codes.words
    return MemoryMap(
        steps=tuple(
            span.name for span, step in zip(plan.spans, steps.sequence, strict=True)
            if step in steps.turn
        ),
        bytes=words * lanes,
        bank_bytes=words * lanes // 2 if design.placement.banks else 0,
        tensors=tuple(
            TensorPlace(
                stay.tensor, begin=design.placement.places[stay.tensor] * lanes,
                bytes=stay.words * lanes, first=stay.first, last=stay.last,
            )
            for stay in design.placement.stays
        ),
    )  # fmt: skip


def _layer(
    plan: EnginePlan, graph: Graph, station: HeadStation | LayerStation | TailStation
) -> LayerReport:
    node = station.layer.node if isinstance(station, LayerStation) else station.node
    result, shape = graph.tensor(station.name), station.shape
    row = LayerReport(
        name=station.name, op=node.op, kind=node.op,
        location=str(node.location.in_file) if node.location else None,
        sources=tuple(
            LayerSource(name, fifo=0, codes=graph.tensor(name).volume) for name in _sources(station)
        ),
        tensor=station.name, codes=result.volume,
        input_image=tuple(stream_image(graph.tensor(node.inputs[0]).shape)),
        output_image=tuple(stream_image(result.shape)),
        kernel=None, parameters=0, macs=0, multipliers=0, in_dsp=0,
        rows=shape["rows"], lanes=shape["lanes"], taps=shape["taps"], lines=shape["lines"],
        cycles=station.cycles, busy_cycles=station.cycles, waiting_cycles=0, utilization=None,
        line_buffer_bytes=0, weight_bytes=0, dsp=0, bram=0, lut=0, stall_cycles=0, memory_bytes=0,
    )  # fmt: skip
    if not isinstance(station, LayerStation):
        used = station.part.resources(plan.design.device)
        return replace(row, dsp=used.dsp, bram=used.bram, lut=used.lut)
    layer, span = station.layer, station.span

    def per_frame(count: int) -> int:
        return -(-count // plan.batch)

    return replace(
        row,
        kind=layer.label, kernel=tuple(layer.kernel), parameters=layer.parameters,
        macs=layer.macs, multipliers=plan.multipliers,
        in_dsp=plan.design.engine.array.in_dsp, busy_cycles=per_frame(span.busy),
        waiting_cycles=station.cycles - per_frame(span.busy),
        utilization=plan.batch * layer.macs / (span.cycles * plan.multipliers),
        weight_bytes=layer.weight_bytes, stall_cycles=per_frame(span.stalled),
        memory_bytes=per_frame(plan.design.packets.memory_bytes.get(layer.name, 0)),
    )  # fmt: skip


def _sources(station: HeadStation | LayerStation | TailStation) -> tuple[str, ...]:
    if isinstance(station, LayerStation):
        return station.layer.operands
    if isinstance(station, HeadStation):
        return (station.head.port.tensor,)
    return (station.sink.tensor,)


def _boards(plan: EnginePlan, graph: Graph, target: Target) -> Iterator[BoardOutlook]:
    """Yield the best engine of every board, the target's own first."""
    for board in (target, *(board for board in BOARDS if board.name != target.name)):
        row = BoardOutlook(
            board=board.name, device=board.device.name, clock_mhz=board.clock_mhz, with_twice={}
        )
        try:
            best = plan if board is target else schedule_engine(graph, board, batch=plan.batch)
        except TargetError:
            yield row
            continue
        yield replace(
            row, cycles_per_inference=best.interval,
            inferences_per_second=board.clock_mhz * 1e6 / best.interval,
        )  # fmt: skip


def make_timeline(plan: EnginePlan) -> Timeline:
    """Return the work of input, layers and tail in a frame: each at its time, evenly within it.

    In a batch, if there are several frames in it.
    """
    interval = plan.batch_cycles
    step = -(-interval // MOST_STEPS)
    start = plan.first_input
    sends = dict(zip(plan.design.network.sinks, plan.spans[-len(plan.outputs) :], strict=True))
    loads = [plan.spans_of(Kind.LOAD, n) for n in range(len(plan.inputs))]
    runs = iter([plan.spans_of(Kind.RUN, n) for n in range(len(plan.layer_spans))])
    shown: list[list[Span]] = []
    for station in plan.stations:
        if isinstance(station, LayerStation):
            shown.append(next(runs))
            continue
        cycles = min(station.cycles, interval)
        # A head computes the next frame as soon as what it has given of this one is loaded.
        begin = sends[station.sink].begin if isinstance(station, TailStation) else start
        shown.append([Span(station.name, begin, cycles, cycles)])
    inputs, blocks = (
        tuple(_activity(spans, start, interval, step) for spans in some) for some in (loads, shown)
    )
    return Timeline(interval=interval, step=step, inputs=inputs, blocks=blocks)


def _activity(spans: Sequence[Span], start: int, interval: int, step: int) -> Activity:
    """Spread the busy and other cycles of spans over the steps of an interval."""
    each = [_spread(span, start, interval, step) for span in spans]
    busy, waiting = (
        tuple(map(sum, zip(*counts, strict=True))) for counts in zip(*each, strict=True)
    )
    return Activity(spans[0].name, busy, waiting)


def _spread(span: Span, start: int, interval: int, step: int) -> tuple[list[int], list[int]]:
    """Return how many of a span's busy and other cycles are in every step."""
    count = -(-interval // step)
    busy, waiting = [0] * count, [0] * count
    first = (span.begin - start) % interval
    done = 0
    for cycle in range(0, span.cycles, step):
        length = min(step, span.cycles - cycle)
        until = span.busy * (cycle + length) // span.cycles
        works = until - done
        done = until
        place = (first + cycle) % interval
        here = min(length, min(interval, (place // step + 1) * step) - place)
        here_busy = works * here // length
        following = ((place + here) % interval) // step
        busy[place // step] += here_busy
        waiting[place // step] += here - here_busy
        busy[following] += works - here_busy
        waiting[following] += length - here - (works - here_busy)
    return busy, waiting
