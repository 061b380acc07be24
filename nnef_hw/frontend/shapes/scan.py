"""Shapes of a recurrent loop: every tensor that crosses the border of its body is checked."""

from __future__ import annotations

from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.common import Shape
from nnef_hw.ir import Graph

__all__ = ["SCAN_RULES"]


def _scan(call: Call) -> list[Shape]:
    body: Graph = call.attrs["body"]
    scans, full, states = (call.attrs[key] for key in ("scans", "full", "states"))
    expected = len(scans) + full + len(states)
    if not len(call.inputs) == len(body.inputs) == expected:
        raise call.error(
            f"{len(call.inputs)} tensors are given for {len(scans)} scanned, {full} full and "
            f"{len(states)} state inputs of a body with {len(body.inputs)}"
        )
    iterations = _iterations(call)
    for index, (inner, outer) in enumerate(zip(body.inputs, call.inputs, strict=True)):
        if index < len(scans):
            axis, step = scans[index]
            shape = (*outer.shape[:axis], abs(step), *outer.shape[axis + 1 :])
        else:
            shape = outer.shape
        _check_shape(call, inner, shape, f"takes {outer.name!r}")
    for name, outer in zip(states, call.inputs[len(scans) + full :], strict=True):
        _check_shape(call, name, outer.shape, f"is the next value of the state {outer.name!r}")
    return [_output(call, iterations, *output) for output in call.attrs["outputs"]]


def _iterations(call: Call) -> int:
    found: dict[int, str] = {}
    for (axis, step), tensor in zip(call.attrs["scans"], call.inputs, strict=False):
        if not 0 <= axis < len(tensor.shape):
            raise call.error(f"{tensor.name!r} is scanned along {axis}, which it does not have")
        if step == 0 or tensor.shape[axis] % abs(step):
            raise call.error(
                f"the step {step} does not divide the {tensor.shape[axis]} elements of dimension "
                f"{axis} of {tensor.name!r}"
            )
        found.setdefault(tensor.shape[axis] // abs(step), tensor.name)
    if len(found) != 1:
        shown = ", ".join(f"{count} times for {name!r}" for count, name in found.items())
        raise call.error(
            f"the body must run as often for every scanned tensor, but runs {shown}"
            if found
            else "no tensor is scanned"
        )
    return next(iter(found))


def _check_shape(call: Call, name: str, expected: Shape, role: str) -> None:
    body: Graph = call.attrs["body"]
    if name not in body.tensors:
        raise call.error(f"the body has no tensor {name!r}")
    if body.tensor(name).shape != expected:
        raise call.error(
            f"{name!r} of the body {role} and must have shape {list(expected)}, "
            f"not {list(body.tensor(name).shape)}"
        )


def _output(call: Call, iterations: int, name: str, kind: str, axis: int, step: int) -> Shape:
    body: Graph = call.attrs["body"]
    if name not in body.tensors:
        raise call.error(f"the body has no tensor {name!r}")
    shape = body.tensor(name).shape
    if kind == "last":
        return shape
    if kind != "full":
        raise call.error(f"the output {name!r} must be 'full' or 'last', not {kind!r}")
    if not 0 <= axis < len(shape):
        raise call.error(f"{name!r} is joined along {axis}, but has rank {len(shape)}")
    if abs(step) != shape[axis]:
        raise call.error(
            f"{name!r} is joined along {axis} with step {step}, but has {shape[axis]} elements"
        )
    return (*shape[:axis], shape[axis] * iterations, *shape[axis + 1 :])


SCAN_RULES = {"scan": _scan}
