"""Rules of NNEF's dialects, beyond the specification, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nnef_hw.errors import UsageError
from nnef_hw.frontend.nnef.evaluation.exporters import (
    batch_normalization,
    max_pool,
    max_pool_without_border,
)
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.sources import SOURCES
from nnef_hw.frontend.nnef.language.syntax import Document

__all__ = ["LENIENT", "STRICT", "Lowering", "Rules"]

Lowering: TypeAlias = Callable[[Invoked], object]
"""Makes the results of an operator: a tensor, a list, or a tuple of several results."""


def _no_symbols(document: Document, dims: Mapping[str, int]) -> dict[str, int]:
    if dims:
        raise UsageError(
            f"the model has no symbol {next(iter(dims))!r}",
            remedy="leave out --dim: all its shapes are numbers",
        )
    return {}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which a document is checked and read.

    Parameters
    ----------
    name
        Name of the dialect in the output of ``inspect``.
    libraries
        Files of operator declarations, a later one takes precedence.
    lowerings
        Functions that make the results of operators of more than one node, by name.
    typed
        Whether expressions are type-checked before anything is evaluated. Without it, values are
        converted to what a parameter declares where that makes sense: an integer to a scalar, a
        number to an array of one, a constant tensor to numbers, an array to a tensor.
    positional_attributes
        Whether attributes may be given by position.
    extension_lines
        Whether fragments and expressions need their ``KHR_enable_`` lines.
    shadowing
        Whether an identifier, or a parameter of a fragment, may be assigned again.
    ignored_arguments
        Names of arguments that are dropped where an operator does not have them.
    refused
        Reasons why operators of the dialect cannot be read, by operator.
    redefinitions
        Whether a fragment of the document may have the name of a library's operator; it wins.
    variables_in_fragments
        Whether ``variable`` may stand in fragments; its label then must differ from call to call.
    attribute_results
        Whether fragments may result in attributes, and tuples may hold tensors and attributes.
    shape_of
        Whether ``shape_of`` may be used.
    conversions
        Whether arguments that have the wrong type are converted where that makes sense, and
        surplus numbers ignored, each with a warning.
    fold
        Whether nodes of small constants are computed at once: dialects do shape arithmetic with
        tensors.
    tract_data
        Whether tensor files and the quantization file follow tract's conventions.
    symbols
        The identifiers a document can use without assigning them, by name.
    externals
        Operators whose results are the graph's inputs.
    extensions
        Names of extensions that are understood, and prefixes of them that end in ``_``.
    """

    name: str
    libraries: tuple[str, ...] = ("standard",)
    lowerings: Mapping[str, Lowering] = field(default_factory=lambda: SOURCES)
    typed: bool = True
    positional_attributes: bool = False
    extension_lines: bool = True
    shadowing: bool = False
    ignored_arguments: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    redefinitions: bool = False
    variables_in_fragments: bool = False
    attribute_results: bool = False
    shape_of: bool = False
    conversions: bool = False
    fold: bool = False
    tract_data: bool = False
    symbols: Callable[[Document, Mapping[str, int]], Mapping[str, object]] = _no_symbols
    externals: frozenset[str] = frozenset({"external"})
    extensions: tuple[str, ...] = (
        "KHR_enable_fragment_definitions",
        "KHR_enable_operator_expressions",
    )

    def knows_extension(self, name: str) -> bool:
        """Whether an extension of this name is understood."""
        return any(
            name == extension or (extension.endswith("_") and name.startswith(extension))
            for extension in self.extensions
        )


STRICT = Rules("NNEF 1.0.5", lowerings={**SOURCES, "max_pool": max_pool})
"""The specification, version 1.0.5."""

LENIENT = replace(
    STRICT,
    name="NNEF 1.0 (legacy)",
    libraries=("standard", "extended"),
    positional_attributes=True,
    ignored_arguments=frozenset({"axes"}),
    extension_lines=False,
    shadowing=True,
    redefinitions=True,
    variables_in_fragments=True,
    attribute_results=True,
    shape_of=True,
    conversions=True,
    lowerings={
        **SOURCES,
        "batch_normalization": batch_normalization,
        "max_pool": max_pool_without_border,
    },
)
"""Rules that also allow what version 1.0 and its drafts allowed, and exporters still write."""
