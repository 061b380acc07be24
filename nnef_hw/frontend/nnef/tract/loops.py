"""Recurrent loops: ``tract_core_scan`` over a fragment, and operators that are such loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.frontend.nnef.evaluation.coercion import plain
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.evaluation.scope import Scope
from nnef_hw.frontend.nnef.language.syntax import Declaration
from nnef_hw.ir import Graph, Tensor

__all__ = ["LOOPS", "identifier_of"]


@dataclass(slots=True)
class _Loop:
    """Values that cross the border of a loop's body, by the names of the fragment's parameters.

    Parameters
    ----------
    scanned
        Tensor, axis and step.
    full
        Tensors that every iteration sees whole.
    states
        Initial value, and the result that is the next value.
    outputs
        Result, ``full`` or ``last``, axis and step.
    attrs
        Parameters of the fragment that are not tensors.
    """

    fragment: Declaration
    scanned: dict[str, tuple[Tensor, int, int]]
    states: dict[str, tuple[Tensor, str]]
    outputs: list[tuple[str, str, int, int]]
    full: dict[str, Tensor] = field(default_factory=dict)
    attrs: dict[str, object] = field(default_factory=dict)


def identifier_of(label: str) -> str:
    """Return the identifier that tract makes of a node's name: ``/a.b`` is ``__a_b``."""
    escaped = "".join(char if char.isalnum() else "_" for char in label)
    return escaped if re.match(r"[^\W\d]", label) else f"_{escaped}"


def _scan(call: Invoked) -> object:
    values = call.values
    for key in ("skip", "external_state"):
        if values[key]:
            raise UnsupportedError(
                f"{call.op} {call.name!r}: {key} = {values[key]} is not supported",
                remedy="export the model without pulses or external states",
                location=call.places.get(key, call.location),
            )
    fragment = call.evaluator.fragments.get(values["body"])
    if fragment is None or fragment.body is None:
        raise call.error(
            f"there is no fragment {values['body']!r}",
            nearest(values["body"], call.evaluator.fragments),
            at="body",
        )
    parameters = {item.name for item in fragment.parameters}
    results = {item.name for item in fragment.results}
    loop = _Loop(fragment, {}, {}, [])
    for label, value, axis, step in values["scan"]:
        name = _found(call, label, parameters, "scan")
        loop.scanned[name] = (_tensor(call, value, name), axis, step)
    for label, value in values["full"]:
        name = _found(call, label, parameters, "full")
        loop.full[name] = _tensor(call, value, name)
    for label, value, result in values["state"]:
        name = _found(call, label, parameters, "state")
        next_value = _found(call, result, results, "state")
        loop.states[name] = (_tensor(call, value, name), next_value)
    for label, *place in values["output"]:
        name = _found(call, label, results, "output")
        loop.outputs.append((name, *_place(call, place)))
    return _run(call, loop)


def _place(call: Invoked, place: list[object]) -> tuple[str, int, int]:
    """Return kind, axis and step of an output, behind its label; old files have no step."""
    match [plain(item) for item in place]:
        case [str(kind), int(axis)]:
            return kind, axis, 1
        case [str(kind), int(axis), int(step)]:
            return kind, axis, step
    raise call.error(
        f"an output is described by {place}",
        "write (result, 'full' or 'last', axis, step)",
        at="output",
    )


def _found(call: Invoked, label: object, identifiers: set[str], parameter: str) -> str:
    """Return the identifier in the fragment that a label of the loop means."""
    if not isinstance(label, str):
        raise call.error(f"{label!r} is not a name", at=parameter)
    for name in (label, identifier_of(label)):
        if name in identifiers:
            return name
    raise call.error(
        f"the fragment {call.values['body']!r} has no {label!r}",
        nearest(label, identifiers) or f"it has {', '.join(sorted(identifiers))}",
        at=parameter,
    )


def _tensor(call: Invoked, value: object, name: str) -> Tensor:
    return call.evaluator.tensor(value, f"{call.name}_{name}", call.location)


def _run(call: Invoked, loop: _Loop) -> object:
    """Add the loop's node; return its result, or the tuple of them."""
    body, names = _body(call, loop)
    states, ends = names[: len(loop.states)], names[len(loop.states) :]
    outputs = [
        (name, kind, axis, step)
        for name, (_, kind, axis, step) in zip(ends, loop.outputs, strict=True)
    ]
    attrs = {
        "body": body,
        "scans": [(axis, step) for _, axis, step in loop.scanned.values()],
        "full": len(loop.full),
        "states": states,
        "outputs": outputs,
    }
    inputs = [
        *(tensor for tensor, _, _ in loop.scanned.values()),
        *loop.full.values(),
        *(tensor for tensor, _ in loop.states.values()),
    ]
    results = call.evaluator.builder.node(
        "scan",
        inputs,
        attrs,
        _names(call, len(outputs)),
        tuple(body.tensor(name).dtype for name in ends),
        places=call.places,
        location=call.location,
        origin=call.scope.location,
    )
    return results[0] if len(results) == 1 else tuple(results)


def _names(call: Invoked, count: int) -> list[str]:
    names = call.names
    if isinstance(names, str) or names is None or len(names) != count:
        names = [call.name] if count == 1 else [f"{call.name}_{index}" for index in range(count)]
    return [call.evaluator.claim(str(name)) for name in names]


def _body(call: Invoked, loop: _Loop) -> tuple[Graph, list[str]]:
    """Evaluate the fragment for one iteration; return also the tensors of states and outputs."""
    fragment, outer = loop.fragment, call.evaluator
    assert fragment.body is not None
    evaluator = outer.nested(fragment.name)
    builder = evaluator.builder
    values: dict[str, object] = dict(loop.attrs)
    slices = {
        name: (*tensor.shape[:axis], abs(step), *tensor.shape[axis + 1 :])
        for name, (tensor, axis, step) in loop.scanned.items()
    }
    wholes = {**loop.full, **{name: tensor for name, (tensor, _) in loop.states.items()}}
    arguments = {name: tensor for name, (tensor, _, _) in loop.scanned.items()} | wholes
    for name, tensor in arguments.items():
        shape = slices.get(name, tensor.shape)
        source = Tensor(builder.unique(name), shape, tensor.dtype, location=tensor.location)
        values[name] = builder.input(source)
    for parameter in fragment.parameters:
        if parameter.name not in values:
            raise call.error(
                f"the parameter {parameter.name!r} of the fragment {fragment.name!r} is bound to "
                "nothing",
                "name it in scan, full or state",
            )
    is_own = outer.fragments.get(fragment.name) is fragment
    scope = Scope(values, location=call.scope.location, library=not is_own)
    try:
        for assignment in fragment.body:
            evaluator.statement(assignment, scope)
        wanted = [
            *(result for _, result in loop.states.values()),
            *(name for name, _, _, _ in loop.outputs),
        ]
        results = [evaluator.tensor(scope.values[name], name, call.location) for name in wanted]
    except NnefHwError as error:
        raise type(error)(
            f"{error.reason}, in the body {fragment.name!r} of the loop {call.name!r}",
            remedy=error.remedy,
            location=error.location,
        ) from None
    names = [tensor.name for tensor in results]
    return builder.build(list(dict.fromkeys(names))), names


def _library_loop(call: Invoked, fragment: str, **parts: AttributeValue) -> AttributeValue:
    return _run(call, _Loop(load_library("tract")[fragment], **parts))


def _gru(call: Invoked) -> object:
    """Run a GRU whose input, results and states are [batch, time, ...]."""
    values = call.values
    for key, wanted in (("projected", False), ("emit_y", True)):
        if values[key] is not wanted:
            raise UnsupportedError(
                f"{call.op} {call.name!r}: {key} = {values[key]} is not supported",
                remedy="export the model again without tract's optimisation",
                location=call.places.get(key, call.location),
            )
    x, w, r = (call.tensor(key) for key in ("x", "w", "r"))
    hidden, width = values["hidden"], 3 * values["hidden"]
    if values["has_bias"]:
        wb, rb = (
            call.call("slice", call.tensor("b"), axes=[1], begin=[begin], end=[begin + width])
            for begin in (0, width)
        )
        wb = call.call("unsqueeze", wb, axes=[1])
    else:
        wb, rb = 0.0, call.evaluator.tensor(0.0, f"{call.name}_rb", call.location)
    w = call.call("unsqueeze", w, axes=[0])
    xh = call.call("add", call.call("matmul", x, w, transposeB=True), wb)
    state = call.call("reshape", call.tensor("initial_h"), shape=[x.shape[0], 1, hidden])
    return _library_loop(
        call,
        "tract_gru_step",
        scanned={"xh": (xh, 1, values["chunk"])},
        full={"r": r, "rb": rb},
        states={"h_prev": (state, "h")},
        outputs=[("h", "full", 1, values["chunk"]), ("h", "last", 1, values["chunk"])],
        attrs={"hidden": hidden},
    )


def _running_norm(call: Invoked, fragment: str, **attrs: object) -> object:
    """Normalize by a running average along an axis."""
    values, axis = call.values, call.values["axis"]
    if values["skip"]:
        raise UnsupportedError(
            f"{call.op} {call.name!r}: skip = {values['skip']} is not supported",
            remedy="export the model without pulses",
            location=call.places.get("skip", call.location),
        )
    state = call.call("unsqueeze", call.tensor("state"), axes=[axis])
    if values.get("complex"):
        state = call.call("unsqueeze", state, axes=[len(state.shape)])
    return _library_loop(
        call,
        fragment,
        scanned={"x": (call.tensor("input"), axis, 1)},
        states={"s": (state, "next")},
        outputs=[("y", "full", axis, 1)],
        attrs={"alpha": values["alpha"], **attrs},
    )


def _mean_norm(call: Invoked) -> object:
    return _running_norm(call, "tract_exp_mean_step", factor=call.values["scaling_factor"])


def _unit_norm(call: Invoked) -> object:
    values = call.values
    return _running_norm(
        call, "tract_exp_unit_step", least=values["epsilon"], complex=values["complex"]
    )


LOOPS: Mapping[str, Callable[[Invoked], object]] = {
    "tract_core_scan": _scan,
    "tract_core_gru_seq": _gru,
    "tract_extra_exp_mean_norm": _mean_norm,
    "tract_extra_exp_unit_norm": _unit_norm,
}
"""Lowerings by operator."""
