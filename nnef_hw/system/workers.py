"""Jobs for other processes, of this machine or of others: what runs them, and how they are awaited.

Whatever has ``submit(function, *arguments)`` and gives something with ``done()`` and ``result()``
can run them: :class:`Processes`, the executors of :mod:`concurrent.futures`, a client of
dask.distributed, an executor of submitit. Functions are importable, arguments and results can be
pickled; nothing else is shared, no folder either.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, Protocol

from nnef_hw.errors import ToolError
from nnef_hw.system.process_group import start_process

__all__ = ["Awaited", "Here", "Pool", "Processes", "as_done", "processes_for"]

POLL_SECONDS = 0.02
LONGEST_POLL_SECONDS = 0.5
ATTEMPTS = 2
"""How often a job is begun whose process is killed meanwhile."""
MANY = 3
"""Jobs from which on the second that a process takes to start is soon regained."""
LENGTH_BYTES = 8
THREADS = "nnef-hw-worker"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""For a process of several: more threads of BLAS in each would only wait busily."""


class Awaited(Protocol):
    """A job that was submitted."""

    def done(self) -> bool:
        """Whether the job has ended."""

    def result(self) -> Any:
        """Return the result of the job, or raise its error."""


class Pool(Protocol):
    """Whatever runs jobs."""

    def submit(self, function: Callable[..., object], /, *arguments: object) -> Awaited:
        """Begin a job."""


def as_done(jobs: Sequence[Awaited]) -> Iterator[tuple[int, Awaited]]:
    """Yield jobs as they end, with their positions; signals are seen meanwhile."""
    left = dict(enumerate(jobs))
    pause = POLL_SECONDS
    while left:
        ended = [position for position, job in left.items() if job.done()]
        for position in ended:
            yield position, left.pop(position)
        pause = POLL_SECONDS if ended else min(1.2 * pause, LONGEST_POLL_SECONDS)
        if left and not ended:
            time.sleep(pause)


class Here:
    """Does jobs in this process, one at a time, when they are submitted."""

    def submit(self, function: Callable[..., object], /, *arguments: object) -> Future[object]:
        """Do a job."""
        job: Future[object] = Future()
        try:
            job.set_result(function(*arguments))
        except Exception as error:
            job.set_exception(error)
        return job


def processes_for(jobs: int) -> AbstractContextManager[Pool]:
    """Return processes for so many jobs of seconds; few are done sooner in this one."""
    return Processes() if jobs >= MANY else nullcontext(Here())


class Processes:
    """Runs jobs in processes of this machine, which end with this one, however it ends.

    A job whose process is killed is begun once more. Use it in a ``with`` statement.

    Parameters
    ----------
    count
        How many; as many as there are processors by default. Each starts with its first job.
    """

    def __init__(self, count: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(count or os.cpu_count() or 1, THREADS)
        self._own = threading.local()
        self._workers: set[_Worker] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, function: Callable[..., object], /, *arguments: object) -> Future[object]:
        """Begin a job."""
        return self._threads.submit(self._run, function, arguments)

    def close(self) -> None:
        """End all processes at once."""
        with self._lock:
            self._is_closed = True
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, function: Callable[..., object], arguments: tuple[object, ...]) -> object:
        # Here, so that there are as many copies of a large network as processes, not as jobs.
        message = pickle.dumps((function, arguments))
        for _ in range(ATTEMPTS):
            worker = self._worker()
            try:
                succeeded, value = worker.answer(message)
            except EOFError:
                self._own.worker = None
                with self._lock:
                    self._workers.discard(worker)
                worker.kill()
                continue
            if not succeeded:
                raise value
            return value
        raise ToolError(
            "a process of ours was killed while it computed, and the one after it, too",
            remedy="see whether the memory of the machine is full; fewer --jobs need less",
        )

    def _worker(self) -> _Worker:
        """Return the process of this thread."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            with self._lock:
                if self._is_closed:
                    raise KeyboardInterrupt
                worker = self._own.worker = _Worker()
                self._workers.add(worker)
        return worker


class _Worker:
    """A process that does a job after another; our end of the pipes to it."""

    def __init__(self) -> None:
        self._process = start_process(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=ONE_THREAD | os.environ,
        )

    def answer(self, message: bytes) -> tuple[bool, Any]:
        """Do a job.

        Raises
        ------
        EOFError
            If the process has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _send(self._process.stdin, message)
        except OSError as error:
            raise EOFError from error
        succeeded, value = pickle.loads(_receive(self._process.stdout))
        return bool(succeeded), value

    def kill(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _send(file: BinaryIO | Any, message: bytes) -> None:
    file.write(len(message).to_bytes(LENGTH_BYTES, "little"))
    file.write(message)
    file.flush()


def _receive(file: BinaryIO | object) -> bytes:
    """Read a message.

    Raises
    ------
    EOFError
        If it is not whole.
    """
    length = int.from_bytes(_exactly(file, LENGTH_BYTES), "little")
    return _exactly(file, length)


def _exactly(file: BinaryIO | Any, length: int) -> bytes:
    try:
        data: bytes = file.read(length)
    except (OSError, ValueError) as error:  # closed by another thread
        raise EOFError from error
    if len(data) < length:
        raise EOFError
    return data


def _serve() -> None:
    """Do jobs from standard input until it ends; what they print goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            message = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            function, arguments = pickle.loads(message)
            answer = pickle.dumps((True, function(*arguments)))
        except Exception as error:
            error.add_note(traceback.format_exc())
            answer = _error(error)
        _send(answers, answer)


def _error(error: Exception) -> bytes:
    """Pickle an error, as a plain one if it cannot be taken elsewhere."""
    try:
        message = pickle.dumps((False, error))
        pickle.loads(message)
    except Exception:
        return pickle.dumps((False, RuntimeError("".join(traceback.format_exception(error)))))
    return message


if __name__ == "__main__":
    _serve()
