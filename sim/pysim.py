"""Stream components driven in Amaranth's own simulator, with pauses at every end."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from amaranth import Cat, ClockDomain, Const, Module, Shape, Value
from amaranth.hdl import ShapeCastable
from amaranth.lib.data import Layout
from amaranth.sim import Simulator

from nnef_hw.errors import CheckError

__all__ = ["StreamBench", "StreamRun", "run_stream", "run_streams"]

_HALF_CYCLE = 5e-7
_FIRST_LOOKS = 32
"""Cycles in which it is always checked that ``valid`` does not depend on ``ready``."""
_LOOK = 1 / 8
"""Share of the later cycles in which it is, if the component is proved to keep that rule."""


@dataclass(slots=True)
class StreamRun:
    """Transfers on the streams, by their names; cycle 0 is the first one."""

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

    The stream rules are checked: once raised, an output's ``valid`` stays, with its payload, until
    taken, and it does not depend on ``ready``. Of components with a proof, the latter is checked in
    the first cycles and in some of the later ones: every look makes the design settle twice more.
    When all output has come, the rest of the input must be taken and nothing may follow for
    ``quiet`` cycles.

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
    stall : float or tuple[float, ...]
        Probability per cycle that a source offers nothing new, and that a sink is not ready. With
        several, the component is run from reset with each, which must not change what it gives;
        the result is that of the first.
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
        Deadlock, surplus output, output that depends on pauses, or a broken stream rule.
    """
    bench = StreamBench(component)
    first, *others = stall if isinstance(stall, tuple) else (stall,)
    options = {"rng": rng, "idle_limit": idle_limit, "quiet": quiet}
    run = bench.run(inputs, expected, stall=first, vcd=vcd, **options)
    for pauses in others:
        paused = bench.run(inputs, expected, stall=pauses, **options)
        for name, items in run.items.items():
            if paused.items[name] != items:
                raise CheckError(f"{name} gives something else under stalls of {pauses}")
    return run


class StreamBench:
    """A component that is elaborated once, and run as often as one likes.

    Parameters
    ----------
    component : wiring.Component
        What is tested.
    """

    def __init__(self, component):
        self._component = component
        self._look = 1.0 if hasattr(component, "unproved") else _LOOK
        m = Module()
        # a component without registers has no clock domain of its own
        domain = ClockDomain("sync")
        m.domains += domain
        m.submodules.dut = component
        self._clock = domain.clk
        self._simulator = Simulator(m)
        self._simulator.add_testbench(self._run_bench)
        self._bench = None

    async def _run_bench(self, ctx):
        await self._bench(ctx)

    def run(self, inputs, expected, *, rng, stall=0.0, idle_limit=10_000, quiet=32, vcd=None):
        """Run the simulation from reset. See :func:`run_streams`."""
        sources = [_Source(name, getattr(self._component, name), inputs[name]) for name in inputs]
        sinks = [_Sink(name, getattr(self._component, name), expected[name]) for name in expected]
        ends = (*sources, *sinks)
        # The bench is the clock: two settlings per cycle, one for all that changes with its fall.
        drivers = Cat(self._clock, *(end.driver for end in ends))
        places = list(accumulate((len(end.driver) for end in ends), initial=1))
        looks = rng.spawn(1)[0]

        async def bench(ctx):
            cycle = idle = watched = driven = 0
            while watched < quiet:
                wanted = 0
                for end, place in zip(ends, places, strict=False):
                    wanted |= end.offer(pause=rng.random() < stall) << place
                if wanted == driven:
                    ctx.set(self._clock, 0)
                else:
                    ctx.set(drivers, wanted)
                    driven = wanted
                if cycle < _FIRST_LOOKS or looks.random() < self._look:
                    for sink in sinks:
                        sink.look(ctx)
                values = [[ctx.get(signal) for signal in end.sampled] for end in ends]
                if vcd is not None:
                    await ctx.delay(_HALF_CYCLE)
                ctx.set(self._clock, 1)
                if vcd is not None:
                    await ctx.delay(_HALF_CYCLE)
                moved = [end.observe(cycle, *seen) for end, seen in zip(ends, values, strict=True)]

                if all(end.is_done for end in ends):
                    watched += 1
                idle = 0 if any(moved) else idle + 1
                if idle > idle_limit:
                    state = ", ".join(end.progress for end in ends)
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
        self.items = [*map(_packer(stream.payload.shape()), items)]
        self.cycles = []
        self.driver = Cat(stream.valid, stream.payload)
        self.sampled = (stream.ready,)
        self._offered = False

    @property
    def is_done(self):
        return len(self.cycles) == len(self.items)

    @property
    def progress(self):
        return f"{self.name} took {len(self.cycles)} of {len(self.items)}"

    def offer(self, *, pause):
        """Return the next bits of ``driver``."""
        if not self._offered and not self.is_done:
            self._offered = not pause
        # while nothing is offered another payload shows: nobody may look at it
        position = len(self.cycles)
        shown = position if self._offered else (position * 7 + 3) % max(1, len(self.items))
        return self.items[shown] << 1 | self._offered if self.items else 0

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
        self.driver = stream.ready
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

    def offer(self, *, pause):
        """Return the next value of ``ready``."""
        self._ready = not pause
        return int(self._ready)

    def look(self, ctx):
        """Show the other ``ready`` for a moment: ``valid`` has to be the same beside both."""
        seen = ctx.get(self._stream.valid)
        ctx.set(self._stream.ready, not self._ready)
        other = ctx.get(self._stream.valid)
        ctx.set(self._stream.ready, self._ready)
        if seen != other:
            raise CheckError(f"{self.name}.valid depends on {self.name}.ready ({self.progress})")

    def observe(self, cycle, valid, payload):
        complaint = ""
        if self._held is not None and not valid:
            complaint = "valid fell before the payload was taken"
        elif self._held is not None and payload != self._held:
            complaint = "payload changed while it was waiting"
        if complaint:
            raise CheckError(f"{self.name}.{complaint} in cycle {cycle} ({self.progress})")
        if valid and self.is_done:
            surplus = f"{self.name} has surplus output {_value(self._shape, payload)!r}"
            raise CheckError(f"{surplus} in cycle {cycle} ({self.progress})")
        self._held = payload if valid and not self._ready else None
        if not (valid and self._ready):
            return False
        self.items.append(_value(self._shape, payload))
        self.cycles.append(cycle)
        return True


def _packer(shape):
    """Return the function that gives the bits of a payload, as one number.

    Layouts can do that themselves, and make several objects for every field of every payload.
    """
    if isinstance(shape, Layout):
        fields = {key: (field.offset, _packer(field.shape)) for key, field in shape}

        def pack(item):
            if not isinstance(item, Mapping | list | tuple):
                return shape.const(item).as_bits()
            bits = 0
            for key, value in item.items() if isinstance(item, Mapping) else enumerate(item):
                offset, pack_field = fields[key]
                bits |= pack_field(value) << offset
            return bits

        return pack
    if isinstance(shape, ShapeCastable):
        cast = Shape.cast(shape)
        return lambda item: _masked(Const.cast(shape.const(item)).value, cast)
    return lambda item: _masked(operator.index(item), Shape.cast(shape))


def _masked(value, shape):
    return value & ((1 << shape.width) - 1)


def _value(shape, payload):
    """Return a payload as what its shape makes of the bits."""
    return shape.from_bits(payload) if isinstance(shape, ShapeCastable) else payload
