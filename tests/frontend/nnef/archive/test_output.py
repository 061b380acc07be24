"""Models in folders: what is replaced, what is refused, what a broken write leaves."""

import re

import pytest

from nnef_hw.errors import OutputError, UsageError
from nnef_hw.frontend.nnef.archive.output import write_model

MEMBERS = {"graph.nnef": b"new", "a/w.dat": b"w"}


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", ["model", "model/", "model.v2/", "old.d"])
def test_names_of_folders(name, tmp_path):
    (tmp_path / "old.d").mkdir()
    write_model(f"{tmp_path}/{name}", MEMBERS)
    assert files(tmp_path / name) == MEMBERS


@pytest.mark.parametrize("name", ["model.xyz", "model.nnef", "model.tar.xz"])
def test_names_that_tell_nothing_are_refused(name, tmp_path):
    with pytest.raises(UsageError, match=re.escape(f"from {name!r} how to write the model; name")):
        write_model(tmp_path / name, MEMBERS)
    assert files(tmp_path) == {}


def test_model_in_a_folder_is_replaced(tmp_path):
    old = {
        "graph.nnef": b"old",
        "graph.quant": b"",
        "fixed.json": b"",
        "b/c.dat": b"",
        "w.dat": b"",
    }
    write_model(tmp_path / "m", old)
    write_model(tmp_path / "m", MEMBERS)
    assert files(tmp_path / "m") == MEMBERS
    assert not (tmp_path / "m" / "b").exists()


@pytest.mark.parametrize(
    "present",
    [["notes.txt"], ["graph.nnef", "samples.npz"], ["w.dat"], ["graph.nnef", "sub/train.py"]],
    ids=" ".join,
)
def test_folder_with_anything_else_is_left_alone(present, tmp_path):
    for name in present:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=rf"holds '{present[-1]}', which is not part of a model"):
        write_model(tmp_path, MEMBERS)
    assert files(tmp_path) == dict.fromkeys(present, b"mine")


def test_broken_write_leaves_no_model(tmp_path):
    write_model(tmp_path, {"graph.nnef": b"old", "a.dat": b"old"})
    (tmp_path / "b.dat").mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        write_model(tmp_path, {"graph.nnef": b"new", "a.dat": b"new", "b.dat": b"new"})
    assert "graph.nnef" not in files(tmp_path)
    assert not [name for name in files(tmp_path) if name.endswith(".partial")]


def test_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/m: cannot be written: .*; choose another place"):
        write_model(tmp_path / "file" / "m", MEMBERS)
    with pytest.raises(OutputError, match="cannot be written"):
        write_model(tmp_path / "file", MEMBERS)
