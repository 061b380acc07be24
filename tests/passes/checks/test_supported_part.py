"""The part of a network in front of what has no hardware."""

from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.errors import Location, UnsupportedError
from nnef_hw.passes import rewrite
from nnef_hw.passes.checks.supported_part import BY_HOST, OTHER_OPERATORS, SupportedPart, with_part
from nnef_hw.testing import GraphBuilder


def head(rng, *, behind=0):
    """A sum and its sigmoid, of which contrast is normalized, and a layer behind that."""
    g = GraphBuilder()
    g.input("x", [1, 2, 4, 4])
    g.op("sigmoid", g.conv("x", rng.normal(size=(3, 2, 3, 3)), padding=1), name="s")
    g.op("lrn", "s", shape=(1, 3, 4, 4), name="n")
    if behind:
        g.conv("n", rng.normal(size=(behind, 3, 1, 1)))
    return g


def refusal(graph):
    return [str(error) for error in rewrite(graph)[1]]


def test_the_results_before_it_are_named_with_their_share(rng):
    [text] = refusal(head(rng).build())
    assert text.endswith("; end the network before it, at 's', with 100% of its parameters")


def test_what_the_host_needs_and_other_results(rng):
    g = head(rng)
    graph = g.build(g.op("tanh", "s", name="t"), "n", "conv1")
    [text] = refusal(graph)
    assert text.endswith("before it, at 'conv1', 's', 't', with 100% of its parameters")


def test_a_small_part_is_not_worthwhile(rng):
    [text] = refusal(head(rng, behind=50).build())
    assert text.endswith("use convolutions, linear layers, pools, functions and arithmetic")


def test_of_two_the_part_ends_before_the_first(rng):
    g = head(rng)
    g.op("fancy", "n", shape=(1, 3, 4, 4))
    first, last = refusal(g.build())
    assert first.endswith("; end the network before it, and let the host compute it")
    assert last.endswith("; end the network before them, at 's', with 100% of its parameters")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (0, "before them, with 75% of its parameters: --outputs a,b"),
        (3, "before them, at 'a', 'b', with 75% of its parameters"),
    ],
    ids=["option", "names"],
)
def test_a_better_remedy_stays(line, wanted):
    errors = [
        UnsupportedError("no", remedy=remedy, location=Location("m", line))
        for remedy in (BY_HOST, OTHER_OPERATORS, "use less padding")
    ]
    found = with_part(errors, SupportedPart(("a", "b"), 0.75))
    remedies = [error.remedy for error in found]
    assert remedies == [BY_HOST, f"end the network {wanted}", "use less padding"]
    assert with_part(errors, None) == errors


def test_a_tensor_that_the_file_does_not_name_is_no_result(rng):
    graph = head(rng).build()
    hidden = replace(graph.tensor("s"), location=Location("net.nnef"))
    graph = graph.replaced(tensors={**graph.tensors, "s": hidden})
    [text] = refusal(graph)
    assert text.endswith("before it, at 'conv1', with 100% of its parameters")


def test_a_network_whose_errors_have_better_remedies_is_not_cut(rng):
    g = GraphBuilder()
    g.input("x", [1, 2, 4, 4])
    weights = rng.normal(size=(3, 2, 1, 1))
    weights[0] = np.nan
    g.op("sigmoid", g.conv("x", rng.normal(size=(2, 2, 3, 3)), padding=1), name="s")
    g.conv("s", weights)
    [text] = refusal(g.build())
    assert text.endswith("train or export the model again")
