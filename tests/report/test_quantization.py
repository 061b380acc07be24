"""What quantization costs, layer by layer."""

import dataclasses
from html.parser import HTMLParser

import numpy as np
import pytest

from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.report.model.conversion import to_json
from nnef_hw.report.pages.quantization_html import write_quantization_html
from nnef_hw.report.quantization import describe_quantization
from nnef_hw.samples.samples import Samples
from nnef_hw.testing import GraphBuilder


def network(rng):
    builder = GraphBuilder("a<b")
    builder.input("x", (1, 2, 6, 6))
    y = builder.conv("x", rng.standard_normal((4, 2, 3, 3)) / 4, 0.0, name="c")
    y = builder.reshape(builder.op("relu", y, name="r"), [1, 64])
    builder.op("linear", y, rng.standard_normal((3, 64)) / 8, 0.0, name="y")
    return simplify(builder.build())


@pytest.fixture
def described(rng):
    graph = network(rng)
    x = rng.standard_normal((60, 2, 6, 6))
    fixed = quantize(graph, {"x": x[:30]}, Scheme(4, 6, calibration="minmax", headroom=0.0))
    samples = Samples({"x": x[30:] * 2}, np.repeat([0, 1, 2], [5, 7, 18]))
    return describe_quantization(graph, fixed, samples), fixed


def test_layers_say_what_the_real_values_and_their_codes_are(described):
    rows = {row.name: row for row in described[0].layers}
    qtype = described[1].tensor("r").qtype
    row = rows["r"]
    assert (row.bits, row.weight_bits) == (6, 4)
    assert 12 <= row.mult_bits <= 16
    assert (row.scale, row.zero_point) == (qtype.scale, 0)
    assert row.range == (0.0, pytest.approx(63 * qtype.scale))
    assert row.used[0] == 0.0
    assert row.used[1] > row.range[1]
    assert 0 < row.clipped < 0.1
    assert 5 < row.sqnr_db < 30
    assert 0.9 < row.cosine < 1
    bars = row.histogram
    assert sum(bars.counts) == 30 * 64
    assert (bars.lo, bars.hi) == (0.0, row.used[1])
    assert rows["x"].op == "input"
    assert row.location == "a<b.nnef:1"


def test_confusion_counts_labels_by_row(described):
    report = described[0]
    table = np.array(report.confusion)
    assert table.shape == (3, 3)
    assert table.sum(axis=1).tolist() == [5, 7, 18]
    assert report.samples == 30
    assert np.trace(table) / 30 == pytest.approx(report.accuracy.fixed)


def test_what_the_author_quantized_is_said(rng):
    graph = network(rng)
    quant = Quantization("linear_quantize", {"min": 0.0, "max": 3.0, "bits": 8})
    tensors = {**graph.tensors, "r": dataclasses.replace(graph.tensor("r"), quant=quant)}
    graph = graph.replaced(tensors=tensors)
    x = {"x": rng.standard_normal((20, 2, 6, 6))}
    report = describe_quantization(graph, quantize(graph, x), Samples(x))
    assert {row.name for row in report.layers if row.given} == {"r"}
    assert not any(row.weights_given for row in report.layers)


def test_only_formats_are_described_without_samples(rng):
    graph = network(rng)
    fixed = quantize(graph, {"x": rng.standard_normal((9, 2, 6, 6))})
    report = describe_quantization(graph, fixed, None)
    assert report.samples == 0
    assert report.weight_bytes == 4 * 18 + 3 * 64
    assert report.layers[0].sqnr_db is None
    assert report.layers[0].bits == 8


def test_labels_that_are_numbers_have_no_confusion(rng):
    graph = network(rng)
    x = {"x": rng.standard_normal((20, 2, 6, 6))}
    fixed = quantize(graph, x)
    report = describe_quantization(graph, fixed, Samples(x, rng.standard_normal((20, 3))))
    assert report.confusion is None
    assert report.accuracy.metric == "mae"


VOID = {"meta", "wbr", "br", "rect"}


class _Page(HTMLParser):
    """Collects tags and text; every tag that is opened must be closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_page_is_complete_and_needs_nothing_else(described, tmp_path):
    path = tmp_path / "folder" / "page.html"
    write_quantization_html(described[0], path)
    page = _Page()
    page.feed(path.read_text())
    assert page.open == []
    assert not {"script", "link", "img"} & {tag for tag, _ in page.seen}
    assert sum(tag == "svg" for tag, _ in page.seen) == len(described[0].layers)
    text = " ".join(page.text)
    assert "a<b, quantized" in " ".join(text.split())
    assert "Confusion" in text
    assert to_json(described[0])


def test_values_that_are_all_the_same_have_a_page(tmp_path):
    builder = GraphBuilder()
    builder.input("x", (1, 2))
    builder.op("linear", "x", np.zeros((1, 2)), 0.0, name="y")
    graph = simplify(builder.build())
    x = {"x": np.zeros((5, 2))}
    report = describe_quantization(graph, quantize(graph, x), Samples(x))
    assert report.layers[0].sqnr_db is None
    write_quantization_html(report, tmp_path / "page.html")
