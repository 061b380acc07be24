"""Two banks of memory in front of a function of a whole pixel."""

from __future__ import annotations

from itertools import count

from nnef_hw.parts.base.timing import Log, Process, Stream

__all__ = ["hold_two_pixels"]


def hold_two_pixels(origin: Stream, beats: int, loaded: Log, read: Log) -> Process:
    """Take pixels of so many beats, each of which waits in a bank until it is read again.

    Parameters
    ----------
    loaded
        Gets the cycle of each pixel's last beat.
    read
        Gets those from which on a pixel's bank may be written.
    """
    time = -1
    for before in count(-2):
        if before >= 0:
            if len(read.times) <= before:
                yield read, before + 1
            time = max(time, read.times[before])
        for _ in range(beats):
            time = max(time + 1, (yield origin))
            origin.accept(time)
        loaded.add(time)
