"""A job whose process is killed the first time; importable by workers."""

import os
import signal
from pathlib import Path


def dies_once(marker, function, *arguments):
    """Kill this process unless a file tells that it has happened; else do the job."""
    if not Path(marker).exists():
        Path(marker).write_text(str(Path.cwd()))
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)
