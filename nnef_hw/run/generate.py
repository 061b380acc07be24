"""Texts that a build's network writes, on a board or in its fixed model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from nnef_hw.boards.interfaces import HostLink, link_of
from nnef_hw.host.line_loop import LineLoop, LineTiming
from nnef_hw.host.link import Transport
from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.tokens import TextLoop, TokenLoop
from nnef_hw.ir import Graph, open_states
from nnef_hw.ir.batch import join_batch
from nnef_hw.reference import run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import open_device
from nnef_hw.run.simulated_board import simulated_board

__all__ = ["FixedSteps", "open_loop"]

Codes = NDArray[np.int64]


class FixedSteps:
    """Computes steps of a fixed graph one by one; its states go on from each to the next."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._step = graph, open_states(graph)
        self.reset()

    def reset(self) -> None:
        """Begin with the initial states again."""
        self._states = {
            name: join_batch(state.initial[np.newaxis], state.initial.shape)
            for name, state in self._graph.states.items()
        }

    def __call__(self, codes: Mapping[str, Codes]) -> Mapping[str, Codes]:
        """Return the codes of the outputs of a step."""
        graph = self._graph
        given = {name: codes[name].reshape(1, *graph.tensor(name).shape) for name in graph.inputs}
        states = {name: x.reshape(1, *graph.tensor(name).shape) for name, x in self._states.items()}
        found = run_fixed(self._step, {**given, **states})
        self._states = {name: found[state.result] for name, state in graph.states.items()}
        return found


@contextmanager
def open_loop(
    build: BuildFolder, port: str | None, *, temperature: float = 0.0, seed: int = 0
) -> Iterator[TextLoop]:
    """Open the loop of a build's network: on the board at a port, else in its fixed model.

    Raises
    ------
    UsageError
        If the network is no step of a language model, or there is no such port.
    LinkError
        If the board does not answer.
    """
    if port is None:
        roles, steps = read_manifest(build.path).roles, FixedSteps(build.fixed)
        yield TokenLoop(roles, steps, temperature=temperature, seed=seed, begin=steps.reset)
        return
    manifest = read_manifest(build.path)
    link = link_of(manifest.link)
    if isinstance(link, HostLink) and link.needs_loop:
        with _open_line(build, link, port) as (line, timing):
            yield LineLoop(
                manifest.roles, line, timing, manifest.hash, temperature=temperature, seed=seed
            )
        return
    with open_device(build.path, port) as board:
        yield board.token_loop(temperature=temperature, seed=seed)


@contextmanager
def _open_line(
    build: BuildFolder, link: HostLink, port: str
) -> Iterator[tuple[Transport, LineTiming]]:
    """Open the line of a board, or of a simulated one, with its time limits."""
    if port != "sim":
        with link.open(port, build.path) as line:
            yield line, LineTiming()
        return
    with simulated_board(build.path) as board, board.open() as line:
        yield line, LineTiming().scaled(board.slowness)
