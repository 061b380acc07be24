"""Declarations of the operators that other tools add: the ``onnx`` package has none of them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx.defs import OpSchema

__all__ = [
    "CHANNELS_LAST",
    "EARLIER_IN_RUNTIME",
    "MICROSOFT",
    "PULP",
    "QONNX",
    "foreign_schema",
    "home_domain",
    "way_out",
]

MICROSOFT = "com.microsoft"
"""Domain of onnxruntime's own operators."""

QONNX = "qonnx.custom_op.general"
"""Domain of quantization of any width; Brevitas and FINN have names of their own for it."""

CHANNELS_LAST = "qonnx.custom_op.channels_last"
"""Domain of operators on images with the channels in the last dimension."""

PULP = "PACTOps"
"""Domain of the integer operators of quantlib and Deeploy, which often leave it out."""

EARLIER_IN_RUNTIME = {"LayerNormalization": 17}
"""Opset that took over an operator of onnxruntime's, which it writes into older ones, too."""

_WITHOUT_DOMAIN = {"SimplifiedLayerNormalization"}
"""Operators of onnxruntime's that it writes as if they were of ONNX."""

_OTHER_NAMES = {
    "finn": QONNX,
    "finn.custom_op.general": QONNX,
    "onnx.brevitas": QONNX,
    "qonnx": QONNX,
    "finn.custom_op.channels_last": CHANNELS_LAST,
}

_UNARY = "X X_scale X_zero_point? Y_scale Y_zero_point?"
_BINARY = "A A_scale A_zero_point? B B_scale B_zero_point? C_scale C_zero_point?"
_OPTIONAL, _REQUIRED = ("INTS", False), ("INTS", True)
_NUMBER = ("INT", True)
_TENSOR, _TENSOR_OPTIONAL = ("TENSOR", True), ("TENSOR", False)
_LEVELS = {"rounding_mode": "ROUND"}
_WINDOW = {"auto_pad": "NOTSET", "channels_last": 0, "pads": _OPTIONAL, "strides": _OPTIONAL}

_ACTIVATION = {"activation": ("STRING", False), "activation_params": ("FLOATS", False)}
_CONV = {
    "auto_pad": "NOTSET", "dilations": _OPTIONAL, "group": 1, "kernel_shape": _OPTIONAL,
    "pads": _OPTIONAL, "strides": _OPTIONAL,
}  # fmt: skip
_GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}

_MICROSOFT: dict[str, tuple[str, dict[str, object]]] = {
    "Attention": (
        "input weights bias? mask_index? past? attention_bias? past_sequence_length?",
        {
            "do_rotary": 0,
            "mask_filter_value": -10000.0,
            "num_heads": _NUMBER,
            "past_present_share_buffer": 0,
            "qkv_hidden_sizes": _OPTIONAL,
            "rotary_embedding_dim": 0,
            "scale": ("FLOAT", False),
            "unidirectional": 0,
        },
    ),
    "BiasGelu": ("A B", {}),
    "DequantizeLinear": ("x x_scale x_zero_point?", {"axis": 1}),
    "FastGelu": ("X bias?", {}),
    "FusedConv": ("X W B? Z?", {**_CONV, **_ACTIVATION}),
    "FusedGemm": (
        "A B C?",
        {
            **_GEMM,
            "activation": ("STRING", False),
            "activation_alpha": ("FLOAT", False),
            "activation_beta": ("FLOAT", False),
            "activation_gamma": ("FLOAT", False),
        },
    ),
    "FusedMatMul": (
        "A B",
        {"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0},
    ),
    "Gelu": ("X", {}),
    "MultiHeadAttention": (
        "query key? value? bias? key_padding_mask? attention_bias? past_key? past_value?",
        {
            "mask_filter_value": -10000.0,
            "num_heads": _NUMBER,
            "scale": ("FLOAT", False),
            "unidirectional": 0,
        },
    ),
    "QGemm": (
        "A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point?",
        {"alpha": 1.0, "transA": 0, "transB": 0},
    ),
    "QLinearAdd": (_BINARY, {}),
    "QLinearAveragePool": (
        _UNARY,
        {**_WINDOW, "ceil_mode": 0, "count_include_pad": 0, "kernel_shape": _REQUIRED},
    ),
    "QLinearConcat": ("Y_scale Y_zero_point inputs*", {"axis": _NUMBER}),
    "QLinearConv": (
        "x x_scale x_zero_point w w_scale w_zero_point y_scale y_zero_point B?",
        {**_WINDOW, "dilations": _OPTIONAL, "group": 1, "kernel_shape": _OPTIONAL},
    ),
    "QLinearGlobalAveragePool": (_UNARY, {"channels_last": 0}),
    "QLinearLeakyRelu": (_UNARY, {"alpha": 0.01}),
    "QLinearMul": (_BINARY, {}),
    "QLinearReduceMean": (_UNARY, {"axes": _REQUIRED, "keepdims": _NUMBER}),
    "QLinearSigmoid": (_UNARY, {}),
    "QLinearSoftmax": (_UNARY, {"axis": -1, "opset": _NUMBER}),
    "QLinearWhere": (
        "condition X x_scale x_zero_point Y y_scale y_zero_point z_scale z_zero_point",
        {},
    ),
    "QuantizeLinear": ("x y_scale y_zero_point?", {"axis": 1}),
    "QuickGelu": ("X", {"alpha": 1.702}),
    "RotaryEmbedding": (
        "input position_ids cos_cache sin_cache",
        {
            "interleaved": 0,
            "is_packed_batching": 0,
            "num_heads": 0,
            "rotary_embedding_dim": 0,
            "scale": 1.0,
        },
    ),
    "SimplifiedLayerNormalization": ("X scale", {"axis": -1, "epsilon": 1e-5, "stash_type": 1}),
    "SkipLayerNormalization": ("input skip gamma beta? bias?", {"epsilon": 1e-12}),
    "SkipSimplifiedLayerNormalization": ("input skip gamma bias?", {"epsilon": 1e-12}),
}
"""Arguments (``?`` optional, ``*`` any number); attributes: defaults, or type and if required."""


_QONNX: dict[str, tuple[str, dict[str, object]]] = {
    "BipolarQuant": ("x scale", {}),
    "IntQuant": ("x scale zeropt bitwidth", {**_LEVELS, "signed": 1, "narrow": 0}),
    "MultiThreshold": (
        "x thresholds",
        {"data_layout": "", "out_bias": 0.0, "out_dtype": "", "out_scale": 1.0},
    ),
    "Quant": ("x scale zeropt bitwidth", {**_LEVELS, "signed": 1, "narrow": 0}),
    "Trunc": (
        "x scale zeropt in_bitwidth out_scale_or_bitwidth out_bitwidth?",
        {"rounding_mode": "FLOOR", "signed": 1, "narrow": 0},
    ),
}

_CHANNELS_LAST: dict[str, tuple[str, dict[str, object]]] = {
    "BatchNormalization": ("X scale B mean var", {"epsilon": 1e-5, "momentum": 0.9}),
    "Conv": ("X W B?", _CONV),
    "MaxPool": ("X", {**_CONV, "ceil_mode": 0, "storage_order": 0, "kernel_shape": _REQUIRED}),
}

_PULP: dict[str, tuple[str, dict[str, object]]] = {
    "ITAMax": ("x", {"n_levels": _TENSOR}),
    "ITAPartialMax": (
        "x", {"group_width": _NUMBER, "groups": ("INT", False), "n_levels": _TENSOR}
    ),
    "IntegerDiv": ("x y", {"Delta": _NUMBER, "eps": _NUMBER, "eta": _NUMBER}),
    "IntegerMean": ("x", {"axes": _REQUIRED, "keepdims": 1}),
    "RequantShift": (
        "x mul add",
        {"div": _TENSOR, "n_levels": _TENSOR_OPTIONAL, "n_levels_out": _TENSOR_OPTIONAL,
         "signed": _TENSOR},
    ),
    "TrueIntegerDiv": (
        "x", {"Delta": _NUMBER, "eps": _NUMBER, "eta": _NUMBER, "y": _NUMBER}
    ),
    "iGELU": ("x", {"b": _NUMBER, "one": _NUMBER}),
    "iHardswish": ("x", {"one_over_six": _NUMBER, "six": _NUMBER, "three": _NUMBER}),
    "iLayerNorm": ("x weight bias", {"D": _TENSOR, "n_levels": _TENSOR}),
    "iRMSNorm": (
        "x weight", {"D": _NUMBER, "n_levels": _NUMBER, "axis": -1, "stash_type": 1}
    ),
    "iSoftmax": (
        "x",
        {"coeffA": _TENSOR, "coeffB": _TENSOR, "coeffC": _TENSOR, "log2": _TENSOR,
         "n_levels": _TENSOR},
    ),
}  # fmt: skip

_RESULTS = {
    **dict.fromkeys((CHANNELS_LAST, PULP, QONNX), ("Y",)),
    MICROSOFT: ("Y", "mean", "inverse", "sum"),
}
"""Results, of which all but the first may be left out."""

_DECLARATIONS = {
    CHANNELS_LAST: _CHANNELS_LAST, MICROSOFT: _MICROSOFT, PULP: _PULP, QONNX: _QONNX,
}  # fmt: skip


_INTEGER_PREFIXES = ("Integer", "i", "ITA")
"""Of operators of PULP's that come without a domain; those of ONNX begin with a capital letter."""

_STEPS_OF_FINN = {"GenericPartition", "Im2Col", "MaxPoolNHWC", "XnorPopcountMatMul"}
"""Operators of QONNX's domain that FINN's steps make of others."""

_FROM_BEFORE = {
    "QuantLSTMCell": "let Brevitas quantize the weights only: it exports ONNX's LSTM then",
    **dict.fromkeys(_STEPS_OF_FINN, "give the QONNX file from before FINN's steps"),
}


def way_out(op: str, domain: str) -> str | None:
    """Return which file to give instead of one with an operator that is not read.

    None if it is of none of the tools that are known here.
    """
    if domain.startswith("finn"):
        return "give the QONNX file from before FINN's steps"
    if domain == PULP or (not domain and op.startswith(_INTEGER_PREFIXES)):
        return "give the network from before it was made one of integers, of real numbers or QDQ"
    return _FROM_BEFORE.get(op)


def home_domain(op: str, domain: str) -> str:
    """Return the domain under which an operator is declared here, whatever a file calls it."""
    domain = _OTHER_NAMES.get(domain, domain)
    if op in _WITHOUT_DOMAIN:
        return MICROSOFT
    if not domain:
        return next((home for home in (PULP, QONNX) if op in _DECLARATIONS[home]), domain)
    return domain


@cache
def foreign_schema(op: str, domain: str) -> OpSchema | None:
    """Return the declaration of another tool's operator; None if it is not known.

    Parameters
    ----------
    domain
        As :func:`home_domain` returns it.
    """
    from onnx import helper
    from onnx.defs import OpSchema

    if op not in _DECLARATIONS.get(domain, {}):
        return None
    options, parameter = OpSchema.FormalParameterOption, OpSchema.FormalParameter
    kinds = {"?": options.Optional, "*": options.Variadic}
    arguments, attrs = _DECLARATIONS[domain][op]
    inputs = [
        parameter(
            name.rstrip("?*"),
            "T",
            param_option=kinds.get(name[-1], options.Single),
            is_homogeneous=False,
        )
        for name in arguments.split()
    ]
    attributes = [
        OpSchema.Attribute(name, OpSchema.AttrType[value[0]], required=value[1])
        if isinstance(value, tuple)
        else OpSchema.Attribute(name, helper.make_attribute(name, value))
        for name, value in attrs.items()
    ]
    return OpSchema(
        op,
        domain,
        1,
        inputs=inputs,
        outputs=[
            parameter(name, "T", param_option=kinds["?"] if more else options.Single)
            for more, name in enumerate(_RESULTS[domain])
        ],
        type_constraints=[("T", ["tensor(float)"], "any")],
        attributes=attributes,
    )
