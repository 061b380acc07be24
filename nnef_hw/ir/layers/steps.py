"""Layers at the border of a loop, whose steps are parts of one inference."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.images.rearrange import (
    begin_steps,
    join_steps,
    last_step,
    reverse_steps,
    split_steps,
)
from nnef_hw.ir.graph import Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers

__all__ = ["BeginSteps", "JoinSteps", "LastStep", "ReverseSteps", "SplitSteps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class _OfSteps(Layer):
    """A layer that knows the ``steps`` of a loop."""

    steps: int

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"steps": int(node.attrs["steps"])}


@layers("split_steps")
@dataclass(frozen=True, eq=False, kw_only=True)
class SplitSteps(_OfSteps):
    """Steps that stand below each other, one after the other."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return split_steps(x, self.steps)


@layers("join_steps")
@dataclass(frozen=True, eq=False, kw_only=True)
class JoinSteps(_OfSteps):
    """The images of all steps below each other."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return join_steps(x, self.steps)


@layers("last_step")
@dataclass(frozen=True, eq=False, kw_only=True)
class LastStep(_OfSteps):
    """Result of a loop's last step."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return last_step(x, self.steps)


@layers("reverse_steps")
@dataclass(frozen=True, eq=False, kw_only=True)
class ReverseSteps(_OfSteps):
    """Steps that stand below each other, the last one first."""

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return reverse_steps(x, self.steps)


@layers("begin_steps")
@dataclass(frozen=True, eq=False, kw_only=True)
class BeginSteps(_OfSteps):
    """The first value of a state, and those that later steps begin with."""

    def compute(self, *codes: Codes) -> Codes:
        return begin_steps(*codes)
