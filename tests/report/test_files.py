import json
import stat
from dataclasses import replace

import pytest

from nnef_hw.errors import OutputError
from nnef_hw.report.files import write_json
from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report


@pytest.fixture
def report(tiny):
    return from_json(tiny, Report)


def test_json_is_sorted_ends_its_line_and_reads_back(tmp_path, report):
    path = tmp_path / "deep" / "report.json"
    write_json(report, path)
    text = path.read_text()
    assert from_json(json.loads(text), Report) == report
    assert text.endswith("}\n")
    keys = list(json.loads(text))
    assert keys == sorted(keys)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_order_of_keys_does_not_show(tmp_path, report):
    write_json(report, tmp_path / "a.json")
    noise = dict(reversed(report.noise.items()))
    write_json(replace(report, noise=noise), tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object()], ids=["nan", "inf", "object"]
)
def test_what_json_cannot_hold_leaves_the_old_file(tmp_path, report, value):
    path = tmp_path / "report.json"
    write_json(report, path)
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError)):
        write_json(replace(report, macs=value), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_failed_replacement_leaves_no_partial_file(tmp_path, report):
    target = tmp_path / "report.json"
    (target / "occupied").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"report\.json: cannot be written: Is a directory"):
        write_json(report, target)
    assert list(tmp_path.iterdir()) == [target]
