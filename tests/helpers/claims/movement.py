"""Components that move beats: queues, borders, turns, other orders."""

from __future__ import annotations

from functools import partial

from prover import Claim

from claims.frames import marked
from nnef_hw.rtl.streams.fork import Fork

__all__ = ["MOVEMENT"]


def fork(branches):
    frames = [frame.tolist() for frame in marked(3)]
    return Claim(
        component=Fork(1, branches=branches), inputs={"i": frames},
        outputs={f"o{n}": frames for n in range(branches)}, patience=2,
    )  # fmt: skip


MOVEMENT = {
    "Fork": {f"{branches} branches": partial(fork, branches) for branches in (2, 3, 4)},
}  # fmt: skip
