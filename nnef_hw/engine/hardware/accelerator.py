"""Plan -> the accelerator as one Amaranth component."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.hardware.devices import find_device
from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.parts.engine.program import BEAT_BITS, LOADED_BITS
from nnef_hw.parts.readers.row_reader import RowReader
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.engine.engine import SharedEngine
from nnef_hw.rtl.engine.units import write_tables
from nnef_hw.rtl.readers.pads import Pads, connect_pads, pad_ports
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["EngineAccelerator"]


class EngineAccelerator(wiring.Component):  # type: ignore[misc]
    """The shared engine of a Plan, and what stands between it and the output.

    Golden model: :func:`nnef_hw.reference.run_fixed`.

    Parameters
    ----------
    plan
        The design to build.
    restartable
        Whether it has a reset of its own.

    Attributes
    ----------
    image_bytes
        Bytes of ``image``.

    Members
    -------
    i, ... : In(stream.Signature(beat_layout))
        The input images: row, column, channel; by the names of the plan's ports.
    o, ... : Out(stream.Signature(beat_layout))
        The output images.
    program : In(stream.Signature(32))
        Another program (:func:`nnef_hw.engine.program.image.loaded_bytes`); only if the plan lets a
        system write one, as ``load`` and ``left``.
    load : In(1)
        It comes from its first word on: all frames inside are dropped.
    left : Out
        Words of it that are missing; till then, and a few cycles more, no frame enters.
    feed : In(stream.Signature(16))
        The program as a stream (:mod:`nnef_hw.engine.program.image`), over and over; only if it
        comes as one that no memory of the board brings.
    flash_cs_n, ..., or sdram_command, ...
        What goes to the pads of the memory, if that brings it: the ports of its reader.
    memory_error : Out(1)
        The memory does not have what it should: there will be no results.
    image : In(stream.Signature(16))
        What the memory is to hold, after a restart; only if it is one that the host fills.
    loaded : In(1)
        It holds that, for good; only with ``image``.
    restart : In(1)
        Restart, for a cycle or more; only if ``restartable``.
    restarted : Out(1)
        The restart as the engine gets it.
    """

    image_bytes: int = 0
    layers: tuple[Hardware, ...] = ()
    pads: tuple[Pads, ...] = ()

    def __init__(self, plan: EnginePlan, *, restartable: bool = False) -> None:
        self.plan = plan
        self.restartable = restartable
        ports: dict[str, Hardware] = {}
        for flow, port in (*((In, x) for x in plan.inputs), *((Out, x) for x in plan.outputs)):
            layout = beat_layout(bits=port.bits, signed=port.signed, lanes=port.lanes)
            ports[port.name] = flow(stream.Signature(layout))
        store = plan.design.store
        self.is_loaded = store is not None and store.is_loaded
        reader = plan.design.packets.reader
        self.reader: Hardware = None if reader is None else reader.build()
        if self.reader is not None:
            self.pads = (self.reader.part.make_pads(),)
            ports |= {**pad_ports(self.pads), "memory_error": Out(1)}
            if self.is_loaded:
                self.image_bytes = len(plan.images[0].data)
                ports |= {"image": In(stream.Signature(BEAT_BITS)), "loaded": In(1)}
        elif plan.design.ring_words:
            ports["feed"] = In(stream.Signature(BEAT_BITS))
        if plan.loaded is not None:
            ports |= {
                "program": In(stream.Signature(LOADED_BITS)), "load": In(1),
                "left": Out(range(len(plan.loaded) * 8 // LOADED_BITS + 1)),
            }  # fmt: skip
        if restartable:
            ports |= {"restart": In(1), "restarted": Out(1)}
        super().__init__(ports)

    def elaborate(self, platform: Hardware) -> Module:
        """Instantiate and connect the engine."""
        m = Module()
        design = self.plan.design
        network = design.network
        restart = None
        if self.restartable:
            restart = self.restart
            if find_device(self.plan.device).long_wires:
                restart = Signal(name="restart_hop", init=1, reset_less=True)
                m.d.sync += restart.eq(self.restart)
            m.d.comb += self.restarted.eq(restart)
        resident: Fields = {}
        if not design.ring_words:
            resident = {"program": design.row_words, "weights": design.program.weights,
                        "constants": design.constants, "entries": design.entries,
                        "codes": design.code_words}  # fmt: skip
        engine = SharedEngine(
            design.engine, **resident,
            sources=[(x.bits, x.signed, x.lanes) for x in design.placement.inputs],
            padded=[loading.is_padded for loading in design.placement.loadings],
            targets=[(x.bits, x.signed, 1) for x in network.sinks],
            units=design.program.units.contents,
        )  # fmt: skip
        if self.plan.loaded is not None:
            restart = self._load(m, engine, restart)
        m.submodules.engine = WithReset(engine, restart)
        for source, stream_ in zip(network.sources, engine.inputs, strict=True):
            given = wiring.flipped(getattr(self, source.port.name))
            if self.plan.loaded is not None:
                given = self._held(m, source.port.name, given, restart)
            if (head := source.head) is not None:
                component = head.part.build(**head.begin.contents)
                m.submodules[head.instance] = WithReset(component, restart)
                [operand] = head.part.operands(component)
                wiring.connect(m, given, operand)
                given = head.part.result(component)
            wiring.connect(m, given, stream_)
        if self.reader is not None:
            self._read(m, engine, restart)
        elif design.ring_words:
            wiring.connect(m, wiring.flipped(self.feed), engine.feed)
        beats = 0
        for sink, result in zip(network.sinks, engine.outputs, strict=True):
            if sink.tail is not None:
                own = len(sink.tail.table_beats) if design.engine.is_written else 0
                part = sink.tail.written if own else sink.tail.part
                component = part.build(**sink.tail.given(table=not (own and design.ring_words)))
                if own:
                    write_tables(
                        m, [component], part, beats, address=engine.tail_address,
                        data=engine.tail_data, enable=engine.tail_enable,
                    )  # fmt: skip
                    beats += own
                m.submodules[sink.instance] = WithReset(component, restart)
                [operand] = part.operands(component)
                wiring.connect(m, result, operand)
                result = part.result(component)
            wiring.connect(m, result, wiring.flipped(getattr(self, sink.port.name)))
        return m

    def _load(self, m: Module, engine: SharedEngine, restart: Hardware) -> Hardware:
        """Let another program be written; return what resets all else then."""
        wiring.connect(m, wiring.flipped(self.program), engine.program)
        stands = Signal()
        m.d.comb += [
            engine.load.eq(self.load),
            self.left.eq(engine.left),
            stands.eq(engine.stands if restart is None else engine.stands | restart),
        ]
        return stands

    @staticmethod
    def _held(m: Module, name: str, given: Hardware, stands: Hardware) -> Hardware:
        """Return an input of which nothing is taken while all else is reset."""
        held = stream.Signature(given.payload.shape()).create(path=(f"{name}_held",))
        m.d.comb += [
            held.payload.eq(given.payload),
            held.valid.eq(given.valid & ~stands),
            given.ready.eq(held.ready & ~stands),
        ]
        return held

    def _read(self, m: Module, engine: SharedEngine, restart: Hardware) -> None:
        """Let the memory's image come over and over."""
        reader = self.reader
        wiring.connect(m, reader.o, engine.feed)
        inputs = self.plan.design.placement.inputs
        for port, _ in reader.part.place_bits if isinstance(reader.part, RowReader) else ():
            given = getattr(self, inputs[port].name)
            m.d.comb += [
                getattr(reader, f"place{port}").eq(given.payload.data[0]),
                getattr(reader, f"comes{port}").eq(given.valid & given.ready),
            ]
        if self.is_loaded:
            # What it keeps outlasts a restart.
            m.submodules.reader = reader
            wiring.connect(m, wiring.flipped(self.image), reader.i)
            m.d.comb += [
                reader.start.eq(self.loaded),
                reader.load.eq(~self.loaded),
                self.memory_error.eq(~self.loaded),
                reader.restart.eq(0 if restart is None else restart),
            ]
        else:
            m.submodules.reader = WithReset(reader, restart)
            m.d.comb += reader.start.eq(1)
            # It is looked at far away from the reader, long after it is known.
            m.d.sync += self.memory_error.eq(reader.error)
        connect_pads(m, self.pads, reader, self, is_reader=True)
