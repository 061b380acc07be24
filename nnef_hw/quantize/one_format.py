"""Which activations take the format of a later ``max``, ``min`` or ``concat``."""

from __future__ import annotations

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.operators import PadAttributes

__all__ = [
    "computing_node",
    "contracted_operands",
    "exact_operands",
    "format_owners",
    "heard_samples",
    "padded_values",
]


def format_owners(graph: Graph) -> dict[str, str]:
    """Return for activations that only a ``max``, ``min`` or ``concat`` reads the result of it.

    Computed in its format at once, such an operand needs no requantization. Graph inputs and
    outputs, operands with other readers or a format of their own are left out; their codes are
    mapped in front of the operator.
    """
    owners: dict[str, str] = {}
    for node in reversed(graph.nodes):
        keeps = node.has(Trait.KEEPS_FORMAT) and node.name in owners
        if keeps or node.has(Trait.ONE_FORMAT):
            owner = owners.get(node.name, node.name)
            owners.update((name, owner) for name in node.numbers if _is_free(graph, name))
    return owners


def exact_operands(graph: Graph) -> frozenset[str]:
    """Return operands that are looked up in memory, and tensors that share their format."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        hands_on = node.has(Trait.ONE_FORMAT) or node.has(Trait.KEEPS_FORMAT)
        is_exact = node.has(Trait.EXACT_TABLE) or node.has(Trait.SHORT_OPERANDS)
        if is_exact or (hands_on and node.name in found):
            found.update(node.numbers)
    return frozenset(found)


def heard_samples(graph: Graph) -> frozenset[str]:
    """Return samples of audio, and tensors that share their format."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        hands_on = node.has(Trait.ONE_FORMAT) or node.has(Trait.KEEPS_FORMAT)
        if node.has(Trait.HEARS):
            found.add(node.inputs[0])
        elif hands_on and node.name in found:
            found.update(node.numbers)
    return frozenset(found)


def contracted_operands(graph: Graph) -> frozenset[str]:
    """Return the operands of products of two activations, and tensors that share their format."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        hands_on = node.has(Trait.KEEPS_FORMAT) or node.has(Trait.INDEXED)
        if (hands_on and node.name in found) or node.has(Trait.CONTRACTS):
            found.update(node.numbers)
    return frozenset(found)


def computing_node(graph: Graph, name: str, until: Trait | None = None) -> Node | None:
    """Return the node whose values a tensor holds, behind those that keep formats.

    Or one of these that has a trait, if that is nearer.
    """
    node = graph.producer(name)
    while node is not None and node.has(Trait.KEEPS_FORMAT):
        if until is not None and node.has(until):
            return node
        node = graph.producer(node.inputs[0])
    return node


def padded_values(graph: Graph) -> dict[str, list[tuple[str, float]]]:
    """Return by activation the values that are put around it, each with the ``pad`` that does."""
    values: dict[str, list[tuple[str, float]]] = {}
    for node in graph.nodes:
        if node.op == "pad":
            source = node.inputs[0]
            while (before := graph.producer(source)) and before.has(Trait.KEEPS_FORMAT):
                source = before.inputs[0]
            value = node.attributes(PadAttributes).value
            values.setdefault(source, []).append((node.name, value))
    return values


def _is_free(graph: Graph, name: str) -> bool:
    node, tensor = graph.producer(name), graph.tensor(name)
    return (
        node is not None
        and not node.has(Trait.FIXED_FORMAT)
        and tensor.quant is None
        and name not in graph.outputs
        and len(graph.consumers(name)) == 1
    )
