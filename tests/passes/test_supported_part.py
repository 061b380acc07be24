"""The part of a network in front of what has no hardware."""

import pytest

from nnef_hw.errors import Location, UnsupportedError
from nnef_hw.passes import rewrite
from nnef_hw.passes.supported_part import SupportedPart, with_part
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
        (0, "before it, with 75% of its parameters: --outputs a,b"),
        (3, "before it, at 'a', 'b', with 75% of its parameters"),
    ],
    ids=["option", "names"],
)
def test_another_remedy_comes_first(line, wanted):
    error = UnsupportedError("no", remedy="use less padding", location=Location("m", line))
    [found] = with_part([error], SupportedPart(("a", "b"), 0.75))
    assert found.remedy == f"use less padding; or end the network {wanted}"
    assert with_part([error], None) == [error]
