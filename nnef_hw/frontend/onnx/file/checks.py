"""Demands of ONNX's IR on graphs: unique definitions, and definitions before uses."""

from __future__ import annotations

from collections import ChainMap

from nnef_hw.errors import Location, ModelError, NnefHwError
from nnef_hw.frontend.onnx.file.model import OnnxFunction, OnnxGraph, OnnxModel, OnnxNode

__all__ = ["check_function", "check_structure"]

Definitions = ChainMap[str, str]


def check_structure(model: OnnxModel, errors: list[NnefHwError]) -> None:
    """Check single assignment and topological order of the graph, its subgraphs and functions."""
    checker = _Checker(Location(model.path), errors)
    checker.graph(model.graph, ChainMap())
    for function in model.functions.values():
        checker.function(function)


def check_function(function: OnnxFunction, path: str, errors: list[NnefHwError]) -> None:
    """Check a function as :func:`check_structure` does."""
    _Checker(Location(path), errors).function(function)


class _Checker:
    def __init__(self, location: Location, errors: list[NnefHwError]) -> None:
        self._location = location
        self._errors = errors

    def graph(self, graph: OnnxGraph, outer: Definitions) -> None:
        scope = outer.new_child()
        for item in graph.inputs:
            self._define(item.name, f"an input of {graph.name!r}", scope)
        inputs = {item.name for item in graph.inputs}
        for name in graph.initializers.keys() - inputs:
            self._define(name, "an initializer", scope)
        self._block(graph.nodes, graph.outputs, scope)

    def function(self, function: OnnxFunction) -> None:
        scope: Definitions = ChainMap()
        for name in function.inputs:
            self._define(name, f"an input of {function.name!r}", scope)
        self._block(function.nodes, function.outputs, scope)

    def _block(
        self, nodes: tuple[OnnxNode, ...], outputs: tuple[str, ...], scope: Definitions
    ) -> None:
        later = {name for node in nodes for name in node.outputs}
        for node in nodes:
            for name in filter(None, node.inputs):
                if name not in scope:
                    self._undefined(f"{node.label} reads", name, later, _cycle(nodes, name))
                    scope[name] = "reported"
            for value in node.attrs.values():
                if isinstance(value, OnnxGraph):
                    self.graph(value, scope)
            for name in filter(None, node.outputs):
                self._define(name, node.label, scope)
        for name in outputs:
            if name not in scope:
                self._undefined("the graph returns", name, set(), [])

    def _define(self, name: str, what: str, scope: Definitions) -> None:
        earlier = scope.get(name)
        if earlier is not None and earlier != "reported":
            self._error(
                f"the value {name!r} is defined twice: by {earlier} and by {what}",
                "give each value a name of its own",
            )
        scope[name] = what

    def _undefined(self, reader: str, name: str, later: set[str], cycle: list[str]) -> None:
        if cycle:
            self._error(
                f"{reader} {name!r}, which is computed of itself: {' -> '.join([*cycle, name])}",
                "make what a step leaves for the next one an input, and name both: "
                f"--state INPUT={name}",
            )
        elif name in later:
            self._error(
                f"{reader} {name!r} before it is computed",
                "nodes must be in topological order, without cycles",
            )
        else:
            self._error(f"{reader} {name!r}, which nothing defines", "export the model again")

    def _error(self, reason: str, remedy: str) -> None:
        self._errors.append(ModelError(reason, remedy=remedy, location=self._location))


def _cycle(nodes: tuple[OnnxNode, ...], name: str) -> list[str]:
    """Return the values between a value and itself, that first; none if there is no way back."""
    makers = {output: node for node in nodes for output in filter(None, node.outputs)}
    follows: dict[str, str] = {}
    todo = [name] if name in makers else []
    while todo:
        value = todo.pop()
        for source in makers[value].inputs:
            if source == name:
                found = [name]
                while value != name:
                    found.append(value)
                    value = follows[value]
                return found
            if source in makers and source not in follows:
                follows[source] = value
                todo.append(source)
    return []
