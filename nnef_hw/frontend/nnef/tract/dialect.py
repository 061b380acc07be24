"""The rules of tract's dialect, and which documents are written in it."""

from __future__ import annotations

from dataclasses import replace

from nnef_hw.frontend.nnef.evaluation.rules import STRICT, Rules
from nnef_hw.frontend.nnef.language.syntax import Document, Invocation, Literal
from nnef_hw.frontend.nnef.language.walk import walk
from nnef_hw.frontend.nnef.tract.caches import CACHES
from nnef_hw.frontend.nnef.tract.elementwise import ELEMENTWISE
from nnef_hw.frontend.nnef.tract.loops import LOOPS
from nnef_hw.frontend.nnef.tract.products import PRODUCTS
from nnef_hw.frontend.nnef.tract.quantized import QUANTIZED
from nnef_hw.frontend.nnef.tract.sampling import SAMPLING
from nnef_hw.frontend.nnef.tract.shapes import SHAPES
from nnef_hw.frontend.nnef.tract.symbols import symbol_values
from nnef_hw.frontend.nnef.tract.windows import WINDOWS

__all__ = ["TRACT", "tract_rules"]

_PULSES = "it belongs to a model cut into pulses"
_NARROW_CACHE = "it is a cache of numbers in blocks with scales of their own"
_EXPERTS = "mixtures of experts choose weights by their inputs"
_RANDOM = "it is random"
_COMPLEX = "tensors of complex numbers are not supported"
_DYNAMIC = "the shape of its result depends on the values of its input"
_REFUSED = {
    "tract_core_submodel": "models inside of models are not supported",
    "tract_core_complex_to_inner_dim": _COMPLEX,
    "tract_core_inner_dim_to_complex": _COMPLEX,
    "tract_onnx_non_zero": _DYNAMIC,
    "tract_onnx_non_max_suppression": _DYNAMIC,
    "tract_onnx_multinomial": _RANDOM,
    "tract_onnx_random": _RANDOM,
    "tract_onnx_ml_tree_ensemble_classifier": "decision trees are not supported",
    "tract_onnx_ml_direct_lookup": "strings are not supported",
    "tract_onnx_ml_reverse_lookup": "strings are not supported",
    "tract_pulse_delay": _PULSES,
    "tract_pulse_mask": _PULSES,
    "tract_pulse_pulse_pad": _PULSES,
    "tract_pulse_cumsum": _PULSES,
    "tract_resource_get": "resources are not supported",
    "tract_moe_ffn": _EXPERTS,
    "tract_transformers_moe_ffn": _EXPERTS,
    "tract_transformers_quantized_dyn_kv_cache": _NARROW_CACHE,
    "tract_transformers_quantized_kv_sdpa": _NARROW_CACHE,
}

TRACT = replace(
    STRICT,
    name="tract",
    libraries=("standard", "extended", "tract"),
    lowerings={
        **STRICT.lowerings,
        **ELEMENTWISE,
        **SHAPES,
        **WINDOWS,
        **PRODUCTS,
        **CACHES,
        **QUANTIZED,
        **LOOPS,
        **SAMPLING,
    },
    typed=False,
    positional_attributes=True,
    extension_lines=False,
    shadowing=True,
    ignored_arguments=frozenset({"axes"}),
    refused=_REFUSED,
    redefinitions=True,
    variables_in_fragments=True,
    shape_of=True,
    fold=True,
    tract_data=True,
    symbols=symbol_values,
    externals=frozenset({"external", "tract_core_external"}),
    extensions=(*STRICT.extensions, "tract_"),
)
"""What tract reads."""

_PROPERTIES = "tract_core_properties"


def tract_rules(document: Document) -> Rules | None:
    """Return the rules of tract's dialect if a document is written in it, None if not.

    Their name says which exporter wrote it.
    """
    operators = {
        part.operator
        for body in (document.graph.assignments, *(item.body or () for item in document.fragments))
        for assignment in body
        for part in walk(assignment.value)
        if isinstance(part, Invocation)
    }
    names = {name.name for line in document.extensions for name in line.names[:1]}
    names |= operators | {item.name for item in document.fragments}
    if not any(name.startswith("tract_") for name in names):
        return None
    return replace(TRACT, name="tract (torch_to_nnef)") if _is_from_torch(document) else TRACT


def _is_from_torch(document: Document) -> bool:
    return any(
        isinstance(part, Literal) and part.value == "torch_to_nnef_version"
        for fragment in document.fragments
        if fragment.name == _PROPERTIES
        for assignment in fragment.body or ()
        for part in walk(assignment.value)
    )
