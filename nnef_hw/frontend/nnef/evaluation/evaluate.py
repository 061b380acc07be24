"""Evaluate statements and expressions: primitive values at once, operators on tensors to nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from nnef_hw.errors import Location, NnefHwError, UnsupportedError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.evaluation.binding import match
from nnef_hw.frontend.nnef.evaluation.custom import check_custom
from nnef_hw.frontend.nnef.evaluation.evaluation import DTYPES, Evaluation
from nnef_hw.frontend.nnef.evaluation.exporters import convert_arguments
from nnef_hw.frontend.nnef.evaluation.expressions import METHODS, unpack
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.evaluation.rules import Rules
from nnef_hw.frontend.nnef.evaluation.scope import Names, Scope, first_name
from nnef_hw.frontend.nnef.evaluation.variable_data import VariableData
from nnef_hw.frontend.nnef.language.syntax import (
    Array,
    Assignment,
    Declaration,
    Expression,
    Identifier,
    Invocation,
    Tuple,
)
from nnef_hw.frontend.nnef.language.types import is_generic
from nnef_hw.frontend.shapes import SHAPE_RULES
from nnef_hw.ir import Tensor
from nnef_hw.reference.real.registry import known_operators

__all__ = ["Evaluator"]

_MAX_DEPTH = 1000


class Evaluator(Evaluation):
    """Evaluates by one set of rules; the other parameters are those of :class:`Evaluation`.

    Parameters
    ----------
    expand
        Whether every operator with a body is replaced by it, also what the float reference knows.
    """

    def __init__(
        self,
        builder: Builder,
        rules: Rules,
        fragments: Mapping[str, Declaration],
        data: VariableData,
        *,
        symbols: Mapping[str, object] | None = None,
        quantized: Collection[str] = (),
        expand: bool = False,
    ) -> None:
        super().__init__(
            builder,
            fragments,
            data,
            symbols=symbols or {},
            quantized=quantized,
            typed=rules.typed,
        )
        self._rules = rules
        self._libraries = [load_library(name) for name in reversed(rules.libraries)]
        self._atoms = frozenset() if expand else known_operators() & SHAPE_RULES.keys()
        self._matched: dict[int, tuple[Invocation, dict[str, Expression]]] = {}
        self._annotated: NnefHwError | None = None

    def statement(self, assignment: Assignment, scope: Scope) -> None:
        names = self._target_names(assignment.target, scope)
        scope.root = first_name(names) or scope.prefix
        value = self.evaluate(assignment.value, scope, names)
        unpack(self, assignment.target, value, scope)

    def evaluate(self, expression: Expression, scope: Scope, names: Names = None) -> object:
        return METHODS[type(expression)](self, expression, scope, names)

    def declaration(self, name: str, location: Location, *, library: bool = False) -> Declaration:
        if name in self.fragments and not library:
            return self.fragments[name]
        for declarations in self._libraries:
            if name in declarations:
                return declarations[name]
        if name in self._rules.refused:
            raise UnsupportedError(
                f"the operator {name!r} is not supported: {self._rules.refused[name]}",
                remedy="export the model without it",
                location=location,
            )
        declared = [*self.fragments, *(other for names in self._libraries for other in names)]
        raise UnsupportedError(
            f"the operator {name!r} is unknown",
            remedy=nearest(name, declared)
            or f"only the operators of {self._rules.name} are supported",
            location=location,
        )

    def invoke(
        self,
        declaration: Declaration,
        arguments: Mapping[str, object],
        dtype: str | None,
        names: Names,
        places: Mapping[str, Location],
        location: Location,
        scope: Scope,
    ) -> object:
        values: dict[str, object] = {}
        for parameter in declaration.parameters:
            if parameter.name in arguments:
                value = arguments[parameter.name]
            else:
                assert parameter.default is not None, parameter.name
                value = self.evaluate(parameter.default, scope)
            values[parameter.name] = value
        call = Invoked(self, declaration, values, dtype, names, places, location, scope)
        if not self.typed:
            call.coerce()
        elif self._rules.conversions:
            convert_arguments(call)
        if declaration.generic and (dtype is None or not self.typed):
            call.dtype = self._deduced(call)
        is_own = self.fragments.get(declaration.name) is declaration
        if is_own and declaration.body is not None:
            return self._expanded(call)
        lowering = self._rules.lowerings.get(declaration.name)
        if lowering is not None:
            return lowering(call)
        if declaration.body is not None and declaration.name not in self._atoms:
            return self._expanded(call)
        if is_own:
            check_custom(declaration, location)
        return call.node()

    def arguments(
        self, invocation: Invocation, declaration: Declaration, scope: Scope, names: Names
    ) -> dict[str, Expression]:
        cached = self._matched.get(id(invocation))
        if cached is not None:
            return cached[1]
        name = first_name(names) or f"{scope.root}_{declaration.name}"
        title = f"{declaration.name} {name!r}"
        positional = self._rules.positional_attributes
        matched = match(
            invocation,
            declaration,
            title,
            positional=positional,
            ignored=self._rules.ignored_arguments,
            surplus=self._rules.conversions,
        )
        if scope.prefix:
            self._matched[id(invocation)] = (invocation, matched)
        return matched

    def nested(self, name: str) -> Evaluator:
        builder = Builder(name, fold=self._rules.fold, is_loop=True)
        return Evaluator(builder, self._rules, self.fragments, self.data, symbols=self.symbols)

    def _deduced(self, call: Invoked) -> str:
        """Return the data-type of ``?``: the one of tensors, one that is given, or of numbers.

        Where types are checked, one that is given or declared goes first.
        """
        declared = call.dtype or call.declaration.default_dtype
        if declared is not None and self.typed:
            return declared
        generic = [item.name for item in call.declaration.parameters if is_generic(item.type)]
        found = [part for name in generic for part in _parts(call.values[name])]
        for part in found:
            if isinstance(part, Tensor):
                return part.dtype
        if declared is not None:
            return declared
        for part in found:
            return DTYPES[type(part)]
        raise call.error(
            "the data-type of the result is not known", f"write {call.op}<scalar>(...)"
        )

    def _expanded(self, call: Invoked) -> object:
        declaration, outer = call.declaration, call.scope
        assert declaration.body is not None
        self.count_step(call.location)
        if outer.depth >= _MAX_DEPTH:
            raise call.error(
                f"fragments are nested more than {_MAX_DEPTH} deep",
                "does the recursion end? its if-else must not need itself",
            )
        results: Sequence[Names] = [call.name]
        if len(declaration.results) > 1:
            results = [f"{call.name}_{result.name}" for result in declaration.results]
            if isinstance(call.names, list) and len(call.names) == len(results):
                results = call.names
        elif call.names is not None:
            results = [call.names]
        scope = Scope(
            values=call.values,
            location=outer.location,
            prefix=f"{call.name}_",
            results=dict(zip((item.name for item in declaration.results), results, strict=True)),
            dtype=call.dtype,
            depth=outer.depth + 1,
            library=self.fragments.get(declaration.name) is not declaration,
        )
        try:
            for assignment in declaration.body:
                self.statement(assignment, scope)
            values = [self._result(call, item.name, scope) for item in declaration.results]
        except NnefHwError as error:
            raise self._placed(error, call) from None
        return values[0] if len(values) == 1 else tuple(values)

    @staticmethod
    def _result(call: Invoked, name: str, scope: Scope) -> object:
        if name not in scope.values:
            raise call.error(f"the fragment never assigns its result {name!r}")
        return scope.values[name]

    def _placed(self, error: NnefHwError, call: Invoked) -> NnefHwError:
        """Add the calling line to a fragment's error; locate an error in a library at its call."""
        reason, where = error.reason, error.location
        if call.op not in self.fragments:
            if where is None or where.file != call.declaration.location.file:
                return error
            return type(error)(
                f"{call.op} {call.name!r}: {reason}", remedy=error.remedy, location=call.location
            )
        if error is self._annotated and call.scope.depth:
            return error
        reason += f", in fragment {call.op!r} called in line {call.location.line}"
        self._annotated = type(error)(reason, remedy=error.remedy, location=where)
        return self._annotated

    def _target_names(self, target: Expression, scope: Scope) -> Names:
        if isinstance(target, Identifier):
            return scope.results.get(target.name, f"{scope.prefix}{target.name}")
        assert isinstance(target, Array | Tuple)
        return [self._target_names(item, scope) for item in target.items]


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
    else:
        yield value
