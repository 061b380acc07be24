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
    "Declaration",
    "Document",
    "Expression",
    "GraphDefinition",
    "Identifier",
    "Invocation",
    "Literal",
    "Parameter",
    "PrimitiveType",
    "TensorType",
    "Tuple",
    "TupleType",
    "Type",
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


Expression: TypeAlias = Identifier | Literal | Array | Tuple | Invocation


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
class Document:
    """A whole ``graph.nnef``."""

    version: str
    extensions: tuple[Identifier, ...]
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
        """Whether it takes tensors: one, or an array of them."""
        kind = self.type.item if isinstance(self.type, ArrayType) else self.type
        return isinstance(kind, TensorType)


@dataclass(frozen=True, slots=True)
class Declaration:
    """``fragment name<? = dtype>(parameters) -> (results);``."""

    name: str
    generic: bool
    default_dtype: str | None
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    location: Location
