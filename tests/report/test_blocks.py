"""Layers as blocks: by numbers in names, in pictures and tables of long networks."""

import re

import pytest
from report_pages import picture, texts, words

from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording.blocks import MANY, blocks


@pytest.fixture
def encoder(deep):
    """Return a network of three blocks of nine layers, between a first one and two last ones."""
    for n, layer in enumerate(deep["layers"][:27]):
        layer["name"] = f"encoder/layers_{n // 9}/op_{n % 9}/Add"
    deep["layers"][13]["name"] = "Reshape"
    deep["layers"][0]["name"] = "patches"
    return deep


def named(report):
    return [(block.name, len(block.layers)) for block in blocks(from_json(report, Report).layers)]


def test_layers_between_equal_numbers_are_a_block(encoder):
    rest = [("", 1)] * 3
    three = [("encoder/layers_0", 8), ("encoder/layers_1", 9), ("encoder/layers_2", 9)]
    assert named(encoder) == [("", 1), *three, *rest]


def test_a_number_that_all_share_tells_no_blocks_apart(encoder):
    for layer in encoder["layers"]:
        layer["name"] = f"model_0/{layer['name']}"
    assert [name for name, count in named(encoder) if count > 1] == [
        f"model_0/encoder/layers_{n}" for n in range(3)
    ]


def test_short_networks_and_few_layers_are_shown_one_by_one(encoder):
    encoder["layers"] = encoder["layers"][:MANY]
    assert set(named(encoder)) == {("", 1)}
    for n, layer in enumerate(encoder["layers"] + encoder["layers"][:2]):
        layer["name"] = f"block_{n // 2}/{n}"
    assert set(named(encoder)) == {("", 1)}


@pytest.mark.parametrize("in_turn", [False, True])
def test_cycles_of_layers_in_turn_add_up(encoder, in_turn):
    encoder["in_turn"] = in_turn
    report = from_json(encoder, Report)
    block = blocks(report.layers)[2]
    cycles = [layer.cycles for layer in block.layers]
    multipliers = [layer.multipliers for layer in block.layers]
    assert block.cycles(report) == (sum(cycles) if in_turn else max(cycles))
    assert block.multipliers(report) == (max(multipliers) if in_turn else sum(multipliers))


def test_a_page_draws_blocks_and_folds_their_layers(render, encoder):
    encoder["noise"] = {layer["name"]: 30.0 + n for n, layer in enumerate(encoder["layers"])}
    page = render(encoder)
    _, boxes = picture(page)
    assert [texts(box)[0] for box in boxes] == [
        "patches", *(f"encoder/layers_{n}" for n in range(3)), "fc", "activation", "softmax",
    ]  # fmt: skip
    assert texts(boxes[2])[1:3] == ["9 layers", texts(boxes[2])[2]]
    pictures = re.findall(r'<svg class="picture".*?</svg>', page, re.S)
    assert [drawing.count("<title>") for drawing in pictures] == [7, 30]
    assert "All 30 layers" in words(page)
    folded = re.findall(r'<tbody class="block">.*?</tbody>', page, re.S)
    assert [part.count('scope="row"') for part in folded] == [8, 9, 9] * 2
    assert "at least 39.0" in words(folded[1])


def test_a_short_network_is_drawn_once(render, tiny):
    page = render(tiny)
    assert page.count('<svg class="picture"') == 1
    assert "block" not in re.findall(r'<tbody class="(\w+)"', page)
