"""One stream for several readers."""

from __future__ import annotations

from nnef_hw.parts.base.timing import Branches, Kernel, Process, Stream

__all__ = ["connect", "fork"]


def fork(kernel: Kernel, origin: Stream, branches: int) -> list[Stream]:
    """Start the process of a Fork: an item leaves when the last branch has taken it."""
    targets = kernel.branches(branches)
    kernel.start(_process(origin, targets))
    return list(targets.streams)


def connect(kernel: Kernel, origin: Stream, target: Stream) -> None:
    """Start the process of a wire: a stream is another one that was made before it."""
    kernel.start(_process(origin, Branches(kernel, (target,))))


def _process(origin: Stream, targets: Branches) -> Process:
    while True:
        offered = yield origin
        origin.accept((yield targets, offered))
