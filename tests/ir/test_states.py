"""Networks with states, and one step of them."""

from dataclasses import replace

import pytest
from recurrent_graphs import gru

from nnef_hw.ir import close_states, format_graph, open_states, parse_graph, verify


def test_a_step_reads_states_and_gives_their_next_values():
    graph = gru()
    step = open_states(graph)
    verify(step)
    assert step.inputs == ("x", "h")
    assert step.outputs == ("y", "h_next")
    assert not step.states
    assert format_graph(close_states(step, graph.states)) == format_graph(graph)
    assert open_states(step) is step
    assert close_states(step, {}) is step


def test_the_text_of_a_graph_with_states_reads_back():
    text = format_graph(gru())
    assert format_graph(parse_graph(text)) == text


def test_a_state_has_one_shape():
    graph = gru()
    with pytest.raises(AssertionError, match="state h: it has several shapes"):
        verify(replace(graph, states={"h": replace(graph.states["h"], result="y")}))
