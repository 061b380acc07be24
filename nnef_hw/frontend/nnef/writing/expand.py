"""Replace compound operators by the primitives they are defined with (specification, 4.9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import Location
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.evaluation.evaluate import Evaluator
from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.frontend.nnef.evaluation.rules import Rules
from nnef_hw.frontend.nnef.evaluation.scope import Scope
from nnef_hw.frontend.nnef.evaluation.variable_data import NoData
from nnef_hw.frontend.nnef.language.syntax import ArrayType, Declaration
from nnef_hw.ir import Graph, Node, Tensor

__all__ = ["expand_compounds"]


def expand_compounds(graph: Graph) -> Graph:
    """Return a float graph that consists of primitives of the standard, where it has a definition.

    A compound's own tensors are called after its result: ``y_e`` for ``e`` in the definition of
    the softmax ``y``. Operators beyond the standard stay as they are.
    """
    builder = Builder(graph.name)
    builder.inputs = list(graph.inputs)
    builder.states = dict(graph.states)
    builder.reserved = set(graph.tensors)
    computed = {name for node in graph.nodes for name in node.outputs}
    for name, tensor in graph.tensors.items():
        if name not in computed:
            builder.add(tensor)
    evaluator = Evaluator(builder, Rules("NNEF 1.0.5"), {}, NoData(), expand=True)
    operators = standard_operators()
    for node in graph.nodes:
        if node.op in operators and operators[node.op].body is not None:
            _expand(node, operators[node.op], evaluator)
        else:
            builder.nodes.append(node)
            for name in node.outputs:
                builder.add(graph.tensor(name))
        for name in node.outputs:
            original = graph.tensor(name)
            builder.add(replace(builder.tensors[name], quant=original.quant, label=original.label))
    return builder.build(graph.outputs)


def _expand(node: Node, declaration: Declaration, evaluator: Evaluator) -> None:
    builder = evaluator.builder
    location = node.location or Location(builder.name)
    inputs = iter(builder.tensors[name] for name in node.inputs)
    arguments: dict[str, object] = {}
    for parameter in declaration.parameters:
        if not parameter.is_tensor:
            arguments[parameter.name] = node.attrs[parameter.name]
        elif isinstance(parameter.type, ArrayType):
            arguments[parameter.name] = list(inputs)
        else:
            arguments[parameter.name] = next(inputs)
    before = set(builder.tensors)
    evaluator.claimable = set(node.outputs)
    names = list(node.outputs) if len(node.outputs) > 1 else node.name
    scope = Scope({}, location, root=node.name)
    results = evaluator.invoke(declaration, arguments, None, names, {}, location, scope)
    for name, tensor in zip(node.outputs, _tensors(results), strict=True):
        if tensor.name in before:
            builder.node("copy", [tensor], {}, [name], (tensor.dtype,), location=location)
        elif tensor.name != name:
            builder.rename(tensor.name, name)


def _tensors(results: AttributeValue) -> Iterator[Tensor]:
    if isinstance(results, Tensor):
        yield results
    else:
        yield from results
