# amaranth: UnusedElaboratable=no
"""Hardware beside an accelerator in a system: registers behind a bus, and a gate of frames."""

from functools import partial

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.buses.register_file import RegisterFile
from nnef_hw.boards.buses.words import WordsIn, WordsOut
from nnef_hw.boards.hardware.counters import InferenceCounters
from nnef_hw.registers.table import WORD_BITS
from nnef_hw.rtl.base.reset import WithReset

__all__ = ["BusPeripheral"]


class BusPeripheral(wiring.Component):
    """Registers of an accelerator behind a bus, and the way of its frames.

    Golden model: frames are not changed. A frame that has begun to enter enters to its end, in
    order, without being taken back.

    Parameters
    ----------
    bus : Bus
        The bus, from :mod:`nnef_hw.boards.interfaces`.
    registers : RegisterMap
        That of :func:`~nnef_hw.registers.accelerator.accelerator_registers`.
    inputs, outputs : Mapping[str, tuple[data.StructLayout, int]]
        Payload and beats of a frame of the accelerator's streams.
    with_data : bool
        Frames pass through registers; otherwise through streams.
    queues : Mapping[str, wiring.Component]
        With data in registers: what holds the beats of a frame that wait for those of other
        streams, at all inputs but the last and at all outputs but the first.
    batch : int
        Frames that enter the accelerator before the first one leaves it.
    program_words : int
        Words of a program that may be loaded; 0 if none may.

    Members
    -------
    bus : In
        The front end's pins.
    irq : Out(1)
        An event stands that may raise it.
    restart : Out(1)
        Resets the accelerator, for a cycle.
    load : Out(1), program : Out(stream.Signature(32)), left : In
        A program and its begin, and how many words of it the accelerator lacks; only with
        ``program_words``.
    to_i, ... : Out(stream), from_o, ... : In(stream)
        To the accelerator's inputs, and from its outputs.
    i, ... : In(stream), o, ... : Out(stream)
        The same from outside and to it, unless data is in registers.
    """

    def __init__(self, bus, registers, *, inputs, outputs, with_data, queues=None, batch=1,
                 program_words=0):
        self.inputs, self.outputs = dict(inputs), dict(outputs)
        self.with_data, self.batch = with_data, batch
        self.queues = queues or {}
        self.program_words = program_words
        self.file = RegisterFile(registers)
        self.front = bus.hardware_class()(registers.address_bits)
        pins = {name: member for name, member in self.front.signature.members.items()
                if name != "registers"}
        ports = {}
        for name, (layout, _) in self.inputs.items():
            ports[f"to_{name}"] = Out(stream.Signature(layout))
            if not with_data:
                ports[name] = In(stream.Signature(layout))
        for name, (layout, _) in self.outputs.items():
            ports[f"from_{name}"] = In(stream.Signature(layout))
            if not with_data:
                ports[name] = Out(stream.Signature(layout))
        if program_words:
            ports |= {
                "load": Out(1), "program": Out(stream.Signature(WORD_BITS)),
                "left": In(range(program_words + 1)),
            }
        super().__init__({
            "bus": Out(wiring.Signature(pins)), "irq": Out(1), "restart": Out(1), **ports,
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.front, m.submodules.registers = front, file = self.front, self.file
        wiring.connect(m, front.registers, file.bus)
        for name, member in self.bus.signature.members.items():
            inner, outer = getattr(front, name), getattr(self.bus, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        m.d.comb += self.restart.eq(file.control_restart)
        if self.program_words:
            self._load(m, file)
        restarts = partial(WithReset, reset=self.restart)

        counters = InferenceCounters(len(self.inputs), len(self.outputs), self.batch)
        m.submodules.counters = restarts(counters)
        sources, sinks, finished = self._ends(m, file, restarts, counters.left)
        for name, source in zip(self.inputs, sources, strict=True):
            self._gate(m, name, source, getattr(self, f"to_{name}"), file.control_run)
        for name, sink in zip(self.outputs, sinks, strict=True):
            wiring.connect(m, wiring.flipped(getattr(self, f"from_{name}")), sink)

        inner = [getattr(self, f"to_{name}") for name in self.inputs]
        outer = [getattr(self, f"from_{name}") for name in self.outputs]
        m.d.comb += [
            counters.input_taken.eq(Cat(port.valid & port.ready for port in inner)),
            counters.input_last.eq(Cat(port.p.last for port in inner)),
            counters.output_taken.eq(Cat(port.valid & port.ready for port in outer)),
            counters.output_last.eq(Cat(port.p.last for port in outer)),
            file.status_busy.eq(counters.busy),
            file.latency.eq(counters.counts.latency),
            file.interval.eq(counters.counts.interval),
            self.irq.eq(file.interrupt_done & file.interrupt_enable_done),
        ]
        since_event = Signal(len(file.threshold))
        with m.If(self.restart):
            m.d.sync += [file.frames.eq(0), since_event.eq(0)]
        with m.Elif(finished):
            m.d.sync += [file.frames.eq(file.frames + 1), since_event.eq(since_event + 1)]
            with m.If(since_event + 1 >= file.threshold):
                m.d.comb += file.interrupt_done_set.eq(1)
                m.d.sync += since_event.eq(0)
        return m

    def _load(self, m, file):
        """Let a program be written, a word of which waits while the accelerator takes it."""
        missing = Signal.like(self.left, name="missing")
        m.d.comb += [
            self.load.eq(file.control_load),
            self.restart.eq(file.control_restart | file.control_load),
            missing.eq(self.left - self.program.valid),
            file.program_left.eq(missing),
            file.program_room.eq((missing != 0) & (~self.program.valid | self.program.ready)),
        ]
        with m.If(self.program.ready):
            m.d.sync += self.program.valid.eq(0)
        with m.If(file.program_strobe):
            m.d.sync += [self.program.valid.eq(1), self.program.payload.eq(file.program)]
        with m.If(file.control_load):
            m.d.sync += self.program.valid.eq(0)

    def _ends(self, m, file, restarts, left):
        """Return where frames come from and go to, and whether one is finished."""
        if not self.with_data:
            return (
                [wiring.flipped(getattr(self, name)) for name in self.inputs],
                [wiring.flipped(getattr(self, name)) for name in self.outputs],
                left,
            )
        words_in = WordsIn(*zip(*self.inputs.values(), strict=True))
        words_out = WordsOut(*zip(*self.outputs.values(), strict=True))
        m.submodules.words_in, m.submodules.words_out = restarts(words_in), restarts(words_out)
        m.d.comb += [
            words_in.word.eq(file.input),
            words_in.strobe.eq(file.input_strobe),
            file.input_room.eq(words_in.room),
            file.input_free.eq(words_in.free),
            file.result.eq(words_out.word),
            words_out.strobe.eq(file.result_strobe),
            file.result_there.eq(words_out.there),
            file.result_ready.eq(words_out.waiting),
        ]
        sources, sinks = [], []
        for n, name in enumerate(self.inputs):
            sources.append(self._queued(m, restarts, name, getattr(words_in, f"o{n}")))
        for n, name in enumerate(self.outputs):
            sink = getattr(words_out, f"i{n}")
            if name in self.queues:
                m.submodules[f"{name}_queue"] = restarts(queue := self.queues[name])
                wiring.connect(m, queue.o, sink)
                sink = queue.i
            sinks.append(sink)
        return sources, sinks, words_out.finished

    def _queued(self, m, restarts, name, origin):
        if name not in self.queues:
            return origin
        m.submodules[f"{name}_queue"] = restarts(queue := self.queues[name])
        wiring.connect(m, origin, queue.i)
        return queue.o

    def _gate(self, m, name, source, target, run):
        """Let a frame begin while the accelerator is to run; what is offered stays offered."""
        inside = Signal(name=f"{name}_inside")
        offered = Signal(name=f"{name}_offered")
        is_open = run | inside | offered
        taken = target.valid & target.ready
        m.d.comb += [
            target.payload.eq(source.payload),
            target.valid.eq(source.valid & is_open),
            source.ready.eq(target.ready & is_open),
        ]
        m.d.sync += offered.eq(target.valid & ~target.ready & ~self.restart)
        with m.If(taken):
            m.d.sync += inside.eq(~target.p.last)
        with m.If(self.restart):
            m.d.sync += inside.eq(0)
