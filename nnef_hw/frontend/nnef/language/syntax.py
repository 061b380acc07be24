"""Syntax tree of NNEF documents: frozen, every node knows where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from nnef_hw.errors import Location

__all__ = [
    "Argument",
    "Array",
    "ArrayType",
    "Assignment",
    "Binary",
    "Builtin",
    "Comprehension",
    "Conditional",
    "Declaration",
    "Document",
    "Expression",
    "Extension",
    "GraphDefinition",
    "Identifier",
    "Invocation",
    "Literal",
    "Parameter",
    "PrimitiveType",
    "Range",
    "Subscript",
    "TensorType",
    "Tuple",
    "TupleType",
    "Type",
    "Unary",
]


@dataclass(frozen=True, slots=True)
class Identifier:
    """A name, used or assigned."""

    name: str
    location: Location


@dataclass(frozen=True, slots=True)
class Literal:
    """A number (int: integer, float: scalar), logical or string."""

    value: bool | int | float | str
    location: Location


@dataclass(frozen=True, slots=True)
class Array:
    """``[a, b]``, also as a target of an assignment."""

    items: tuple[Expression, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Tuple:
    """``(a, b)``; as a target of an assignment also without parentheses."""

    items: tuple[Expression, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an invocation; ``name`` is None for a positional one."""

    name: str | None
    value: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class Invocation:
    """``operator<dtype>(arguments)``; ``dtype`` is None without the angle brackets."""

    operator: str
    dtype: str | None
    arguments: tuple[Argument, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x``, ``+x`` or ``!x``; a minus before a number is part of the literal."""

    operator: str
    operand: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class Binary:
    """``left operator right``; the location is the operator's, as are messages about types."""

    operator: str
    left: Expression
    right: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class Conditional:
    """``then if condition else otherwise``: decided when the graph is built, lazily."""

    condition: Expression
    then: Expression
    otherwise: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class Comprehension:
    """``[for i in a, j in b if condition yield value]``; iterators advance together."""

    iterators: tuple[tuple[Expression, Expression], ...]
    condition: Expression | None
    value: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class Subscript:
    """``sequence[index]``."""

    sequence: Expression
    index: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class Range:
    """``sequence[begin:end]``; an end that is not written is None."""

    sequence: Expression
    begin: Expression | None
    end: Expression | None
    location: Location


@dataclass(frozen=True, slots=True)
class Builtin:
    """``length_of(x)``, ``range_of(x)``, ``shape_of(x)`` or a cast such as ``integer(x)``."""

    function: str
    argument: Expression
    location: Location


Expression: TypeAlias = (
    Identifier
    | Literal
    | Array
    | Tuple
    | Invocation
    | Unary
    | Binary
    | Conditional
    | Comprehension
    | Subscript
    | Range
    | Builtin
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """``target = value;``."""

    target: Expression
    value: Expression
    location: Location


@dataclass(frozen=True, slots=True)
class GraphDefinition:
    """``graph name(inputs) -> (outputs) { assignments }``."""

    name: str
    inputs: tuple[Identifier, ...]
    outputs: tuple[Identifier, ...]
    assignments: tuple[Assignment, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Extension:
    """A line ``extension NAME...;``.

    Parameters
    ----------
    names
        The identifiers; of a vendor's line with free text only the first.
    text
        Everything between the first identifier and the semicolon, stripped.
    """

    names: tuple[Identifier, ...]
    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class Document:
    """A whole ``graph.nnef``."""

    version: str
    extensions: tuple[Extension, ...]
    fragments: tuple[Declaration, ...]
    graph: GraphDefinition
    location: Location


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """``integer``, ``scalar``, ``logical``, ``string`` or the generic ``?``."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TensorType:
    """``tensor<item>``; ``item`` is None for ``tensor<>``."""

    item: str | None

    def __str__(self) -> str:
        return f"tensor<{self.item or ''}>"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """``item[]``."""

    item: Type

    def __str__(self) -> str:
        return f"{self.item}[]"


@dataclass(frozen=True, slots=True)
class TupleType:
    """``(a, b)``."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


Type: TypeAlias = PrimitiveType | TensorType | ArrayType | TupleType


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or a result of an operator."""

    name: str
    type: Type
    default: Expression | None
    location: Location

    @property
    def is_tensor(self) -> bool:
        """Whether the parameter accepts a tensor or an array of tensors."""
        kind = self.type.item if isinstance(self.type, ArrayType) else self.type
        return isinstance(kind, TensorType)


@dataclass(frozen=True, slots=True)
class Declaration:
    """``fragment name<? = dtype>(parameters) -> (results)``; ``body`` is None behind a ``;``."""

    name: str
    generic: bool
    default_dtype: str | None
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    location: Location
    body: tuple[Assignment, ...] | None = None
