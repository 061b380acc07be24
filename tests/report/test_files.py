import json
import stat

import pytest

from nnef_hw.errors import OutputError
from nnef_hw.report.files import write_json


def test_json_is_sorted_ends_its_line_and_reads_back(tmp_path, tiny):
    path = tmp_path / "deep" / "report.json"
    write_json(tiny, path)
    text = path.read_text()
    assert json.loads(text) == tiny
    assert text.endswith("}\n")
    keys = list(json.loads(text))
    assert keys == sorted(keys)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_order_of_keys_does_not_show(tmp_path, tiny):
    write_json(tiny, tmp_path / "a.json")
    write_json(dict(reversed(tiny.items())), tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), object()], ids=["nan", "inf", "object"]
)
def test_what_json_cannot_hold_leaves_the_old_file(tmp_path, tiny, value):
    path = tmp_path / "report.json"
    write_json(tiny, path)
    with pytest.raises((ValueError, TypeError)):
        write_json(tiny | {"macs": value}, path)
    assert json.loads(path.read_text()) == tiny
    assert list(tmp_path.iterdir()) == [path]


def test_failed_replacement_leaves_no_partial_file(tmp_path, tiny):
    target = tmp_path / "report.json"
    (target / "occupied").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"report\.json: cannot be written: Is a directory"):
        write_json(tiny, target)
    assert list(tmp_path.iterdir()) == [target]
