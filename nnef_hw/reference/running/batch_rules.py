"""Rules for axis 0 of an operator's tensors: whether it may hold samples, by its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nnef_hw.ir import Node

__all__ = [
    "BatchRule", "Case", "all_beside_axis", "all_vary", "always", "beside_axes", "beside_axis",
    "constant_weights", "never", "one_sample_windows",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A node of a graph all of whose varying tensors have batch extent 1."""

    node: Node
    varies: tuple[bool, ...]
    """Which arguments depend on the samples."""
    rank: int
    """Rank of the first argument."""

    @property
    def input_varies_alone(self) -> bool:
        """Whether the other arguments are constant."""
        return self.varies[0] and not any(self.varies[1:])


BatchRule = Callable[[Case], bool]


def always(case: Case) -> bool:
    """Whatever the node: it computes element by element, or along other axes than the first."""
    del case
    return True


def never(case: Case) -> bool:
    """Whatever the node: it mixes samples, or may do so."""
    del case
    return False


def beside_axes(case: Case) -> bool:
    """Whether a node computes along other axes than the first."""
    return 0 not in case.node.attrs["axes"]


def beside_axis(case: Case) -> bool:
    """Whether a node computes along another axis than the first."""
    return bool(case.node.attrs["axis"] != 0)


def all_beside_axis(case: Case) -> bool:
    """Whether all operands depend on the samples and it computes along another axis."""
    return all(case.varies) and beside_axis(case)


def all_vary(case: Case) -> bool:
    """Whether all operands depend on the samples."""
    return all(case.varies)


def one_sample_windows(case: Case) -> bool:
    """Whether a window is of one sample."""
    attrs = case.node.attrs
    padding, stride = attrs.get("padding") or [(0, 0)], attrs.get("stride") or [1]
    one = attrs["size"][0] == stride[0] == 1 and tuple(padding[0]) == (0, 0)
    return one and all(case.varies)


def constant_weights(case: Case) -> bool:
    """Whether the first operand alone depends on the samples."""
    return case.input_varies_alone
