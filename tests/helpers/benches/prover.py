"""Proofs that a stream component keeps its contract, for every input and every stall, for ever.

What is proved of a component is a :class:`Claim`. :class:`Surroundings` is hardware around it that
offers and takes beats whenever a solver likes, resets both whenever it likes, and raises a wire for
each promise that is broken:

``order``
    A beat that is offered is the one that is due: nothing is lost, doubled, reordered or
    overwritten, and ``last`` is in its place.
``stable``
    A beat that waits stays, and does not change.
``alive``
    With all ports willing something moves within ``patience`` cycles; inputs need not be offered
    for beats whose operands have all come.
``bounded``
    No more frames are inside than the claim says, and none is given before one has come.

Frames of a component whose data move independently of their values are told apart by a mark: all
codes are equal but one, which stands in any place of any frame, both chosen by the solver (P.
Wolper, "Expressing interesting properties of programs in propositional temporal logic", POPL 1986).
A golden model says what becomes of the mark. Of a component that computes this proves sums, tables
and maxima of such frames; that it computes the same with all others is what its tests are for.

yosys writes the whole as an and-inverter graph. ABC's ``pdr`` (A. R. Bradley, "SAT-based model
checking without unrolling", VMCAI 2011; N. Een et al., FMCAD 2011) finds an invariant by induction,
or else the shortest run that breaks a promise. Both come with pyosys.

A word that is read from a memory in the cycle in which it is written is whatever the solver likes.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from amaranth import Cat, Const, Elaboratable, Module, Mux, ResetSignal, Signal, Value
from amaranth.asserts import AnySeq
from amaranth.back import rtlil

from nnef_hw.rtl.base.memory import SinglePortMemory, TiledMemory
from nnef_hw.system.tools import run_tool

__all__ = ["PROMISES", "Claim", "Verdict", "find_mutant", "prove", "ready_to_valid"]

PROMISES = ("order", "stable", "alive", "bounded")

Frames = Sequence[Sequence[Any]]
"""Payloads of a frame for each mark; the first frame has none. None is any payload."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What is promised of a component.

    Parameters
    ----------
    component
        Is elaborated once.
    inputs
        Frames of payloads by the name of a port.
    outputs
        Frames of the results; of an image without an end a list of them: those of the marked frame,
        of the one after it ...
    ahead
        Payloads that an output gives after reset, before those of the first frame.
    patience
        Cycles within which something moves.
    frame_bits
        Less than ``2**frame_bits - 2`` whole frames are inside.
    together
        Beats of a result that need the operands of all of them.
    needs
        The last beat that each beat of a result needs, where marks do not show it.
    flushes
        Whether a result needs no input but its operands.
    """

    component: Any
    inputs: Mapping[str, Frames]
    outputs: Mapping[str, Any]
    ahead: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    patience: int = 6
    frame_bits: int = 2
    together: int = 1
    needs: Sequence[int] = ()
    flushes: bool = True

    @property
    def marks(self) -> int:
        """How many marks there are, none included."""
        return max(map(len, [*self.inputs.values(), *map(_first, self.outputs.values())]))


@dataclass(frozen=True)
class Verdict:
    """What came of a proof: the promise that was broken and after how many cycles, if one was."""

    proved: bool
    broken: str | None
    frames: int | None
    seconds: float
    log: str


def _first(frames: Any) -> Frames:
    """Return the frames of a port that belong to the marked frame itself."""
    return frames[0] if _is_list_of_frames(frames) else frames


def _is_list_of_frames(frames: Any) -> bool:
    first = frames[0][0]
    return isinstance(first, list | tuple)


class _Port:
    """Place and frame of the next beat of a port."""

    def __init__(self, m, name, frame_beats, frame_bits):
        self.name, self.beats = name, frame_beats
        self.position = Signal(range(frame_beats), name=f"{name}_position")
        self.frame = Signal(frame_bits, name=f"{name}_frame")
        self.moves = Signal(name=f"{name}_moves")
        with m.If(self.moves):
            final = self.position == frame_beats - 1
            m.d.sync += self.position.eq(Mux(final, 0, self.position + 1))
            with m.If(final):
                m.d.sync += self.frame.eq(self.frame + 1)


class Surroundings(Elaboratable):
    """A component between ports that do what the solver likes; see the module."""

    def __init__(self, claim: Claim):
        self.claim = claim
        self.component = claim.component
        self.offers = {name: Signal(name=f"offer_{name}") for name in claim.inputs}
        self.takes = {name: Signal(name=f"take_{name}") for name in claim.outputs}
        self.wish = Signal(range(claim.marks), name="wish")
        self.wish_frame = Signal(claim.frame_bits, name="wish_frame")
        self.broken = {name: Signal(name=f"broken_{name}") for name in PROMISES}

    @property
    def ports(self):
        return [*self.offers.values(), *self.takes.values(), self.wish, self.wish_frame,
                *self.broken.values()]  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.component
        # Which mark there is, and in which frame, is decided once.
        begun, mark, marked = Signal(), Signal.like(self.wish), Signal.like(self.wish_frame)
        kept_mark, kept_frame = Signal.like(self.wish), Signal.like(self.wish_frame)
        m.d.comb += [
            mark.eq(Mux(begun, kept_mark, self.wish)),
            marked.eq(Mux(begun, kept_frame, self.wish_frame)),
        ]
        m.d.sync += [begun.eq(1), kept_mark.eq(mark), kept_frame.eq(marked)]
        inputs = {name: self._source(m, name, mark, marked) for name in self.claim.inputs}
        outputs = {name: self._sink(m, name, mark, marked) for name in self.claim.outputs}
        self._watch(m, inputs, outputs)
        return m

    def _source(self, m, name, mark, marked):
        """Offer the beats of a port; what is offered stays."""
        stream, frames = getattr(self.component, name), self.claim.inputs[name]
        port = _Port(m, name, len(frames[0]), self.claim.frame_bits)
        held = Signal(name=f"{name}_held")
        payload = Value.cast(stream.payload)
        m.d.comb += [
            stream.valid.eq(held | self.offers[name]),
            port.moves.eq(stream.valid & stream.ready),
        ]
        m.d.sync += held.eq(stream.valid & ~stream.ready)
        value, _ = _table(m, f"{name}_payload", frames, port, Mux(port.frame == marked, mark, 0))
        m.d.comb += payload.eq(value)
        return port

    def _sink(self, m, name, mark, marked):
        """Take the beats of a port and compare them."""
        stream, frames = getattr(self.component, name), self.claim.outputs[name]
        lags = list(frames) if _is_list_of_frames(frames) else [frames]
        port = _Port(m, name, len(lags[0][0]), self.claim.frame_bits)
        payload = Value.cast(stream.payload)
        ahead = list(self.claim.ahead.get(name, ()))
        given = Signal(range(len(ahead) + 1), name=f"{name}_given")
        ahead_of_frames = given != len(ahead)
        moves = stream.valid & stream.ready
        m.d.comb += [
            stream.ready.eq(self.takes[name]),
            port.moves.eq(moves & ~ahead_of_frames),
        ]
        with m.If(moves & ahead_of_frames):
            m.d.sync += given.eq(given + 1)
        due = Signal(len(payload), name=f"{name}_due")
        matters = Signal(len(payload), name=f"{name}_matters")
        with m.If(ahead_of_frames), m.Switch(given):
            for n, item in enumerate(ahead):
                with m.Case(n):
                    m.d.comb += [due.eq(item), matters.eq(-1)]
        passed = Signal(name=f"{name}_passed")
        with m.If(port.moves & (port.frame == marked)):
            m.d.sync += passed.eq(1)
        for lag, of_lag in enumerate(lags):
            follows = (port.frame == (marked + lag)[: len(marked)]) & (passed if lag else 1)
            value, mask = _table(m, f"{name}_due{lag}", of_lag, port, Mux(follows, mark, 0))
            with m.If(~ahead_of_frames & (follows if lag else 1)):
                m.d.comb += [due.eq(value), matters.eq(mask)]
        waited, waiting = Signal(name=f"{name}_waited"), Signal.like(payload)
        m.d.sync += [waited.eq(stream.valid & ~stream.ready), waiting.eq(payload)]
        with m.If(stream.valid & ((payload ^ due) & matters).any() & ~ResetSignal()):
            m.d.comb += self.broken["order"].eq(1)
        with m.If(waited & ~(stream.valid & (payload == waiting)) & ~ResetSignal()):
            m.d.comb += self.broken["stable"].eq(1)
        return port

    def _watch(self, m, inputs, outputs):
        """Tell when nothing moves though it could, and when too much is inside."""
        claim = self.claim
        streams = {name: getattr(self.component, name) for name in (*inputs, *outputs)}
        moves = Cat(stream.valid & stream.ready for stream in streams.values()).any()
        takes = Cat(streams[name].ready for name in outputs).all()
        offers = Cat(streams[name].valid for name in inputs).all() if inputs else Const(1)
        owed = Const(0)
        for name, target in outputs.items():
            complete = Const(1)
            for source_name, source in inputs.items():
                lead = Signal(claim.frame_bits, name=f"lead_{source_name}_{name}")
                m.d.comb += lead.eq(source.frame - target.frame)
                # A result may be given before the rest of its frame is taken, so -1 is possible.
                with m.If((lead == (1 << claim.frame_bits) - 2) & ~ResetSignal()):
                    m.d.comb += self.broken["bounded"].eq(1)
                needs = claim.needs or _needs(
                    claim.inputs[source_name], _first(claim.outputs[name]), claim.together
                )
                need = _lookup(m, f"need_{source_name}_{name}", target.position, needs)
                has_come = Mux(
                    lead == 0, source.position > need, lead != (1 << claim.frame_bits) - 1
                )
                complete = complete & has_come
            owed = owed | complete
        willing = takes & (offers | owed if claim.flushes else offers)
        idle = Signal(range(claim.patience + 1))
        m.d.sync += idle.eq(0)
        with m.If(willing & ~moves):
            m.d.sync += idle.eq(Mux(idle == claim.patience, idle, idle + 1))
        m.d.comb += self.broken["alive"].eq((idle == claim.patience) & ~ResetSignal())


def _needs(inputs: Frames, outputs: Frames, together: int) -> list[int]:
    """Return for each beat of a result the last beat of a port that it or an earlier one needs."""
    needs, most = [], 0
    for beat in range(len(outputs[0])):
        for source, result in zip(inputs[1:], outputs[1:], strict=False):
            if result[beat] != outputs[0][beat]:
                most = max(most, *(n for n, (a, b) in enumerate(zip(source, inputs[0], strict=True))
                                   if a != b), 0)  # fmt: skip
        needs.append(most)
    return [needs[beat // together * together + together - 1] for beat in range(len(needs))]


def _lookup(m, name, index, values):
    value = Signal(range(max(values) + 1), name=name)
    with m.Switch(index):
        for n, item in enumerate(values):
            with m.Case(n):
                m.d.comb += value.eq(item)
    return value


def _table(m, name, frames, port, mark):
    """Return the payload of a port's beat, and the bits that matter, for frames by their mark."""
    width = max(
        1, *(int(item).bit_length() for frame in frames for item in frame if item is not None)
    )
    value, mask = Signal(width, name=name), Signal(name=f"{name}_matters", init=1)
    with m.Switch(port.position):
        for beat in range(port.beats):
            with m.Case(beat):
                m.d.comb += value.eq(frames[0][beat] or 0)
                if frames[0][beat] is None:
                    m.d.comb += mask.eq(0)
                with m.Switch(mark):
                    for n, frame in enumerate(frames):
                        if n and frame[beat] != frames[0][beat]:
                            with m.Case(n):
                                m.d.comb += value.eq(frame[beat] or 0)
                                m.d.comb += mask.eq(frame[beat] is not None)
    wide = Signal(256, name=f"{name}_mask")
    m.d.comb += wide.eq(mask.replicate(256))
    return value, wide


def _memory(self, platform):
    """Elaborate a TiledMemory; a word that is written in the cycle in which it is read is any."""
    if not self.writable or hasattr(self, "is_plain"):
        return _plain_memory(self, platform)
    registered = self.latency > 1
    plain = TiledMemory(
        self.tiling, words=self.words, writable=True, registered=registered, style=self.style
    )
    collides = (self.read_enable & self.write_enable
                & (self.read_address == self.write_address))  # fmt: skip
    enables = [self.register_enable] if registered else []
    return _undefined_after(self, plain, collides, self.read_enable, *enables)


def _single_port(self, platform):
    """Elaborate a SinglePortMemory; what was not read in the cycle before is any word."""
    if hasattr(self, "is_plain"):
        return _plain_single_port(self, None)
    plain = SinglePortMemory(self.ram, depth=self.depth, width=len(self.read_data))
    return _undefined_after(self, plain, ~self.read_enable | self.write_enable, Const(1))


def _undefined_after(memory, plain, undefined, *changes):
    """Return a memory that gives any word after a cycle that leaves it undefined.

    ``changes`` tell when what is read changes, and the register behind it if there is one.
    """
    m = Module()
    plain.is_plain = True
    m.submodules.plain = plain
    is_any, word = undefined, AnySeq(len(memory.read_data))
    for n, enable in enumerate(changes):
        was_any, found = Signal(name=f"is_any{n}"), Signal(len(word), name=f"word{n}")
        with m.If(enable):
            m.d.sync += [was_any.eq(is_any), found.eq(word)]
        is_any, word = was_any, found
    for name in memory.signature.members:
        if name != "read_data":
            m.d.comb += getattr(plain, name).eq(getattr(memory, name))
    m.d.comb += memory.read_data.eq(Mux(is_any, word, plain.read_data))
    return m


_plain_memory, _plain_single_port = TiledMemory.elaborate, SinglePortMemory.elaborate


def _rtlil(claim: Claim) -> str:
    surroundings = Surroundings(claim)
    with (
        mock.patch.object(TiledMemory, "elaborate", _memory),
        mock.patch.object(SinglePortMemory, "elaborate", _single_port),
    ):
        return rtlil.convert(surroundings, ports=surroundings.ports, name="surroundings")


COMPONENT = "surroundings.dut*"
READ = "read_rtlil claim.il; hierarchy -top surroundings; proc; memory_collect"
GATES = (
    "flatten; opt_clean; memory_map; opt -nodffe -nosdff; dffunmap; simplemap; techmap; dffunmap; "
    "setundef -anyseq; opt -nodffe -nosdff; aigmap; opt_clean"
)


def _yosys(script: str, folder: Path) -> None:
    (folder / "prove.ys").write_text(script.replace("; ", "\n"))
    run_tool("yosys", ["-s", "prove.ys"], cwd=folder, log=folder / "yosys.log")


def _abc() -> Path:
    spec = importlib.util.find_spec("pyosys")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("yosys-abc")


def prove(claim: Claim, folder: Path, *, seconds: int = 600) -> Verdict:
    """Prove a claim, or find the shortest run that breaks a promise.

    Parameters
    ----------
    folder
        Where the graph and logs go.
    seconds
        When to give up.
    """
    begin = time.perf_counter()
    (folder / "claim.il").write_text(_rtlil(claim))
    _yosys(f"{READ}; {GATES}; write_aiger -zinit -symbols claim.aig", folder)
    log = _run_abc("read_aiger claim.aig; strash; scorr -C 5000; dc2; write_aiger -s reduced.aig",
                   folder)  # fmt: skip
    if set(_outputs(folder / "reduced.aig")) == {0}:
        return Verdict(True, None, None, time.perf_counter() - begin, log)
    log = _run_abc(f"read_aiger reduced.aig; pdr -s -f -T {seconds}", folder)
    return _verdict(log, begin)


def find_mutant(claim: Claim, folder: Path, *, most: int = 8, cycles: int = 60) -> Verdict:
    """Change a wire of the component at random until a promise is broken within some cycles.

    ``mutate`` of yosys inverts a port of a cell, makes it constant, or exchanges bits. Of so many
    mutants some may do as the component does.
    """
    begin = time.perf_counter()
    (folder / "claim.il").write_text(_rtlil(claim))
    verdict = Verdict(True, None, None, 0.0, "")
    for seed in range(most):
        mutate = f"mutate -list 1 -seed {seed} -o mutant.ys {COMPONENT}; script mutant.ys"
        _yosys(f"{READ}; {mutate}; {GATES}; write_aiger -zinit -symbols mutant.aig", folder)
        log = _run_abc(f"read_aiger mutant.aig; strash; bmc3 -F {cycles} -T 20", folder)
        verdict = _verdict(log, begin)
        if verdict.broken:
            break
    return verdict


def _verdict(log: str, begin: float) -> Verdict:
    found = re.search(r"Output (\d+) .*asserted in frame (\d+)", log)
    return Verdict(
        "Property proved" in log, PROMISES[int(found[1])] if found else None,
        int(found[2]) if found else None, time.perf_counter() - begin, log,
    )  # fmt: skip


def ready_to_valid(component: Any, folder: Path) -> list[str]:
    """Return outputs of streams that depend on ``ready`` of an output in the same cycle."""
    (folder / "component.il").write_text(rtlil.convert(component, name="component"))
    _yosys(f"read_rtlil component.il; hierarchy -top component; proc; flatten; {GATES}; "
           "write_aiger -ascii -symbols -zinit component.aag", folder)  # fmt: skip
    lines = (folder / "component.aag").read_text().splitlines()
    _, inputs, latches, outputs, ands = map(int, lines[0].split()[1:])
    places = lines[1 + inputs + latches :]
    driven = {n: int(line) & ~1 for n, line in enumerate(places[:outputs])}
    gates = [[int(x) & ~1 for x in line.split()] for line in places[outputs : outputs + ands]]
    names = dict(line.split(" ", 1) for line in places[outputs + ands :] if line[:1] in "io"
                 and " " in line)  # fmt: skip
    from_ready = {
        int(lines[1 + int(place[1:])]) for place, name in names.items()
        if place[0] == "i" and name.split("[")[0].endswith("__ready")
    }  # fmt: skip
    for result, *operands in sorted(gates):
        if from_ready.intersection(operands):
            from_ready.add(result)
    return sorted(
        name for place, name in names.items()
        if place[0] == "o" and "__ready" not in name and driven[int(place[1:])] in from_ready
    )  # fmt: skip


def _run_abc(command: str, folder: Path) -> str:
    return subprocess.run([_abc(), "-c", command], cwd=folder, capture_output=True, text=True,
                          check=True).stdout  # fmt: skip


def _outputs(path: Path) -> list[int]:
    """Return the literals of a graph's outputs: 0 is a wire that is never raised."""
    lines = path.read_bytes().split(b"\n")
    _, _, _, latches, outputs, *_ = lines[0].split()
    return [int(line) for line in lines[1 + int(latches) :][: int(outputs)]]
