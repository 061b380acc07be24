"""Find everything in a simplified graph that has no fixed-point counterpart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from nnef_hw.errors import Location, NnefHwError, UnsupportedError
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.input_readers import index_count
from nnef_hw.ir.operators import CanonicalOperator, PerOperator, PoolAttributes
from nnef_hw.passes.checks.check_data_movement import check_data_movement
from nnef_hw.passes.checks.supported_part import BY_HOST
from nnef_hw.passes.checks.why_missing import CONTENTS, why_missing
from nnef_hw.passes.rewriting.editor import channel_values, is_trivial
from nnef_hw.passes.rewriting.names import authors_name
from nnef_hw.reference.visible import EVERYTHING, Interval, hidden_infinities

__all__ = ["find_differing", "find_unsupported"]

Problem = tuple[str, str]

checks = PerOperator[Callable[[Graph, Node], Iterator[Problem]]]("check")
"""Yield what is in a node's way, beside what its operands hold; reason and remedy."""


def find_unsupported(graph: Graph) -> list[NnefHwError]:
    """Return one error for each thing that a canonical graph cannot have; rewrite nothing.

    What computes with integers or logical values of a refused input or operator is counted there.
    """
    roots = [_Root(error, {name}) for name, error in _input_problems(graph)]
    hidden = _hidden(graph)
    for node in graph.nodes:
        root = next((root for root in roots if not root.holds.isdisjoint(node.inputs)), None)
        found = [_error(graph, node, problem) for problem in _problems(graph, node, hidden)]
        if root is not None and found:
            root.add(node, found[-1])
        elif found:
            batch = next((root for root in roots if root.error.remedy == found[0].remedy), None)
            if batch is not None and found[0].remedy == _one_sample(graph):
                batch.add(node, batch.error)
                continue
            root = _Root(found[0], set(_integers(graph, node)))
            roots += [root, *map(_Root, found[1:])]
        if root is not None:
            root.holds.update(x for x in node.outputs if graph.tensor(x).dtype != "scalar")
    errors = [root.whole() for root in roots]
    errors += check_data_movement(graph, {name for root in roots for name in root.holds})
    for name in graph.outputs:
        if name in graph.inputs or graph.tensor(name).data is not None:
            reason = f"output {name!r} does not depend on any operator"
            others = ",".join(other for other in graph.outputs if other != name)
            remedy = "remove it from the results"
            if others:
                remedy += f" (not of NNEF: --outputs {others})"
            errors.append(UnsupportedError(reason, remedy=remedy))
    for name, state in graph.states.items():
        if graph.tensor(state.result).data is not None:
            errors.append(
                UnsupportedError(
                    f"the variable {name!r} takes a constant for its next value",
                    remedy="use that constant in place of the variable",
                    location=graph.tensor(name).location,
                )
            )
    return errors


def _integers(graph: Graph, node: Node) -> Iterator[str]:
    """Yield operands that are no real numbers, and the tensors of which they are views."""
    todo = [name for name in node.inputs if graph.tensor(name).dtype != "scalar"]
    while todo:
        name = todo.pop()
        yield name
        producer = graph.producer(name)
        if producer is not None and producer.has(Trait.MOVES):
            todo += producer.inputs


@dataclass(slots=True)
class _Root:
    """A thing that is refused, and what is not counted since it is refused for the same reason.

    Parameters
    ----------
    holds
        Tensors of integers and logical values that come from it.
    behind
        Operators that compute with these.
    """

    error: NnefHwError
    holds: set[str] = field(default_factory=set)
    behind: set[Location | str] = field(default_factory=set)

    def add(self, node: Node, error: NnefHwError) -> None:
        """Count a node that is refused; one of the same operator of the author's tells more."""
        if node.location is not None and node.location == self.error.location:
            self.error = error
        self.behind.add(node.location or node.name)

    def whole(self) -> NnefHwError:
        """Return the error with the number of operators behind it."""
        count = len(self.behind - {self.error.location})
        if not count:
            return self.error
        more = "1 more operator computes" if count == 1 else f"{count} more operators compute"
        return UnsupportedError(
            f"{self.error.reason} ({more} with it)",
            remedy=self.error.remedy,
            location=self.error.location,
        )


def _hidden(graph: Graph) -> Mapping[str, Interval]:
    """Call :func:`hidden_infinities` for a graph that has an infinite constant."""
    constants = (tensor.data for tensor in graph.tensors.values() if tensor.dtype == "scalar")
    has_infinity = any(data is not None and np.isinf(data).any() for data in constants)
    return hidden_infinities(graph) if has_infinity else {}


def find_differing(graph: Graph) -> list[NnefHwError]:
    """Return an error for each operator of codes that hardware does not compute as its author's.

    Front ends mark these with what ``differs``; a graph of another rounding has none.
    """
    if graph.rounding != "tflite":
        return []
    return [
        UnsupportedError(
            f"{node.op} {node.name!r}: {why}, which has no hardware",
            remedy=BY_HOST,
            location=node.location,
        )
        for node in graph.nodes
        if (why := node.attrs.get("differs"))
    ]


def _input_problems(graph: Graph) -> Iterator[tuple[str, NnefHwError]]:
    for name in (*graph.inputs, *graph.states):
        tensor = graph.tensor(name)
        if tensor.dtype != "scalar" and not index_count(graph, name):
            what = "variable" if name in graph.states else "input"
            yield (
                name,
                UnsupportedError(
                    f"{what} {name!r} holds {CONTENTS[tensor.dtype]}",
                    remedy=_instead_of_integers(graph, name),
                    location=tensor.location,
                ),
            )


def _instead_of_integers(graph: Graph, name: str) -> str:
    """Return the remedy for an input or a variable of integers."""
    computed = "hardware computes with quantized real numbers only"
    if name in graph.states:
        return computed
    if (found := _looked_up(graph, name)) is not None:
        shape = list(graph.tensor(found).shape)
        return f"let the host look them up: export the network with {found!r} {shape} as its input"
    one = "if it is the same" if graph.tensor(name).volume == 1 else "if all are one number"
    return f"{computed}; {one} in every inference: --bind {name}=X"


def _looked_up(graph: Graph, name: str) -> str | None:
    """Return the result of reading a constant table at the places that an input holds."""
    places = {name}
    for node in graph.nodes:
        if node.op in {"gather", "gather_nd"} and node.inputs[1] in places:
            return node.name if graph.tensor(node.inputs[0]).data is not None else None
        if not places.isdisjoint(node.inputs):
            places.update(x for x in node.outputs if graph.tensor(x).dtype != "scalar")
    return None


def _error(graph: Graph, node: Node, problem: Problem) -> NnefHwError:
    reason, remedy = problem
    return UnsupportedError(
        f"{node.op} {authors_name(graph, node.name)!r}: {reason}",
        remedy=remedy,
        location=node.location,
    )


def _problems(graph: Graph, node: Node, hidden: Mapping[str, Interval]) -> Iterator[Problem]:
    if not isinstance(node.operator, CanonicalOperator):
        yield why_missing(graph, node)
        return
    yield from _contents(graph, node, hidden)
    yield from checks[node.op](graph, node)


def _contents(graph: Graph, node: Node, hidden: Mapping[str, Interval]) -> Iterator[Problem]:
    """Find arguments that are no real numbers where an operator needs them; a reshape takes all.

    Infinity is one if its readers cannot tell it from numbers: a softmax gives either no weight.
    """
    for name in node.numbers if node.op != "reshape" else ():
        tensor = graph.tensor(name)
        if tensor.dtype != "scalar":
            yield (
                f"its input {authors_name(graph, name)!r} holds {CONTENTS[tensor.dtype]}",
                "hardware computes with quantized real numbers only",
            )
        elif tensor.data is not None:
            shown = hidden.get(name, EVERYTHING)
            limited = tensor.data.astype(np.float64).clip(shown.lo, shown.hi)
            if not (finite := np.isfinite(limited)).all():
                first = np.argwhere(~finite)[0]
                value = tensor.data[tuple(first)]
                yield (
                    f"its input {name!r} holds {value} at {first.tolist()}",
                    "train or export the model again" if np.isnan(value) else _FINITE,
                )


_FINITE = "use a finite number near the others there: results show it, so one format must span both"


@checks(Trait.TABLE)
def _function(graph: Graph, node: Node) -> Iterator[Problem]:
    if len(node.inputs) != 1 or graph.tensor(node.inputs[0]).data is not None:
        yield (
            "its arguments are not exactly one activation",
            "use scalar constants for its parameters",
        )


def _layer(graph: Graph, node: Node) -> Iterator[Problem]:
    if graph.tensor(node.inputs[0]).data is not None:
        yield "its input is a constant", "feed it from a graph input"
    for name, what in zip(node.inputs[1:], ("filter", "bias"), strict=True):
        tensor = graph.tensor(name)
        if tensor.data is None:
            yield f"its {what} is computed, not constant", "use a variable or a literal"
        elif what == "bias" and tensor.shape != (1, graph.tensor(node.outputs[0]).shape[1]):
            yield f"its bias has shape {list(tensor.shape)}", "use one number for each channel"


@checks("linear")
def _linear(graph: Graph, node: Node) -> Iterator[Problem]:
    shape = graph.tensor(node.inputs[0]).shape
    if len(shape) != 2 or shape[0] != 1:
        yield f"its input has shape {list(shape)}", "use one row: [1, K]"
        return
    yield from _layer(graph, node)


def _window(graph: Graph, node: Node) -> Iterator[Problem]:
    shape = graph.tensor(node.inputs[0]).shape
    if len(shape) != 4 or shape[0] != 1:
        options = _one_sample(graph) if len(shape) == 4 else ""
        yield f"its input has shape {list(shape)}", options or "use [1, C, L] or [1, C, H, W]"
        return
    if any(p < 0 for pair in node.attrs["padding"] for p in pair):
        yield f"padding {node.attrs['padding']} crops the input", "use padding of 0 or more"


def _one_sample(graph: Graph) -> str:
    """Return how inputs of several samples get one; nothing if the model's file has no options."""
    inputs = [graph.tensor(name) for name in graph.inputs]
    several = [x for x in inputs if x.shape and x.shape[0] > 1]
    if any(x.location is None or x.location.line for x in several):
        return ""
    options = " ".join(f"--dim {x.name}.0=1" for x in several)
    return options and f"compute one sample at a time: {options}"


@checks("conv")
def _conv(graph: Graph, node: Node) -> Iterator[Problem]:
    yield from _window(graph, node)
    if len(graph.tensor(node.inputs[0]).shape) == 4:
        yield from _layer(graph, node)


@checks(Trait.POOL)
def _pool(graph: Graph, node: Node) -> Iterator[Problem]:
    problems = [*_window(graph, node), *_pool_form(node)]
    yield from problems
    if not problems and node.op == "avg_pool" and node.attrs["border"] == "ignore":
        counts = node.attributes(PoolAttributes).counts(graph.tensor(node.inputs[0]).shape)
        if not counts.all():
            yield "some of its windows lie outside of the image", "use less padding"


def _pool_form(node: Node) -> Iterator[Problem]:
    border = node.attrs["border"]
    if border not in {"constant", "ignore"}:
        yield f"border {border!r} with padding is not supported", "use 'constant' or 'ignore'"
    for key, trivial in (("size", 1), ("stride", 1), ("padding", (0, 0))):
        if not is_trivial(node.attrs[key][:2], trivial):
            yield f"{key} {node.attrs[key]} extends over batch or channels", "use rows and columns"


@checks(Trait.ARITHMETIC)
def _arithmetic(graph: Graph, node: Node) -> Iterator[Problem]:
    result = graph.tensor(node.outputs[0]).shape
    yield from _image(result)
    for name in node.inputs:
        tensor = graph.tensor(name)
        if tensor.data is None and tensor.shape != result:
            shown = authors_name(graph, name)
            yield (
                f"its input {shown!r} has shape {list(tensor.shape)}, its result {list(result)}",
                "use activations of equal shapes",
            )
        elif (
            tensor.data is not None
            and tensor.shape != result
            and channel_values(tensor.data, result) is None
        ):
            yield (
                f"its constant {name!r} of shape {list(tensor.shape)} varies within a channel",
                "use one number, or one for each channel or element",
            )


@checks(Trait.CONTRACTS)
def _contraction(graph: Graph, node: Node) -> Iterator[Problem]:
    for name in (*node.inputs, *node.outputs):
        yield from _image(graph.tensor(name).shape)
    for name in node.inputs:
        if graph.tensor(name).data is not None:
            yield f"its operand {name!r} is constant", "use matmul or linear"


@checks("log_mel", "log_bands", "micro_frontend", "micro_frontend_step", "micro_noise")
def _front(graph: Graph, node: Node) -> Iterator[Problem]:
    yield from _image(graph.tensor(node.outputs[0]).shape)
    if graph.tensor(node.inputs[0]).data is not None:
        yield "its samples are constant", "feed it from a graph input"


@checks("concat")
def _concat(graph: Graph, node: Node) -> Iterator[Problem]:
    result = graph.tensor(node.outputs[0]).shape
    yield from _image(result)
    if node.attrs["axis"] == 0:
        yield "axis 0 is not supported: one image at a time is computed", "use axis = 1 or above"


@checks("slice")
def _slice(graph: Graph, node: Node) -> Iterator[Problem]:
    yield from _image(graph.tensor(node.outputs[0]).shape)
    if any(stride != 1 for stride in node.attrs["stride"]):
        stride, axes = list(node.attrs["stride"]), list(node.attrs["axes"])
        reason = f"stride {stride} along axes {axes} is not supported"
        yield reason, "use positive strides of rows and columns"


@checks("pad")
def _pad(graph: Graph, node: Node) -> Iterator[Problem]:
    attrs = node.attrs
    padding = [tuple(pair) for pair in attrs["padding"]]
    yield from _image(graph.tensor(node.outputs[0]).shape)
    yield from _window(graph, node)
    if attrs.get("border", "constant") != "constant":
        yield f"border {attrs['border']!r} is not supported", "use 'constant'"
    elif not np.isfinite(value := attrs.get("value", 0.0)):
        shown = hidden_infinities(graph).get(node.name, EVERYTHING)
        if not np.isfinite(np.clip(value, shown.lo, shown.hi)):
            yield f"its value {value} is no number, and results depend on it", _FINITE
    if not is_trivial(padding[:2], (0, 0)):
        yield f"padding {padding} reaches beyond rows and columns", "pad channels by concat"


@checks(
    "begin_steps", "depth_to_space", "interpolate", "join_steps", "last_step", "nearest_upsample",
    "reverse_steps", "split_steps",
)  # fmt: skip
def _moved(graph: Graph, node: Node) -> Iterator[Problem]:
    yield from _image(graph.tensor(node.outputs[0]).shape)


def _image(shape: tuple[int, ...]) -> Iterator[Problem]:
    if len(shape) not in {2, 4} or shape[0] != 1:
        yield f"its result has shape {list(shape)}", "use [1, C], [1, C, L] or [1, C, H, W]"


@checks(Trait.MOVES)
def _nothing(graph: Graph, node: Node) -> Iterator[Problem]:
    """Leave the node to :func:`check_data_movement`: moves in a row are one."""
    del graph, node
    yield from ()


@checks(Trait.ALONG_CHANNELS)
def _axis_one(graph: Graph, node: Node) -> Iterator[Problem]:
    axes, shape = list(node.attrs.get("axes", [1])), graph.tensor(node.inputs[0]).shape
    if node.has(Trait.INDEXED):
        yield from _place(graph, node)
    if axes != [1]:
        yield f"axes {axes} are not supported", "use axes = [1]"
    elif shape[0] != 1:
        yield f"its input has shape {list(shape)}", "use a batch of 1"


@checks("lookup")
def _lookup(graph: Graph, node: Node) -> Iterator[Problem]:
    if graph.tensor(node.inputs[0]).data is None:
        yield "its table is computed", "use a constant table"
    yield from _place(graph, node)


@checks("write_row")
def _write_row(graph: Graph, node: Node) -> Iterator[Problem]:
    yield from _place(graph, node)


def _place(graph: Graph, node: Node) -> Iterator[Problem]:
    """Refuse a place that is computed: it must be what an input holds."""
    name = node.inputs[-1]
    while (producer := graph.producer(name)) is not None and producer.has(Trait.RESHAPES):
        name = producer.inputs[0]
    if name not in graph.inputs:
        yield f"its place {authors_name(graph, name)!r} is computed", "let it be an input"


checks.require_all()
