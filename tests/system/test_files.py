"""Locks of folders."""

import subprocess
import sys

from nnef_hw.system.files import locked


def test_who_waits_for_a_lock_is_told(tmp_path):
    path, said = tmp_path / "lock", []
    with locked(path, lambda: said.append("waiting")):
        pass
    assert said == []
    code = (
        "import sys, pathlib; from nnef_hw.system.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1])): print('in', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"in\n"
        with locked(path, other.stdin.close):
            said.append("inside")
    assert said == ["inside"]
