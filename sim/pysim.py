"""Stream components driven in Amaranth's own simulator, with pauses at every end."""

from dataclasses import dataclass, field

from amaranth import ClockDomain, Module
from amaranth.sim import Simulator

from nnef_hw.errors import CheckError

__all__ = ["StreamRun", "run_stream", "run_streams"]


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
    sources = [_Source(name, getattr(component, name), list(inputs[name])) for name in inputs]
    sinks = [_Sink(name, getattr(component, name), expected[name]) for name in expected]

    async def bench(ctx):
        cycle = idle = watched = 0
        while watched < quiet:
            for source in sources:
                source.drive(ctx, pause=rng.random() < stall)
            for sink in sinks:
                sink.check_independence(ctx)
            for sink in sinks:
                sink.drive(ctx, pause=rng.random() < stall)
            signals = [s for source in sources for s in source.sampled]
            signals += [s for sink in sinks for s in sink.sampled]
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

    m = Module()
    # a component without registers has no clock domain of its own
    m.domains.sync = ClockDomain()
    m.submodules.dut = component
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    if vcd is None:
        simulator.run()
    else:
        with simulator.write_vcd(str(vcd)):
            simulator.run()
    return StreamRun(
        items={sink.name: sink.items for sink in sinks},
        in_cycles={source.name: source.cycles for source in sources},
        out_cycles={sink.name: sink.cycles for sink in sinks},
    )


class _Source:
    """Offers payloads in order; an offer stands until it is taken."""

    def __init__(self, name, stream, items):
        self.name, self.stream, self.items = name, stream, items
        self.cycles = []
        self.sampled = (stream.ready,)
        self._offered = False

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
            shown = position if self._offered else (position * 7 + 3) % len(self.items)
            ctx.set(self.stream.payload, self.items[shown])
        ctx.set(self.stream.valid, self._offered)

    def observe(self, cycle, ready):
        if not (self._offered and ready):
            return False
        self.cycles.append(cycle)
        self._offered = False
        return True


class _Sink:
    """Takes payloads and checks that the stream keeps its rules."""

    def __init__(self, name, stream, expected):
        self.name, self.stream, self.expected = name, stream, expected
        self.items, self.cycles = [], []
        self.sampled = (stream.valid, stream.payload)
        self._ready = False
        self._held = None

    @property
    def is_done(self):
        return len(self.items) == self.expected

    @property
    def progress(self):
        return f"{self.name} gave {len(self.items)} of {self.expected}"

    def check_independence(self, ctx):
        seen = set()
        for ready in (0, 1):
            ctx.set(self.stream.ready, ready)
            seen.add(ctx.get(self.stream.valid))
        if len(seen) > 1:
            raise CheckError(f"{self.name}.valid depends on {self.name}.ready ({self.progress})")

    def drive(self, ctx, *, pause):
        self._ready = not pause
        ctx.set(self.stream.ready, self._ready)

    def observe(self, cycle, valid, payload):
        where = f"in cycle {cycle} ({self.progress})"
        if self._held is not None and not valid:
            raise CheckError(f"{self.name}.valid fell before the payload was taken {where}")
        if self._held is not None and payload != self._held:
            raise CheckError(f"{self.name}.payload changed while it was waiting {where}")
        if valid and self.is_done:
            raise CheckError(f"{self.name} has surplus output {payload!r} {where}")
        self._held = payload if valid and not self._ready else None
        if not (valid and self._ready):
            return False
        self.items.append(payload)
        self.cycles.append(cycle)
        return True
