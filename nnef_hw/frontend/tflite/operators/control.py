"""Control flow: loops that are recurrences."""

from __future__ import annotations

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.recurrences import recurrence
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value

__all__: list[str] = []


@lowers("WHILE", newest=1)
def while_loop(call: TfliteCall) -> list[Value]:
    """Make a loop in hardware: Keras' recurrent layers are written like this."""
    condition, body = (
        call.around.subgraph(int(call.option(name, -1)))
        for name in ("CondSubgraphIndex", "BodySubgraphIndex")
    )
    count = len(call.inputs)
    if condition is None or body is None:
        raise call.error("the model has no such subgraph", "convert the model again")
    if not len(condition.inputs) == len(body.inputs) == len(body.outputs) == count or (
        len(condition.outputs) != 1
    ):
        raise call.error(f"its subgraphs do not fit {count} carried values")
    return recurrence(call, condition, body)
