"""Windowed networks step by step: a step computes its own rows, keeps what later ones read of them.

The step of a network is a network with states (:mod:`nnef_hw.ir.states`): the rows that a window
reads of steps before are a state, in front of the new rows, and its next value are the last rows of
both. What a row means is as in the window, so a step gives, integer for integer, what the window
gives that ends with its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import UnsupportedError, UsageError
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir import Graph, Node, Stage, State, Tensor, Trait, verify
from nnef_hw.ir.input_readers import zero_codes
from nnef_hw.ir.operators import PoolAttributes
from nnef_hw.passes.forms.lower_flattened_linear import LowerFlattenedLinear
from nnef_hw.passes.structure.remove_dead import RemoveDead
from nnef_hw.passes.time.time_rows import RowPlan, find_rows
from nnef_hw.passes.time.time_taps import Taps, has_other_padding

__all__ = ["StreamTime"]

_IMAGE_RANK = 4


@dataclass(frozen=True, slots=True)
class StreamTime:
    """Options for a windowed network that runs step by step.

    Parameters
    ----------
    axis
        Axis of time in the shapes of the inputs; None if these tell it: the last one of [1, C, T],
        the rows of [1, C, T, 1].
    continue_borders
        Rows of the stream take the place of padding in time.
    """

    axis: int | None = None
    continue_borders: bool = False

    def of_model(self, graph: Graph) -> Graph:
        """Return the network of a step of a model, canonical or fixed.

        Raises
        ------
        UsageError, UnsupportedError, ErrorGroup
            As for :meth:`window`.
        """
        window, extended = self.window(graph)
        return self.steps(window, extended)[0]

    def window(self, graph: Graph) -> tuple[Graph, dict[str, StreamRows]]:
        """Return the network of a window of which :meth:`steps` makes the steps.

        That is the canonical graph itself, unless borders are continued: then its windows have rows
        in place of padding.

        Returns
        -------
        Graph
            The network.
        dict
            By input how samples of the given network become some of this one.

        Raises
        ------
        UsageError
            If no axis of an input can be that of time.
        UnsupportedError, ErrorGroup
            If the network cannot run step by step: for each operator in the way, why.
        """
        axes, graph = self._axes(graph), _in_rows(graph)
        plan = find_rows(graph, axes, endless=self.continue_borders)
        if not self.continue_borders:
            whole = {
                name: StreamRows(axes[name], graph.tensor(name).shape[axes[name]]) for name in axes
            }
            return graph, whole
        rows = {
            name: StreamRows(
                axis, plan.count(name), -plan.first[name],
                plan.last[name] + 1 - graph.tensor(name).shape[axis],
            )
            for name, axis in axes.items()
        }  # fmt: skip
        return _Rewrite(graph, plan, whole=True).run(), rows

    def steps(
        self, graph: Graph, extended: Mapping[str, StreamRows] | None = None
    ) -> tuple[Graph, dict[str, StreamRows]]:
        """Return the network of a step of what :meth:`window` returned, canonical or fixed.

        Parameters
        ----------
        extended
            How samples of the model become windows of this one, as :meth:`window` returned it; by
            default they are these.

        Returns
        -------
        Graph
            The network, with states, and with how it takes samples of the model (``Graph.rows``).
        dict
            By input how samples of the windowed network become sequences of steps.
        """
        axes, graph = self._axes(graph), _in_rows(graph)
        plan = find_rows(graph, axes)
        rows = {
            name: StreamRows(
                axis, plan.new[name], behind=plan.last[name] + 1 - graph.tensor(name).shape[axis]
            )
            for name, axis in axes.items()
        }
        step = _Rewrite(graph, plan, whole=False).run()
        taken = {
            name: rows[name].after(extended[name]) if extended else rows[name] for name in rows
        }
        return replace(step, rows=taken), rows

    def _axes(self, graph: Graph) -> dict[str, int]:
        if any(state.steps > 1 for state in graph.states.values()):
            raise UnsupportedError(
                f"model {graph.name!r} has a loop over the steps of a window, which begins anew "
                "with each window",
                remedy="let it go on from one inference to the next: --state loops",
            )
        if graph.states:
            raise UnsupportedError(
                f"model {graph.name!r} keeps states: it runs step by step already",
                remedy="leave out --stream",
            )
        return {name: self._axis(graph.tensor(name)) for name in graph.inputs}

    def _axis(self, tensor: Tensor) -> int:
        """Return the axis of time of an input."""
        shape = tensor.shape
        several = [axis for axis, extent in enumerate(shape) if axis and extent > 1]
        named = ", ".join(f"time={axis} ({shape[axis]} rows)" for axis in several)
        remedy = (
            f"name it: --stream {named}" if named else "give the model a window of several rows"
        )
        if self.axis is not None:
            if self.axis in several:
                return self.axis
            raise UsageError(
                f"input {tensor.name!r} {list(shape)} has no rows along axis {self.axis}",
                remedy=remedy,
            )
        is_image = len(shape) == _IMAGE_RANK and shape[-1] == 1
        if (len(shape) == _IMAGE_RANK - 1 or is_image) and 2 in several:
            return 2
        raise UsageError(
            f"the shape of input {tensor.name!r}, {list(shape)}, does not tell which axis is time",
            remedy=remedy,
        )


def _in_rows(graph: Graph) -> Graph:
    """Return a graph whose layers read the rows of whole inputs, of which others make one pixel."""
    return RemoveDead()(LowerFlattenedLinear(images=graph.tensors)(graph))


@dataclass(slots=True)
class _Rewrite:
    """A network of rows in the making: of a whole window, or of a step."""

    graph: Graph
    plan: RowPlan
    whole: bool
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)
    views: dict[tuple[str, int, int], str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def run(self) -> Graph:
        """Return the network."""
        plan = self.plan
        self.tensors = dict(self.graph.tensors)
        for name, axis in plan.axes.items():
            if name in plan.last:
                self.tensors[name] = self._like(name, name, axis, self._rows(name))
        for node in self.graph.nodes:
            taps = plan.taps.get(node.name)
            if taps is None:
                self.nodes.append(node)
            elif node.name in plan.last:
                self._emit(node, taps)
        new = replace(
            self.graph, nodes=tuple(self.nodes), tensors=self.tensors, states=self.states
        ).replaced()
        verify(new)
        return new

    def _rows(self, name: str) -> int:
        """Rows of a tensor in the new network."""
        return self.plan.count(name) if self.whole else self.plan.new[name]

    def _like(self, name: str, like: str, axis: int, rows: int) -> Tensor:
        tensor = self.graph.tensor(like)
        shape = (*tensor.shape[:axis], rows, *tensor.shape[axis + 1 :])
        return replace(tensor, name=name, shape=shape)

    def _emit(self, node: Node, taps: Taps) -> None:
        result = node.name
        rows, last = self._rows(result), self.plan.last[result]
        if result in self.plan.views:
            is_read_whole = result in self.graph.outputs or any(
                reader.name not in self.plan.taps for reader in self.graph.consumers(result)
            )
            if is_read_whole:
                # Nothing else gives it this name.
                self._view(result, last, rows, result, named=True)
            return
        inputs = []
        for place, name in enumerate(node.inputs):
            if name in self.plan.axes:
                span = (rows - 1) * taps.stride + taps.reach
                hint = result if place == 0 else f"{result}_{place}"
                inputs.append(self._view(name, taps.last(last), span, hint))
            else:
                inputs.append(name)
        self.nodes.append(
            replace(
                _without_padding(self.graph, node, taps.axis, self.tensors[result]),
                inputs=tuple(inputs),
            )
        )

    def _view(self, name: str, last: int, rows: int, hint: str, *, named: bool = False) -> str:
        """Return so many rows of a tensor up to the row ``last`` of the window.

        Those that are not new are kept from the steps before.
        """
        origin, begin = self.plan.source(name)
        last += begin
        axis, have = self.plan.axes[origin], self._rows(origin)
        later = self.plan.last[origin] - last
        past = rows + later - have
        if past == later == 0 and not named:
            return origin
        key = origin, last, rows
        if key in self.views and not named:
            return self.views[key]
        if past > 0:
            assert not self.whole, name
            origin = self._kept(origin, axis, past, have, hint)
        if max(past, 0) + have > rows or named:
            part = hint if named else self._unused(f"{hint}_part")
            self.tensors[part] = self._like(part, key[0], axis, rows)
            self._slice(origin, part, axis, max(-past, 0), rows)
            origin = part
        self.views[key] = origin
        return origin

    def _kept(self, name: str, axis: int, past: int, new: int, hint: str) -> str:
        """Return the last rows of a tensor: of steps before, and behind them the new ones."""
        state = self._unused(f"{hint}_past")
        self.tensors[state] = kept = self._like(state, name, axis, past)
        both = self._unused(f"{hint}_rows")
        self.tensors[both] = self._like(both, name, axis, past + new)
        following = self._unused(f"{hint}_kept")
        self.tensors[following] = replace(kept, name=following)
        initial: AttributeValue = np.zeros(kept.shape)
        if self.graph.stage == Stage.FIXED:
            initial = zero_codes(self.graph, name).take(range(past), axis)
        self.states[state] = State(initial, following, label=state)
        location = self.graph.tensor(name).location
        self.nodes.append(Node("concat", (state, name), (both,), {"axis": axis}, location))
        self._slice(both, following, axis, new, past)
        return both

    def _slice(self, source: str, result: str, axis: int, begin: int, rows: int) -> None:
        attrs = {"axes": [axis], "begin": [begin], "end": [begin + rows], "stride": [1]}
        location = self.tensors[source].location
        self.nodes.append(Node("slice", (source,), (result,), attrs, location))

    def _unused(self, name: str) -> str:
        while name in self.tensors:
            name += "_"
        return name


def _without_padding(graph: Graph, node: Node, axis: int, result: Tensor) -> Node:
    """Return a node whose rows are all there, for the new shape of its result."""
    if node.op == "reshape":
        return node.with_attrs(shape=list(result.shape), axis_start=0, axis_count=-1)
    pairs = node.attrs.get("padding")
    if pairs is None:
        return node
    # One pair for each of the last axes.
    place = axis - len(graph.tensor(node.name).shape)
    padding = list(pairs)
    if not any(padding[place]):
        return node
    padding[place] = (0, 0)
    new = node.with_attrs(padding=padding)
    if node.op == "pad":
        assert has_other_padding(node, axis)
    requant = node.attrs.get("requant")
    if isinstance(requant, Requant) and node.has(Trait.POOL) and node.attrs["border"] == "ignore":
        # It has a mult for each number of taps, of which fewer are left.
        shape = graph.tensor(node.inputs[0]).shape
        counts = np.unique(node.attributes(PoolAttributes).counts(shape))
        rows = (
            *shape[:axis],
            node.attrs["size"][axis] * node.attrs["dilation"][axis],
            *shape[axis + 1 :],
        )
        left = np.unique(new.attributes(PoolAttributes).counts(rows))
        mult = tuple(requant.mult[n] for n in np.searchsorted(counts, left))
        new = new.with_attrs(requant=replace(requant, mult=mult))
    return new
