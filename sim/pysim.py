"""Stream components driven in Amaranth's own simulator, with pauses at every end."""

from dataclasses import dataclass, field

from amaranth import Cat, ClockDomain, Const, Module, Value
from amaranth.hdl import ShapeCastable
from amaranth.sim import Simulator

from nnef_hw.errors import CheckError

__all__ = ["StreamBench", "StreamRun", "run_stream", "run_streams"]


@dataclass(slots=True)
class StreamRun:
    """What happened on the streams, by their names; cycle 0 is the first one."""

    items: dict[str, list] = field(default_factory=dict)
    in_cycles: dict[str, list] = field(default_factory=dict)
    out_cycles: dict[str, list] = field(default_factory=dict)


def run_stream(component, items, *, expected=None, cycles=False, **options):
    """Feed ``component.i`` and collect what comes out of ``component.o``.

    Parameters
    ----------
    component : wiring.Component
        What is tested.
    items : iterable
        Payloads: whatever the payload's shape accepts, such as dicts or integers.
    expected : int, optional
        Number of output payloads; as many as there are inputs by default.
    cycles : bool
        Return ``(outputs, in_cycles, out_cycles)``, with the cycles in which payloads moved.
    **options
        See :func:`run_streams`.

    Returns
    -------
    list
        Output payloads; a structure's fields are attributes.
    """
    items = list(items)
    expected = len(items) if expected is None else expected
    run = run_streams(component, {"i": items}, {"o": expected}, **options)
    outputs = run.items["o"]
    return (outputs, run.in_cycles["i"], run.out_cycles["o"]) if cycles else outputs


def run_streams(
    component, inputs, expected, *, rng, stall=0.0, idle_limit=10_000, quiet=32, vcd=None
):
    """Feed several input streams and collect several output streams.

    The stream rules are checked in every cycle: an output's ``valid`` does not depend on
    ``ready``, and once raised it stays, with its payload, until taken. When all output has come,
    the rest of the input must be taken and nothing may follow for ``quiet`` cycles.

    Parameters
    ----------
    component : wiring.Component
        What is tested.
    inputs : dict[str, list]
        Payloads per input stream.
    expected : dict[str, int]
        Number of payloads per output stream.
    rng : numpy.random.Generator
        Decides when to pause.
    stall : float
        Probability per cycle that a source offers nothing new, and that a sink is not ready.
    idle_limit : int
        Cycles in which nothing moves that count as a deadlock.
    quiet : int
        Cycles to watch for surplus output.
    vcd : path-like, optional
        Waveform to write.

    Returns
    -------
    StreamRun

    Raises
    ------
    CheckError
        Deadlock, surplus output, or a broken stream rule.
    """
    return StreamBench(component).run(
        inputs, expected, rng=rng, stall=stall, idle_limit=idle_limit, quiet=quiet, vcd=vcd
    )


class StreamBench:
    """A component that is elaborated once, and run as often as one likes.

    Parameters
    ----------
    component : wiring.Component
        What is tested.
    """

    def __init__(self, component):
        self._component = component
        m = Module()
        # a component without registers has no clock domain of its own
        m.domains.sync = ClockDomain()
        m.submodules.dut = component
        self._simulator = Simulator(m)
        self._simulator.add_clock(1e-6)
        self._simulator.add_testbench(self._run_bench)
        self._bench = None

    async def _run_bench(self, ctx):
        await self._bench(ctx)

    def run(self, inputs, expected, *, rng, stall=0.0, idle_limit=10_000, quiet=32, vcd=None):
        """Run it from reset. See :func:`run_streams`."""
        sources = [_Source(name, getattr(self._component, name), inputs[name]) for name in inputs]
        sinks = [_Sink(name, getattr(self._component, name), expected[name]) for name in expected]

        async def bench(ctx):
            cycle = idle = watched = 0
            while watched < quiet:
                for source in sources:
                    source.drive(ctx, pause=rng.random() < stall)
                for sink in sinks:
                    sink.drive(ctx, pause=rng.random() < stall)
                signals = [s for end in (*sources, *sinks) for s in end.sampled]
                _, _, *values = await ctx.tick().sample(*signals)
                values = iter(values)
                moved = [source.observe(cycle, next(values)) for source in sources]
                moved += [sink.observe(cycle, next(values), next(values)) for sink in sinks]

                if all(end.is_done for end in (*sources, *sinks)):
                    watched += 1
                idle = 0 if any(moved) else idle + 1
                if idle > idle_limit:
                    state = ", ".join(end.progress for end in (*sources, *sinks))
                    raise CheckError(f"nothing moved for {idle_limit} cycles after {state}")
                cycle += 1

        if self._bench is not None:
            self._simulator.reset()
        self._bench = bench
        if vcd is None:
            self._simulator.run()
        else:
            with self._simulator.write_vcd(str(vcd)):
                self._simulator.run()
        return StreamRun(
            items={sink.name: sink.items for sink in sinks},
            in_cycles={source.name: source.cycles for source in sources},
            out_cycles={sink.name: sink.cycles for sink in sinks},
        )


class _Source:
    """Offers payloads in order; an offer stands until it is taken."""

    def __init__(self, name, stream, items):
        self.name = name
        shape = stream.payload.shape()
        self.items = [_bits(shape, item) for item in items]
        self.cycles = []
        self.sampled = (stream.ready,)
        self._offer = Cat(stream.valid, stream.payload)
        self._offered = False
        self._driven = None

    @property
    def is_done(self):
        return len(self.cycles) == len(self.items)

    @property
    def progress(self):
        return f"{self.name} took {len(self.cycles)} of {len(self.items)}"

    def drive(self, ctx, *, pause):
        if not self._offered and not self.is_done:
            self._offered = not pause
        # while nothing is offered another payload shows: nobody may look at it
        position = len(self.cycles)
        shown = position if self._offered else (position * 7 + 3) % max(1, len(self.items))
        offer = self.items[shown] << 1 | self._offered if self.items else 0
        if offer != self._driven:
            ctx.set(self._offer, offer)
            self._driven = offer

    def observe(self, cycle, ready):
        if not (self._offered and ready):
            return False
        self.cycles.append(cycle)
        self._offered = False
        return True


class _Sink:
    """Takes payloads and checks that the stream keeps its rules."""

    def __init__(self, name, stream, expected):
        self.name, self.expected = name, expected
        self.items, self.cycles = [], []
        self.sampled = (stream.valid, Value.cast(stream.payload))
        self._stream = stream
        self._shape = stream.payload.shape()
        self._ready = False
        self._held = None

    @property
    def is_done(self):
        return len(self.items) == self.expected

    @property
    def progress(self):
        return f"{self.name} gave {len(self.items)} of {self.expected}"

    def drive(self, ctx, *, pause):
        """Set ``ready``, after the other value: ``valid`` has to be the same beside both."""
        self._ready = not pause
        seen = set()
        for ready in (pause, not pause):
            ctx.set(self._stream.ready, ready)
            seen.add(ctx.get(self._stream.valid))
        if len(seen) > 1:
            raise CheckError(f"{self.name}.valid depends on {self.name}.ready ({self.progress})")

    def observe(self, cycle, valid, payload):
        where = f"in cycle {cycle} ({self.progress})"
        if self._held is not None and not valid:
            raise CheckError(f"{self.name}.valid fell before the payload was taken {where}")
        if self._held is not None and payload != self._held:
            raise CheckError(f"{self.name}.payload changed while it was waiting {where}")
        if valid and self.is_done:
            surplus = _value(self._shape, payload)
            raise CheckError(f"{self.name} has surplus output {surplus!r} {where}")
        self._held = payload if valid and not self._ready else None
        if not (valid and self._ready):
            return False
        self.items.append(_value(self._shape, payload))
        self.cycles.append(cycle)
        return True


def _bits(shape, item):
    """Return the bits of a payload, as one number."""
    const = (
        Const.cast(shape.const(item)) if isinstance(shape, ShapeCastable) else Const(item, shape)
    )
    return const.value & ((1 << len(const)) - 1)


def _value(shape, payload):
    """Return a payload as what its shape makes of the bits."""
    return shape.from_bits(payload) if isinstance(shape, ShapeCastable) else payload
