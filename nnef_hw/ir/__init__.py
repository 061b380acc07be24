"""The one graph that every front end produces and every later stage reads."""

from nnef_hw.ir.graph import Graph, Node, Quantization, Stage, State, Tensor
from nnef_hw.ir.operators import Trait
from nnef_hw.ir.parser import parse_graph
from nnef_hw.ir.printer import format_graph
from nnef_hw.ir.stream_order import (
    Reordering,
    find_reordering,
    image_shape,
    input_stream,
    output_stream,
    reordered_streams,
    stream_image,
    stream_origin,
)
from nnef_hw.ir.verify import verify

__all__ = [
    "Graph",
    "Node",
    "Quantization",
    "Reordering",
    "Stage",
    "State",
    "Tensor",
    "Trait",
    "find_reordering",
    "format_graph",
    "image_shape",
    "input_stream",
    "output_stream",
    "parse_graph",
    "reordered_streams",
    "stream_image",
    "stream_origin",
    "verify",
]
