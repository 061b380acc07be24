import json
import multiprocessing
import os
import shutil
import time
from pathlib import Path

import pytest

from nnef_hw.flow.cache import cached_step, discard_steps, finished_step
from nnef_hw.system.files import SEAL, digest, locked, publish_directory, write_atomic


def produce(scratch):
    (scratch / "rtl").mkdir()
    (scratch / "rtl" / "top.v").write_text("module top;")
    return {"cells": [1, 2]}


def unwanted(scratch):
    raise AssertionError("the step ran again")


def test_digest_sees_content_and_borders(tmp_path):
    (tmp_path / "file").write_text("ab")
    assert digest("a", "b") != digest("ab") != digest("ab", "")
    assert digest(tmp_path / "file") == digest("ab") == digest(b"ab")


def test_step_runs_once(tmp_path):
    assert cached_step(tmp_path, "emit", "key", produce) == ({"cells": [1, 2]}, True)
    assert cached_step(tmp_path, "emit", "key", unwanted) == ({"cells": [1, 2]}, False)
    assert (tmp_path / "rtl" / "top.v").read_text() == "module top;"


def test_step_runs_again_for_another_key(tmp_path):
    cached_step(tmp_path, "emit", "key", produce)
    with pytest.raises(AssertionError, match="ran again"):
        cached_step(tmp_path, "emit", "other", unwanted)


@pytest.mark.parametrize("damage", ["removed", "edited", "record"])
def test_damaged_step_runs_again(damage, tmp_path):
    cached_step(tmp_path, "emit", "key", produce)
    if damage == "removed":
        (tmp_path / "rtl" / "top.v").unlink()
    elif damage == "edited":
        (tmp_path / "rtl" / "top.v").write_text("module mine;")
    else:
        (tmp_path / ".steps" / "emit.json").write_text('{"key": "ke')
    assert cached_step(tmp_path, "emit", "key", produce)[1]
    assert (tmp_path / "rtl" / "top.v").read_text() == "module top;"


def test_failed_step_changes_nothing(tmp_path):
    cached_step(tmp_path, "emit", "key", produce)

    def fail(scratch):
        (scratch / "rtl").mkdir()
        (scratch / "rtl" / "top.v").write_text("module half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_step(tmp_path, "emit", "other", fail)
    assert cached_step(tmp_path, "emit", "key", unwanted)[1] is False
    assert [path.name for path in (tmp_path / ".steps").iterdir()] == ["emit.json"]


def test_interrupted_move_is_not_trusted(tmp_path, monkeypatch):
    cached_step(tmp_path, "emit", "key", produce)

    moments = iter([write_atomic, None])

    def interrupt(path, content):
        write = next(moments)
        if write is None:
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr("nnef_hw.flow.cache.write_atomic", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cached_step(tmp_path, "emit", "other", produce)
    monkeypatch.undo()
    for key in ("key", "other"):
        assert cached_step(tmp_path, "emit", key, produce)[1]


def test_files_of_an_interrupted_step_are_known(tmp_path, monkeypatch):
    """A bitstream that was moved, and not recorded, must not stay beside other Verilog."""
    cached_step(tmp_path, "emit", "key", lambda folder: (folder / "old").write_text("1"))
    (tmp_path / "b").write_text("of a step whose record is lost")
    replace, moved = Path.replace, []

    def interrupt(path, target):
        if target.name in {"a", "b"}:
            moved.append(target.name)
            if len(moved) == 2:
                raise KeyboardInterrupt
        return replace(path, target)

    def both(folder):
        (folder / "a").write_text("1")
        (folder / "b").write_text("1")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cached_step(tmp_path, "emit", "other", both)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".steps", "a"]
    assert finished_step(tmp_path, "emit") is None
    discard_steps(tmp_path, ["emit"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".steps"]


@pytest.mark.parametrize("key", ["key", "files", "value"])
def test_records_are_sealed(key, tmp_path):
    cached_step(tmp_path, "emit", "key", produce)
    path = tmp_path / ".steps" / "emit.json"
    record = json.loads(path.read_text())
    other = {"key": "key ", "files": {}, "value": {"cells": [1, 3]}}[key]
    path.write_text(json.dumps({**record, key: other}))
    assert finished_step(tmp_path, "emit") is None
    assert cached_step(tmp_path, "emit", "key", produce) == ({"cells": [1, 2]}, True)


def test_files_no_longer_made_disappear(tmp_path):
    cached_step(tmp_path, "emit", "key", produce)
    cached_step(tmp_path, "emit", "other", lambda scratch: None)
    assert not (tmp_path / "rtl" / "top.v").exists()


def test_record_holds_relative_names(tmp_path):
    cached_step(tmp_path, "emit", "key", produce)
    record = json.loads((tmp_path / ".steps" / "emit.json").read_text())
    assert list(record["files"]) == ["rtl/top.v"]


def compete(target, log):
    def fill(folder):
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        (folder / "half").write_text("1")
        time.sleep(0.2)
        (folder / "whole").write_text("2")

    publish_directory(target, fill)
    if sorted(path.name for path in target.iterdir()) != [SEAL, "half", "whole"]:
        raise RuntimeError("incomplete folder")


def test_competing_processes_share_one_result(tmp_path):
    context = multiprocessing.get_context("spawn")
    arguments = (tmp_path / "cache" / "key", tmp_path / "log")
    workers = [context.Process(target=compete, args=arguments) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len((tmp_path / "log").read_text().splitlines()) == 1


@pytest.mark.parametrize("name", ["half", "whole", SEAL])
@pytest.mark.parametrize("damage", ["removed", "edited", "cut"])
def test_damaged_folders_are_made_again(name, damage, tmp_path):
    made = []

    def fill(folder):
        made.append(folder)
        (folder / "inner").mkdir()
        (folder / "inner" / "half").write_text("1")
        (folder / "whole").write_text("22")

    target = publish_directory(tmp_path / "key", fill)
    file = next(target.rglob(name))
    text = file.read_text()
    if damage == "removed":
        file.unlink()
    else:
        # Of the same length, as a disk would do it.
        file.write_text(text[: len(text) // 2] if damage == "cut" else text[:-1] + "}")
    publish_directory(target, fill)
    publish_directory(target, fill)
    assert len(made) == 2
    assert {path.name for path in target.rglob("*")} == {"inner", "half", "whole", SEAL}
    assert file.read_text() == text


def test_a_lock_that_was_removed_keeps_out_too(tmp_path):
    """Who waits for it while its folder is removed gets the lock of the next one."""
    fcntl = pytest.importorskip("fcntl")
    path, waited = tmp_path / "steps" / "lock", []

    def waiting():
        waited.append(True)
        shutil.rmtree(path.parent)
        first.close()

    path.parent.mkdir()
    first = path.open("w")
    fcntl.flock(first, fcntl.LOCK_EX)
    with locked(path, waiting), path.open() as other:
        assert waited
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_failure_to_produce_leaves_nothing(tmp_path):
    def fail(folder):
        (folder / "half").write_text("1")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        publish_directory(tmp_path / "key", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]


def test_abandoned_folders_are_removed_and_others_kept(tmp_path):
    """Of the wanted folder and of one that nobody locks; not of one that is being made."""
    folders = {}
    for name in ("wanted", "abandoned", "living"):
        (tmp_path / f"{name}.lock").touch()
        folders[name] = tmp_path / f".{name}.abc"
        folders[name].mkdir()
        (folders[name] / "half").write_text("1")
    with locked(tmp_path / "living.lock"):
        publish_directory(tmp_path / "wanted", produce)
        assert [name for name, path in folders.items() if path.exists()] == ["living"]
    publish_directory(tmp_path / "other", produce)
    assert not folders["living"].exists()
