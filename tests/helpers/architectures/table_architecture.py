"""A third architecture, as small as one can be: all results of a network stand in one memory.

The codes of a frame are shifted into a register, which is the address of a word with all codes of
the result. It is exact, its cycles are known, and it takes networks of a few input bits.
"""

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
from amaranth import Cat, Module, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.architecture.architecture import Architecture, Port
from nnef_hw.architecture.timeline import Activity, Timeline, Work
from nnef_hw.errors import ShortageError, TargetError, UnsupportedError, UsageError, raise_all
from nnef_hw.hardware.devices import Resources, find_device
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.host.streams import from_stream, to_stream
from nnef_hw.ir import StreamOrder
from nnef_hw.reference import run_fixed
from nnef_hw.report.model.layers import LayerReport, LayerSource
from nnef_hw.report.model.limits import Headroom, Roofs
from nnef_hw.report.model.report import Insides
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["OneTable"]

MOST_BITS = 12
"""Bits of a frame that are an address."""


def _ports(graph):
    """Return the streams of the only input and the only output."""
    order, ports = graph.once(StreamOrder), []
    for label, sent in (("i", order.inputs), ("o", order.outputs)):
        [host_stream] = sent.values()
        qtype = graph.tensor(host_stream.tensor).qtype
        fields = host_stream.image, qtype.bits, qtype.signed
        ports.append(Port(label, host_stream.tensor, *fields))
    return ports


@dataclass(frozen=True)
class TablePlan:
    """The memory, and where it is."""

    model: str
    board: str
    device: str
    clock_mhz: float
    source: Port
    sink: Port
    link: Resources

    arch: ClassVar = "table"
    period: ClassVar = 1
    settling: ClassVar = 1
    batch: ClassVar = 1
    layer_counters: ClassVar = False
    images: ClassVar = ()
    loaded: ClassVar = None
    macs: ClassVar = 0
    multipliers: ClassVar = 0
    mac_utilization: ClassVar = 0.0
    name: ClassVar = "table"
    instance: ClassVar = "results"
    shape: ClassVar = {"rows": 0, "lanes": 1, "taps": 1, "lines": 0}

    @property
    def inputs(self):
        return (self.source,)

    @property
    def outputs(self):
        return (self.sink,)

    @property
    def stations(self):
        return (self,)

    @property
    def address_bits(self):
        return self.source.beats * self.source.bits

    @property
    def word_bits(self):
        return self.sink.beats * self.sink.bits

    @property
    def latency(self):
        return self.source.beats + self.sink.beats

    @property
    def interval(self):
        return self.latency + 1

    @property
    def cycles(self):
        return self.interval

    @property
    def resources(self):
        ram = find_device(self.device).ram
        tiling = tile_memory(ram, 1 << self.address_bits, self.word_bits)
        registers = self.address_bits + self.sink.beats.bit_length() + 2
        luts = registers + self.word_bits
        return self.link + Resources(lut=luts, ff=registers, bram=tiling.count)

    def describe(self, graph):
        return f"all of {graph.name}: {1 << self.address_bits} words of {self.word_bits} bits"

    def graph_of(self, graph):
        return graph

    def to_json(self):
        value = {"arch": self.arch, **asdict(self), "link": self.link.to_json()}
        return json.loads(json.dumps(value))

    def dumps(self):
        return json.dumps(self.to_json())


def _layout(port):
    return beat_layout(bits=port.bits, signed=port.signed, lanes=1)


class Results(wiring.Component):
    """Takes the codes of a frame, reads a word, gives its codes."""

    def __init__(self, plan, words):
        self._plan, self._words = plan, words
        super().__init__({
            "i": In(stream.Signature(_layout(plan.source))),
            "o": Out(stream.Signature(_layout(plan.sink))),
        })

    def elaborate(self, platform):
        del platform
        m, plan = Module(), self._plan
        held = memory.Memory(shape=plan.word_bits, depth=len(self._words), init=self._words)
        m.submodules.held = held
        word = held.read_port()
        address = Signal(plan.address_bits)
        count = Signal(range(max(plan.source.beats, plan.sink.beats)))
        m.d.comb += word.addr.eq(address)
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += address.eq(Cat(self.i.payload.data[0], address))
                    m.d.sync += count.eq(count + 1)
                    with m.If(count == plan.source.beats - 1):
                        m.d.sync += count.eq(0)
                        m.next = "READ"
            with m.State("READ"):
                m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.data[0].eq(word.data.word_select(count, plan.sink.bits)),
                    self.o.payload.last.eq(count == plan.sink.beats - 1),
                ]
                with m.If(self.o.ready):
                    m.d.sync += count.eq(count + 1)
                    with m.If(self.o.payload.last):
                        m.d.sync += count.eq(0)
                        m.next = "TAKE"
        return m


class TableAccelerator(wiring.Component):
    """The table, and a restart of it."""

    layers = ()

    def __init__(self, plan, graph, *, restartable):
        self._plan, self._graph, self._restartable = plan, graph, restartable
        ports = {
            "i": In(stream.Signature(_layout(plan.source))),
            "o": Out(stream.Signature(_layout(plan.sink))),
        }
        if restartable:
            ports |= {"restart": In(1), "restarted": Out(1)}
        super().__init__(ports)

    @property
    def words(self):
        """The result of every frame there is."""
        plan, graph = self._plan, self._graph
        source, sink = plan.source, plan.sink
        addresses = np.arange(1 << plan.address_bits)[:, None]
        codes = addresses >> source.bits * np.arange(source.beats)[::-1] & (1 << source.bits) - 1
        if source.signed:
            codes -= (codes >> source.bits - 1) << source.bits
        [name], [result] = graph.inputs, graph.outputs
        qtype, shape = graph.tensor(name).qtype, graph.tensor(name).shape
        frames = from_stream(codes[:, :, None].clip(qtype.lo, qtype.hi), source, shape)
        found = to_stream(run_fixed(graph, {name: frames})[result], sink)[:, :, 0]
        fields = found & (1 << sink.bits) - 1
        return [sum(int(x) << n * sink.bits for n, x in enumerate(row)) for row in fields]

    def elaborate(self, platform):
        del platform
        m, results = Module(), Results(self._plan, self.words)
        m.submodules.results = WithReset(results, self.restart if self._restartable else None)
        wiring.connect(m, wiring.flipped(self.i), results.i)
        wiring.connect(m, results.o, wiring.flipped(self.o))
        if self._restartable:
            m.d.comb += self.restarted.eq(self.restart)
        return m


class OneTable(Architecture):
    """All results stand in one memory."""

    name = "table"

    def problems(self, graph):
        errors = [
            UnsupportedError(
                f"the variable {name!r} keeps a value between inferences, which no table does",
                remedy="use --arch streaming", location=graph.tensor(name).location,
            )
            for name in graph.states
        ]  # fmt: skip
        for what, names in (("inputs", graph.inputs), ("outputs", graph.outputs)):
            if len(names) > 1:
                errors.append(UnsupportedError(
                    f"{graph.name!r} has {len(names)} {what}, a table one", remedy="cut it",
                ))  # fmt: skip
        return errors

    def weight_room(self, target):
        del target  # a table has no weights

    def may_fit(self, graph, target, *, layer_counters=False):
        del layer_counters
        try:
            self.plan(graph, target)
        except TargetError:
            return False
        return True

    def plan(
        self,
        graph,
        target,
        *,
        clock_mhz=None,
        target_fps=None,
        layer_counters=False,
        batch=1,
        by_latency=False,
    ):
        raise_all(self.problems(graph))
        if layer_counters or batch != 1:
            raise UsageError("a table has no layers and no batches", remedy="omit these options")
        link = Resources(lut=target.link_lut, ff=target.link_ff, bram=target.link_bram)
        clock = target.clock_mhz if clock_mhz is None else clock_mhz
        plan = TablePlan(graph.name, target.name, target.device.name, clock, *_ports(graph), link)
        claim = f"{graph.name!r} does not fit {target.name} ({target.device.name})"
        if plan.address_bits > MOST_BITS:
            lack = f"a frame has {plan.address_bits} bits, an address at most {MOST_BITS}"
            raise ShortageError(claim, self.name, lack)
        if plan.resources.bram > target.device.bram:
            lack = f"its table takes {plan.resources.bram} block RAMs of {target.device.bram}"
            raise ShortageError(claim, self.name, lack)
        if target_fps is not None and clock * 1e6 / plan.interval < target_fps:
            raise TargetError(f"{plan.interval} cycles are too many for {target_fps} frames/s")
        return plan

    def read_plan(self, value, graph):
        ports = _ports(graph)
        plan = TablePlan(
            value["model"], value["board"], value["device"], value["clock_mhz"], *ports,
            Resources(**value["link"]),
        )  # fmt: skip
        if plan.to_json() != value:
            raise ValueError("the plan is not one of this model")
        return plan

    def component(self, plan, graph, *, restartable=False, counted=False):
        assert not counted
        return TableAccelerator(plan, graph, restartable=restartable)

    def predict_interval(self, plan, frames):
        return plan.interval if frames > 1 else None

    def predict_spacing(self, plan, frames):
        del frames
        return plan.interval

    def predict_work(self, plan, begin, end, frames):
        del frames
        taken = (end - begin) * plan.source.beats
        return (Work(taken, 0, (end - begin) * plan.interval - taken),)

    def timeline(self, plan):
        sent = Activity(plan.source.tensor, (plan.source.beats,), (0,))
        own = Activity(plan.name, (plan.source.beats,), (0,))
        return Timeline(plan.interval, plan.interval, (sent,), (own,))

    def report(self, plan, graph, target, timeline):
        del timeline
        node, own = graph.nodes[-1], plan.resources
        sent, result = (graph.tensor(names[0]) for names in (graph.inputs, graph.outputs))
        return Insides(
            layers=(LayerReport(
                name=plan.name, op="table", kind="table",
                location=str(node.location) if node.location else None,
                sources=(LayerSource(sent.name, 0, sent.volume),), tensor=result.name,
                codes=result.volume, kernel=None, input_image=tuple(plan.source.image),
                output_image=tuple(plan.sink.image), parameters=0, macs=0, multipliers=0,
                **plan.shape, in_dsp=0, cycles=plan.cycles, busy_cycles=plan.source.beats,
                waiting_cycles=0, utilization=None, line_buffer_bytes=0, weight_bytes=0, dsp=0,
                bram=own.bram, lut=own.lut,
            ),),
            headroom=Headroom(
                wanted=-(-plan.interval // 2), cycles=plan.interval, multipliers=0,
                changes=(), limits=(), lacking=(),
            ),
            beat="code",
            roofs=Roofs(
                dsp_multipliers=target.device.products, multipliers=0, macs_per_multiplier=1,
                input=0.0, streams=0.0,
            ),
            boards=(), in_turn=False, loop=(),
        )  # fmt: skip
