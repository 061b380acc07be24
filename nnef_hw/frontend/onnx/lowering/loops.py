"""Recurrent loops: the body graph of a ``scan`` and what crosses its border."""

from __future__ import annotations

from collections.abc import Sequence

from nnef_hw.frontend.building.builder import Builder, identifier
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.ir import Tensor

__all__ = ["Loop"]


class Loop:
    """A loop under construction: inputs in the order scanned, full, states; then :meth:`close`.

    Parameters
    ----------
    call
        The node outside.
    """

    def __init__(self, call: OnnxCall) -> None:
        self._outside = call
        self._builder = Builder(identifier(call.node.name), fold=True, is_loop=True)
        self.call = OnnxCall(call.node, [], self._builder, call.location, call.around)
        """Makes nodes inside."""
        self._outer: list[Value] = []
        self._scans: list[tuple[int, int]] = []
        self._full = 0
        self._states = 0

    def scanned(self, value: Value, axis: int, step: int) -> Value:
        """Take a slice along an axis in each iteration, backwards if step is negative."""
        self._scans.append((axis, step))
        shape = (*value.shape[:axis], abs(step), *value.shape[axis + 1 :])
        return self._input("slice", value, shape)

    def full(self, value: Value) -> Value:
        """Take the same value in each iteration."""
        if value.data is not None:
            return self.call.constant(value.data, value.type, like=value)
        self._full += 1
        return self._input("full", value, value.shape)

    def state(self, initial: Value) -> Value:
        """Take the value that the previous iteration computed."""
        self._states += 1
        return self._input("state", initial, initial.shape)

    def has_hardware(self, states: Sequence[Value], frames: Sequence[Value]) -> bool:
        """Whether values can be next values of the states, and what a loop gives.

        They are real numbers that are not the same in all steps, and of the states' shapes.
        """
        initial = self._outer[len(self._outer) - self._states :]
        values = [*states, *frames]
        if any(value.tensor.dtype != "scalar" for value in (*self._outer, *values)):
            return False
        if [value.shape for value in states] != [value.shape for value in initial]:
            return False
        if any(node.op == "scan" for node in self._builder.nodes):
            return False
        body = self._builder.build([])
        first = len(self._scans)
        moving = {*body.inputs[:first], *body.inputs[first + self._full :]}
        return all(value.tensor.name in body.dependents(moving) for value in values)

    def close(
        self, states: Sequence[Value], outputs: Sequence[tuple[Value, str, int, int]]
    ) -> list[Value]:
        """Make the loop's node.

        Parameters
        ----------
        states
            Next values of the states.
        outputs
            Value inside, ``full`` or ``last``, axis and step.
        """
        names = dict.fromkeys(value.tensor.name for value in states)
        names.update(dict.fromkeys(value.tensor.name for value, *_ in outputs))
        attrs: dict[str, object] = {
            "body": self._builder.build(list(names)).replaced(),
            "scans": list(self._scans),
            "full": self._full,
            "states": [value.tensor.name for value in states],
            "outputs": [(value.tensor.name, *properties) for value, *properties in outputs],
        }
        elements = [value.type for value, *_ in outputs]
        return self._outside.emit_many("scan", *self._outer, elements=elements, **attrs)

    def _input(self, kind: str, value: Value, shape: tuple[int, ...]) -> Value:
        self._outer.append(value)
        name = self._builder.unique(f"{value.tensor.name}_{kind}")
        tensor = Tensor(name, shape, value.tensor.dtype, location=self._outside.location)
        return Value(self._builder.input(tensor), value.type)
