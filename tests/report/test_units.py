from types import SimpleNamespace

import pytest

from nnef_hw.report.model.device import ResourceUse
from nnef_hw.report.model.layers import LayerSource
from nnef_hw.report.wording import units


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "\N{EN DASH}"), (0.0, "0.0%"), (1.0, "100.0%"), (0.99999, "99.9%"), (0.895, "89.5%"),
     (0.0002, "<0.1%"), (1.09, "109.0%"), (float("inf"), "over")],
    ids=repr,
)  # fmt: skip
def test_percent_never_rounds_to_all_or_nothing(value, text):
    assert units.percent(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "\N{EN DASH}"), (0, "0 s"), (4e-8, "40 ns"), (1.25e-6, "1.25 \N{MICRO SIGN}s"),
     (0.0017240, "1.72 ms"), (0.9994, "999 ms"), (0.9996, "1 s"), (59.94, "59.9 s"),
     (71.5, "1 min 12 s")],
    ids=repr,
)  # fmt: skip
def test_duration_takes_the_unit_that_fits(seconds, text):
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(14.62, "14.6"), (799.2, "799"), (6790.4, "6,790"), (0.5, "0.5")], ids=repr
)
def test_rate_has_three_digits(value, text):
    assert units.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(24.0, "24 MHz"), (27.314, "27.31 MHz"), (100.0, "100 MHz")], ids=repr
)
def test_clock_keeps_its_zeros(value, text):
    assert units.megahertz(value) == text


@pytest.mark.parametrize("limit", [8, 9, 16])
def test_shortened_names_fit_and_differ(limit):
    names = [f"net/body/unit{i}/conv/out" for i in range(10)]
    short = units.shorten(names, limit)
    assert len(set(short)) == 10
    assert max(map(units.columns, short)) <= limit


def test_names_of_a_block_keep_their_ends():
    names = ["encoder_0_attn_MatMul_1", "encoder_0_attn_Softmax", "encoder_0_norm_Norm"]
    assert units.shorten(names, 12) == ["…tn_MatMul_1", "…ttn_Softmax", "…0_norm_Norm"]


def test_names_that_fit_stay():
    assert units.shorten(["a/b", "c/d/e/f/g/h"], 8) == ["a/b", "c/d/…g/h"]
    assert units.shorten([], 8) == []


def test_one_name_within_another_stays_legible():
    short = units.shorten(["network/block/", "network/block/b", "network/block/block/"], 10)
    assert len(set(short)) == 3
    assert all(x.strip("…") for x in short)


def test_wide_letters_take_two_columns():
    assert units.columns("層a") == 3
    assert units.columns(units.middle("層" * 20, 9)) <= 9


@pytest.mark.parametrize("name", ["a", "a/b.c", "/a//b/", "::", ""])
def test_pieces_make_up_the_name(name):
    assert "".join(units.pieces(name)) == name


def test_resource_that_the_device_lacks_is_over():
    [row] = units.resource_rows({"spram": ResourceUse(None, available=0, estimated=2)})
    assert row.share == float("inf")


def test_use_counts_before_the_estimate_even_if_it_is_zero():
    [row] = units.resource_rows({"dsp": ResourceUse(0, available=8, estimated=4)})
    assert row.share == 0


@pytest.mark.parametrize(
    ("folding", "text"),
    [((16, 6, 1), f"16 rows {units.TIMES} 6 lanes"), ((1, 1, 40), "40 taps"),
     ((1, 4, 9), f"4 lanes {units.TIMES} 9 taps"), ((1, 1, 1), "1 row")],
    ids=repr,
)  # fmt: skip
def test_folding_names_what_is_more_than_one(folding, text):
    assert (
        units.folding(SimpleNamespace(**dict(zip(("rows", "lanes", "taps"), folding, strict=True))))
        == text
    )


def reading(*sources):
    """Return the third of three layers, which reads tensors with FIFOs, behind the others."""
    layers = [SimpleNamespace(name=name, tensor=name.lower(), sources=()) for name in "ABC"]
    layers[2].sources = tuple(LayerSource(tensor, fifo, codes=1) for tensor, fifo in sources)
    return layers


@pytest.mark.parametrize(
    ("sources", "text"),
    [([("b", 0)], ""), ([("a", 0)], "A"), ([("b", 8)], "B (FIFO of 8)"),
     ([("b", 0), ("a", 1200)], "B, A (FIFO of 1,200)"), ([("image", 0)], "image")],
    ids=repr,
)  # fmt: skip
def test_reads_are_said_unless_it_is_the_layer_before(sources, text):
    layers = reading(*sources)
    assert units.reads(layers, layers[2]) == text


def test_a_first_layer_may_read_nothing():
    """It writes constants, as a shared engine's may."""
    layers = reading(("b", 0))
    assert units.reads(layers, layers[0]) == ""
