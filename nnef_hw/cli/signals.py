"""Signals that ask a command to end: they become an exception, so that everything is cleaned up."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from nnef_hw.system.process_group import THREADS

__all__ = ["Interrupted", "leave", "signals_raise"]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
FIRST_STATUS = 128


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_status = FIRST_STATUS + number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise :class:`Interrupted` on the first signal; a second one ends the process at once.

    Signals that whoever started the process lets it ignore (``nohup``) stay ignored.
    """
    raised: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        raised.append(number)
        if len(raised) > 1:
            os._exit(FIRST_STATUS + number)
        raise Interrupted(number)

    previous = {}
    if threading.current_thread() is threading.main_thread():
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in {signal.SIG_IGN, None}:
                previous[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def leave(status: int) -> int:
    """Return an exit status; or end the process with it, if threads still compute for nobody."""
    if any(thread.name.startswith(THREADS) for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)
    return status
