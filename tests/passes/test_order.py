"""The order of passes follows from what they declare; whatever this leaves open changes nothing."""

import zlib
from collections import deque
from dataclasses import replace
from typing import ClassVar

import golden_networks
import numpy as np
import other_axes
import pytest
import recurrent_graphs
import temporal_graphs
from hypothesis import HealthCheck, given, settings
from pass_texts import FOLDER, MOST_VALUES, read_cases
from random_graphs import OPERATORS, RandomGraph
from streamable_graphs import random_networks

from nnef_hw.ir import Stage, format_graph
from nnef_hw.passes import pipeline
from nnef_hw.passes.checks.check_supported import find_unsupported
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons, in_order

PHASES = pipeline.phases
GROUPS = [group for phase in PHASES() for group in phase.groups]
MOST_PASSES = max(len(group.passes) for group in GROUPS)


TELLING = {("asin", 8), ("avg_pool", 4), ("cumsum", 6), ("logarithmic_quantize", 4)}
"""Random graphs (operator, seed) that fail without one of the declarations, where others do not."""


OTHERS = [op for op in OPERATORS if op != "log_bands"]
"""Operators behind the first one, which :data:`TELLING` knows; a further one changes all graphs."""


def _texts(scale):
    cases = [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]
    return [case.graph() for case in cases[:: 4 if scale == 1 else 1]]


def _networks(scale):
    found = [make().graph for make in golden_networks.NETWORKS]
    found += [make(np.random.default_rng(0)) for make in other_axes.NETWORKS]
    found += [make() for make in recurrent_graphs.STATEFUL.values()]
    for seed in range(12 * scale):
        found += [recurrent_graphs.random_recurrent(seed), recurrent_graphs.random_loop(seed)]
        found += [temporal_graphs.random_temporal(seed)]
    return found


def _streamable(scale):
    found = []

    @settings(
        max_examples=100 * scale,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(random_networks())
    def collect(network):
        found.append(network.graph)

    collect()
    return found


def _operators(scale):
    """Return graphs of each operator behind none, three, six... of any others.

    In a fast test there is one of each operator, which has these lengths in turn.
    """
    wanted = {(op, seed) for op in OPERATORS for seed in range(3 * scale)}
    if scale == 1:
        wanted = {(op, n % 3) for n, op in enumerate(OPERATORS)}
    found = []
    for op, seed in sorted(wanted | TELLING):
        rng = np.random.default_rng(zlib.crc32(op.encode()) + seed)
        net = RandomGraph(rng)
        if seed % 2:
            net.keep_state()
        for name in (op, *rng.choice(OTHERS, 3 * seed)):
            net.apply(str(name))
        found.append(net.build())
    return found


FAMILIES = (_texts, _networks, _streamable, _operators)
"""Functions of how many times as many graphs as in a fast test are wanted."""


class Memo:
    """Functions of a graph that compute every result once; a run in another order repeats most."""

    def __init__(self):
        self.found = {}

    def once(self, key, function, graph):
        """Return what a function gives of a graph object, which is kept."""
        if (key, id(graph)) not in self.found:
            self.found[key, id(graph)] = graph, function(graph)
        return self.found[key, id(graph)][1]


def outcome(memo, graph):
    """Return the graph that the pipeline gives, and what it refuses; constants in any order."""
    (last,) = deque(pipeline.steps(graph), maxlen=1)
    return memo.once("text", lambda _: _printed(last.closed()), last.graph)


def _printed(graph):
    named = graph.replaced(tensors=dict(sorted(graph.tensors.items())))
    text = format_graph(named, most_values=MOST_VALUES)
    return "\n".join([text, *map(str, find_unsupported(graph))])


def orders(rng, count):
    """Return random orders of all groups; in one of them each pass is as late as it may be.

    So of two passes that may change places, each is first in some order, if there are as many
    orders as passes.
    """
    return [_order(rng, late) for late in range(count)]


def _order(rng, late):
    """Return the phases with each group in a random order that its passes allow."""
    ranks = []
    for group in GROUPS:
        listed = [group.passes[n] for n in rng.permutation(len(group.passes))]
        last = group.passes[late % len(listed)]
        listed.remove(last)
        listed.append(last)
        ranks.append({type(each): n for n, each in enumerate(in_order(listed))})

    def phases(images=()):
        left = iter(ranks)
        return tuple(
            replace(phase, groups=tuple(_sorted(group, next(left)) for group in phase.groups))
            for phase in PHASES(images)
        )

    return phases


def _sorted(group, rank):
    return replace(group, passes=tuple(sorted(group.passes, key=lambda each: rank[type(each)])))


def assert_free(graphs, allowed, monkeypatch):
    """Every order gives of each graph what the pipeline's own gives."""
    apply, names = pipeline._apply, ("without_dead_states", "open_states", "lower_scans")
    functions = {name: getattr(pipeline, name) for name in names}
    for graph in graphs:
        if graph.stage != Stage.FLOAT:
            continue
        memo = Memo()
        for name, function in functions.items():
            monkeypatch.setattr(
                pipeline, name, lambda graph, key=name, f=function, m=memo: m.once(key, f, graph)
            )
        monkeypatch.setattr(
            pipeline,
            "_apply",
            lambda each, graph, m=memo: m.once(type(each), lambda g: apply(each, g), graph),
        )
        monkeypatch.setattr(pipeline, "phases", PHASES)
        expected = outcome(memo, graph)
        for order in allowed:
            monkeypatch.setattr(pipeline, "phases", order)
            assert outcome(memo, graph) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_every_order_that_the_passes_allow_gives_the_same_graph(family, rng, monkeypatch):
    assert_free(family(1), orders(rng, MOST_PASSES), monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_many_orders_give_the_same_graph(family, rng, monkeypatch):
    assert_free(family(2), orders(rng, 2 * MOST_PASSES), monkeypatch)


class First(Pass):
    def __call__(self, graph):
        return graph


class Second(First):
    after: ClassVar[Reasons] = {First: "it is the second"}


class Zeroth(First):
    before: ClassVar[Reasons] = {First: "it is the zeroth", Second: "and so before the second"}


def test_passes_are_sorted_by_what_they_declare_and_else_as_listed():
    first, second, zeroth, free = First(), Second(), Zeroth(), GROUPS[0].passes[0]
    assert in_order([second, free, first, zeroth]) == (free, zeroth, first, second)
    assert in_order([second, free, zeroth]) == (free, zeroth, second)
    assert in_order([second, free]) == (second, free)


def test_a_circle_is_named(monkeypatch):
    monkeypatch.setattr(Zeroth, "after", {Second: "which contradicts it"})
    with pytest.raises(ValueError, match=r"contradicts itself: .*Zeroth < "):
        in_order([First(), Second(), Zeroth()])


def test_every_declaration_orders_two_passes_of_a_group_and_says_why():
    groups = [{type(each) for each in group.passes} for group in GROUPS]
    for kind in set().union(*groups):
        for other, reason in [*kind.after.items(), *kind.before.items()]:
            assert any({kind, other} <= group for group in groups)
            assert reason[0].isupper()
            assert reason.endswith(".")
            assert kind not in {**other.after, **other.before}
