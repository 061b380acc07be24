"""Jobs in processes: results, errors, and processes that are killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nnef_hw.errors import ErrorGroup, TargetError, ToolError, UsageError
from nnef_hw.system.workers import Here, Processes, as_done


def fail_with_group():
    raise ErrorGroup([UsageError("first", remedy="do this"), TargetError("second")])


def fail_with_what_cannot_be_taken_elsewhere():
    raise type("Local", (Exception,), {})("only here")


def killed_the_first_time(marker):
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


# Functions of this file: its processes find it by its name.
@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    for function in (fail_with_group, fail_with_what_cannot_be_taken_elsewhere, killed,
                     killed_the_first_time):  # fmt: skip
        monkeypatch.setattr(function, "__module__", Path(__file__).stem)
    monkeypatch.setitem(sys.modules, Path(__file__).stem, sys.modules[__name__])


def test_results_and_errors_of_processes(tmp_path, capfd):
    with Processes(2) as pool:
        jobs = [pool.submit(pow, 2, n) for n in range(5)]
        assert sorted(position for position, _ in as_done(jobs)) == list(range(5))
        assert [job.result() for job in jobs] == [1, 2, 4, 8, 16]
        with pytest.raises(ErrorGroup, match="second") as caught:
            pool.submit(fail_with_group).result()
        assert caught.value.errors[0].remedy == "do this"
        assert "in fail_with_group" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="only here"):
            pool.submit(fail_with_what_cannot_be_taken_elsewhere).result()
        # What a job prints does not mix with its result.
        assert pool.submit(print, "printed").result() is None
        # A job whose process is killed is begun again, but not for ever.
        assert pool.submit(killed_the_first_time, str(tmp_path / "marker")).result() > 0
        with pytest.raises(ToolError, match="killed while it computed"):
            pool.submit(killed).result()
        assert pool.submit(pow, 3, 2).result() == 9
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "printed\n")


def test_processes_share_the_processors(monkeypatch):
    """Each has one thread for BLAS, unless the user says how many."""
    for asked, found in ((None, "1"), ("3", "3")):
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        if asked:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", asked)
        with Processes(1) as pool:
            assert pool.submit(os.getenv, "OPENBLAS_NUM_THREADS").result() == found


def test_jobs_of_this_process():
    job = Here().submit(int, "x")
    assert job.done()
    with pytest.raises(ValueError, match="invalid literal"):
        job.result()


def test_processes_end_with_theirs():
    """However it ends: here it is killed."""
    program = (
        "from nnef_hw.system.workers import Processes; import os, time\n"
        "pool = Processes(1); print(pool.submit(os.getpid).result(), flush=True)\n"
        "pool.submit(time.sleep, 60); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        number = int(process.stdout.readline())
        process.kill()
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{number}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("it goes on")
