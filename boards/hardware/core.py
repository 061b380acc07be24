# amaranth: UnusedElaboratable=no
"""The accelerator and its host link: everything on a board but pins and clock."""

from functools import partial

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from nnef_hw.boards.hardware.beats import BeatSerializer, beat_bytes
from nnef_hw.boards.hardware.clocks import BOARD_DOMAIN
from nnef_hw.boards.hardware.clocks.crossing import ByteCrossing
from nnef_hw.boards.hardware.clocks.ratio import ClockRatio
from nnef_hw.boards.hardware.counters import InferenceCounters, LayerCounters
from nnef_hw.boards.hardware.frames import (
    BYTE_LAYOUT,
    FrameGate,
    FrameMerger,
    FrameSplitter,
    joined,
    part,
)
from nnef_hw.boards.hardware.link import PacketLink
from nnef_hw.boards.hardware.loader import ImageLoader
from nnef_hw.boards.hardware.phy import MIN_BYTE_CYCLES, PinnedCore
from nnef_hw.boards.hardware.replay import Replayer
from nnef_hw.boards.hardware.tokens.writer import TextWriter
from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.host.protocol import LOST_BITS, RATIO_CYCLES, identity_payload
from nnef_hw.rtl.base.reset import WithReset
from nnef_hw.rtl.streams.fork import Fork

__all__ = ["LinkedCore"]

IDLE_SECONDS = 0.01


class LinkedCore(PinnedCore):
    """Serve an accelerator to a host over a few wires, by the protocol of docs/protocol.md.

    This is what is simulated when a board is: the board's top adds only the clock and the reset.

    Parameters
    ----------
    accelerator : wiring.Component
        Has an input stream ``i`` and an output stream ``o`` of ``StructLayout({"data":
        ArrayLayout(codes, lanes), "last": 1})``, or several. Every session restarts it: by
        ``restart`` and ``restarted``, if it has them as
        :class:`~nnef_hw.streaming.hardware.accelerator.Accelerator` does. If it has a stream
        ``image``, the host's first ``image_bytes`` bytes go there.
    clk_hz : int
        Clock of everything; or with ``has_own_clock`` that of the oscillator.
    has_own_clock : bool
        The accelerator has a clock of its own, which is known only after routing: in ``sync``
        there is nothing that depends on its frequency. The phy of a link that keeps time runs in
        ``board``, the oscillator's domain, and ``COUNTERS`` tell the ratio of the two.
    link : HostLink
        What leads to the host; by default a UART.
    sources : Mapping[str, Source]
        By stream of the accelerator, where inputs come from that are not the host's.
    sinks : Mapping[str, Sequence[Sink]]
        By stream of the accelerator, where outputs go besides the host.
    loop : ChipLoop or None
        The streams, all others of which are the host's, that the board itself feeds and takes in
        sessions of texts.
    manifest_hash : bytes
        The 32 bytes by which a host recognises the build.
    frames : Mapping[str, int] or None
        Beats of a frame per stream of the accelerator, in the order of the link. Without it the
        streams are ``i`` and ``o``, and the link refuses ``REPLAY``.
    queues : Mapping[str, wiring.Component]
        Holds, per stream, the beats of a frame that wait for those of other streams: at all inputs
        of the host but the last and at all outputs but the first. Each has streams ``i`` and ``o``.
    layers : int
        Layers whose work is counted: the width of the accelerator's members ``busy`` and
        ``waiting``, of which there are none by default.
    batch : int
        Frames that enter the accelerator before the first one leaves it.
    long_wires : bool
        A wire to the accelerator may take most of a cycle: its streams pass FIFOs of registers,
        behind the queues of inputs and before those of outputs, and so do bytes that are divided
        among several of them.
    idle_cycles : int or None
        Silence after which an unfinished packet is forgotten, a power of two; by default the
        first one that lasts 10 ms or more.

    Members
    -------
    rx, tx, or the pins of another link; pins of sources and sinks
        Wires from and to the host, and others.
    reset : In(1)
        Start over; the link then restarts the accelerator too.
    board_reset : In(1)
        Only with a clock of its own: the same for what is in ``board``.
    led : Out(1)
        High while a frame is inside the accelerator.
    flash_cs_n, ...
        What goes to the pads of memories, if the accelerator has ``pads``, and of wires that
        sources and sinks pull low.

    Attributes
    ----------
    latency : int
        Cycles from the beginning of a request's last byte on the wires to the reply's first byte,
        where the accelerator has no clock of its own.
    """

    def __init__(
        self, accelerator, *, clk_hz, has_own_clock=False, link=DEFAULT_LINK, sources=None,
        sinks=None, loop=None, manifest_hash, frames=None, queues=None, layers=0, batch=1,
        long_wires=False, idle_cycles=None,
    ):
        self.has_own_clock = has_own_clock
        self.long_wires = long_wires
        self.with_replay = frames is not None
        frames = frames or {"i": None, "o": None}
        self.inputs = {name: beats for name, beats in frames.items() if name[0] == "i"}
        self.outputs = [name for name in frames if name[0] == "o"]
        self.layers, self.batch = layers, batch
        self.queues = queues or {}
        sources, sinks = sources or {}, sinks or {}
        if not (sources.keys() <= self.inputs.keys() and sinks.keys() <= set(self.outputs)):
            raise ValueError(f"streams {list(frames)} are not those of sources {list(sources)} and "
                             f"sinks {list(sinks)}")
        self.host_inputs = [name for name in self.inputs if name not in sources]
        self.loop = loop
        if loop is not None and set(loop.inputs) != set(self.host_inputs):
            raise ValueError(f"a loop of {list(loop.inputs)} leaves inputs of {self.host_inputs}")
        if set(self.queues) != {*self.host_inputs[:-1], *self.outputs[1:]}:
            raise ValueError(f"streams {list(frames)} cannot have queues {list(self.queues)}")
        self.phy = link.hardware_class()(**link.parameters(clk_hz))
        if self.phy.byte_cycles < MIN_BYTE_CYCLES:
            raise ValueError(f"a byte of the phy takes {self.phy.byte_cycles} cycles, under "
                             f"{MIN_BYTE_CYCLES}")
        self.layouts = {name: getattr(accelerator, name).payload.shape() for name in frames}
        self.identity = identity_payload(
            clk_hz=clk_hz, manifest_hash=manifest_hash,
            in_bytes=beat_bytes(self.layouts[self.host_inputs[0]]) if self.host_inputs else 0,
            out_bytes=beat_bytes(self.layouts[self.outputs[0]]))
        self.tick_cycles = RATIO_CYCLES if has_own_clock else 1
        if idle_cycles is None:
            # where ticks are counted the first one may come at once
            least = int(clk_hz * IDLE_SECONDS) + self.tick_cycles - 1
            idle_cycles = 1 << (least - 1).bit_length()
        idle_cycles = max(idle_cycles, 2 * self.tick_cycles)
        if idle_cycles <= 2 * self.phy.byte_cycles:
            raise ValueError(f"idle_cycles of {idle_cycles} is no more than two bytes on the line")
        self.idle_cycles = idle_cycles
        self.latency = self.phy.latency + PacketLink.latency + 1
        self.with_image = "image" in accelerator.signature.members
        ends = self._make_ends(accelerator, clk_hz, sources, sinks)
        # what does not wait for the host must not wait for its reader either
        self.gated = {} if all(x.waits for x in sources.values()) else {
            name: beats for name, beats in frames.items() if name[0] == "o"}
        needs_time = [interface.title for interface, _ in ends if interface.keeps_time]
        if has_own_clock and needs_time:
            raise ValueError(f"{needs_time} need a clock that is known before routing")
        self.is_crossed = has_own_clock and link.keeps_time
        super().__init__(accelerator, [(link, self.phy), *ends],
                         **({"board_reset": In(1)} if has_own_clock else {}))

    def elaborate(self, platform):
        m = Module()
        looped = self.loop is not None
        self.as_bytes = len(self.host_inputs) != 1 or self.with_image or looped
        link = PacketLink(
            BYTE_LAYOUT if self.as_bytes else self.layouts[self.host_inputs[0]],
            identity=self.identity, idle_cycles=self.idle_cycles // self.tick_cycles,
            with_data=bool(self.host_inputs), with_replay=self.with_replay, layers=self.layers,
            with_memory=bool(self.pads), with_image=self.with_image, with_lost=bool(self.losing),
            with_texts=looped, with_ratio=self.has_own_clock,
            long_wires=self.long_wires)
        m.submodules.link = WithReset(link, self.reset)
        self._join(m, link)
        self._connect_pins(m)

        accelerator = self.accelerator
        if self.pads:
            m.d.comb += link.memory_error.eq(accelerator.memory_error)
        m.d.comb += link.restarted.eq(self._add_accelerator(m, link.abort))
        # what is before the accelerator restarts ahead of it, what is behind it after it
        ahead, behind = (partial(WithReset, reset=x) for x in (link.abort, link.restarted))
        counters = InferenceCounters(len(self.inputs), len(self.outputs), self.batch)
        m.submodules.counters = behind(counters)
        if self.layers:
            layer_counters = LayerCounters(self.layers)
            m.submodules.layer_counters = behind(layer_counters)
            m.d.comb += [
                layer_counters.left.eq(counters.left),
                layer_counters.busy.eq(accelerator.busy),
                layer_counters.waiting.eq(accelerator.waiting),
                layer_counters.layer.eq(link.layer),
                link.layer_counts.eq(layer_counters.counts),
            ]
        if self.losing:
            lost = sum(source.lost for source in self.losing)
            m.d.comb += link.lost.eq(Mux(lost >> LOST_BITS != 0, (1 << LOST_BITS) - 1, lost))
        for name, queue in self.queues.items():
            m.submodules[f"{name}_queue"] = (ahead if name in self.inputs else behind)(queue)

        # A frame is in the accelerator, or something waits beside it.
        inside, self.waiting = Signal(), []
        if looped:
            m.submodules.writer = writer = self.writer = TextWriter(self.loop, self.layouts)
            m.d.comb += [writer.restart.eq(link.abort), writer.restarted.eq(link.restarted)]
            self.waiting.append(writer.busy)
        sources = self._sources(m, ahead, link)
        replaying = self._feed(m, ahead, link, inside, sources)
        sinks = self._sinks(m, behind, link)
        for name, sink in zip(self.outputs, sinks, strict=True):
            sink = self._shared(m, behind, name, sink)
            result = self._hop(m, behind, name, getattr(accelerator, name))
            m.d.comb += [
                sink.payload.eq(result.payload),
                sink.valid.eq(result.valid & ~replaying),
                result.ready.eq(sink.ready | replaying),
            ]

        inputs = [getattr(accelerator, name) for name in self.inputs]
        outputs = [getattr(accelerator, name) for name in self.outputs]
        m.d.comb += [
            counters.input_taken.eq(Cat(stream.valid & stream.ready for stream in inputs)),
            counters.input_last.eq(Cat(stream.p.last for stream in inputs)),
            counters.output_taken.eq(Cat(stream.valid & stream.ready for stream in outputs)),
            counters.output_last.eq(Cat(stream.p.last for stream in outputs)),
            link.counts.eq(counters.counts),
            inside.eq(counters.busy | Cat(self.waiting).any()),
            self.led.eq(counters.busy),
            *(source.inside.eq(counters.busy) for source in self.sources.values()
              if "inside" in source.signature.members),
        ]
        return m

    def _join(self, m, link):
        """Connect phy and link, and let the link know of time where its clock does not tell."""
        phy = self.phy
        if self.has_own_clock:
            ratio = ClockRatio(BOARD_DOMAIN)
            m.submodules.ratio = WithReset(ratio, self.reset)
            m.d.comb += ratio.board_reset.eq(self.board_reset)
            m.d.comb += [link.ratio.eq(ratio.cycles), link.tick.eq(ratio.tick)]
        if not self.is_crossed:
            m.submodules.phy = WithReset(phy, self.reset)
            wiring.connect(m, phy.o, link.i_rx)
            wiring.connect(m, link.o_tx, phy.i)
            return
        m.submodules.phy = DomainRenamer(BOARD_DOMAIN)(WithReset(phy, self.board_reset))
        for name, origin, source, target, end in (
            ("request", phy.o, BOARD_DOMAIN, "sync", link.i_rx),
            ("reply", link.o_tx, "sync", BOARD_DOMAIN, phy.i),
        ):
            m.submodules[f"{name}_crossing"] = crossing = ByteCrossing(source, target)
            resets = {"sync": self.reset, BOARD_DOMAIN: self.board_reset}
            m.d.comb += [
                crossing.source_reset.eq(resets[source]), crossing.target_reset.eq(resets[target]),
            ]
            wiring.connect(m, origin, crossing.i)
            wiring.connect(m, crossing.o, end)

    def _hop(self, m, resets, name, origin):
        hop = super()._hop(m, resets, name, origin)
        if self.long_wires:
            self.waiting.append(hop.valid)
        return hop

    def _sources(self, m, restart, link):
        """Return the beats of all inputs, as a stream for each."""
        found = {}
        for name, source in self.sources.items():
            m.submodules[f"{name}_source"] = restart(source)
            found[name] = source.o
        if self.host_inputs:
            found |= dict(zip(self.host_inputs, self._from_host(m, restart, link), strict=True))
        elif self.with_image:
            self._load(m, restart, link, link.o)
        return [found[name] for name in self.inputs]

    def _from_host(self, m, restart, link):
        """Return the host's beats as a stream for each of its inputs."""
        if not self.as_bytes:
            return [link.o]
        origin = self._hop(m, restart, "link", link.o)
        if self.with_image:
            # The memory is as far from the link as the accelerator is.
            origin = self._load(m, restart, link, self._hop(m, restart, "image", origin))
        splitter = FrameSplitter(
            [self.layouts[name] for name in self.host_inputs],
            [self.inputs[name] for name in self.host_inputs])
        m.submodules.splitter = restart(splitter)
        found = [self._queued(m, name, getattr(splitter, f"o{n}"))
                 for n, name in enumerate(self.host_inputs)]
        if self.loop is None:
            wiring.connect(m, origin, splitter.i)
            return found
        part(m, link.texts, origin, splitter.i, self.writer.i)
        fed = {name: getattr(self.writer, port)
               for name, port in zip(self.loop.inputs, self.writer.feeder.layouts, strict=True)}
        return [joined(m, link.texts, stream, fed[name], name)
                for name, stream in zip(self.host_inputs, found, strict=True)]

    def _load(self, m, restart, link, origin):
        """Let the memory be filled first; return the bytes of frames."""
        accelerator = self.accelerator
        loader = ImageLoader(accelerator.image_bytes)
        m.submodules.loader = WithReset(loader, self.reset)
        frames = stream.Signature(BYTE_LAYOUT).create(path=("frames",))
        m.d.comb += [
            frames.payload.eq(origin.payload),
            frames.valid.eq(origin.valid & loader.loaded),
            loader.i.payload.eq(origin.p.data[0]),
            loader.i.valid.eq(origin.valid & ~loader.loaded),
            origin.ready.eq(Mux(loader.loaded, frames.ready, loader.i.ready)),
            loader.restart.eq(link.abort),
            link.loaded.eq(loader.loaded),
            accelerator.loaded.eq(loader.loaded),
            accelerator.image.payload.eq(loader.o.payload),
            accelerator.image.valid.eq(loader.o.valid),
            loader.o.ready.eq(accelerator.image.ready),
        ]
        return frames

    def _queued(self, m, name, origin):
        queue = self.queues.get(name)
        if queue is None:
            return origin
        wiring.connect(m, origin, queue.i)
        return queue.o

    def _feed(self, m, restart, link, inside, sources):
        """Connect the inputs, with a replayer each; return whether a replay is running."""
        inputs = [getattr(self.accelerator, name) for name in self.inputs]
        if not self.with_replay:
            for name, source, target in zip(self.inputs, sources, inputs, strict=True):
                wiring.connect(m, self._hop(m, restart, name, source), target)
            return C(0)
        replaying = Signal()
        running = []
        for source, target, (name, beats) in zip(
            sources, inputs, self.inputs.items(), strict=True
        ):
            replayer = Replayer(self.layouts[name], frame_beats=beats)
            m.submodules[f"replayer{name[1:]}"] = restart(replayer)
            if name in self.sources:
                # It goes on during a replay, which takes the place of what it says.
                m.d.comb += [
                    replayer.i.payload.eq(source.payload),
                    replayer.i.valid.eq(source.valid & ~replaying),
                    source.ready.eq(replayer.i.ready & ~replaying),
                ]
            else:
                wiring.connect(m, source, replayer.i)
            wiring.connect(m, self._hop(m, restart, name, replayer.o), target)
            m.d.comb += [
                replayer.start.eq(link.replay),
                replayer.count.eq(link.replay_count),
                replayer.inside.eq(inside),
            ]
            running.append(replayer.busy)
        m.d.comb += [
            replaying.eq(Cat(running).any()),
            link.working.eq(replaying | inside),
            link.replaying.eq(replaying),
        ]
        return replaying

    def _shared(self, m, restart, name, host):
        """Return a stream to the host and to all other sinks of an output."""
        if name in self.gated:
            gate = FrameGate(self.layouts[name], self.gated[name])
            m.submodules[f"{name}_gate"] = restart(gate)
            wiring.connect(m, gate.o, host)
            host = gate.i
        if not self.sinks.get(name):
            return host
        fork = Fork(self.layouts[name], branches=1 + len(self.sinks[name]))
        m.submodules[f"{name}_fork"] = restart(fork)
        wiring.connect(m, fork.o0, host)
        for n, sink in enumerate(self.sinks[name]):
            m.submodules[f"{name}_sink{n}"] = restart(sink)
            wiring.connect(m, getattr(fork, f"o{n + 1}"), sink.i)
        return fork.i

    def _sinks(self, m, restart, link):
        """Return where the beats of every output go on the way to the host."""
        layouts = [self.layouts[name] for name in self.outputs]
        if len(layouts) == 1:
            serializer = BeatSerializer(layouts[0])
            m.submodules.serializer = restart(serializer)
            self._answer(m, link, serializer.o)
            sinks = [serializer.i]
        else:
            merger = FrameMerger(layouts)
            m.submodules.merger = restart(merger)
            self._answer(m, link, merger.o)
            sinks = [merger.i0]
            for n, name in enumerate(self.outputs[1:], 1):
                wiring.connect(m, self.queues[name].o, getattr(merger, f"i{n}"))
                sinks.append(self.queues[name].i)
        if self.loop is None:
            return sinks
        return [self._parted(m, name, link.texts, sink)
                for name, sink in zip(self.outputs, sinks, strict=True)]

    def _answer(self, m, link, result):
        """Let the link send the bytes of results, or in sessions of texts the loop's."""
        if self.loop is not None:
            result = joined(m, link.texts, result, self.writer.o, "result")
        wiring.connect(m, result, link.i_result)

    def _parted(self, m, name, texts, sink):
        """Return a stream whose beats of texts go to the loop, or nowhere."""
        layout = self.layouts[name]
        whole = stream.Signature(layout).create(path=(f"{name}_whole",))
        if name == self.loop.scores:
            other = self.writer.i_scores
        else:
            other = stream.Signature(layout).create(path=(f"{name}_dropped",))
            m.d.comb += other.ready.eq(1)
        part(m, texts, whole, sink, other)
        return whole
