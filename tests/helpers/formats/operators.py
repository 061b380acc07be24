"""Compute one operator as a graph: shape rule, float reference and their agreement."""

import numpy as np

from nnef_hw.frontend.building.builder import DTYPES, Builder
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.ir import Tensor
from nnef_hw.reference import run_float

LOGICAL, INTEGER = ("logical",), ("integer",)
RESULT_DTYPES = {
    **dict.fromkeys(("lt", "gt", "le", "ge", "eq", "ne", "is_nan", "is_inf"), LOGICAL),
    **dict.fromkeys(("argmax_reduce", "argmin_reduce", "argmax_pool"), INTEGER),
    **dict.fromkeys(("argmax_reduce_last", "argmin_reduce_last"), INTEGER),
    "max_pool_with_index": ("scalar", "integer"),
    "moments": ("scalar", "scalar"),
    "topk": ("scalar", "integer"),
}


def defaults(op):
    """Attributes that a declaration has values for."""
    declaration = standard_operators().get(op)
    return {
        parameter.name: getattr(parameter.default, "value", [])
        for parameter in (declaration.parameters if declaration else ())
        if parameter.default is not None and not parameter.is_tensor
    }


def compute(op, *args, dtypes=None, **attrs):
    """Return the results of one operator on arrays; a list if it has several."""
    builder = Builder("net")
    arrays = {f"x{index}": np.asarray(arg) for index, arg in enumerate(args)}
    tensors = [
        builder.input(Tensor(name, x.shape, DTYPES[x.dtype.kind])) for name, x in arrays.items()
    ]
    kinds = dtypes or RESULT_DTYPES.get(op) or [tensors[0].dtype]
    results = builder.node(op, tensors, {**defaults(op), **attrs}, "y", kinds)
    graph = builder.build([tensor.name for tensor in results])
    samples = {name: x[np.newaxis].copy() for name, x in arrays.items()}
    found = run_float(graph, samples)
    for name, x in arrays.items():
        np.testing.assert_array_equal(samples[name][0], x, f"{name} was changed")
    values = [found[tensor.name][0] for tensor in results]
    assert [x.shape for x in values] == [tensor.shape for tensor in results]
    return values if len(values) > 1 else values[0]
