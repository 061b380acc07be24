"""Which graphs compute many samples at once, as one batch along axis 0."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.operators import canonical_operators

__all__ = ["dependents", "is_batchable"]


@dataclass(frozen=True, slots=True)
class _Case:
    """A node of a graph all of whose varying tensors have batch extent 1."""

    node: Node
    varies: tuple[bool, ...]
    """Which arguments depend on the samples."""
    rank: int
    """Of the first argument."""

    @property
    def input_varies_alone(self) -> bool:
        return self.varies[0] and not any(self.varies[1:])


def is_batchable(graph: Graph) -> bool:
    """Tell whether axis 0 of every activation may hold samples instead of its extent of 1.

    An operator without a rule here is taken for one that mixes samples.
    """
    varying = dependents(graph, graph.inputs)
    if graph.states or any(graph.tensor(name).shape[:1] != (1,) for name in varying):
        return False
    for name in varying:
        quant = graph.tensor(name).quant
        if quant and any(np.shape(value)[:1] not in {(), (1,)} for value in quant.args.values()):
            return False
    return all(
        node.op in _RULES
        and _RULES[node.op](
            _Case(
                node,
                tuple(name in varying for name in node.inputs),
                len(graph.tensor(node.inputs[0]).shape),
            )
        )
        for node in graph.nodes
        if not varying.isdisjoint(node.inputs)
    )


def dependents(graph: Graph, names: Collection[str]) -> set[str]:
    """Return tensors and all that are computed from them."""
    found = set(names)
    for node in graph.nodes:
        if not found.isdisjoint(node.inputs):
            found.update(node.outputs)
    return found


def _always(case: _Case) -> bool:
    del case
    return True


def _beside_axes(case: _Case) -> bool:
    return 0 not in case.node.attrs["axes"]


def _beside_axis(case: _Case) -> bool:
    return bool(case.node.attrs["axis"] != 0)


def _all_beside_axis(case: _Case) -> bool:
    return all(case.varies) and _beside_axis(case)


def _one_sample_windows(case: _Case) -> bool:
    attrs = case.node.attrs
    padding, stride = attrs.get("padding") or [(0, 0)], attrs.get("stride") or [1]
    one = attrs["size"][0] == stride[0] == 1 and tuple(padding[0]) == (0, 0)
    return one and all(case.varies)


def _constant_weights(case: _Case) -> bool:
    return case.input_varies_alone


def _matmul(case: _Case) -> bool:
    return case.rank > 2 or (case.input_varies_alone and not case.node.attrs["transposeA"])


def _gather(case: _Case) -> bool:
    """Elements of each sample by constant indices, or of a constant by each sample's indices."""
    axis = case.node.attrs["axis"]
    return case.varies == ((True, False) if axis else (False, True))


def _gather_nd(case: _Case) -> bool:
    batch_dims = case.node.attrs["batch_dims"]
    return case.varies == ((True, True) if batch_dims else (False, True))


def _einsum(case: _Case) -> bool:
    """Whether the first letter of all varying terms and of the result stands for nothing else."""
    left, _, right = case.node.attrs["expr"].partition("->")
    terms = left.split(",")
    batch = right[:1]
    return bool(batch) and all(
        (term[:1] == batch and batch not in term[1:]) if varies else batch not in term
        for term, varies in zip(terms, case.varies, strict=True)
    )


_RULES: dict[str, Callable[[_Case], bool]] = {
    **{operator.name: _always for operator in canonical_operators(Trait.TABLE)},
    **dict.fromkeys(
        (
            "add", "add_n", "and", "batch_normalization", "bit_and", "bit_not", "bit_or",
            "bit_xor", "cast", "copy", "copy_n", "div", "dropout", "eq", "erf", "ge", "gt",
            "is_inf", "is_nan", "le", "linear_quantize", "logarithmic_quantize", "lt", "max",
            "min", "min_max_linear_quantize", "mod", "mul", "ne", "not", "or", "pow", "prelu",
            "round_even", "select", "shift_left", "shift_right", "sub", "xor",
            "zero_point_linear_quantize",
        ),
        _always,
    ),
    **dict.fromkeys(
        (
            "area_downsample", "broadcast", "depth_to_space", "multilinear_upsample",
            "nearest_downsample", "nearest_upsample", "reshape",
        ),
        _always,
    ),
    **dict.fromkeys(
        (
            "all_reduce", "any_reduce", "argmax_reduce", "argmax_reduce_last", "argmin_reduce",
            "argmin_reduce_last", "l1_normalization", "l2_normalization", "max_reduce",
            "mean_reduce", "min_reduce", "moments", "product_reduce", "slice", "softmax",
            "squeeze", "sum_reduce", "unsqueeze",
        ),
        _beside_axes,
    ),
    **dict.fromkeys(("cumsum", "split", "topk", "unstack"), _beside_axis),
    **dict.fromkeys(
        ("concat", "gather_elements", "scatter_elements", "stack"), _all_beside_axis
    ),
    **dict.fromkeys(
        (
            "argmax_pool", "avg_pool", "box", "debox", "desample",
            "local_contrast_normalization", "local_mean_normalization",
            "local_response_normalization", "local_variance_normalization", "max_pool",
            "max_pool_with_index", "rms_pool", "sample",
        ),
        _one_sample_windows,
    ),
    **dict.fromkeys(
        ("conv", "deconv", "linear", "separable_conv", "separable_deconv"), _constant_weights
    ),
    "einsum": _einsum,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "matmul": _matmul,
    "one_hot": lambda case: case.input_varies_alone and _beside_axis(case),
    "pad": lambda case: tuple(case.node.attrs["padding"][0]) == (0, 0),
    "resize": lambda case: bool(case.node.attrs["scale"][0] == 1),
    "tile": lambda case: bool(case.node.attrs["repeats"][0] == 1),
    "transpose": lambda case: case.node.attrs["axes"][:1] in ([], [0]),
    "trilu": lambda case: case.rank > 2,
}  # fmt: skip
