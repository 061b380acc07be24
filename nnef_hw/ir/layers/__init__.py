"""Integer layers: what every node of a fixed graph computes of codes, defined once.

The fixed reference runs :meth:`Layer.compute`; architectures read the same fields for hardware.
No layer here knows hardware, but the geometry of its windows.
"""

from nnef_hw.ir.layers.audio import LogMelFront, MicroFront, MicroFrontStep, MicroNoise
from nnef_hw.ir.layers.contraction import Contraction
from nnef_hw.ir.layers.convolution import Convolution
from nnef_hw.ir.layers.elementwise import Elementwise, Extremum, Product, Quotient, Sum
from nnef_hw.ir.layers.functions import ArgExtremum, Softmax, Table
from nnef_hw.ir.layers.integer_functions import IntegerNormalization, IntegerSoftmax
from nnef_hw.ir.layers.layer import Codes, Layer, format_of, image_of, layers
from nnef_hw.ir.layers.lowering import layer_of, layers_of
from nnef_hw.ir.layers.moves import (
    Concat,
    DepthToSpace,
    Interpolate,
    Move,
    Pad,
    Reshape,
    Slice,
    Transpose,
    Upsample,
)
from nnef_hw.ir.layers.normalization import Normalization
from nnef_hw.ir.layers.places import CausalMask, Lookup, WriteRow
from nnef_hw.ir.layers.pool import MaxPool, Pool, SumPool
from nnef_hw.ir.layers.steps import BeginSteps, JoinSteps, LastStep, ReverseSteps, SplitSteps

__all__ = [
    "ArgExtremum",
    "BeginSteps",
    "CausalMask",
    "Codes",
    "Concat",
    "Contraction",
    "Convolution",
    "DepthToSpace",
    "Elementwise",
    "Extremum",
    "IntegerNormalization",
    "IntegerSoftmax",
    "Interpolate",
    "JoinSteps",
    "LastStep",
    "Layer",
    "Lookup",
    "LogMelFront",
    "MaxPool",
    "MicroFront",
    "MicroFrontStep",
    "MicroNoise",
    "Move",
    "Normalization",
    "Pad",
    "Pool",
    "Product",
    "Quotient",
    "Reshape",
    "ReverseSteps",
    "Slice",
    "Softmax",
    "SplitSteps",
    "Sum",
    "SumPool",
    "Table",
    "Transpose",
    "Upsample",
    "WriteRow",
    "format_of",
    "image_of",
    "layer_of",
    "layers",
    "layers_of",
]
