"""Loops of several steps: their bodies become part of the graph around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.ir import Graph, Node, State, Tensor, image_shape
from nnef_hw.passes.rewriting.editor import Editor, emit_steps, reshape_node

__all__ = ["lower_scans", "obstacle"]

Shape = tuple[int, ...]


def lower_scans(step: Graph) -> tuple[Graph, dict[str, State]]:
    """Put the body of every ``scan`` into the graph, between operators that enter and leave it.

    * a scanned input -> its elements in the order of the steps, ``split_steps``
    * an input that every step reads whole -> the same, of its repetition
    * what steps hand on -> a state that begins anew in every inference; ``begin_steps`` if its
      first value is computed
    * outputs -> ``last_step`` or ``join_steps``; ``reverse_steps`` where a loop runs backwards

    Left alone: what :func:`obstacle` finds something in the way of.

    Parameters
    ----------
    step
        A graph whose states are open.

    Returns
    -------
    tuple
        The graph, with the states of its loops as its last inputs and their next values as its last
        outputs; and these states.
    """
    editor, states = Editor(step), dict[str, State]()
    for node in step.nodes:
        if node.op == "scan" and obstacle(step, node) is None:
            states.update(_Loop(editor, node).lower())
        else:
            editor.keep(node)
    if not editor.changed:
        return step, {}
    results = [state.result for state in states.values()]
    opened = replace(
        step,
        inputs=(*step.inputs, *states),
        outputs=(*step.outputs, *results),
        repeated={**step.repeated, **{name: state.steps for name, state in states.items()}},
    )
    return opened.replaced(nodes=editor.finish().nodes, tensors=editor.tensors), states


def obstacle(graph: Graph, node: Node) -> tuple[str, str] | None:
    """Return why there is no hardware for a loop, and what to do about it; None if there is."""
    body: Graph = node.attrs["body"]
    scanned = node.inputs[: len(node.attrs["scans"])]
    loops = [inner.name for inner in body.nodes if inner.op == "scan"]
    if loops:
        return (
            f"there is a loop of several steps in it, {loops[0]!r}",
            "let the outer loop have one step in each inference, or unroll the inner one",
        )
    for name in scanned:
        if graph.tensor(name).data is not None:
            return (
                f"it goes through a constant, {name!r}",
                "make that an input, or compute it in the loop",
            )
    for tensor in _crossing(graph, node, body):
        if tensor.dtype != "scalar":
            return (
                f"{tensor.name!r}, which it takes or hands on, does not hold real numbers",
                "compute with real numbers in loops",
            )
    varying, needed = _varying(node), _needed(node)
    for result in (*node.attrs["states"], *(name for name, *_ in node.attrs["outputs"])):
        if result in needed and result not in varying:
            return (
                f"{result!r} is the same in all of its steps",
                "compute it outside of the loop",
            )
    return None


def _crossing(graph: Graph, node: Node, body: Graph) -> Iterator[Tensor]:
    yield from (graph.tensor(name) for name in node.inputs)
    yield from (body.tensor(name) for name in node.attrs["states"] if name in _needed(node))
    yield from (body.tensor(name) for name, *_ in node.attrs["outputs"])


def _varying(node: Node) -> set[str]:
    """Return the tensors that are not the same in all steps of a loop."""
    body: Graph = node.attrs["body"]
    count, full = len(node.attrs["scans"]), node.attrs["full"]
    return body.dependents([*body.inputs[:count], *body.inputs[count + full :]])


def _needed(node: Node) -> set[str]:
    """Return the tensors of a loop's body that any of its outputs will ever depend on."""
    body: Graph = node.attrs["body"]
    states = body.inputs[len(node.attrs["scans"]) + node.attrs["full"] :]
    needed, before = {name for name, *_ in node.attrs["outputs"]}, -1
    while len(needed) > before:
        before = len(needed)
        for inner in reversed(body.nodes):
            if not needed.isdisjoint(inner.outputs):
                needed.update(inner.inputs)
        pairs = zip(states, node.attrs["states"], strict=True)
        needed.update(result for state, result in pairs if state in needed)
    return needed


@dataclass(frozen=True, slots=True)
class _Form:
    """Images that values of a shape become, with steps as rows.

    A value that is no image is a vector of channels.
    """

    shape: Shape

    @property
    def image(self) -> Shape:
        found = image_shape(self.shape)
        height, width, channels = found or (1, 1, prod(self.shape))
        if found and len(self.shape) == 3:
            height, width = 1, height
        return (1, channels, height, width)

    def joined(self, steps: int) -> Shape:
        _, channels, height, width = self.image
        return (1, channels, steps * height, width)

    @property
    def channel_axes(self) -> int:
        """Number of the shape's first axes that are channels; an axis of steps stands behind."""
        return 2 if image_shape(self.shape) else len(self.shape)

    @property
    def state(self) -> Shape:
        """The shape of a state that holds such values."""
        if len(self.shape) in {2, 4} and image_shape(self.shape):
            return self.shape
        return self.image if image_shape(self.shape) else (1, prod(self.shape))


class _Loop:
    """Emits the nodes of one loop."""

    def __init__(self, editor: Editor, node: Node) -> None:
        self.editor, self.node = editor, node
        self.body: Graph = node.attrs["body"]
        axis, step = node.attrs["scans"][0]
        self.steps = editor.shape(node.inputs[0])[axis] // abs(int(step))
        self.names: dict[str, str] = {}
        self.repeated: dict[str, str] = {}
        self.varying, self.needed = _varying(node), _needed(node)

    def lower(self) -> dict[str, State]:
        """Emit all; return the states by tensor."""
        node, body, names = self.node, self.body, self.names
        scans, full = node.attrs["scans"], node.attrs["full"]
        for name, tensor in body.tensors.items():
            if tensor.data is not None:
                names[name] = self.editor.add(f"{node.name}_{name}", tensor)
        for name, source in zip(
            body.inputs[len(scans) :][:full], node.inputs[len(scans) :], strict=False
        ):
            names[name] = self.editor.resolve(source)
        for name, source, scan in zip(body.inputs, node.inputs, scans, strict=False):
            names[name] = self._scanned(self.editor.resolve(source), body.tensor(name), *scan)
        begun = list(self._begin(full + len(scans)))
        for inner in body.nodes:
            if self.needed.isdisjoint(inner.outputs):
                continue
            self._emit_inner(inner, repeats=not self.varying.isdisjoint(inner.inputs))
        states = {}
        for name, initial, result in begun:
            value = self._as_state(names[result])
            states[name] = State(initial, value, None, self.steps)
        for name, (source, kind, axis, step) in zip(
            node.outputs, node.attrs["outputs"], strict=True
        ):
            self._give(name, names[source], kind, axis, step)
        return states

    def _emit_inner(self, inner: Node, *, repeats: bool) -> None:
        """Emit a node of the body; what is the same in all steps is computed once."""
        for name in inner.outputs:
            self.names[name] = self.editor.add(f"{self.node.name}_{name}", self.body.tensor(name))
        inputs = tuple(self.names[name] for name in inner.inputs)
        if repeats:
            inputs = tuple(self._in_steps(name) for name in inner.inputs)
        outputs = tuple(self.names[name] for name in inner.outputs)
        self.editor.emit(replace(inner, inputs=inputs, outputs=outputs))

    def _in_steps(self, name: str) -> str:
        """Return a tensor of the body in every step; repeat one that is the same in all of them."""
        found = self.names[name]
        if name in self.varying or self.editor.tensors[found].data is not None:
            return found
        if name not in self.repeated:
            shape = self.body.tensor(name).shape
            volume = prod(shape)
            self.repeated[name] = self._emit(
                found,
                ("reshape", (1, volume, 1, 1), {}),
                ("nearest_upsample", (1, volume, self.steps, 1), {"factor": [self.steps, 1]}),
                ("split_steps", (1, volume, 1, 1), {"steps": self.steps}),
                ("reshape", shape, {}),
            )
        return self.repeated[name]

    def _emit(self, source: str, *steps: tuple[str, Shape, Mapping[str, object]]) -> str:
        hint = f"{self.node.name}_steps"
        return emit_steps(self.editor, self.node, source, hint, steps)

    def _scanned(self, source: str, part: Tensor, axis: int, step: int) -> str:
        """Emit the steps of a scanned tensor; return their name."""
        form, steps = _Form(part.shape), self.steps
        split = (*part.shape[:axis], steps, *part.shape[axis:])
        moved = [n for n in range(len(split)) if n != axis]
        moved.insert(form.channel_axes, axis)
        emitted: list[tuple[str, Shape, Mapping[str, object]]] = [
            ("reshape", split, {}),
            ("transpose", tuple(split[n] for n in moved), {"axes": list(moved)}),
            ("reshape", form.joined(steps), {}),
        ]
        if step < 0:
            emitted.append(("reverse_steps", form.joined(steps), {"steps": steps}))
        emitted.append(("split_steps", form.image, {"steps": steps}))
        emitted.append(("reshape", part.shape, {}))
        return self._emit(source, *emitted)

    def _as_state(self, name: str) -> str:
        """Return a value in the shape in which a state holds it."""
        shape = self.editor.shape(name)
        form = _Form(shape)
        return name if form.state == shape else self._emit(name, ("reshape", form.state, {}))

    def _begin(self, first: int) -> Iterator[tuple[str, AttributeValue, str]]:
        """Name the states; yield their tensors, initial values, and what they take over."""
        for n, result in enumerate(self.node.attrs["states"]):
            inner, source = self.body.inputs[first + n], self.node.inputs[first + n]
            if inner not in self.needed:
                continue
            tensor = self.body.tensor(inner)
            shape = _Form(tensor.shape).state
            state = self.editor.activation(f"{self.node.name}_{inner}", shape, tensor)
            data = self.editor.data(source)
            initial = np.zeros(shape) if data is None else np.reshape(data, shape)
            value = state
            if data is None:
                before = self._as_state(self.editor.resolve(source))
                value = self.editor.activation(f"{state}_steps", shape, tensor)
                attrs = {"steps": self.steps}
                begin = Node("begin_steps", (before, state), (value,), attrs, self.node.location)
                self.editor.emit(begin)
            self.names[inner] = value
            if shape != tensor.shape:
                self.names[inner] = self._emit(value, ("reshape", tensor.shape, {}))
            yield state, initial, result

    def _give(self, name: str, source: str, kind: str, axis: int, step: int) -> None:
        """Emit what becomes an output: of the last step, or of all."""
        shape, steps, editor = self.editor.shape(source), self.steps, self.editor
        form = _Form(shape)
        attrs = {"steps": steps}
        if kind == "last":
            image = self._emit(
                source, ("reshape", form.image, {}), ("last_step", form.image, attrs)
            )
            editor.emit(reshape_node(image, name, shape, self.node))
            return
        channels = form.channel_axes
        joined: list[tuple[str, Shape, Mapping[str, object]]] = [
            ("reshape", form.image, {}),
            ("join_steps", form.joined(steps), attrs),
        ]
        if step < 0:
            joined.append(("reverse_steps", form.joined(steps), attrs))
        split = (*shape[:channels], steps, *shape[channels:])
        order = [n for n in range(len(split)) if n != channels]
        order.insert(axis, channels)
        joined += [
            ("reshape", split, {}),
            ("transpose", tuple(split[n] for n in order), {"axes": order}),
        ]
        whole = (*shape[:axis], steps * shape[axis], *shape[axis + 1 :])
        editor.emit(reshape_node(self._emit(source, *joined), name, whole, self.node))
