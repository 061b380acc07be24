"""Processes that must not outlive whoever started them; what they start belongs to them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nnef_hw.system.process_group import run_parallel, run_process, start_process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs process groups")

# Starts a process of its own, tells both numbers, and would run for an hour.
FAMILY = 'sleep 3600 & echo $! > "$0.part"; echo $$ >> "$0.part"; mv "$0.part" "$0"; wait'
PATIENCE = 60


def interrupt_main():
    """Send the main thread what a terminal's Ctrl-C sends the process."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def family(file):
    return ["/bin/sh", "-c", FAMILY, str(file)]


def wait_for(condition):
    """Wait until something is so; that it never is so fails the test."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def numbers(*files):
    """Process numbers that families told."""
    wait_for(lambda: all(file.exists() for file in files))
    return [int(line) for file in files for line in file.read_text().split()]


def is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    # a process that nobody waits for any more is a zombie until its parent's parent looks at it
    state = subprocess.run(
        ["ps", "-o", "state=", "-p", str(number)], capture_output=True, text=True, check=False
    )
    return state.stdout.strip() not in {"", "Z"}


def assert_all_end(processes):
    for number in processes:
        wait_for(lambda number=number: not is_running(number))


def test_status():
    assert run_process(["/bin/sh", "-c", "exit 7"]) == 7
    assert run_process(["/bin/sh", "-c", "kill -TERM $$"]) == -signal.SIGTERM
    with pytest.raises(FileNotFoundError):
        run_process(["/nowhere/program"])
    assert run_process(["/bin/sh", "-c", "exit 0"]) == 0


def test_terminal_does_not_reach_the_processes(tmp_path):
    file = tmp_path / "group"
    script = f"ps -o pgid= -p $$ > {file}"
    run_process(["/bin/sh", "-c", script])
    assert int(file.read_text()) != os.getpgrp()


def test_interruption_ends_a_process_and_its_children(tmp_path):
    def interrupt():
        numbers(tmp_path / "a")
        interrupt_main()

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        run_process(family(tmp_path / "a"))
    watcher.join()
    assert_all_end(numbers(tmp_path / "a"))
    assert run_process(["/bin/sh", "-c", "exit 3"]) == 3


def test_interruption_while_a_process_is_started_ends_it(tmp_path, monkeypatch):
    class Interrupted(subprocess.Popen):
        """Is interrupted when the process is there, before anybody has it."""

        def __init__(self, command, **options):
            super().__init__(command, **options)
            if command == family(tmp_path / "a"):
                numbers(tmp_path / "a")
                self._child_created = False  # nor does anybody wait for it
                raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_process(family(tmp_path / "a"))
    assert_all_end(numbers(tmp_path / "a"))
    assert run_process(["/bin/sh", "-c", "exit 3"]) == 3


def test_interruption_ends_parallel_jobs_and_starts_nothing_more(tmp_path):
    ended = []

    def tool_after_tool(name):
        try:
            run_process(family(tmp_path / name))
        finally:
            ended.append(name)
        run_process(["touch", tmp_path / "next"])

    def start_again():
        # what an interrupted job does in spite of the exception
        try:
            run_process(family(tmp_path / "c"))
        except KeyboardInterrupt:
            run_process(["touch", tmp_path / "next"])

    def interrupt():
        numbers(*(tmp_path / name for name in "abc"))
        interrupt_main()

    def nested():
        run_parallel([lambda: tool_after_tool("b"), start_again])

    with pytest.raises(KeyboardInterrupt):
        run_parallel([lambda: tool_after_tool("a"), nested, interrupt])
    assert sorted(ended) == ["a", "b"]
    assert_all_end(numbers(*(tmp_path / name for name in "abc")))
    assert not (tmp_path / "next").exists()
    assert run_parallel([lambda: run_process(["/bin/sh", "-c", "exit 3"])]) == [3]


def test_interruption_does_not_wait_for_who_computes():
    release = threading.Event()

    def interrupt():
        interrupt_main()
        release.wait()

    with pytest.raises(KeyboardInterrupt):
        run_parallel([interrupt])
    release.set()


@pytest.mark.parametrize(
    "run", ["run_process(SLEEP)", "run_parallel([lambda: run_process(SLEEP)])"]
)
def test_signal_that_another_thread_gets_interrupts_too(run):
    """A signal does not wake the main thread then, as if it came just before that waits."""
    script = f"""
import signal, threading, time
from nnef_hw.system.process_group import run_parallel, run_process
SLEEP = ["sleep", "3600"]
def interrupt():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    {run}
except KeyboardInterrupt:
    print("interrupted")
"""
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "interrupted\n"


def test_parallel_results_and_errors():
    done = []

    def fail(reason):
        raise ValueError(reason)

    assert run_parallel([lambda: 1, lambda: 2], workers=1) == [1, 2]
    with pytest.raises(ValueError, match="first"):
        run_parallel([lambda: done.append(1), lambda: fail("first"), lambda: fail("second")])
    assert done == [1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_processes_of_a_killed_process_end(number, tmp_path):
    program = (
        "import sys\n"
        "from nnef_hw.system.process_group import run_parallel, run_process\n"
        f"script = {FAMILY!r}\n"
        "jobs = [lambda p=p: run_process(['/bin/sh', '-c', script, p]) for p in sys.argv[1:]]\n"
        "run_parallel(jobs)\n"
    )
    files = [tmp_path / "a", tmp_path / "b"]
    with subprocess.Popen([sys.executable, "-c", program, *map(str, files)]) as parent:
        started = numbers(*files)
        parent.send_signal(number)
    assert_all_end(started)


def test_processes_of_an_ended_process_end(tmp_path):
    file = tmp_path / "a"
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from nnef_hw.system.process_group import start_process\n"
        f"start_process(['/bin/sh', '-c', {FAMILY!r}, sys.argv[1]])\n"
        "while not Path(sys.argv[1]).exists(): time.sleep(0.01)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, file], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert_all_end(numbers(file))


def test_leader_that_was_killed_is_replaced():
    first = start_process(["/bin/sh", "-c", "read -r _"], stdin=subprocess.PIPE)
    os.kill(os.getpgid(first.pid), signal.SIGKILL)
    first.communicate()
    wait_for(lambda: run_process(["/bin/sh", "-c", "exit 4"]) == 4)
