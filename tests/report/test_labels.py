"""Short names of layers, and where reports have them."""

import re

import pytest

from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.html import write_html
from nnef_hw.report.wording.labels import short_names, with_short_names


@pytest.mark.parametrize(
    ("names", "short"),
    [
        # what torch.onnx.export makes, as it is and as an identifier
        (["/conv1/Conv_output_0", "/fc/Gemm_output_0", "y"], ["conv1/Conv", "fc/Gemm", "y"]),
        (["/m/a/Conv_output_0", "/m/a/Relu_output_0"], ["Conv", "Relu"]),
        (["/m/a/Conv_output_0", "/m/b/Relu_output_0", "y"], ["a/Conv", "b/Relu", "y"]),
        # tensors that passes made of results; of several of one result each keeps its end
        (["Conv_output_0_image", "Relu_output_0_folded", "y"], ["Conv", "Relu", "y"]),
        (
            ["Gather_output_0_image", "Gather_output_0_in_order", "Gather_1_output_0_in_order"],
            ["Gather_image", "Gather_in_order", "Gather_1"],
        ),
        (
            ["_m_block_block_1_Conv_output_0", "m_block_block_2_Conv_output_0", "m_fc_Gemm"],
            ["block_1_Conv", "block_2_Conv", "fc_Gemm"],
        ),
        (["/block/block.1/Conv_output_0", "/fc/Gemm"], ["block.1/Conv", "fc/Gemm"]),
        # TensorFlow
        (["net/f/conv/BiasAdd:0", "net/f/fc/BiasAdd:0"], ["conv/BiasAdd", "fc/BiasAdd"]),
        # names that people give
        (["relu1", "pool1", "output_conv"], ["relu1", "pool1", "output_conv"]),
        (["conv_1", "conv_2", "relu_a", "relu_b"], ["conv_1", "conv_2", "relu_a", "relu_b"]),
        (["only/one"], ["only/one"]),
        (["_output_0", "/", ""], ["output_0", "/", ""]),
        # those that would be equal stay
        (["/a/Relu_output_0", "/a/Relu", "/b"], ["/a/Relu_output_0", "/a/Relu", "b"]),
    ],
)
def test_short_names(names, short):
    assert list(short_names(names).values()) == short


def long_names(report):
    """Return a report as of an exported model, and the names by the short ones."""
    full = {layer["name"]: f"/model/{layer['name']}/Op_output_0" for layer in report["layers"]}
    layers = [{**layer, "name": full[layer["name"]]} for layer in report["layers"]]
    changes = [{**x, "name": full[x["name"]]} for x in report["headroom"]["changes"]]
    limits = [{"name": full["conv1"], "cycles": 28224, "codes": 28224}]
    parts = [{"name": f"{full['conv1']}, array", "ns": 1.5}, {"name": full["pool1"], "ns": 1.0},
             {"name": "host link", "ns": 0.5}]  # fmt: skip
    return report | {
        "layers": layers,
        "headroom": {**report["headroom"], "changes": changes, "limits": limits},
        "noise": dict.fromkeys(full.values(), 30.0),
        "longest_path": {"ns": 3.0, "parts": parts},
        "placed": {"link": {"lut": 5}, "shared": None, "layers": {full["conv1"]: {"lut": 7}}},
        "memory_map": {
            "steps": ["input", full["conv1"]], "bytes": 64, "bank_bytes": 0,
            "tensors": [
                {"name": full["conv1"], "begin": 0, "bytes": 64, "first": 0, "last": 1}
            ],
        },
    }  # fmt: skip


def test_every_name_of_a_page_is_the_short_one(tiny, timeline_of, tmp_path):
    report = long_names(tiny)
    write_html(from_json(report, Report), timeline_of(report), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    shown = re.sub(r"<title>.*?</title>|<pre>.*?</pre>| title=\"[^\"]*\"", "", page, flags=re.S)
    assert "_output_0" not in shown
    assert "/model/" not in shown
    assert 'title="/model/conv1/Op_output_0"' in page
    assert "<title>/model/conv1/Op_output_0</title>" in page
    assert "conv1/Op, array" in shown
    assert "Names leave out" in page


def test_every_part_of_a_report_has_the_short_names(tiny):
    report, full_names = with_short_names(from_json(long_names(tiny), Report))
    names = [layer.name for layer in report.layers]
    assert names[0] == "conv1/Op"
    assert full_names["conv1/Op"] == "/model/conv1/Op_output_0"
    assert list(report.noise) == names
    assert report.memory_map.steps == ("input", "conv1/Op")
    assert report.placed.layers == {"conv1/Op": {"lut": 7}}
    named = (*report.memory_map.tensors, *report.headroom.limits, *report.headroom.changes)
    assert {row.name for row in named} == {"conv1/Op", "conv2/Op"}


def test_short_names_leave_everything_else(tiny):
    report = from_json(tiny, Report)
    short, full_names = with_short_names(report)
    assert short == report
    assert full_names == {layer.name: layer.name for layer in report.layers}
