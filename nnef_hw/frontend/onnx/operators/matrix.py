"""Matrix products."""

from __future__ import annotations

import re
import string

from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__ = ["matmul"]


@lowers("Gemm", 6, 7, 9, 11, 13)
def gemm(call: OnnxCall) -> Value:
    """``alpha * A B + beta * C`` as ``linear``, whose filter is [outputs, inputs]."""
    a, b, c = call.required(0), call.required(1), call.input(2)
    if min(a.rank, b.rank) < 2:
        raise call.error(f"A and B have ranks {a.rank} and {b.rank}, not 2")
    is_row = c is None or c.rank < 2 or c.shape[0] == 1
    if max(a.rank, b.rank) > 2 or b.data is None or not is_row:
        return _product(call, a, b, c)
    if call.attr("transA"):
        a = call.transposed(a, (1, 0))
    if not call.attr("transB"):
        b = call.transposed(b, (1, 0))
    alpha, beta = call.attr("alpha"), call.attr("beta")
    if alpha != 1:
        b = _scaled(call, b, alpha)
    if c is None or beta == 0:
        bias = call.constant(0, a.type)
    else:
        bias = c if beta == 1 else _scaled(call, c, beta)
        bias = call.reshaped(bias, (*[1] * (2 - bias.rank), *bias.shape))
    return call.emit("linear", a, b, bias)


def _product(call: OnnxCall, a: Value, b: Value, c: Value | None) -> Value:
    """Multiply where the second factor is no filter, or there are several matrices.

    ONNX does not allow the latter here, but Deeploy writes it.
    """
    a, b = (
        call.transposed(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if turned else x
        for x, turned in ((a, call.attr("transA")), (b, call.attr("transB")))
    )
    product, alpha, beta = matmul(call, a, b), call.attr("alpha"), call.attr("beta")
    if alpha != 1:
        product = call.emit("mul", product, alpha)
    if c is None or beta == 0:
        return product
    return call.spread("add", product, c if beta == 1 else _scaled(call, c, beta))


def _scaled(call: OnnxCall, value: Value, factor: float) -> Value:
    if value.data is not None:
        return call.constant(value.data * factor, value.type, like=value)
    return call.emit("mul", value, factor)


@lowers("MatMul", 1, 9, 13)
def _matmul(call: OnnxCall) -> Value:
    return matmul(call, call.required(0), call.required(1))


def matmul(call: OnnxCall, a: Value, b: Value) -> Value:
    """Product as of ``numpy.matmul``: vectors become matrices, ranks are made equal in front."""
    if not a.rank or not b.rank:
        raise call.error("a factor is a single number", "use Mul")
    left = call.reshaped(a, (1, *a.shape)) if a.rank == 1 else a
    right = call.reshaped(b, (*b.shape, 1)) if b.rank == 1 else b
    rank = max(left.rank, right.rank)
    left, right = (call.reshaped(x, (*[1] * (rank - x.rank), *x.shape)) for x in (left, right))
    product = call.emit("matmul", left, right, transposeA=False, transposeB=False)
    shape = list(product.shape)
    if b.rank == 1:
        del shape[-1]
    if a.rank == 1:
        del shape[-1 if b.rank == 1 else -2]
    return call.reshaped(product, shape)


@lowers("Einsum", 12, 28)
def einsum(call: OnnxCall) -> Value:
    """Sum of products with its result's letters and ellipses spelled out."""
    values = call.inputs
    equation = call.attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(values) or not re.fullmatch(r"[A-Za-z.,]*", left + right):
        raise call.error(f"the equation {equation!r} does not fit {len(values)} inputs")
    hidden = [x.rank - len(t.replace("...", "")) for t, x in zip(terms, values, strict=True)]
    if any((n != 0 and "..." not in t) or n < 0 for t, n in zip(terms, hidden, strict=True)):
        raise call.error(f"the equation {equation!r} does not fit the ranks of its inputs")
    letters = [letter for letter in string.ascii_letters if letter not in equation]
    widest = letters[: max(hidden)]
    spelled = [
        term.replace("...", "".join(widest[len(widest) - count :]))
        for term, count in zip(terms, hidden, strict=True)
    ]
    if not arrow:
        once = sorted(x for x in set(left) - {".", ","} if left.count(x) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    right = right.replace("...", "".join(widest))
    if "." in "".join((*spelled, right)):
        raise call.error(f"the equation {equation!r} is not well formed")
    return call.emit("einsum", *values, expr=f"{','.join(spelled)}->{right}")
