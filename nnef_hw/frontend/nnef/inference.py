"""Types of expressions, and what is wrong with expressions whatever their values are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from types import MappingProxyType

from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.agreement import deduced_dtype, mismatch, unpacked
from nnef_hw.frontend.nnef.binding import match
from nnef_hw.frontend.nnef.expressions import BINARY_OPERATORS, UNARY_OPERATORS
from nnef_hw.frontend.nnef.operators import nearest
from nnef_hw.frontend.nnef.rules import Rules
from nnef_hw.frontend.nnef.syntax import (
    Array,
    ArrayType,
    Binary,
    Builtin,
    Comprehension,
    Conditional,
    Declaration,
    Expression,
    Identifier,
    Invocation,
    Literal,
    PrimitiveType,
    Range,
    Subscript,
    TensorType,
    Tuple,
    TupleType,
    Type,
    Unary,
)
from nnef_hw.frontend.nnef.types import (
    EMPTY,
    INTEGER,
    LOGICAL,
    PRIMITIVES,
    SCALAR,
    STRING,
    UNKNOWN,
    common_type,
    fits,
    fits_inside,
    has_tensor,
    substituted,
)

__all__ = ["Inference"]

_LOGICAL_OPERATORS = {"&&", "||"}
_EQUALITY_OPERATORS = {"==", "!="}
_COMPARISON_OPERATORS = {"<", "<=", ">", ">="}
_NO_WORDS: Mapping[str, str] = MappingProxyType({})


class Inference:
    """Infers the types of a body's expressions.

    Parameters
    ----------
    declarations
        All operators by name.
    rules
        What the document may do.
    fragment
        The fragment whose body it is; None for the graph.
    unusable
        Operators whose declaration is wrong: what they result in is not known.
    """

    def __init__(
        self,
        declarations: Mapping[str, Declaration],
        rules: Rules,
        fragment: Declaration | None = None,
        *,
        unusable: Set[str] = frozenset(),
    ) -> None:
        self.types: dict[str, Type] = {}
        """Types of the identifiers assigned so far."""
        self.later: set[str] = set()
        """Identifiers the body assigns somewhere."""
        self.arrays: list[Invocation] = []
        """Invocations in the expression inferred last that result in an array."""
        self._declarations = declarations
        self._rules = rules
        self.fragment = fragment
        self._unusable = unusable
        self._root = ""

    def infer(self, expression: Expression, root: str) -> Type:
        """Return the type of an assignment's right side.

        Parameters
        ----------
        root
            The first identifier on the left side: what messages call the invocation.

        Raises
        ------
        ModelError, UnsupportedError
            At the first thing that is wrong.
        """
        self._root = root
        self.arrays = []
        return self._infer(expression)

    def _infer(self, expression: Expression) -> Type:
        return _METHODS[type(expression)](self, expression)

    def _literal(self, literal: Literal) -> Type:
        return PRIMITIVES[type(literal.value)]

    def _identifier(self, identifier: Identifier) -> Type:
        name = identifier.name
        known = self.types.get(name)
        if known is not None:
            return known
        kind = "tensor" if self.fragment is None else "identifier"
        inside = f" in fragment {self.fragment.name!r}" if self.fragment else ""
        if name in self.later:
            raise ModelError(
                f"the {kind} {name!r} is used before it is assigned{inside}",
                remedy="move its assignment up",
                location=identifier.location,
            )
        raise ModelError(
            f"there is no {kind} {name!r}{inside}",
            remedy=nearest(name, self.types) or "assign it first",
            location=identifier.location,
        )

    def _array(self, array: Array) -> Type:
        if not array.items:
            return EMPTY
        result = self._infer(array.items[0])
        for item in array.items[1:]:
            given = self._infer(item)
            joined = common_type(result, given)
            if joined is None:
                raise ModelError(
                    f"the array has items of type {result} and {given}",
                    remedy="all items of an array have one type",
                    location=item.location,
                )
            result = joined
        return ArrayType(result)

    def _tuple(self, items: Tuple) -> Type:
        types = tuple(map(self._infer, items.items))
        tensors = [has_tensor(kind) for kind in types]
        if any(tensors) and not self._rules.attribute_results:
            for item, kind, is_tensor in zip(items.items, types, tensors, strict=True):
                stands = isinstance(kind, PrimitiveType) and kind != STRING
                if not is_tensor and not stands:
                    raise ModelError(
                        f"the tuple mixes tensors with an attribute of type {kind}",
                        remedy="make two tuples of it",
                        location=item.location,
                    )
        return TupleType(types)

    def _unary(self, unary: Unary) -> Type:
        operand = self._infer(unary.operand)
        if operand is UNKNOWN:
            return UNKNOWN
        if isinstance(operand, TensorType):
            return self._operation(UNARY_OPERATORS[unary.operator], unary, [unary.operand])
        allowed = (LOGICAL,) if unary.operator == "!" else (INTEGER, SCALAR)
        if operand not in allowed:
            raise ModelError(
                f"{unary.operator!r} takes {' or '.join(map(str, allowed))}, not {operand}",
                remedy="compare numbers: x == 0" if unary.operator == "!" else "invert it with '!'",
                location=unary.location,
            )
        return operand

    def _binary(self, binary: Binary) -> Type:
        operator = binary.operator
        left, right = self._infer(binary.left), self._infer(binary.right)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if operator == "in":
            return self._contained(binary, left, right)
        if isinstance(left, TensorType) or isinstance(right, TensorType):
            sides = [binary.left, binary.right]
            return self._operation(BINARY_OPERATORS[operator], binary, sides)
        result = _primitive_result(operator, left, right) or _joined(operator, left, right)
        if result is None:
            mixed = {left, right} == {INTEGER, SCALAR}
            raise ModelError(
                f"{operator!r} does not take {left} and {right}",
                remedy="convert one: scalar(...) or integer(...)"
                if mixed
                else "see the table of operators in section 3.3.3 of the specification",
                location=binary.location,
            )
        return result

    def _contained(self, binary: Binary, left: Type, right: Type) -> Type:
        if not isinstance(right, ArrayType):
            raise ModelError(
                f"'in' looks into arrays, not into {right}",
                remedy="write it in brackets: [...]",
                location=binary.right.location,
            )
        if right is not EMPTY and common_type(left, right.item) is None:
            raise ModelError(
                f"{left} can never be in {right}",
                remedy="both sides need the same type",
                location=binary.location,
            )
        return LOGICAL

    def _operation(self, op: str, node: Unary | Binary, sides: list[Expression]) -> Type:
        """Check an operator on tensors like the invocation it stands for."""
        declaration = self._declarations[op]
        given = dict(zip((item.name for item in declaration.parameters), sides, strict=True))
        title = f"the operator {node.operator!r}"
        words = ["its operand"] if len(sides) == 1 else ["its left side", "its right side"]
        shown = dict(zip(given, words, strict=True))
        return self._result(declaration, given, None, title, node.location, shown)

    def _conditional(self, conditional: Conditional) -> Type:
        self._expect_logical(conditional.condition)
        then, otherwise = self._infer(conditional.then), self._infer(conditional.otherwise)
        result = common_type(then, otherwise)
        if result is None:
            raise ModelError(
                f"the branches of if-else are {then} and {otherwise}",
                remedy="both must have one type",
                location=conditional.location,
            )
        return result

    def _expect_logical(self, condition: Expression) -> None:
        kind = self._infer(condition)
        if kind is UNKNOWN or kind == LOGICAL:
            return
        is_tensor = isinstance(kind, TensorType)
        raise ModelError(
            f"the condition must be logical, not {kind}",
            remedy="what depends on tensors is chosen by select(condition, a, b)"
            if is_tensor
            else "compare it: x != 0",
            location=condition.location,
        )

    def _comprehension(self, comprehension: Comprehension) -> Type:
        items = [self._iterated(sequence) for _, sequence in comprehension.iterators]
        variables: dict[str, Type] = {}
        for (target, _), item in zip(comprehension.iterators, items, strict=True):
            variables.update(unpacked(target, item))
        hidden = {name: self.types.get(name) for name in variables}
        self.types.update(variables)
        try:
            if comprehension.condition is not None:
                self._expect_logical(comprehension.condition)
            value = self._infer(comprehension.value)
        finally:
            for name, kind in hidden.items():
                if kind is None:
                    del self.types[name]
                else:
                    self.types[name] = kind
        return UNKNOWN if value is UNKNOWN else ArrayType(value)

    def _iterated(self, sequence: Expression) -> Type:
        kind = self._infer(sequence)
        if kind is UNKNOWN or kind is EMPTY:
            return UNKNOWN
        if not isinstance(kind, ArrayType):
            raise ModelError(
                f"'for' iterates arrays, not {kind}",
                remedy="iterate range_of(...)" if kind == STRING else "write [...]",
                location=sequence.location,
            )
        return kind.item

    def _subscript(self, subscript: Subscript) -> Type:
        sequence = self._infer(subscript.sequence)
        if isinstance(sequence, TupleType):
            return self._tuple_item(subscript, sequence)
        index = self._infer(subscript.index)
        if index is not UNKNOWN and index != INTEGER:
            raise ModelError(
                f"an index must be integer, not {index}",
                remedy="convert it: integer(...)",
                location=subscript.index.location,
            )
        if sequence is UNKNOWN or sequence is EMPTY:
            return UNKNOWN
        if isinstance(sequence, ArrayType):
            return sequence.item
        if sequence == STRING:
            return STRING
        raise _no_items(sequence, subscript.location)

    def _tuple_item(self, subscript: Subscript, sequence: TupleType) -> Type:
        index = subscript.index
        if not isinstance(index, Literal) or type(index.value) is not int:
            raise ModelError(
                "the index of a tuple must be an integer literal",
                remedy="its items may have different types; unpack it: a, b = ...",
                location=index.location,
            )
        if not 0 <= index.value < len(sequence.items):
            raise ModelError(
                f"the index {index.value} is outside of the {len(sequence.items)} items of the "
                "tuple",
                remedy=f"indices are 0 to {len(sequence.items) - 1}",
                location=index.location,
            )
        return sequence.items[index.value]

    def _range(self, part: Range) -> Type:
        sequence = self._infer(part.sequence)
        for bound in (part.begin, part.end):
            kind = INTEGER if bound is None else self._infer(bound)
            if bound is not None and kind is not UNKNOWN and kind != INTEGER:
                raise ModelError(
                    f"the bound of a range must be integer, not {kind}",
                    remedy="convert it: integer(...)",
                    location=bound.location,
                )
        if isinstance(sequence, TupleType):
            raise ModelError(
                "a tuple has no ranges",
                remedy="its items may have different types; unpack it: a, b = ...",
                location=part.location,
            )
        if sequence is UNKNOWN or isinstance(sequence, ArrayType) or sequence == STRING:
            return sequence
        raise _no_items(sequence, part.location)

    def _builtin(self, builtin: Builtin) -> Type:
        kind = self._infer(builtin.argument)
        function = builtin.function
        if function == "shape_of":
            if not self._rules.shape_of:
                raise ModelError(
                    "shape_of is deprecated: shapes are not known to the language",
                    remedy="pass the extents as attributes, or load the model leniently",
                    location=builtin.location,
                )
            return ArrayType(INTEGER)
        if function in {"length_of", "range_of"}:
            if kind is not UNKNOWN and kind != STRING and not isinstance(kind, ArrayType):
                raise ModelError(
                    f"{function} takes arrays and strings, not {kind}",
                    remedy="the extents of tensors are not known to the language"
                    if isinstance(kind, TensorType)
                    else "write an array: [...]",
                    location=builtin.argument.location,
                )
            return INTEGER if function == "length_of" else ArrayType(INTEGER)
        if not isinstance(kind, PrimitiveType):
            raise ModelError(
                f"{function}() takes a primitive value, not {kind}",
                remedy=f"convert tensors with cast<{function}>(...)"
                if isinstance(kind, TensorType)
                else "convert its items one by one",
                location=builtin.argument.location,
            )
        return PrimitiveType(function)

    def _invocation(self, invocation: Invocation) -> Type:
        op = invocation.operator
        declaration = self._declarations.get(op)
        if declaration is None:
            raise UnsupportedError(
                f"the operator {op!r} is unknown",
                remedy=nearest(op, self._declarations)
                or f"only the operators of {self._rules.name} are supported",
                location=invocation.location,
            )
        if op in self._unusable:
            return UNKNOWN
        self._check_place(invocation)
        title = f"{op} {self._root!r}"
        positional = self._rules.positional_attributes
        given = match(invocation, declaration, title, positional=positional)
        dtype = self._explicit_dtype(invocation, declaration, title)
        if isinstance(declaration.results[0].type, ArrayType):
            self.arrays.append(invocation)
        return self._result(declaration, given, dtype, title, invocation.location)

    def _check_place(self, invocation: Invocation) -> None:
        op = invocation.operator
        forbidden = {"external", "update"}
        if not self._rules.variables_in_fragments:
            forbidden.add("variable")
        if self.fragment is not None and op in forbidden:
            raise ModelError(
                f"{op} must not be used in fragment {self.fragment.name!r}",
                remedy="use it in the graph and pass the tensor to the fragment",
                location=invocation.location,
            )

    def _explicit_dtype(
        self, invocation: Invocation, declaration: Declaration, title: str
    ) -> str | None:
        dtype = invocation.dtype
        if dtype is None:
            return declaration.default_dtype if declaration.generic else None
        if not declaration.generic:
            raise ModelError(
                f"{title}: the operator is not generic, but <{dtype}> was given",
                remedy="leave it out",
                location=invocation.location,
            )
        propagated = dtype == "?" and self.fragment is not None and self.fragment.generic
        if dtype == "string" or (dtype == "?" and not propagated):
            raise ModelError(
                f"{title}: there is no tensor<{dtype}> "
                f"{'in a graph' if self.fragment is None else 'here'}",
                remedy="write scalar, integer or logical, or leave it out",
                location=invocation.location,
            )
        return dtype

    def _result(
        self,
        declaration: Declaration,
        given: Mapping[str, Expression],
        dtype: str | None,
        title: str,
        location: Location,
        shown: Mapping[str, str] = _NO_WORDS,
    ) -> Type:
        """Check arguments against their parameters and return the type of the results."""
        types = {name: self._infer(value) for name, value in given.items()}
        if declaration.generic and dtype is None:
            dtype = deduced_dtype(declaration, types, title, location)
        for parameter in declaration.parameters:
            if parameter.name not in given:
                continue
            wanted = parameter.type
            if dtype is not None and dtype != "unknown":
                wanted = substituted(wanted, dtype)
            kind = types[parameter.name]
            agrees = fits_inside if dtype == "?" else fits
            if not agrees(kind, wanted):
                raise mismatch(
                    title,
                    shown.get(parameter.name, repr(parameter.name)),
                    given[parameter.name],
                    kind,
                    wanted,
                )
        results = [
            result.type if dtype is None else substituted(result.type, dtype)
            for result in declaration.results
        ]
        return results[0] if len(results) == 1 else TupleType(tuple(results))


_METHODS: dict[type, Callable[..., Type]] = {
    Literal: Inference._literal,
    Identifier: Inference._identifier,
    Array: Inference._array,
    Tuple: Inference._tuple,
    Unary: Inference._unary,
    Binary: Inference._binary,
    Conditional: Inference._conditional,
    Comprehension: Inference._comprehension,
    Subscript: Inference._subscript,
    Range: Inference._range,
    Builtin: Inference._builtin,
    Invocation: Inference._invocation,
}


def _primitive_result(operator: str, left: Type, right: Type) -> Type | None:
    if left != right or not isinstance(left, PrimitiveType):
        return None
    if operator in _LOGICAL_OPERATORS:
        return LOGICAL if left == LOGICAL else None
    if operator in _EQUALITY_OPERATORS:
        return LOGICAL
    if left not in {INTEGER, SCALAR}:
        return None
    return LOGICAL if operator in _COMPARISON_OPERATORS else left


def _joined(operator: str, left: Type, right: Type) -> Type | None:
    """Return the type of arrays and strings that are concatenated or repeated."""
    if operator == "*" and right == INTEGER and (left == STRING or isinstance(left, ArrayType)):
        return left
    if operator == "+" and left == STRING and right == STRING:
        return STRING
    if operator == "+" and isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return common_type(left, right)
    return None


def _no_items(kind: Type, where: Location) -> ModelError:
    is_tensor = isinstance(kind, TensorType)
    return ModelError(
        f"{kind} has no items to take",
        remedy="take parts of a tensor with slice(...) or split(...)"
        if is_tensor
        else "arrays, strings and tuples have items",
        location=where,
    )
