"""A changed file of the package, source or data, is another package."""

from nnef_hw.system import sources


def test_data_is_part_of_the_digest(monkeypatch):
    seen = []
    monkeypatch.setattr(sources, "digest", lambda *files: seen.extend(files) or "")
    sources.package_digest.__wrapped__()
    names = {path.name for path in seen}
    # code, LUT weights, boards, pages, models of cells
    assert {"part.py", "ice40.json", "icebreaker.py", "build.html", "amd7_dsp.v"} <= names
    assert {".nnef", ".h", ".lark", ".template"} <= {path.suffix for path in seen}
    assert not any(path.suffix == ".pyc" for path in seen)
