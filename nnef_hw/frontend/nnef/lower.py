"""Syntax tree to a float Graph; reports every problem, not only the first."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from nnef_hw.errors import ModelError, NnefHwError, raise_all
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.checking.checker import Findings, check_document
from nnef_hw.frontend.nnef.evaluation.evaluate import Evaluator
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.evaluation.quant_file import QuantizationLine
from nnef_hw.frontend.nnef.evaluation.rules import STRICT, Rules
from nnef_hw.frontend.nnef.evaluation.scope import Scope
from nnef_hw.frontend.nnef.evaluation.variable_data import NoData, VariableData
from nnef_hw.frontend.nnef.language.syntax import Assignment, Document, Identifier
from nnef_hw.frontend.nnef.language.walk import identifiers
from nnef_hw.ir import Graph, Tensor

__all__ = ["lower"]

_RECURSION_LIMIT = 20_000


def lower(
    document: Document,
    data: VariableData | None = None,
    *,
    rules: Rules = STRICT,
    dims: Mapping[str, int] | None = None,
    lines: Mapping[str, QuantizationLine] | None = None,
) -> Graph:
    """Check a document and turn it into a graph.

    Parameters
    ----------
    data
        Source of the variables' data; without it they are zero.
    rules
        Rules of the document's dialect.
    dims
        Values of the symbols in the document's shapes.
    lines
        Lines of the quantization file by tensor name.

    Raises
    ------
    ModelError, UnsupportedError
        If there is one problem.
    ErrorGroup
        If there are several, each with its location, in the order of the text.
    """
    symbols = rules.symbols(document, dims or {})
    lowering = _Lowering(document, data or NoData(), rules, symbols, lines or {})
    with _deep_recursion():
        return lowering.lower()


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Let fragments call themselves as deep as the evaluator allows."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class _Lowering:
    def __init__(
        self,
        document: Document,
        data: VariableData,
        rules: Rules,
        symbols: Mapping[str, object],
        lines: Mapping[str, QuantizationLine],
    ) -> None:
        self._graph = document.graph
        self._findings: Findings = check_document(document, rules, symbols)
        self._errors: list[NnefHwError] = list(self._findings.errors)
        self._lines = lines
        self._own_tensors = {item.name for item in self._graph.outputs} | set(lines)
        self._last = {
            item.name: assignment
            for assignment in self._graph.assignments
            if not self._findings.spoils(assignment, set())
            for item in identifiers(assignment.target)
        }
        self._builder = Builder(self._graph.name, fold=rules.fold)
        fragments = {item.name: item for item in document.fragments}
        self._evaluator = Evaluator(
            self._builder, rules, fragments, data, symbols=symbols, quantized=lines.keys()
        )
        self._scope = Scope({})
        self._unknown: set[str] = set()

    def lower(self) -> Graph:
        self._builder.reserved.update(self._last)
        for assignment in self._graph.assignments:
            self._assign(assignment)
        self._errors += [*self._check_externals(), *self._check_lines()]
        raise_all(sorted(self._errors, key=_position))
        builder = self._builder
        for name in builder.states:
            builder.tensors[name] = replace(builder.tensors[name], data=None, label=None)
        outputs = [item.name for item in self._graph.outputs]
        outputs += [name for name in builder.caches.values() if name not in outputs]
        builder.inputs = [*(item.name for item in self._graph.inputs), *builder.caches]
        return builder.build(outputs)

    def _assign(self, assignment: Assignment) -> None:
        targets = list(identifiers(assignment.target))
        if self._findings.spoils(assignment, self._unknown):
            self._unknown.update(item.name for item in targets)
            return
        # an identifier that a later assignment shadows gives its name to that one's tensor
        own = [item for item in targets if self._last[item.name] is assignment]
        self._evaluator.claimable = {item.name for item in own}
        self._scope.location = assignment.location
        count = len(self._builder.tensors)
        try:
            self._evaluator.statement(assignment, self._scope)
            renamed: dict[str, Tensor] = {}
            for target in own:
                self._settle(target, count, renamed)
        except NnefHwError as error:
            self._errors.append(error)
            self._unknown.update(item.name for item in targets)
        except RecursionError:
            self._errors.append(
                ModelError(
                    "the expression is nested too deeply",
                    remedy="split it into several statements",
                    location=assignment.location,
                )
            )
            self._unknown.update(item.name for item in targets)

    def _settle(self, target: Identifier, count: int, renamed: dict[str, Tensor]) -> None:
        """Let the tensor of an identifier have its name where it is no other identifier's."""
        name, builder = target.name, self._builder
        value = self._scope.values[name]
        if isinstance(value, Tensor):
            value = renamed.get(value.name, value)
        own = name in self._own_tensors
        if own and isinstance(value, str | tuple):
            raise ModelError(
                f"{name!r} is a {'string' if isinstance(value, str) else 'tuple'}, not a tensor",
                remedy="only tensors are results of a graph, or quantized",
                location=target.location,
            )
        if isinstance(value, bool | int | float) or (isinstance(value, list) and own):
            value = self._evaluator.tensor(value, name, target.location)
        if isinstance(value, Tensor) and value.name != name:
            fresh = itertools.islice(reversed(builder.tensors), len(builder.tensors) - count)
            others = (self._last, self._evaluator.variables)
            if value.name in fresh and not any(value.name in other for other in others):
                old = value.name
                value = renamed[old] = builder.rename(old, name)
            elif own:
                (value,) = builder.node(
                    "copy", [value], {}, [name], (value.dtype,), location=self._scope.location
                )
        if isinstance(value, Tensor) and name in self._lines:
            value = self._quantized(value, self._lines[name])
        self._scope.values[name] = value

    def _quantized(self, tensor: Tensor, line: QuantizationLine) -> Tensor:
        """Apply a line of the quantization file; of variables that was done when they were read."""
        if tensor.name in self._evaluator.variables:
            return tensor
        return self._builder.add(line.apply(tensor))

    def _check_externals(self) -> Iterator[ModelError]:
        listed = {item.name for item in self._graph.inputs}
        for name in self._builder.inputs:
            if name in listed or name in self._builder.caches:
                continue
            named = name in self._scope.values
            yield ModelError(
                f"the external {name!r} is not an input of the graph"
                if named
                else "this external is not an input of the graph",
                remedy=f"add it: graph {self._graph.name}({name}, ...)"
                if named
                else "assign it to an identifier of its own that is listed there",
                location=self._builder.tensors[name].location,
            )

    def _check_lines(self) -> Iterator[ModelError]:
        for name, line in self._lines.items():
            if name not in self._scope.values and name not in self._unknown:
                yield ModelError(
                    f"the quantization file names {name!r}, which is not a tensor of the graph",
                    remedy=nearest(name, self._scope.values)
                    or "its keys are identifiers of the graph, not labels",
                    location=line.location,
                )


def _position(error: NnefHwError) -> tuple[str, int, int]:
    """Order errors by their place."""
    where = error.location
    return ("", 0, 0) if where is None else (where.file, where.line, where.column)
