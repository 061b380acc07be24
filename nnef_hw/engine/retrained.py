"""New weights for an engine whose bitstream exists: what has to be the same, and what need not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from nnef_hw.architecture.architecture import Kept, Port
from nnef_hw.arithmetic.numerics import AddRequant, Requant, signed_bits
from nnef_hw.engine.layers.unit import UnitLayer
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.program.design import Design
from nnef_hw.errors import NnefHwError, UsageError
from nnef_hw.ir import Graph, Node
from nnef_hw.parts.engine.fields import Fact
from nnef_hw.parts.engine.requantizer import SecondRounding
from nnef_hw.parts.engine.residual import TensorSums

__all__ = ["differences", "fit_shifts", "kept", "retrained"]

_BELOW = 1 - 2.0**-12
"""Factors are rounded, and scales of weights moved a little."""
_REBUILD = "build it without --weights-of"


def kept(design: Design) -> Kept:
    """Return the choices that a quantization must keep to run on a bitstream.

    Factors must not be larger than what its fields hold.
    """
    engine = design.engine
    requantizer, sums = engine.requantizer, engine.find(TensorSums)
    most = (1 << requantizer.factor_bits) - 1
    layer_factor = most * _BELOW / (1 << requantizer.shift)
    sum_factor = math.inf
    if sums is not None:
        most = (1 << (sums.bits - 1)) - 1
        sum_factor = most * _BELOW / (1 << sums.shift)
    return Kept(layer_factor, sum_factor)


def fit_shifts(graph: Graph, design: Design) -> Graph:
    """Round the factors of a fixed graph whose shift is greater than that of a bitstream.

    A factor has 16 bits, of which it loses as many as its shift is greater.
    """
    changed: dict[str, Node] = {}
    engine = design.engine
    sums = engine.find(TensorSums)
    for layer in lower(graph, design.device).layers:
        steps = [(layer.node, layer.scale.shift - engine.requantizer.shift)]
        if layer.residual is not None:
            excess = layer.residual.shift - (0 if sums is None else sums.shift)
            steps.append((layer.residual.node, excess))
        for node, excess in steps:
            requant = node.attrs.get("requant")
            if isinstance(requant, Requant | AddRequant) and 0 < excess < requant.shift:
                changed[node.name] = node.with_attrs(requant=_rounded(requant, excess))
    nodes = tuple(changed.get(node.name, node) for node in graph.nodes)
    return graph.replaced(nodes=nodes) if changed else graph


def _rounded(requant: Requant | AddRequant, excess: int) -> Requant | AddRequant:
    """Return the same with a smaller shift."""
    half = 1 << (excess - 1)
    mult = [(abs(m) + half) >> excess for m in requant.mult]
    if isinstance(requant, Requant):
        return replace(requant, mult=tuple(max(1, m) for m in mult), shift=requant.shift - excess)
    first, second = (
        -new if old < 0 else new for old, new in zip(requant.mult, mult, strict=True)
    )  # fmt: skip
    return replace(requant, mult=(first, second), shift=requant.shift - excess)


def retrained(graph: Graph, design: Design) -> Design:
    """Return the design that runs other weights on the engine of an existing one.

    Raises
    ------
    UsageError
        If its bitstream does not run the graph: what differs.
    UnsupportedError, ErrorGroup
        If no engine does.
    """

    def refuse(what: str) -> NnefHwError:
        return UsageError(
            f"the bitstream does not run these weights of {graph.name!r}: {what}", remedy=_REBUILD
        )

    if not design.program.is_replaceable:
        raise refuse("it has its weights in block RAM, not in a memory beside the FPGA")
    network = lower(graph, design.device)
    own = replace(design, network=network, existing=None)
    if found := "; ".join(differences(own, design)):
        raise refuse(found)
    new = replace(own, existing=design.engine)
    if found := "; ".join(_misfits(new)):
        raise refuse(found)
    return new


def differences(own: Design, built: Design) -> Iterator[str]:
    """Yield every difference between a network of other weights and a bitstream."""
    new, old = own.network, built.network
    for what, ports, there in (
        ("input", [x.port for x in new.sources], [x.port for x in old.sources]),
        ("output", [x.port for x in new.sinks], [x.port for x in old.sinks]),
    ):
        if len(ports) != len(there):
            yield f"it has {len(ports)} {what}s, there are {len(there)}"
            return
        for port, was in zip(ports, there, strict=True):
            if _codes(port) != _codes(was):
                yield f"{what} {port.tensor!r} has {_codes(port)}, there it has {_codes(was)}"
                return
    shapes, built_shapes = ([x.program.outline(layer) for layer in x.layers] for x in (own, built))
    for n, (layer, one, other) in enumerate(zip(own.layers, shapes, built_shapes, strict=False), 1):
        if one != other:
            yield f"layer {n}, {layer.name!r}, is {one}; there it is {other}"
            return
    if len(shapes) != len(built_shapes):
        yield f"it has {len(built_shapes)} layers, the model {len(shapes)}"
        return
    for layer, parts, known in zip(own.layers, own.program.parts, built.program.parts, strict=True):
        if [part.nest for part in parts] != [part.nest for part in known]:
            yield f"layer {layer.name!r} has other strides, dilation, padding or places of tensors"
            return
    if own.placement.loadings != built.placement.loadings:
        yield "its input is loaded in another order"
        return
    for sink, was_sink in zip(new.sinks, old.sinks, strict=True):
        tail, was_tail = sink.tail, was_sink.tail
        if (sink.bits, sink.signed) != (was_sink.bits, was_sink.signed):
            yield f"output {sink.tensor!r} has codes of another format"
        if (tail is None) != (was_tail is None):
            yield f"output {sink.tensor!r} has another last node"
        elif tail is not None and was_tail is not None and tail.part != was_tail.part:
            yield f"{tail.name!r} has another size or format"
    yield from own.engine.differences(built.engine)


def _misfits(design: Design) -> Iterator[str]:
    """Yield the values of a program that have no room in the fields of the engine."""
    engine, layout = design.engine, design.engine.layout
    rounding = engine.find(SecondRounding)
    for layer in design.layers:
        if isinstance(layer, UnitLayer):
            for what in layer.missing(design.program.units.of(layer)):
                yield f"layer {layer.name!r} {what}"
                return
        bits = max(design.program.scales.factors(layer), default=1).bit_length()
        if bits > (most := engine.requantizer.factor_bits):
            yield f"layer {layer.name!r} takes factors of {bits} bits, there are {most}"
            return
        if rounding is not None:
            least = rounding.least_shift
            shifts = range(least, least + (1 << rounding.more_shift_bits))
            if far := {*design.program.scales.shifts(layer)}.difference(shifts):
                yield (
                    f"layer {layer.name!r} takes a shift of {min(far)}, there are {least} to "
                    f"{shifts[-1]}"
                )
                return
        bits = signed_bits(*layer.largest_sum)
        if bits > (most := engine.array.acc_bits):
            yield f"layer {layer.name!r} takes sums of {bits} bits, there are {most}"
            return
    for name, instruction in zip(design.program.names, design.instructions, strict=True):
        for field, value in instruction.values.items():
            if field in layout.constants:
                _, there = layout.constants[field]
                if value != there:
                    yield f"layer {name!r} has {field} = {value}, all layers there {there}"
                    return
            elif field in layout.widths:
                bits = layout.widths[field]
                if not _fits(engine.facts[field], value, bits):
                    yield f"layer {name!r} has {field} = {value}, of {bits} bits there"
                    return


def _fits(fact: Fact, value: int, bits: int) -> bool:
    if fact.wraps:
        return True
    if fact.signed:
        return signed_bits(min(value, 0), max(value, 0)) <= bits
    return 0 <= value < 1 << bits


def _codes(port: Port) -> str:
    kind = "signed" if port.signed else "unsigned"
    return f"{' x '.join(map(str, port.image))} {kind} codes of {port.bits} bits"
