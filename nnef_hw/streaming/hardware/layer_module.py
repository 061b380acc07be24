"""Blocks of a plan -> one component per layer, with the components of ``rtl/`` inside."""

from __future__ import annotations

import pickle
from itertools import chain

from amaranth import Module, ResetSignal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.parts.base.untyped import Hardware
from nnef_hw.parts.streams.stream import Skid
from nnef_hw.rtl.base.reset import reset_late
from nnef_hw.streaming.foldings.block import Block

__all__ = ["LayerModule", "build_parts"]


def build_parts(block: Block, *, counted: bool = False) -> list[Hardware]:
    """Return the components of a block, in stream order, filled with what its layer says.

    If its work is ``counted``, what the worker is asked for comes from ports of it: a module of its
    own has no other way out.
    """
    contents = block.layer.contents(block.folding)
    components: dict[int, Hardware] = {}
    for n, part in enumerate(block.parts):
        if not isinstance(part, Skid):
            build = part.build_counted if counted and n == block.worker else part.build
            components[n] = build(**contents.get(part.label, {}))
    for n, part in enumerate(block.parts):
        if isinstance(part, Skid):
            # It takes what the part in front of it gives, and gives what that behind it takes.
            if n:
                origin = block.parts[n - 1].result(components[n - 1])
            else:
                [origin] = block.parts[n + 1].operands(components[n + 1])
            components[n] = part.build(shape=origin.payload.shape())
    return [components[n] for n in range(len(block.parts))]


class LayerModule(wiring.Component):  # type: ignore[misc]
    """The hardware of one layer: its parts in a row, and FIFOs where operands come early.

    Golden model: the layer's operator in :func:`nnef_hw.reference.run_fixed`.

    Parameters
    ----------
    block
        The layer to build.
    beats
        Beats of a frame, per operand.
    counted
        Whether it says when it works.
    resets_late
        Whether every part has a reset of its own, a register: that of a layer would have hundreds
        of users all over it. It is that of the layer a cycle before.

    Members
    -------
    i : In(stream)
        The operand; ``i0`` and ``i1`` if there are several.
    o : Out(stream)
        The result.
    busy, waiting : Out(1)
        With ``counted``: whether it accepts a word in this cycle; whether a word waits to be
        accepted (:class:`~nnef_hw.streaming.beats.activity.Activity`).
    """

    def __init__(
        self, block: Block, beats: tuple[int, ...], *, counted: bool = False,
        resets_late: bool = False,
    ) -> None:  # fmt: skip
        self.resets_late = resets_late
        self.block = block
        self.beats = beats
        self.note = f"Layer {block.name}."
        self.counted = counted
        self.parts = build_parts(block, counted=counted)
        operands = block.parts[0].operands(self.parts[0])
        if n := block.joins:
            operands = [operands[0], *block.parts[n].operands(self.parts[n])[1:]]
        self.constant: Hardware = None
        constant = block.layer.constant(block.device)
        if constant is not None:
            filling = block.layer.contents(block.folding)[constant.label]
            self.constant = constant.build(**filling)
        names = ["i"] if len(block.sources) == 1 else [f"i{n}" for n in range(len(block.sources))]
        self.operands = names
        self.fifos: dict[int, Hardware] = {}
        ports: dict[str, Hardware] = {}
        for n, (name, operand) in enumerate(zip(names, operands, strict=False)):
            shape = operand.payload.shape()
            ports[name] = In(stream.Signature(shape))
            if block.fifos[n]:
                self.fifos[n] = block.fifo(n, beats[n]).build(shape=shape)
        result = block.parts[-1].result(self.parts[-1])
        ports["o"] = Out(stream.Signature(result.payload.shape()))
        if counted:
            ports |= {"busy": Out(1), "waiting": Out(1)}
        super().__init__(ports)

    @property
    def components(self) -> list[Hardware]:
        """All submodules, and what was made for these."""
        constants = [] if self.constant is None else [self.constant]
        pairs = zip(self.block.parts, self.parts, strict=True)
        made = chain.from_iterable(part.made(component) for part, component in pairs)
        return [*made, *constants, *self.fifos.values()]

    @property
    def content(self) -> bytes:
        """All that it is made from; equal layers may differ in it, unequal ones always do."""
        block = self.block
        made = [*block.parts, block.layer.constant(block.device)]
        made += [block.fifo(n, self.beats[n]) for n in self.fifos]
        contents = block.layer.contents(block.folding)
        return pickle.dumps((
            made,
            contents,
            self.note,
            self.operands,
            [*self.fifos],
            block.worker,
            self.counted,
            self.resets_late,
        ))

    def elaborate(self, platform: Hardware) -> Module:
        """Instantiate and connect the parts."""
        m = Module()
        block = self.block
        streams: list[Hardware] = []

        reset = ResetSignal(allow_reset_less=True)

        def insert(label: str, component: Hardware) -> None:
            if self.resets_late:
                component = reset_late(m, platform, component, reset, name=label)
            m.submodules[label] = component

        for n, name in enumerate(self.operands):
            outside = wiring.flipped(getattr(self, name))
            if n in self.fifos:
                insert(f"fifo{n}", fifo := self.fifos[n])
                wiring.connect(m, outside, fifo.i)
                outside = fifo.o
            streams.append(outside)
        if self.constant is not None:
            constant = block.layer.constant(block.device)
            assert constant is not None
            insert(constant.label, self.constant)
            streams.append(constant.result(self.constant))
        count = 1 if block.joins else len(streams)
        streams, joining = streams[:count], streams[count:]
        for n, (part, component) in enumerate(zip(block.parts, self.parts, strict=True)):
            insert(part.label, component)
            if n == block.joins:
                streams = [*streams, *joining]
            for origin, operand in zip(streams, part.operands(component), strict=True):
                wiring.connect(m, origin, operand)
            streams = [part.result(component)]
        wiring.connect(m, streams[0], wiring.flipped(self.o))
        if self.counted:
            arrived, accepted = block.parts[block.worker].arrivals(self.parts[block.worker])
            m.d.comb += [self.busy.eq(arrived & accepted), self.waiting.eq(arrived & ~accepted)]
        return m
