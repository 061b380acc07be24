"""Symbols in dimensions: their values come with the call, and have to be what is asserted."""

import pytest

from nnef_hw.errors import ModelError, UnsupportedError, UsageError

GRAPH = "graph net(x) -> (y) { x = external(shape = [B, 2 * B, 4]); y = relu(x); }"


def test_symbols_get_their_values(load_tract):
    graph = load_tract(GRAPH, ["tract_symbol B", "tract_assert B >= 1"], B=3)

    assert graph.tensor("y").shape == (3, 6, 4)


def test_a_symbol_needs_no_declaration_in_the_shape_of_an_input(load_tract):
    assert load_tract(GRAPH, B=2).tensor("y").shape == (2, 4, 4)


def test_the_streaming_symbol_is_s(load_tract):
    text = GRAPH.replace("B", "S")

    graph = load_tract(text, ["tract_pulse_streaming_symbol"], S=2)

    assert graph.tensor("y").shape == (2, 4, 4)


def test_declared_symbols_that_the_graph_does_not_use_need_no_value(load_tract):
    graph = load_tract(
        "graph net(x) -> (y) { x = external(shape = [2]); y = relu(x); }", ["tract_symbol N"]
    )

    assert graph.tensor("y").shape == (2,)


def test_missing_symbols_are_named_with_their_flags(load_tract):
    with pytest.raises(UsageError, match=r"'B', 'S'.*--dim B=1 --dim S=1"):
        load_tract(GRAPH.replace("4]", "S]"))


@pytest.mark.parametrize(
    ("extensions", "dims", "message"),
    [
        ([], {"B": 0}, "'B' must be positive, not 0"),
        (
            ["tract_symbol B"],
            {"B": 1, "BB": 2},
            "'BB' is not a symbol of the model; did you mean 'B'",
        ),
    ],
)
def test_values_must_fit_the_symbols(load_tract, extensions, dims, message):
    with pytest.raises(UsageError, match=message):
        load_tract(GRAPH, extensions, **dims)


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        ("B <= 16", True),
        ("B>16", False),
        ("2 * B - 1 == 7", True),
        ("B / 3 = 2", False),
        ("1 < B < 4", False),
        ("B != -4", True),
        ("pulse: B > 100", True),
        ("N < B", True),
    ],
)
def test_assertions_are_checked(load_tract, assertion, holds):
    extensions = ["tract_symbol B", "tract_symbol N", f"tract_assert {assertion}"]

    if holds:
        load_tract(GRAPH, extensions, B=4)
    else:
        with pytest.raises(ModelError, match=f"asserts {assertion}, but B = 4") as caught:
            load_tract(GRAPH, extensions, B=4)
        assert caught.value.location.line == 5


@pytest.mark.parametrize("assertion", ["B is even", "min(B, 2) > 1", "B ** 2 > 3", "B / 0 > 1"])
def test_assertions_that_are_not_understood_are_refused(load_tract, assertion):
    with pytest.raises(UnsupportedError, match="not understood; remove the line"):
        load_tract(GRAPH, ["tract_symbol B", f"tract_assert {assertion}"], B=4)


def test_symbols_are_numbers_in_fragments_too(load_tract):
    graph = load_tract(
        "fragment twice(x: tensor<scalar>) -> (y: tensor<scalar>) { y = tile(x, repeats = [B]); }"
        "graph net(x) -> (y) { x = external(shape = [B]); y = twice(x); }",
        B=3,
    )

    assert graph.tensor("y").shape == (9,)


def test_dimensions_computed_from_shapes_are_folded(load_tract):
    graph = load_tract(
        """graph net(x) -> (y) {
            x = external(shape = [2, B]);
            size = tract_core_shape_of(x);
            last = squeeze(slice(size, axes = [0], begin = [1], end = [2]), axes = [0]);
            y = reshape(x, shape = [last * 2 / 4 + 1, -1]);
        }""",
        B=6,
    )

    assert [node.op for node in graph.nodes] == ["reshape"]
    assert graph.tensor("y").shape == (4, 3)


def test_dimensions_that_depend_on_inputs_are_refused(load_tract):
    with pytest.raises(ModelError, match="'shape' depends on an input of the graph, by 'n'"):
        load_tract(
            """graph net(x, n) -> (y) {
                x = external(shape = [2, 3]);
                n = tract_core_external(shape = [], datum_type = 'i64');
                y = reshape(x, shape = [n, 2]);
            }"""
        )
