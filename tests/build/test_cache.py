import json
import multiprocessing
import os
import time

import pytest

from nnef_hw.build.cache import cached_step
from nnef_hw.files import digest, locked, publish_directory


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

    def interrupt(path, content):
        raise KeyboardInterrupt

    monkeypatch.setattr("nnef_hw.build.cache.write_atomic", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cached_step(tmp_path, "emit", "other", produce)
    monkeypatch.undo()
    for key in ("key", "other"):
        assert cached_step(tmp_path, "emit", key, produce)[1]


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
    if sorted(path.name for path in target.iterdir()) != ["half", "whole"]:
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
