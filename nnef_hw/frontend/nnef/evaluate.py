"""Evaluate statements and expressions: primitive values at once, operators on tensors to nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nnef_hw.errors import Location, ModelError, NnefHwError, UnsupportedError
from nnef_hw.frontend.builder import Builder
from nnef_hw.frontend.nnef.binding import match
from nnef_hw.frontend.nnef.coercion import coerced, plain
from nnef_hw.frontend.nnef.custom import check_custom
from nnef_hw.frontend.nnef.expressions import METHODS, unpack
from nnef_hw.frontend.nnef.invocation import Invoked, Names, Scope, first_name
from nnef_hw.frontend.nnef.library import load_library
from nnef_hw.frontend.nnef.operators import nearest
from nnef_hw.frontend.nnef.sources import literal_data
from nnef_hw.frontend.nnef.syntax import (
    Array,
    ArrayType,
    Assignment,
    Declaration,
    Expression,
    Identifier,
    Invocation,
    TensorType,
    Tuple,
    Type,
)
from nnef_hw.frontend.nnef.types import is_generic
from nnef_hw.frontend.shapes import SHAPE_RULES
from nnef_hw.ir import Tensor
from nnef_hw.reference.registry import known_operators

if TYPE_CHECKING:
    from nnef_hw.frontend.nnef.rules import Rules
    from nnef_hw.frontend.nnef.sources import VariableData

__all__ = ["Evaluator"]

_DTYPES: dict[type, str] = {bool: "logical", int: "integer", float: "scalar", str: "string"}
_MAX_DEPTH = 1000
_MAX_STEPS = 1 << 18


class Evaluator:
    """Evaluates by one set of rules; nodes go to one builder.

    Parameters
    ----------
    fragments
        The document's own fragments.
    data
        Where variables' data come from.
    symbols
        The identifiers that need no assignment, in the graph and in the document's fragments.
    quantized
        Names of the tensors that the quantization file describes.
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
        symbols: Mapping[str, Any] | None = None,
        quantized: Collection[str] = (),
        expand: bool = False,
    ) -> None:
        self.builder = builder
        self.symbols = symbols or {}
        self.quantized = quantized
        self.rules = rules
        self.fragments = fragments
        self.data = data
        self.variables: dict[str, Tensor] = {}
        """Results of ``variable`` by tensor name."""
        self.labels: dict[str, tuple[str, Tensor]] = {}
        """Each label as it was first written, and its first variable, by the label's lower case."""
        self.claimable: set[str] = set()
        """Names of the statement's targets that no tensor has yet."""
        self._libraries = [load_library(name) for name in reversed(rules.libraries)]
        self._atoms = frozenset() if expand else known_operators() & SHAPE_RULES.keys()
        self._matched: dict[int, tuple[Invocation, dict[str, Expression]]] = {}
        self._annotated: NnefHwError | None = None
        self._steps = 0

    def statement(self, assignment: Assignment, scope: Scope) -> None:
        """Evaluate an assignment and store its values in the scope.

        Raises
        ------
        ModelError, UnsupportedError
            If it is wrong.
        """
        names = self._target_names(assignment.target, scope)
        scope.root = first_name(names) or scope.prefix
        value = self.evaluate(assignment.value, scope, names)
        unpack(self, assignment.target, value, scope)

    def evaluate(self, expression: Expression, scope: Scope, names: Names = None) -> Any:
        """Return the value of an expression."""
        return METHODS[type(expression)](self, expression, scope, names)

    def count_step(self, location: Location) -> None:
        """Count an expansion of a fragment, or a round of a comprehension.

        Raises
        ------
        ModelError
            If there are so many that the document looks like a trap.
        """
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise ModelError(
                f"fragments and comprehensions take more than {_MAX_STEPS} steps",
                remedy="does a fragment call itself twice?",
                location=location,
            )

    def declaration(self, name: str, location: Location, *, library: bool = False) -> Declaration:
        """Return the declaration of an operator, or that of a library.

        Raises
        ------
        UnsupportedError
            If there is none.
        """
        if name in self.fragments and not library:
            return self.fragments[name]
        for declarations in self._libraries:
            if name in declarations:
                return declarations[name]
        if name in self.rules.refused:
            raise UnsupportedError(
                f"the operator {name!r} is not supported: {self.rules.refused[name]}",
                remedy="export the model without it",
                location=location,
            )
        known = [*self.fragments, *(other for names in self._libraries for other in names)]
        raise UnsupportedError(
            f"the operator {name!r} is unknown",
            remedy=nearest(name, known) or f"only the operators of {self.rules.name} are supported",
            location=location,
        )

    def claim(self, wanted: str) -> str:
        """Return a name for a new tensor: the wanted one if it is the statement's own."""
        if wanted in self.claimable:
            self.claimable.discard(wanted)
            return wanted
        return self.builder.unique(wanted)

    def tensor(self, value: Any, name: str, location: Location, dtype: str | None = None) -> Tensor:
        """Return a value as a tensor: numbers become constants."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, str | tuple):
            raise ModelError(f"{name!r} must be a tensor, not {value!r}", location=location)
        if isinstance(value, list):
            return self.builder.constant(name, self._array(value, location), location=location)
        data = literal_data(value, _DTYPES[type(value)], location)
        return self.builder.constant(name, data, location=location)

    def invoke(
        self,
        declaration: Declaration,
        given: Mapping[str, Any],
        dtype: str | None,
        names: Names,
        places: Mapping[str, Location],
        location: Location,
        scope: Scope,
    ) -> Any:
        """Return the results of an operator: a value, or a tuple of several."""
        values: dict[str, Any] = {}
        for parameter in declaration.parameters:
            if parameter.name in given:
                value = given[parameter.name]
            else:
                assert parameter.default is not None, parameter.name
                value = self.evaluate(parameter.default, scope)
            values[parameter.name] = value
        call = Invoked(self, declaration, values, dtype, names, places, location, scope)
        if not self.rules.typed:
            for parameter in declaration.parameters:
                coerced(call, parameter)
        if declaration.generic and (dtype is None or not self.rules.typed):
            call.dtype = self._deduced(call)
        is_own = self.fragments.get(declaration.name) is declaration
        if is_own and declaration.body is not None:
            return self._expanded(call)
        lowering = self.rules.lowerings.get(declaration.name)
        if lowering is not None:
            return lowering(call)
        if declaration.body is not None and declaration.name not in self._atoms:
            return self._expanded(call)
        if is_own:
            check_custom(declaration, location)
        return self.node(call)

    def arguments(
        self, invocation: Invocation, declaration: Declaration, scope: Scope, names: Names
    ) -> dict[str, Expression]:
        """Return the given arguments; matched once for each invocation in the text."""
        known = self._matched.get(id(invocation))
        if known is not None:
            return known[1]
        name = first_name(names) or f"{scope.root}_{declaration.name}"
        title = f"{declaration.name} {name!r}"
        positional = self.rules.positional_attributes
        matched = match(
            invocation,
            declaration,
            title,
            positional=positional,
            ignored=self.rules.ignored_arguments,
        )
        if scope.prefix:
            self._matched[id(invocation)] = (invocation, matched)
        return matched

    def _deduced(self, call: Invoked) -> str:
        """Return what ``?`` stands for: the data-type of tensors, one that is given, or of numbers.

        Where types are checked, one that is given or declared goes first.
        """
        declared = call.dtype or call.declaration.default_dtype
        if declared is not None and self.rules.typed:
            return declared
        generic = [item.name for item in call.declaration.parameters if is_generic(item.type)]
        found = [part for name in generic for part in _parts(call.values[name])]
        for part in found:
            if isinstance(part, Tensor):
                return part.dtype
        if declared is not None:
            return declared
        for part in found:
            return _DTYPES[type(part)]
        raise call.error(
            "the data-type of the result is not known", f"write {call.op}<scalar>(...)"
        )

    def node(self, call: Invoked) -> Any:
        """Add the node of an operator; return its results."""
        declaration = call.declaration
        results = declaration.results
        is_array = isinstance(results[0].type, ArrayType)
        names: Sequence[str] | str
        if is_array and not isinstance(call.names, list):
            name = names = call.name
        else:
            wanted = self._result_names(call, is_array=is_array)
            names = [self.claim(item) for item in wanted]
            name = names[0] if names else call.name
        inputs: list[Tensor] = []
        attrs: dict[str, Any] = {}
        for parameter in declaration.parameters:
            value = call.values[parameter.name]
            if not parameter.is_tensor:
                attrs[parameter.name] = list(value) if isinstance(value, list) else value
            elif isinstance(parameter.type, ArrayType):
                where = call.places.get(parameter.name, call.location)
                wanted_name = f"{name}_{parameter.name}"
                inputs += [self.tensor(item, wanted_name, where) for item in value]
            else:
                inputs.append(call.tensor(parameter.name, name))
        tensors = self.builder.node(
            call.op,
            inputs,
            attrs,
            names,
            tuple(_result_dtype(result.type, call.dtype) for result in results),
            places=call.places,
            location=call.location,
            origin=call.scope.location,
        )
        if is_array:
            return tensors
        return tensors[0] if len(results) == 1 else tuple(tensors)

    @staticmethod
    def _result_names(call: Invoked, *, is_array: bool) -> list[str]:
        results = call.declaration.results
        names = call.names
        if isinstance(names, list) and (is_array or len(names) == len(results)):
            return [first_name(part) or call.name for part in names]
        if len(results) == 1:
            return [call.name]
        return [f"{call.name}_{result.name}" for result in results]

    def _expanded(self, call: Invoked) -> Any:
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
    def _result(call: Invoked, name: str, scope: Scope) -> Any:
        if name not in scope.values:
            raise call.error(f"the fragment never assigns its result {name!r}")
        return scope.values[name]

    def _placed(self, error: NnefHwError, call: Invoked) -> NnefHwError:
        """Say from where a fragment was called; what is wrong in the library is the call."""
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

    @staticmethod
    def _array(value: list[Any], location: Location) -> Any:
        """Return nested lists of numbers as an array; constants in them count as numbers."""
        try:
            data = np.asarray(_nested(value))
        except ValueError:
            data = np.asarray(None)
        if data.dtype.kind not in "biuf" or not data.size:
            raise ModelError(
                "an array that stands for a tensor must hold numbers",
                remedy="nested arrays must be of one length; join tensors by stack or concat",
                location=location,
            )
        return data


def _nested(value: Any) -> Any:
    return [_nested(item) for item in value] if isinstance(value, list) else plain(value)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
    else:
        yield value


def _result_dtype(kind: Type, dtype: str | None) -> str:
    item = kind.item if isinstance(kind, ArrayType) else kind
    assert isinstance(item, TensorType)
    result = dtype if item.item == "?" else item.item
    assert result is not None
    return result
