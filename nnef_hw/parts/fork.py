"""One stream for several readers."""

from __future__ import annotations

from nnef_hw.parts.timing import Kernel, Process, Stream

__all__ = ["fork"]


def fork(kernel: Kernel, origin: Stream, branches: int) -> list[Stream]:
    """Start the process of a Fork: an item leaves when the last branch has taken it."""
    targets = tuple(kernel.stream() for _ in range(branches))
    kernel.start(_process(origin, targets))
    return list(targets)


def _process(origin: Stream, targets: tuple[Stream, ...]) -> Process:
    while True:
        offered = yield origin
        origin.accept((yield targets, offered))
