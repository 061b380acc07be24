import gzip
import io
import re
import tarfile
import tracemalloc

import numpy as np
import pytest

from nnef_hw.errors import ModelError, OutputError, UnsupportedError, UsageError
from nnef_hw.frontend.nnef.archive import archive as archive_module
from nnef_hw.frontend.nnef.archive.archive import open_archive, write_archive

GRAPH = ("graph.nnef", b"version 1.0;")
DATA = ("w.dat", b"abc")


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("name", ["model.nnef.tgz", "model.tar", "strange.name", "model.nnef"])
def test_contents_not_names_tell_the_format(write_tar, mode, name):
    archive = open_archive(write_tar(DATA, GRAPH, name=name, mode=mode))

    assert archive.read("graph.nnef") == GRAPH[1]
    assert archive.read("w.dat") == b"abc"
    assert str(archive.location("w.dat")).endswith(f"{name}/w.dat")


@pytest.mark.parametrize("prefix", ["./", "model/", "./a/b/"])
def test_members_may_stand_in_a_folder(write_tar, prefix):
    folder = special("model", tarfile.DIRTYPE)
    members = [(prefix + name, data) for name, data in (DATA, GRAPH)]

    assert open_archive(write_tar(folder, *members)).read("w.dat") == b"abc"


def test_folder_and_graph_file_alone(tmp_path):
    (tmp_path / "graph.nnef").write_bytes(b"one")
    (tmp_path / "other.nnef").write_bytes(b"two")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "w.dat").write_bytes(b"abc")

    assert open_archive(tmp_path).read("a/w.dat") == b"abc"
    other = open_archive(tmp_path / "other.nnef")
    assert other.read(other.graph_file) == b"two"
    assert other.read("a/w.dat") == b"abc"


@pytest.mark.parametrize("name", ["../w.dat", "/etc/passwd", "a/../../w.dat"])
def test_a_folder_gives_nothing_from_outside(tmp_path, name):
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "graph.nnef").write_bytes(b"")
    (tmp_path / "w.dat").write_bytes(b"abc")

    with pytest.raises(ModelError, match="the model has no file"):
        open_archive(inside).read(name)


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        (("/etc/passwd", b""), "a path outside the archive"),
        (("../w.dat", b""), "a path outside the archive"),
        (("a/../../w.dat", b""), "a path outside the archive"),
        ((r"a\..\w.dat", b""), "a path outside the archive"),
        (special("w.dat", tarfile.SYMTYPE, "/etc/passwd"), "a link"),
        (special("w.dat", tarfile.LNKTYPE, "graph.nnef"), "a link"),
        (special("w.dat", tarfile.CHRTYPE), "a special file"),
        (special("w.dat", tarfile.FIFOTYPE), "a special file"),
    ],
    ids=["absolute", "parent", "hidden parent", "backslash", "symlink", "hard link", "dev", "fifo"],
)
def test_hostile_archives_are_refused(write_tar, member, kind):
    with pytest.raises(ModelError, match=f"is {kind}, which NNEF models never hold"):
        open_archive(write_tar(GRAPH, member))


@pytest.mark.parametrize("hidden", ["._graph.nnef", "./.cache/graph.nnef", "a/.git/w.dat"])
def test_hidden_members_are_ignored(write_tar, hidden):
    archive = open_archive(write_tar((hidden, b"junk"), GRAPH, DATA))

    assert archive.read("graph.nnef") == GRAPH[1]
    assert hidden.removeprefix("./") not in archive


def test_graphs_in_subfolders_belong_to_submodels(write_tar):
    below = [(f"net/{name}", data) for name, data in (GRAPH, DATA, ("part/graph.nnef", b"other"))]
    archive = open_archive(write_tar(*below))

    assert archive.read("graph.nnef") == GRAPH[1]
    assert archive.read("part/graph.nnef") == b"other"


def test_names_lists_files_beside_the_graph(tmp_path, write_tar):
    members = [GRAPH, DATA, ("b.dat", b""), ("a/c.dat", b"")]
    for name, data in members:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)

    assert open_archive(tmp_path).names(".dat") == ["b.dat", "w.dat"]
    assert open_archive(write_tar(*members)).names(".dat") == ["b.dat", "w.dat"]


def test_names_that_differ_in_case_only_are_refused(write_tar):
    with pytest.raises(ModelError, match=re.escape("holds 'w.dat' and 'W.DAT', which NNEF takes")):
        open_archive(write_tar(GRAPH, DATA, ("W.DAT", b"")))


def test_many_members_are_refused(write_tar, monkeypatch):
    monkeypatch.setattr(archive_module, "_MAX_MEMBERS", 3)
    members = [GRAPH, *((f"{i}.dat", b"") for i in range(3))]

    with pytest.raises(ModelError, match="the archive has more than 3 members"):
        open_archive(write_tar(*members))


def test_endless_long_names_are_refused(tmp_path):
    info = tarfile.TarInfo("x" * 200)
    block = info.tobuf(tarfile.GNU_FORMAT)[:1024]
    (tmp_path / "m.tar").write_bytes(block * 3000)

    with pytest.raises(ModelError, match="the tar archive is damaged"):
        open_archive(tmp_path / "m.tar")


@pytest.mark.parametrize("form", ["folder", "m.tar", "m.tgz"])
def test_large_members_outlive_the_archive(tmp_path, write_tar, monkeypatch, form):
    monkeypatch.setattr(archive_module, "_MAPPED_BYTES", 1000)
    large = ("w.dat", bytes(range(256)) * 100)
    if form == "folder":
        for name, data in (GRAPH, large):
            (tmp_path / name).write_bytes(data)
        view = open_archive(tmp_path).view("w.dat")
    else:
        path = write_tar(GRAPH, large, name=form, mode="w:gz" if form == "m.tgz" else "w")
        view = open_archive(path).view("w.dat")
        path.unlink()

    assert view.readonly or form == "m.tgz"
    assert view == large[1]


def test_gzip_files_behind_each_other_are_one_archive(write_tar):
    path = write_tar(DATA, GRAPH)
    data = path.read_bytes()
    path.write_bytes(gzip.compress(data[:700]) + gzip.compress(data[700:]) + bytes(100))

    assert open_archive(path).read("w.dat") == b"abc"


def test_bombs_are_refused_while_they_unfold(write_tar, monkeypatch):
    monkeypatch.setattr(archive_module, "_FREE_BYTES", 1 << 20)
    path = write_tar(GRAPH, ("w.dat", bytes(200 << 20)), mode="w:gz")
    tracemalloc.start()
    with pytest.raises(ModelError, match="unpacks to more than 100 times its size"):
        open_archive(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 180 << 20


def test_too_large_archives_are_refused_while_they_unfold(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_module, "MAX_ARCHIVE_BYTES", 1 << 20)
    (tmp_path / "bomb.tgz").write_bytes(gzip.compress(bytes(3 << 20)))

    with pytest.raises(UnsupportedError, match="the model is larger than 1 MiB"):
        open_archive(tmp_path / "bomb.tgz")


@pytest.mark.parametrize("size", [1 << 40, -1], ids=["huge", "negative"])
def test_lying_sizes_are_refused(tmp_path, size):
    info = tarfile.TarInfo("graph.nnef")
    info.size = size
    (tmp_path / "m.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))

    with pytest.raises(ModelError, match=r"truncated|damaged|no NNEF model"):
        open_archive(tmp_path / "m.tar")


def test_a_name_twice_is_refused(write_tar):
    with pytest.raises(ModelError, match=re.escape("the archive holds 'w.dat' twice")):
        open_archive(write_tar(GRAPH, DATA, DATA))


@pytest.mark.parametrize("kept", [100, 511, 700, 1024, 1030, 1500, 1540])
def test_truncated_tars_are_refused(write_tar, kept):
    path = write_tar(GRAPH, DATA)
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(ModelError, match=r"truncated|no NNEF model"):
        open_archive(path)


def test_truncated_and_damaged_gzip_is_refused(write_tar):
    path = write_tar(GRAPH, DATA, mode="w:gz")
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(ModelError, match="the gzip file is truncated; get it again"):
        open_archive(path)

    path.write_bytes(data[:-8] + bytes(8))
    with pytest.raises(ModelError, match="the gzip file is damaged"):
        open_archive(path)


@pytest.mark.parametrize("data", [b"", b"hello", bytes(2000)], ids=["empty", "text", "zeros"])
def test_other_files_are_refused(tmp_path, data):
    (tmp_path / "model.bin").write_bytes(data)

    with pytest.raises(ModelError, match=r"is not an NNEF model|has no graph\.nnef"):
        open_archive(tmp_path / "model.bin")


def test_missing_files(tmp_path, write_tar):
    with pytest.raises(UsageError, match=re.escape("none.tgz does not exist; check the")) as info:
        open_archive(tmp_path / "none.tgz")
    assert info.value.exit_status == 2
    with pytest.raises(ModelError, match=re.escape("the model has no graph.nnef")):
        open_archive(write_tar(DATA))
    with pytest.raises(ModelError, match=re.escape("the model has no graph.nnef")):
        open_archive(tmp_path)


def test_written_archives_are_the_same_bytes_in_any_order(tmp_path):
    members = {"b.dat": b"1", "a.dat": b"2", "graph.nnef": b"3", "x" * 300: b"long name"}
    write_archive(tmp_path / "one.nnef.tgz", members)
    write_archive(tmp_path / "two.nnef.tgz", dict(reversed(members.items())))

    data = (tmp_path / "one.nnef.tgz").read_bytes()
    assert data == (tmp_path / "two.nnef.tgz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == sorted(members)
        assert {info.mtime for info in tar} == {0}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.nnef.tgz", "two.nnef.tgz"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.tar"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    match = re.escape("m.tar: cannot be written: No space left on device; free some space")
    with pytest.raises(OutputError, match=match):
        write_archive(path, {"graph.nnef": b"new"})
    assert [(item.name, item.read_bytes()) for item in tmp_path.iterdir()] == [("m.tar", b"old")]


def test_unwritable_places_and_unknown_names(tmp_path):
    with pytest.raises(OutputError, match="No such file or directory"):
        write_archive(tmp_path / "none" / "m.tgz", {})
    with pytest.raises(UsageError, match=re.escape("name it NAME.nnef.tgz")):
        write_archive(tmp_path / "m.zip", {})


def test_random_bytes_never_crash(tmp_path, rng, write_tar):
    good = write_tar(GRAPH, DATA).read_bytes()
    path = tmp_path / "fuzz.tar"
    for _ in range(200):
        data = bytearray(good)
        for place in rng.integers(0, len(good), 3):
            data[place] = rng.integers(256)
        path.write_bytes(np.asarray(data, np.uint8).tobytes())
        try:
            open_archive(path)
        except ModelError:
            continue


def test_a_long_name_cut_behind_a_slash_is_a_file(tmp_path):
    """GNU tar cuts a name of over 100 letters in the header that follows the whole name."""
    name = f"{'a' * 99}/{'b' * 8}.dat"
    path = tmp_path / "model.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        for member, data in ((name, b"x" * 136), GRAPH):
            info = tarfile.TarInfo(member)
            info.size, info.type = len(data), tarfile.AREGTYPE
            tar.addfile(info, io.BytesIO(data))
    archive = open_archive(path)
    assert archive.read(name) == b"x" * 136
    assert archive.read("graph.nnef") == GRAPH[1]
