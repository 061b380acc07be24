"""What an example of a part is: what it is filled with, what is sent through it, what is proved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sweeps import covering

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.parts import Part

__all__ = [
    "RAM", "REGISTERED", "Example", "Marks", "Measured", "Proof", "Size", "ends", "lanes_of",
    "swept",
]  # fmt: skip

SHAPES = ((16, 16), (32, 8), (64, 4), (128, 2))
RAM = BlockRam("tiny", SHAPES)
"""Block RAM so small that most memories take several."""
REGISTERED = BlockRam("tiny", SHAPES, has_register=True)

Size = int | tuple[int, int]
"""Beats of a frame of an operand, or its passes and the words of each."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Codes of an operand in proofs: all are ``base`` but one, which is ``mark``.

    While another operand has the mark all codes are ``beside``, or ``base`` if that is None.
    """

    base: int = 0
    mark: int = 1
    beside: int | None = None


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What the prover needs to know of an example; see :mod:`prover`.

    Parameters
    ----------
    marks
        Codes of each operand; of all if there is one.
    lags
        Frames of the result that show the mark of a frame.
    ahead
        Beats of the result before those of the first frame.
    patience, frame_bits, together, needs, flushes
        Those of a :class:`prover.Claim`.
    """

    marks: Sequence[Marks] = (Marks(),)
    lags: int = 1
    ahead: int = 0
    patience: int = 6
    frame_bits: int = 2
    together: int = 1
    needs: Sequence[int] = ()
    flushes: bool = True


@dataclass(frozen=True, kw_only=True)
class Example:
    """A part and what is sent through it.

    Parameters
    ----------
    contents
        What the component is filled with.
    sizes
        Of a frame of every operand; of what has no operands frames come without an end.
    frames
        How many are sent: of lowest codes, of highest ones, of both, and then of noise.
    stimulus
        Makes the operands of all frames if those are not enough.
    result_frame
        Beats or words of a frame of the result; by default as many as frames share.
    results
        The results by the names of their ports, if there may be several.
    verilog
        Simulators that run its Verilog, too: ``"verilator"``, ``"cocotb"``.
    proof
        What is proved of it.
    in_frame
        Beats of a frame of the operands, if it is not ``sizes``.
    timed, stalls_predicted
        Whether cycles are predicted; whether those of a run with pauses are.
    nightly
        Whether it is the rest of a sweep.
    note
        What tells a measured size from others whose parts have equal fields.
    typical
        Whether LUTs are fitted to a measured size, whose contents are like those of others.
    component
        Makes what is run and measured, if that is not what the part builds.
    """

    part: Part
    contents: Mapping[str, Any] = field(default_factory=dict)
    sizes: Sequence[Size] = (12,)
    frames: int = 5
    stimulus: Callable[[np.random.Generator], Sequence[IntArray]] | None = None
    result_frame: int | None = None
    results: Callable[[Sequence[IntArray]], Mapping[str, IntArray]] | None = None
    verilog: Sequence[str] = ()
    proof: Proof | None = None
    in_frame: int | None = None
    timed: bool = True
    stalls_predicted: bool = True
    nightly: bool = False
    note: Mapping[str, int | str] = field(default_factory=dict)
    typical: bool = True
    component: Callable[[], Any] | None = None

    def build(self) -> Any:
        """Return the component."""
        if self.component is not None:
            return self.component()
        return self.part.build(**self.contents)

    def compute(self, component: Any, operands: Sequence[IntArray]) -> Mapping[str, IntArray]:
        """Return what each port of the component gives of its operands."""
        if self.results is not None:
            return self.results(operands)
        name = port_name(component, self.part.result(component))
        return {name: self.part.compute(*operands, **self.contents)}

    def inputs(self, component: Any) -> dict[str, Any]:
        """Return the streams of the operands by the names of their ports."""
        streams = self.part.operands(component)
        return {port_name(component, stream): stream for stream in streams}

    def operands(self, component: Any, rng: np.random.Generator) -> list[IntArray]:
        """Return the operands of all frames: [beats, lanes], or [passes, words, lanes]."""
        if self.stimulus is not None:
            return [np.asarray(codes, np.int64) for codes in self.stimulus(rng)]
        return [
            _frames(rng, size, self.frames, *_range_of(self.part, n), lanes_of(stream))
            for n, (stream, size) in enumerate(
                zip(self.inputs(component).values(), self.sizes, strict=True)
            )
        ]


Measured = Mapping[str, Callable[[Device], Iterable[Example]]]
"""Sizes whose LUTs are measured on a device, by the row of :attr:`.Family.lut_weights`."""


def port_name(component: Any, stream: Any) -> str:
    """Return the name of a component's port."""
    return next(x for x in component.signature.members if getattr(component, x) is stream)


def lanes_of(stream: Any) -> int:
    """Return the codes of a beat or word of a stream."""
    layout = stream.payload.shape()
    return next(iter(layout.members.values())).length if hasattr(layout, "members") else 1


def _range_of(part: Any, place: int) -> tuple[int, int]:
    """Return the lowest and the highest code of an operand, as the part says."""
    part = getattr(part, "part", part)
    for prefix in ("in_", "x_", ""):
        bits, signed = (getattr(part, f"{prefix}{name}", None) for name in ("bits", "signed"))
        if bits is not None:
            each = zip(bits, signed, strict=True) if isinstance(bits, tuple) else [(bits, signed)]
            formats = list(each)
            return ends(*formats[place % len(formats)])
    raise AssertionError(f"{type(part).__name__} needs a stimulus")


def ends(bits: int, signed: bool) -> tuple[int, int]:
    """Return the lowest and the highest code of a format."""
    lowest = -(1 << bits - 1) if signed else 0
    return lowest, lowest + (1 << bits) - 1


def _frames(
    rng: np.random.Generator, size: Size, frames: int, lowest: int, highest: int, lanes: int
) -> IntArray:
    shape = (size,) if isinstance(size, int) else size
    codes = rng.integers(lowest, highest + 1, (frames, *shape, lanes))
    extremes = np.where(rng.random(codes.shape[1:]) < 0.5, lowest, highest)
    for frame, values in zip(codes, (lowest, highest, extremes), strict=False):
        frame[:] = values
    return codes.reshape(-1, *codes.shape[2:])


def swept(
    make: Callable[..., Example], *axes: Mapping[str, Any] | Sequence[Any], prefix: str = "",
    large: Collection[Any] = (),
) -> dict[str, Example]:  # fmt: skip
    """Return examples of every combination of one value of each axis, by their names.

    Those that :func:`sweeps.covering` leaves to the night are nightly, and those whose first
    value is ``large``.

    Parameters
    ----------
    make
        Takes a value of each axis; one that is a tuple is several arguments.
    axes
        Values by name, or values.
    """
    named = [axis if isinstance(axis, Mapping) else {str(x): x for x in axis} for axis in axes]
    found = {}
    for row in covering(*map(list, named)):
        values: list[Any] = []
        for name, axis in zip(row.values, named, strict=True):
            value = axis[name]
            values += value if isinstance(value, tuple) else [value]
        nightly = bool(row.marks) or row.values[0] in map(str, large)
        example = replace(make(*values), nightly=nightly)
        found[prefix + ", ".join(row.values)] = example
    return found
