"""Processes that end with this one, however it ends, and with the call that started them."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

__all__ = ["THREADS", "run_parallel", "run_process", "start_process"]

T = TypeVar("T")

THREADS = "nnef-hw-job"
"""Prefix of the names of the threads of :func:`run_parallel`."""
SIGNAL_SECONDS = 0.5
"""Most time until a waiting thread looks for signals.

Python's handlers run in the main thread, which a signal does not wake if it comes just before the
thread begins to wait, or if the system gives it to another thread.
"""
GRACE_SECONDS = 1.0
"""Time for threads to clean up after their processes were ended."""
KEEPER = ("/bin/sh", "-c", "read -r _; kill -s KILL 0")
"""Waits for its standard input to end, then ends its process group."""


class _Group:
    """Processes in a process group of their own, where a terminal's Ctrl-C does not reach them.

    The group's leader waits on a pipe whose other end this process alone holds: the system closes
    it even if this process is killed. What the processes start belongs to the group, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leader: subprocess.Popen[bytes] | None = None
        self.is_ended = False

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            if self.is_ended:
                raise KeyboardInterrupt
            if os.name != "nt":
                options["process_group"] = self._lead()
            return subprocess.Popen(command, **options)

    def end(self) -> None:
        """End all processes at once, and let no other one begin."""
        with self._lock:
            self.is_ended = True
            if self._leader is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._leader.pid, signal.SIGKILL)
                self.close()

    def close(self) -> None:
        """Let the leader end; with it all that still runs."""
        leader, self._leader = self._leader, None
        if leader is not None:
            assert leader.stdin is not None
            leader.stdin.close()
            leader.wait()

    def _lead(self) -> int:
        if self._leader is not None and self._leader.poll() is not None:
            self.close()
        if self._leader is None:
            self._leader = subprocess.Popen(
                KEEPER, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        return self._leader.pid


class _Groups:
    """The group of each thread: that of the thread which waits for it."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._first = _Group()
        atexit.register(self._close)

    @property
    def current(self) -> _Group:
        group: _Group = getattr(self._local, "group", self._first)
        return group

    @current.setter
    def current(self, group: _Group) -> None:
        self._local.group = group

    def end(self) -> None:
        """End the processes of this thread's group; what is started later is in another one."""
        group = self.current
        group.end()
        if group is self._first:
            self._first = _Group()

    def _close(self) -> None:
        self._first.close()


_groups = _Groups()


def start_process(command: Sequence[str], **options: object) -> subprocess.Popen[bytes]:
    """Start a process; ``options`` are those of :class:`subprocess.Popen`.

    It is killed when this process ends, and when :func:`run_process` or :func:`run_parallel` is
    interrupted. On Windows only the console's Ctrl-C ends it.
    """
    return _groups.current.start(command, **options)


def run_process(
    command: Sequence[str], *, is_stuck: Callable[[], bool] | None = None, **options: object
) -> int:
    """Run a process to its end; return its exit status, negative if a signal ended it.

    ``is_stuck`` is asked while it runs: the process is killed when it says so.

    Raises
    ------
    KeyboardInterrupt
        If the call is interrupted, or the one of :func:`run_parallel` that waits for it. All
        processes have ended then.
    """
    group = _groups.current
    process = None
    try:
        process = group.start(command, **options)
        while (status := _status(process)) is None:
            if is_stuck is not None and is_stuck():
                process.kill()
    except BaseException as error:
        if process is None and isinstance(error, Exception):
            raise  # it cannot be started
        # An interruption may come when the process is there and only its group knows it.
        _groups.end()
        if process is not None:
            process.kill()
            process.wait()
        raise
    if group.is_ended:
        raise KeyboardInterrupt
    return status


def _status(process: subprocess.Popen[bytes]) -> int | None:
    """Wait a moment for a process to end; return None if it goes on."""
    try:
        return process.wait(SIGNAL_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def run_parallel(jobs: Sequence[Callable[[], T]], workers: int | None = None) -> list[T]:
    """Run jobs side by side in threads; return their results.

    If some fail, the others are completed, and the error of the first of them is raised. If the
    call is interrupted, all processes that the jobs have started end, and none is started any
    more; threads that compute have a second to end, and are then left alone.

    Parameters
    ----------
    jobs
        Functions without arguments.
    workers
        How many run at a time; all by default.
    """
    group = _groups.current

    def run(job: Callable[[], T]) -> T:
        _groups.current = group
        return job()

    pool = ThreadPoolExecutor(workers or len(jobs) or 1, thread_name_prefix=THREADS)
    futures = [pool.submit(run, job) for job in jobs]
    try:
        while wait(futures, SIGNAL_SECONDS).not_done:
            pass
    except BaseException:
        _groups.end()
        pool.shutdown(wait=False, cancel_futures=True)
        wait(futures, timeout=GRACE_SECONDS)
        raise
    pool.shutdown()
    return [future.result() for future in futures]
