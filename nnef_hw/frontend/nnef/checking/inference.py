"""Types of expressions, and errors in expressions that do not depend on values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType

from nnef_hw.errors import Location, ModelError, UnsupportedError
from nnef_hw.frontend.nnef.checking.type_matching import deduced_dtype, mismatch, unpacked
from nnef_hw.frontend.nnef.evaluation.binding import match
from nnef_hw.frontend.nnef.evaluation.exporters import (
    LENIENTLY,
    converts,
    is_constant_number,
    or_leniently,
    warn_of,
    warn_of_invocation,
)
from nnef_hw.frontend.nnef.evaluation.expressions import BINARY_OPERATORS, UNARY_OPERATORS
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.evaluation.operators import nearest
from nnef_hw.frontend.nnef.evaluation.rules import Rules
from nnef_hw.frontend.nnef.language.language_types import (
    binary_type,
    builtin_type,
    contained_type,
    range_type,
    subscript_type,
    unary_type,
)
from nnef_hw.frontend.nnef.language.syntax import (
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
from nnef_hw.frontend.nnef.language.types import (
    EMPTY,
    LOGICAL,
    PRIMITIVES,
    STRING,
    UNKNOWN,
    common_type,
    fits,
    fits_inside,
    has_tensor,
    substituted,
)

__all__ = ["Inference"]

_NO_WORDS: Mapping[str, str] = MappingProxyType({})


class Inference:
    """Infers the types of a body's expressions.

    Parameters
    ----------
    declarations
        All operators by name.
    rules
        Rules of the document's dialect.
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
            At the first error.
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
        assigned = self.types.get(name)
        if assigned is not None:
            return assigned
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
            item_type = self._infer(item)
            joined = common_type(result, item_type)
            if joined is None:
                raise ModelError(
                    f"the array has items of type {result} and {item_type}",
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
        if isinstance(operand, TensorType):
            return self._operation(
                UNARY_OPERATORS[unary.operator], unary, [(unary.operand, operand)]
            )
        return unary_type(unary, operand)

    def _binary(self, binary: Binary) -> Type:
        left, right = self._infer(binary.left), self._infer(binary.right)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if binary.operator == "in":
            return contained_type(binary, left, right)
        if isinstance(left, TensorType) or isinstance(right, TensorType):
            sides = [(binary.left, left), (binary.right, right)]
            return self._operation(BINARY_OPERATORS[binary.operator], binary, sides)
        return binary_type(binary, left, right)

    def _operation(
        self, op: str, node: Unary | Binary, sides: Sequence[tuple[Expression, Type]]
    ) -> Type:
        """Check an operator on tensors like the invocation it stands for."""
        declaration = self._declarations[op]
        names = [item.name for item in declaration.parameters]
        words = ["its operand"] if len(sides) == 1 else ["its left side", "its right side"]
        return self._result(
            declaration,
            dict(zip(names, sides, strict=True)),
            None,
            f"the operator {node.operator!r}",
            node.location,
            dict(zip(names, words, strict=True)),
        )

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
        sequence, index = self._infer(subscript.sequence), self._infer(subscript.index)
        return subscript_type(subscript, sequence, index)

    def _range(self, part: Range) -> Type:
        bounds = [None if bound is None else self._infer(bound) for bound in (part.begin, part.end)]
        return range_type(part, self._infer(part.sequence), bounds)

    def _builtin(self, builtin: Builtin) -> Type:
        kind = self._infer(builtin.argument)
        return builtin_type(builtin, kind, shape_of=self._rules.shape_of)

    def _invocation(self, invocation: Invocation) -> Type:
        op = invocation.operator
        declaration = self._declarations.get(op)
        if declaration is None:
            raise UnsupportedError(
                f"the operator {op!r} is unknown",
                remedy=nearest(op, self._declarations)
                or (f"declare it, or {LENIENTLY}" if op in load_library("extended") else None)
                or f"only the operators of {self._rules.name} are supported",
                location=invocation.location,
            )
        if op in self._unusable:
            return UNKNOWN
        self._check_place(invocation)
        title = f"{op} {self._root!r}"
        matched = match(
            invocation,
            declaration,
            title,
            positional=self._rules.positional_attributes,
            ignored=self._rules.ignored_arguments,
            surplus=self._rules.conversions,
        )
        if self._rules.conversions:
            warn_of_invocation(invocation, declaration, title)
        arguments = {name: (value, self._infer(value)) for name, value in matched.items()}
        dtype = self._explicit_dtype(invocation, declaration, title)
        if isinstance(declaration.results[0].type, ArrayType):
            self.arrays.append(invocation)
        return self._result(declaration, arguments, dtype, title, invocation.location)

    def _check_place(self, invocation: Invocation) -> None:
        op = invocation.operator
        forbidden = {"external", "update"}
        if not self._rules.variables_in_fragments:
            forbidden.add("variable")
        if self.fragment is not None and op in forbidden:
            raise ModelError(
                f"{op} must not be used in fragment {self.fragment.name!r}",
                remedy="use it in the graph and pass the tensor to the fragment"
                + (", or read legacy NNEF with --lenient" if op == "variable" else ""),
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
        arguments: Mapping[str, tuple[Expression, Type]],
        dtype: str | None,
        title: str,
        location: Location,
        shown: Mapping[str, str] = _NO_WORDS,
    ) -> Type:
        """Check arguments against their parameters and return the type of the results."""
        types = {name: kind for name, (_, kind) in arguments.items()}
        if declaration.generic and dtype is None:
            dtype = deduced_dtype(declaration, types, title, location)
        for parameter in declaration.parameters:
            if parameter.name not in arguments:
                continue
            wanted = parameter.type
            if dtype is not None and dtype != "unknown":
                wanted = substituted(wanted, dtype)
            value, kind = arguments[parameter.name]
            agrees = fits_inside if dtype == "?" else fits
            if agrees(kind, wanted):
                continue
            what = shown.get(parameter.name, repr(parameter.name))
            error = mismatch(title, what, value, kind, wanted)
            if not converts(kind, wanted):
                raise error
            is_number = is_constant_number(kind, wanted)
            if not self._rules.conversions:
                raise error if is_number else or_leniently(error)
            if not is_number:
                warn_of(error)
        if dtype == "unknown":
            return UNKNOWN
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
