"""Inputs as words of the engine's memory: codes and cycles, in Amaranth's simulator."""

import pytest
from engine_graphs import planned
from sweeps import covering

from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


@pytest.fixture
def builder():
    return GraphBuilder()


@pytest.mark.parametrize("lanes", [4, 8])
def test_few_channels_are_packed(builder, rng, fix, run_engine, lanes):
    """A row of the window is one word, padding included."""
    x = builder.input("x", (1, 1, 7, 6))
    weights = rng.normal(size=(5, 1, 3, 4))
    builder.conv(x, weights, padding=[(1, 1), (1, 2)], stride=2)
    graph = fix(builder.build())
    plan = planned(graph, 8, lanes)
    assert plan.design.placement.loadings[0].words == 7 * 3
    assert plan.spans[1].busy == 4 * 3 * 3 * -(-(-(-5 // lanes) * lanes) // 8)
    assert plan.macs == 4 * 3 * 5 * 12
    run_engine(plan, graph)


@pytest.mark.parametrize(
    ("image", "kernel", "stride", "padding", "lanes", "together", "ring_words"),
    covering(
        [
            ((8, 16), (8, 8), 8, [(0, 0), (0, 0)], 8, 2),
            ((8, 16), (8, 8), 8, [(0, 0), (0, 0)], 16, 4),
            ((5, 12), (3, 6), 4, [(1, 0), (2, 3)], 8, 2),
            ((7, 18), (2, 12), 6, [(0, 0), (0, 0)], 16, 3),
            ((4, 20), (2, 8), 4, [(0, 0), (4, 0)], 16, 4),
        ],
        [0, 64],
    ),
)
def test_pixels_of_patches_are_words_together(
    builder, rng, fix, run_engine, image, kernel, stride, padding, lanes, together, ring_words
):
    """Rows of their windows are longer than a word."""
    x = builder.input("x", (1, 3, *image))
    x = builder.conv(x, rng.normal(size=(5, 3, *kernel)), stride=stride, padding=padding)
    builder.conv(x, rng.normal(size=(4, 5, 1, 1)))
    graph = fix(builder.build())
    plan = planned(graph, 16, lanes, ring_words=ring_words)
    [loading] = plan.design.placement.loadings
    height, width = image
    assert loading.words == height * width // together
    run_engine(plan, graph, frames=3)


@pytest.mark.parametrize(
    ("channels", "image", "kernel", "stride", "padding", "lanes", "ring_words"),
    covering(
        [
            (3, (8, 8), (4, 4), 4, [(0, 0), (0, 0)], 4),
            (3, (8, 16), (8, 8), 8, [(0, 0), (0, 0)], 4),
            (3, (11, 24), (8, 8), 8, [(3, 2), (0, 0)], 8),
            (3, (16, 32), (16, 16), 16, [(0, 0), (0, 0)], 8),
            (3, (16, 32), (16, 16), 16, [(0, 0), (0, 0)], 16),
            (2, (3, 18), (3, 6), 6, [(0, 0), (0, 0)], 4),
            (6, (5, 12), (2, 4), 4, [(1, 0), (0, 0)], 8),
            (24, (4, 6), (2, 2), 2, [(0, 0), (0, 0)], 16),
            (3, (5, 20), (3, 8), 4, [(1, 1), (4, 4)], 4),
        ],
        [0, 128],
    ),
)
def test_rows_of_patches_are_whole_words(
    builder, rng, fix, run_engine, channels, image, kernel, stride, padding, lanes, ring_words
):
    """Words begin and end within pixels."""
    x = builder.input("x", (1, channels, *image))
    x = builder.conv(x, rng.normal(size=(5, channels, *kernel)), stride=stride, padding=padding)
    builder.conv(x, rng.normal(size=(4, 5, 1, 1)))
    graph = fix(builder.build(), symmetric=False)
    plan = planned(graph, 16, lanes, ring_words=ring_words, splits_pixels=True)
    [loading] = plan.design.placement.loadings
    height, width = image
    assert loading.words * lanes == height * width * channels
    first = plan.design.layers[0]
    assert plan.spans[1].busy == first.target.pixels * kernel[0] * kernel[1] * channels // lanes
    run_engine(plan, graph, frames=3)
    run_engine(plan, graph, stall=0.3)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_whole_pixels_that_fill_a_word_come_at_once(builder, rng, fix, run_engine, lanes):
    """Words of single codes would be as many."""
    x = builder.input("x", (1, 2, 3, 32))
    builder.conv(x, rng.normal(size=(5, 2, 3, 16)), stride=16)
    graph = fix(builder.build())
    plan = planned(graph, 16, lanes, splits_pixels=True)
    [loading] = plan.design.placement.loadings
    assert (loading.words, loading.codes) == (3 * 32 * 2 // lanes, 2)
    run_engine(plan, graph)


@pytest.mark.parametrize("ring_words", [0, 64])
def test_a_batch_of_patches(builder, rng, fix, run_engine, ring_words):
    x = builder.input("x", (1, 3, 8, 16))
    builder.conv(x, rng.normal(size=(7, 3, 8, 8)), stride=8)
    graph = fix(builder.build())
    plan = planned(graph, 8, 8, ring_words, batch=3, splits_pixels=True)
    assert plan.design.placement.loadings[0].words == 8 * 16 * 3 // 8
    run_engine(plan, graph)


def test_patches_whose_host_has_channels_last(builder, rng, fix, run_engine):
    """Codes come in the order of the words."""
    x = builder.input("x", (1, 8, 8, 3))
    x = builder.op("transpose", x, axes=[0, 3, 1, 2])
    builder.conv(x, rng.normal(size=(5, 3, 4, 4)), stride=4)
    graph = fix(builder.build())
    plan = planned(graph, splits_pixels=True)
    assert plan.design.placement.loadings[0].words == 8 * 8 * 3 // 4
    run_engine(plan, graph)


def test_words_across_pixels_are_fewer(builder, rng, fix):
    """Whole pixels left a quarter of every word empty; but a beat had one, and now has a code."""
    x = builder.input("x", (1, 3, 2, 32))
    builder.conv(x, rng.normal(size=(640, 3, 2, 16)), stride=16)
    graph = fix(builder.build())
    before, plan = (planned(graph, 16, 16, results=4, splits_pixels=x) for x in (False, True))
    [[new], [old]] = (x.design.placement.loadings for x in (plan, before))
    assert (new.words, old.words, old.codes) == (12, 16, 3)
    assert 4 * plan.spans[1].busy == 3 * before.spans[1].busy
    assert plan.interval < before.interval


def test_pixels_of_several_channels_are_packed(builder, rng, fix, run_engine):
    """A beat is a pixel, of which a word has several: padding, too."""
    x = builder.input("x", (1, 3, 5, 7))
    builder.conv(x, rng.normal(size=(5, 3, 3, 2)), padding=[(1, 1), (1, 2)], stride=2)
    graph = fix(builder.build(), symmetric=False)
    plan = planned(graph, 8, 8)
    [loading], [port] = plan.design.placement.loadings, plan.inputs
    assert (loading.words, loading.cycles, port.lanes) == (5 * 5, 5 * 10, 3)
    run_engine(plan, graph)
    run_engine(plan, graph, stall=0.3)


@pytest.mark.parametrize(
    ("channels", "size", "codes"), [(3, 3, 3), (6, 1, 1), (1, 1, 1), (8, 1, 4)]
)
def test_inputs_are_loaded_without_padding(builder, fix, run_engine, channels, size, codes, rng):
    """A convolution reads pixels whose first word is filled up with codes of the one before.

    Where no word has codes of two pixels, a beat brings all of it.
    """
    x = builder.input("x", (1, channels, 4, 3))
    builder.conv(x, rng.normal(size=(5, channels, size, size)), padding=size // 2)
    graph = fix(builder.build())
    plan = planned(graph)
    assert [loading.cycles for loading in plan.design.placement.loadings] == [
        12 * channels // codes
    ]
    assert [port.lanes for port in plan.inputs] == [codes]
    run_engine(plan, graph)


def test_an_input_that_is_added_stays_as_it_is(builder, fix, run_engine, rng):
    """The sum reads its words, too."""
    x = builder.input("x", (1, 1, 4, 5))
    y = builder.conv(x, rng.normal(size=(1, 1, 1, 3)), padding=[(0, 0), (1, 1)])
    builder.op("add", x, y)
    graph = fix(builder.build())
    run_engine(planned(graph), graph)


def test_an_input_whose_pixels_are_not_those_in_memory(builder, rng, fix, run_engine):
    """A beat of several codes would end within a row of the host's, of which each is a pixel."""
    x = builder.input("x", (1, 1, 5, 8))
    x = builder.op("transpose", x, axes=[0, 3, 2, 1])
    builder.conv(x, rng.normal(size=(4, 8, 1, 1)))
    graph = fix(builder.build())
    plan = planned(graph)
    assert [port.lanes for port in plan.inputs] == [1]
    run_engine(plan, graph)
