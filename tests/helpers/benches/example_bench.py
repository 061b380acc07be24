"""Runs examples of parts, and predicts the cycles in which their items move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from amaranth import Value
from examples.example import Example, lanes_of
from prover import Claim

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.sim.cocotb_bench import run_cocotb
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.pysim import StreamBench, StreamRun

__all__ = ["Bench", "claim_of"]


class Pauses:
    """Random numbers of a bench, which are kept: they say who paused in which cycle."""

    def __init__(self, rng: np.random.Generator, ends: int) -> None:
        self._rng, self._ends = rng, ends
        self._drawn: list[float] = []

    def random(self) -> float:
        """Return the next number."""
        self._drawn.append(self._rng.random())
        return self._drawn[-1]

    def spawn(self, count: int) -> list[np.random.Generator]:
        """Return generators for other purposes."""
        return self._rng.spawn(count)

    def free(self, end: int, stall: float) -> list[int]:
        """Return for every cycle the first one from it on in which an end does not pause."""
        paused = np.array(self._drawn[end :: self._ends]) < stall
        cycles = np.where(paused, len(paused), np.arange(len(paused)))
        return np.minimum.accumulate(cycles[::-1])[::-1].tolist()


class Bench:
    """An example with its operands and what has to come of them."""

    def __init__(self, example: Example, rng: np.random.Generator) -> None:
        self._example, self._rng = example, rng
        self.component = example.build()
        self.operands = example.operands(self.component, rng)
        self.expected = example.compute(self.component, self.operands)
        if not self.operands:
            self.expected = {
                name: np.tile(codes, (example.frames, 1)) for name, codes in self.expected.items()
            }
        self._streams = example.inputs(self.component)
        self._simulated: StreamBench | None = None
        self._item_words = 1

    @property
    def inputs(self) -> dict[str, list[Any]]:
        """Payloads of every input."""
        return {
            name: items_of(
                stream, codes, self._example.in_frame or frame_length(codes, self._example.frames)
            )
            for (name, stream), codes in zip(self._streams.items(), self.operands, strict=True)
        }

    @property
    def outputs(self) -> dict[str, list[Any]]:
        """Payloads of every output."""
        return {
            name: items_of(
                getattr(self.component, name),
                codes,
                self._example.result_frame or frame_length(codes, self._example.frames),
            )
            for name, codes in self.expected.items()
        }

    def check(self, stall: float) -> None:
        """Run it with such pauses in Amaranth's simulator; compare items and cycles."""
        if self._simulated is None:
            self._simulated = StreamBench(self.component)
        pauses = Pauses(self._rng, len(self._streams) + len(self.expected))
        outputs = self.outputs
        counts = {name: len(items) for name, items in outputs.items()}
        # more follows of what has no operands
        quiet = 32 if self.operands else 1
        run = self._simulated.run(self.inputs, counts, rng=pauses, stall=stall, quiet=quiet)
        for name, items in outputs.items():
            layout = getattr(self.component, name).payload.shape()
            assert [as_plain(layout, item) for item in run.items[name]] == items, name
        example = self._example
        if len(outputs) == 1 and example.timed and (stall == 0 or example.stalls_predicted):
            self._check_cycles(run, pauses, stall)

    def check_idle(self) -> None:
        """See that no more comes ahead of the first beat than is predicted."""
        if len(self.expected) > 1 or not self.operands or self._simulated is None:
            return
        [(name, codes)] = self.expected.items()
        nothing = [x[:0] for x in self.operands]
        given, _ = _predicted(self._example, nothing, codes, [[]] * (len(nothing) + 1))
        ahead = len(given) * self._item_words
        inputs: dict[str, list[Any]] = {source: [] for source in self._streams}
        self._simulated.run(inputs, {name: ahead}, rng=self._rng)

    def _check_cycles(self, run: StreamRun, pauses: Pauses, stall: float) -> None:
        frees = [pauses.free(end, stall) for end in range(len(self.operands) + 1)]
        [(name, codes)] = self.expected.items()
        given, taken = _predicted(self._example, self.operands, codes, frees)
        # an item may be a whole pass: it is given with its last word
        words = self._item_words = len(run.out_cycles[name]) // len(given)
        assert run.out_cycles[name][words - 1 :: words] == given
        for source, x, times in zip(self._streams, self.operands, taken, strict=True):
            words = x.shape[1] if x.ndim == 3 else 1
            assert run.in_cycles[source][words - 1 :: words] == times, source

    def check_verilog(self, engine: str) -> None:
        """Run its Verilog, with pauses."""
        verilog = to_verilog(self.component)
        vectors = {
            name: _words(getattr(self.component, name), items)
            for name, items in (self.inputs | self.outputs).items()
        }
        if engine == "cocotb":
            run_cocotb(verilog, vectors)
            return
        runner = FastRunner(verilog, inputs=list(self.inputs), outputs=list(self.outputs))
        done = runner.run_streams(
            {name: vectors[name] for name in self.inputs},
            {name: len(items) for name, items in self.outputs.items()},
            stall=0.5, seed=int(self._rng.integers(1 << 30)), idle_limit=70_000,
            drain=64 if self.operands else 0,
        )  # fmt: skip
        for name in self.outputs:
            found = done.payloads[name].reshape(vectors[name].shape)
            assert found.tolist() == vectors[name].tolist(), name


def frame_length(codes: IntArray, frames: int) -> int:
    """Return the beats or words of a frame of an operand or a result."""
    words = codes.shape[1] if codes.ndim == 3 else 1
    return len(codes) * words // frames


def items_of(stream: Any, codes: IntArray, frame: int) -> list[Any]:
    """Return codes [beats, lanes] or [passes, words, lanes] as payloads of a stream."""
    layout = stream.payload.shape()
    rows = codes.reshape(-1, codes.shape[-1]).tolist()
    if not hasattr(layout, "members"):
        return [row[0] for row in rows]
    name = "data" if "data" in layout.members else "acc"
    if "end" not in layout.members:
        return [{name: row, "last": (n + 1) % frame == 0} for n, row in enumerate(rows)]
    words = codes.shape[1]
    return [
        {name: row, "last": (n + 1) % words == 0, "end": (n + 1) % frame == 0}
        for n, row in enumerate(rows)
    ]


def as_plain(layout: Any, item: Any) -> Any:
    """Return a payload as :func:`items_of` makes it."""
    if not hasattr(layout, "members"):
        return item
    name, *flags = layout.members
    return {name: list(item[name]), **{flag: bool(item[flag]) for flag in flags}}


def _words(stream: Any, items: Sequence[Any]) -> Any:
    """Return payloads as rows of 64-bit words, lowest first."""
    payloads = bits_of(stream, items)
    count = -(-len(Value.cast(stream.payload)) // 64)
    rows = [[value >> (64 * n) & (2**64 - 1) for n in range(count)] for value in payloads]
    return np.array(rows, np.uint64)


def bits_of(stream: Any, items: Sequence[Any]) -> list[int]:
    """Return payloads as numbers."""
    layout = stream.payload.shape()
    return [layout.const(item).as_bits() if isinstance(item, dict) else item for item in items]


def _predicted(
    example: Example, operands: Sequence[IntArray], result: IntArray, frees: Sequence[list[int]]
) -> tuple[list[int], list[list[int]]]:
    """Return when items are given and taken if ends pause as they did; ``frees`` are by end."""
    kernel = Kernel()
    never = kernel.stream()
    *sources, sink = frees
    origins = []
    for codes, free in zip(operands, sources, strict=True):
        origin, words = kernel.stream(), codes.shape[1] if codes.ndim == 3 else 1
        kernel.start(_source(origin, len(codes), words, free, never))
        origins.append(origin)
    given: list[int] = []
    target = example.part.start(kernel, *origins)
    kernel.start(_sink(target, len(result) * frame_length(result, len(result)), sink, given, never))
    kernel.run()
    return given, [list(origin.times) for origin in origins]


def _at(free: Sequence[int], cycle: int) -> int:
    return free[cycle] if cycle < len(free) else cycle


def _source(
    target: Stream, count: int, words: int, free: Sequence[int], never: Stream
) -> Process:  # fmt: skip
    """Offer items of so many words, of which all but the last one are taken at once."""
    time = -1
    for _ in range(count):
        for _ in range(words):
            time = _at(free, time + 1)
        time = yield target, time
    yield never


def _sink(
    origin: Stream, count: int, free: Sequence[int], seen: list[int], never: Stream
) -> Process:
    for _ in range(count):
        time = _at(free, (yield origin))
        origin.accept(time)
        seen.append(time)
    yield never


def claim_of(example: Example) -> Claim:
    """Return what is to be proved of an example: frames by their mark, and what they become."""
    proof = example.proof
    assert proof is not None
    component = example.build()
    ports = example.inputs(component)
    frames = _marked_frames(example, component)
    inputs: dict[str, list[list[int]]] = {name: [] for name in ports}
    outputs: dict[str, list[list[list[int]]]] = {}
    ahead: Mapping[str, Sequence[int]] = {}
    for operands in frames:
        for name, codes in zip(ports, operands, strict=True):
            frame = example.in_frame or frame_length(codes, 1)
            items = items_of(ports[name], codes, frame)
            inputs[name].append(bits_of(ports[name], items))
        # the marked frame, and others behind it
        followed = [
            np.concatenate([codes, *[plain] * (proof.lags - 1)])
            for codes, plain in zip(operands, frames[0], strict=True)
        ]
        for name, codes in example.compute(component, followed).items():
            stream = getattr(component, name)
            total = frame_length(codes, 1)
            length = example.result_frame or total // proof.lags
            payloads = bits_of(stream, items_of(stream, codes, length))
            own, ahead = payloads[proof.ahead :], {name: payloads[: proof.ahead]}
            size = len(own) // proof.lags
            parts = [own[n * size :][:size] for n in range(proof.lags)]
            outputs.setdefault(name, []).append(parts)
    return Claim(
        component=component, inputs=inputs,
        outputs={
            name: [list(lag) for lag in zip(*of_port, strict=True)]
            if proof.lags > 1 else [parts[0] for parts in of_port]
            for name, of_port in outputs.items()
        },
        ahead={name: list(items) for name, items in ahead.items() if items},
        patience=proof.patience, frame_bits=proof.frame_bits, together=proof.together,
        needs=proof.needs, flushes=proof.flushes,
    )  # fmt: skip


def _marked_frames(example: Example, component: Any) -> list[list[IntArray]]:
    """Return operands of a frame by mark: none, and then one in each place of each operand."""
    assert example.proof is not None
    lanes = [lanes_of(stream) for stream in example.inputs(component).values()]
    marks = list(example.proof.marks)
    marks = marks * len(lanes) if len(marks) == 1 else marks
    shapes = [
        (*((size,) if isinstance(size, int) else size), width)
        for size, width in zip(example.sizes, lanes, strict=True)
    ]
    frames = [[np.full(shape, m.base) for shape, m in zip(shapes, marks, strict=True)]]
    for n, shape in enumerate(shapes):
        for place in np.ndindex(shape):
            others = [
                np.full(s, m.base if m.beside is None else m.beside)
                for s, m in zip(shapes, marks, strict=True)
            ]
            others[n] = np.full(shape, marks[n].base)
            others[n][place] = marks[n].mark
            frames.append(others)
    return frames
