"""The loop of a language model on a board, which writes texts by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nnef_hw.host.link import Host
from nnef_hw.host.protocol import NO_STOP, TEXT
from nnef_hw.host.tokens import Roles, TextLoop

__all__ = ["BoardLoop", "ChipTextLoop", "text_bytes"]


class ChipTextLoop(TextLoop):
    """A loop on a board, whose places and tokens have 16 bits."""

    most = 0xFFFF

    def _text(self, prompt: list[int], tokens: int, stop: int | None) -> bytes:
        """Return a text as a board takes it, with the generator as it stands."""
        weights = self._weights
        if weights is None:
            return text_bytes(prompt, tokens, stop, 0, None)
        return text_bytes(prompt, tokens, stop, self._generator.state, weights.tolist())

    def _chosen(self) -> None:
        """Let the generator follow the board's, which has chosen a token."""
        if self._weights is not None:
            self._generator.draw()


class BoardLoop(ChipTextLoop):
    """The loop on a board: a prompt is sent, and tokens are read as they come.

    Parameters
    ----------
    roles, temperature, seed
        As of any :class:`.TextLoop`.
    host
        The way to the board.
    begin
        Begins a session of texts.
    """

    def __init__(
        self,
        roles: Roles,
        host: Host,
        *,
        begin: Callable[[], None],
        temperature: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(roles, temperature=temperature, seed=seed)
        self._host, self._begin = host, begin

    def _run(self, given: list[int], tokens: int, stop: int | None) -> Iterator[int]:
        if tokens < 1:
            return
        text = self._text(given, tokens, stop)
        self._begin()
        for number, data in enumerate(self._host.pieces(text, 2)):
            token = int.from_bytes(data, "little")
            self._chosen()
            yield token
            if number == tokens - 1 or token == stop:
                return


def text_bytes(
    prompt: list[int], tokens: int, stop: int | None, state: int, weights: list[int] | None
) -> bytes:
    """Return a text as a board takes it (docs/protocol.md, section 8)."""
    head = TEXT.pack(tokens, NO_STOP if stop is None else stop, state)
    return head + np.array([*(weights or ()), *prompt], "<u2").tobytes()
