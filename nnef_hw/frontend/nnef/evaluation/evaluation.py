"""Interface of the evaluator for expressions and lowerings; see ``evaluate.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.evaluation.coercion import plain
from nnef_hw.frontend.nnef.evaluation.scope import Names, Scope
from nnef_hw.frontend.nnef.evaluation.variable_data import VariableData, literal_data
from nnef_hw.frontend.nnef.language.syntax import Assignment, Declaration, Expression, Invocation
from nnef_hw.ir import Tensor

__all__ = ["DTYPES", "Evaluation"]

DTYPES: dict[type, str] = {bool: "logical", int: "integer", float: "scalar", str: "string"}
"""NNEF data-type by the type of a Python value."""

_MAX_STEPS = 1 << 18


class Evaluation(ABC):
    """The evaluation of a document, or of a loop's body: what it reads and what it has made.

    Parameters
    ----------
    builder
        Receives the nodes.
    fragments
        The document's own fragments.
    data
        Source of the variables' data.
    symbols
        The identifiers that need no assignment, in the graph and in the document's fragments.
    quantized
        Names of the tensors that the quantization file describes.
    typed
        Whether all expressions passed a type check.
    """

    def __init__(
        self,
        builder: Builder,
        fragments: Mapping[str, Declaration],
        data: VariableData,
        *,
        symbols: Mapping[str, object],
        quantized: Collection[str],
        typed: bool,
    ) -> None:
        self.builder = builder
        self.fragments = fragments
        self.data = data
        self.symbols = symbols
        self.quantized = quantized
        self.typed = typed
        self.variables: dict[str, Tensor] = {}
        """Results of ``variable`` by tensor name."""
        self.labels: dict[str, tuple[str, Tensor]] = {}
        """Each label as it was first written, and its first variable, by the label's lower case."""
        self.claimable: set[str] = set()
        """Names of the statement's targets that no tensor has yet."""
        self._steps = 0

    @abstractmethod
    def statement(self, assignment: Assignment, scope: Scope) -> None:
        """Evaluate an assignment and store its values in the scope.

        Raises
        ------
        ModelError, UnsupportedError
            If the assignment is wrong.
        """

    @abstractmethod
    def evaluate(self, expression: Expression, scope: Scope, names: Names = None) -> object:
        """Return the value of an expression."""

    @abstractmethod
    def declaration(self, name: str, location: Location, *, library: bool = False) -> Declaration:
        """Return the declaration of an operator, or that of a library.

        Raises
        ------
        UnsupportedError
            If the operator is not declared.
        """

    @abstractmethod
    def arguments(
        self, invocation: Invocation, declaration: Declaration, scope: Scope, names: Names
    ) -> dict[str, Expression]:
        """Return the given arguments; matched once for each invocation in the text."""

    @abstractmethod
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
        """Return the results of an operator: a value, or a tuple of several.

        Parameters
        ----------
        arguments
            Values by parameter name; a parameter that is not among them has its default.
        dtype
            What ``?`` stands for; None if it is to be deduced, or the operator is not generic.
        names
            Wanted names of the results.
        places
            Location of each argument that stands in the text.
        """

    @abstractmethod
    def nested(self, name: str) -> Evaluation:
        """Return the evaluation, by the same rules, of a graph ``name`` inside of this one."""

    def count_step(self, location: Location) -> None:
        """Count an expansion of a fragment, or a round of a comprehension.

        Raises
        ------
        ModelError
            If there are too many: the document may be hostile.
        """
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise ModelError(
                f"fragments and comprehensions take more than {_MAX_STEPS} steps",
                remedy="does a fragment call itself twice?",
                location=location,
            )

    def claim(self, wanted: str) -> str:
        """Return a name for a new tensor: the wanted one if it is the statement's own."""
        if wanted in self.claimable:
            self.claimable.discard(wanted)
            return wanted
        return self.builder.unique(wanted)

    def tensor(self, value: object, name: str, location: Location) -> Tensor:
        """Return a value as a tensor: numbers become constants.

        Raises
        ------
        ModelError
            If it is a string, a tuple, or an array that does not hold numbers.
        """
        if isinstance(value, Tensor):
            return value
        if isinstance(value, str | tuple):
            raise ModelError(f"{name!r} must be a tensor, not {value!r}", location=location)
        if isinstance(value, list):
            return self.builder.constant(name, _array(value, location), location=location)
        data = literal_data(value, DTYPES[type(value)], location)
        return self.builder.constant(name, data, location=location)


def _array(value: list[Any], location: Location) -> Any:
    """Return nested lists of numbers as an array; constants in them count as numbers."""
    try:
        data = np.asarray(_nested(value))
    except ValueError:
        data = np.asarray(None)
    if data.dtype.kind not in "biuf" or not data.size:
        raise ModelError(
            "an array that stands for a tensor must hold numbers",
            remedy="nested arrays must be of equal length; join tensors by stack or concat",
            location=location,
        )
    return data


def _nested(value: object) -> object:
    return [_nested(item) for item in value] if isinstance(value, list) else plain(value)
