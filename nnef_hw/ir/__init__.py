"""The one graph that every front end produces and every later stage reads."""

from nnef_hw.ir.graph import Graph, Node, Quantization, Stage, State, Tensor
from nnef_hw.ir.operators import Trait
from nnef_hw.ir.parser import parse_graph
from nnef_hw.ir.printer import format_graph
from nnef_hw.ir.states import close_states, open_states, without_dead_states
from nnef_hw.ir.stream_order import (
    HostStream,
    Reordering,
    StreamOrder,
    image_shape,
    stream_image,
)
from nnef_hw.ir.verify import verify

__all__ = [
    "Graph",
    "HostStream",
    "Node",
    "Quantization",
    "Reordering",
    "Stage",
    "State",
    "StreamOrder",
    "Tensor",
    "Trait",
    "close_states",
    "format_graph",
    "image_shape",
    "open_states",
    "parse_graph",
    "stream_image",
    "verify",
    "without_dead_states",
]
