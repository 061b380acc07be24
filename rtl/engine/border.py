"""The shared engine's borders: tensors come into its memory, and leave it."""

from contextlib import nullcontext

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.engine.border import Batch
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.rtl.engine.sequencer import parameter_layout, place_ports
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["EngineLoader", "EngineSender", "border_ports"]


def border_ports(prefix, flow, formats):
    """Return the streams of these formats: bits and signedness of codes, how many per beat."""
    names = [prefix] if len(formats) == 1 else [f"{prefix}{n}" for n in range(len(formats))]
    return {
        name: flow(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=lanes)))
        for name, (bits, signed, lanes) in zip(names, formats, strict=True)
    }


def _offset(bits, signed):
    """Return the difference of a code and the engine's, which is never negative."""
    return 1 << (bits - 1) if signed else 0


def _is_chosen(parameters, formats, n):
    """Return whether the instruction is one of the port with number n."""
    return parameters.port == n if len(formats) > 1 else Const(1)


class EngineLoader(wiring.Component):
    """Write the codes of a stream to memory, as words of windows over its rows.

    A row has ``length`` beats, of which ``real`` ones come behind ``lead`` that are padding, and
    padding follows them. The word of the last ``lanes`` codes is written when ``first_word + 1``
    beats of a row have come, and then every ``word_step + 1``.

    One beat per cycle, padding included; it begins in the cycle after its ``begin``, and ``done``
    is set in the cycle after its last beat.

    Parameters
    ----------
    formats : list[tuple[int, bool, int]]
        Bits and signedness of the codes of each input, codes of a beat.
    padded : list[bool]
        Whether any beats of it are padding.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        A code per beat, or several; ``i0``, ... where there are several inputs, of which ``port``
        of the parameters is taken.
    begin : In(1)
    done : Out(1)
    parameters : In(parameter_layout)
    step : Out(1)
        A beat comes.
    word, following : In(lanes * 8), Out(lanes * 8)
        The word so far, and with the codes that come, as its highest ones.
    address, enable : Out
        That word is written.
    place0, ... : Out
        The last code of each input whose integers are places, by its number.
    """

    unproved = "its ports follow an instruction of a program; tests/engine simulates it"

    def __init__(self, part: Engine, *, formats, padded):
        self.part = part
        self.formats, self.padded = formats, padded
        super().__init__({
            **place_ports(part, Out),
            **border_ports("i", In, formats),
            "begin": In(1),
            "done": Out(1),
            "parameters": In(parameter_layout(part)),
            "address": Out(part.layout.widths["write"]),
            "enable": Out(1),
            "step": Out(1),
            "word": In(part.array.word_bits),
            "following": Out(part.array.word_bits),
        })

    @property
    def streams(self):
        """All inputs."""
        return [getattr(self, name) for name in border_ports("i", In, self.formats)]

    def elaborate(self, platform):
        m = Module()
        part, parameters = self.part, self.parameters
        active = Signal()
        row = Signal(part.layout.bits("rows"))
        place = Signal(part.layout.bits("length"))
        missing = Signal(part.layout.bits("length"))
        padding, ends, is_last, step = Signal(), Signal(), Signal(), self.step
        # It is closed from its last code on, since whether that comes is known late.
        closed = Signal()
        with m.If(self.begin & (parameters.kind == Kind.LOAD)):
            m.d.sync += active.eq(1)
        comes = Signal()
        following = Mux(self.begin | ends, 0, place + 1)[: len(place)]
        # What a place is, is found out before it comes: whoever gives codes waits for ``ready``.
        following_row = Mux(self.begin, 0, row + ends)[: len(row)]
        with m.If(self.begin | step):
            m.d.sync += [
                place.eq(following),
                row.eq(following_row),
                closed.eq(~self.begin & is_last),
                is_last.eq((following == parameters.length) & (following_row == parameters.rows)),
                padding.eq((following < parameters.lead) | (following >= parameters.real)),
                ends.eq(following == parameters.length),
            ]
        for n, (source, form) in enumerate(zip(self.streams, self.formats, strict=True)):
            *form, count = form
            offset = Const(_offset(*form), CODE_BITS + 1)
            codes = Cat((code + offset)[:CODE_BITS] for code in source.payload.data)
            if count == 1 or self.padded[n]:
                codes = Mux(padding, parameters.pad.replicate(count), codes)
            chosen = _is_chosen(parameters, self.formats, n)
            if f"place{n}" in place_ports(self.part, Out):
                with m.If(step & chosen & ~padding):
                    m.d.sync += getattr(self, f"place{n}").eq(source.payload.data[0])
            m.d.comb += source.ready.eq(active & ~closed & ~padding & chosen)
            with m.If(chosen) if len(self.formats) > 1 else nullcontext():
                m.d.comb += [
                    comes.eq(source.valid),
                    self.following.eq(Cat(self.word, codes)[count * CODE_BITS :]),
                ]
        m.d.comb += [
            step.eq(active & ~closed & (padding | comes)),
            self.done.eq(active & closed),
        ]
        complete = missing == 0
        with m.If(self.begin):
            m.d.sync += [
                self.address.eq(parameters.write - 1),
                missing.eq(parameters.first_word),
            ]
        m.d.sync += self.enable.eq(step & complete)
        with m.If(step):
            m.d.sync += [
                missing.eq(
                    Mux(
                        ends,
                        parameters.first_word,
                        Mux(complete, parameters.word_step, missing - 1),
                    )
                ),
                self.address.eq(self.address + complete),
            ]
        with m.If(self.done):
            m.d.sync += active.eq(0)
        return m


class EngineSender(wiring.Component):
    """Give the codes of a tensor in memory to a stream: a code per cycle, and some more per word.

    It reads its first word two cycles after its ``begin``, and offers its first code in cycle
    ``before_send`` of the instruction; the first one of a further word comes
    ``between_words`` cycles after the last one before was offered, or later, in the cycle
    after that was taken. ``done`` is set in the cycle in which the last one is taken.

    Members
    -------
    o : Out(stream.Signature(beat_layout))
        A code per beat; ``o0``, ... where there are several, of which ``port`` of the parameters
        gets the tensor.
    begin : In(1)
    done : Out(1)
    parameters : In(parameter_layout)
        ``pixels + 1`` of ``blocks + 1`` words, whose last one has ``last_lanes + 1`` codes; of
        batches so ``frames + 1`` times, one behind the other.
    address : Out(read bits)
        The word that is read, while ``is_active``.
    is_active : Out(1)
    word : In(lanes * 8)
        That word, ``between_words - 1`` cycles later, as long as it is read.
    """

    unproved = "its ports follow an instruction of a program; tests/engine simulates it"

    def __init__(self, part: Engine, *, formats):
        self.part = part
        self.formats = formats
        super().__init__({
            **border_ports("o", Out, formats),
            "begin": In(1),
            "done": Out(1),
            "parameters": In(parameter_layout(part)),
            "is_active": Out(1),
            "address": Out(part.layout.widths["read"] - part.fine_bits("read")),
            "word": In(part.array.word_bits),
        })

    @property
    def streams(self):
        """All outputs."""
        return [getattr(self, name) for name in border_ports("o", Out, self.formats)]

    def elaborate(self, platform):
        m = Module()
        part, parameters = self.part, self.parameters
        starting, reading, ready = Signal(), Signal(), Signal()
        pixel = Signal(part.layout.bits("pixels"))
        block = Signal(part.layout.bits("blocks"))
        lane = Signal(range(part.array.lanes))
        last_block, last_lane, ends, takes = Signal(), Signal(), Signal(), Signal()
        valid, taken, last = Signal(), Signal(), Signal()
        # Of the last frame, if there are several.
        is_final, was_final = Const(1), Const(1)
        if part.has(Batch):
            frame, was_final = Signal(part.layout.bits("frames")), Signal()
            is_final = frame == parameters.frames
        code = Signal(CODE_BITS, reset_less=True)
        for n, (sink, (bits, signed, _)) in enumerate(zip(self.streams, self.formats, strict=True)):
            chosen = _is_chosen(parameters, self.formats, n)
            # A signed code is that of the engine with its highest bit turned round.
            m.d.comb += [
                sink.valid.eq(valid & chosen),
                sink.payload.last.eq(last),
                sink.payload.data[0].eq(code[:bits] ^ _offset(bits, signed)),
            ]
            with m.If(chosen) if len(self.formats) > 1 else nullcontext():
                m.d.comb += taken.eq(sink.ready)
        m.d.comb += [
            last_block.eq(block == parameters.blocks),
            last_lane.eq(lane == Mux(last_block, parameters.last_lanes, part.array.lanes - 1)),
            ends.eq(last_lane & last_block & (pixel == parameters.pixels)),
            takes.eq(ready & (~valid | taken)),
            self.done.eq(valid & taken & last & was_final),
        ]
        # As many cycles after an address as the word takes.
        arrives = reading
        for n in range(part.pipeline.between_words - 2):
            later = Signal(name=f"arrives{n}")
            m.d.sync += later.eq(arrives)
            arrives = later
        m.d.sync += [starting.eq(self.begin), reading.eq(0)]
        with m.If(arrives):
            m.d.sync += ready.eq(1)
        with m.If(starting & (parameters.kind == Kind.SEND)):
            m.d.sync += [
                self.is_active.eq(1),
                reading.eq(1),
                self.address.eq(parameters.read[part.fine_bits("read") :]),
                pixel.eq(0),
                block.eq(0),
                lane.eq(0),
            ]
        with m.If(takes):
            m.d.sync += [
                code.eq(self.word.word_select(lane, CODE_BITS)),
                last.eq(ends),
                valid.eq(1),
                lane.eq(lane + 1),
            ]
            if part.has(Batch):
                m.d.sync += was_final.eq(is_final)
                with m.If(ends):
                    m.d.sync += frame.eq(Mux(is_final, 0, frame + 1))
            with m.If(last_lane):
                m.d.sync += [
                    ready.eq(0),
                    reading.eq(~(ends & is_final)),
                    lane.eq(0),
                    self.address.eq(self.address + 1),
                    block.eq(Mux(last_block, 0, block + 1)),
                    pixel.eq(Mux(ends, 0, pixel + last_block) if part.has(Batch)
                             else pixel + last_block),
                ]
        with m.Elif(taken):
            m.d.sync += valid.eq(0)
        with m.If(self.done):
            m.d.sync += self.is_active.eq(0)
        return m
