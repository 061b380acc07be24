"""MLPerf Tiny's protocol of text, as its runner speaks it: commands, and the lines they bring."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.host.link import LinkError, Transport

__all__ = ["LINE_BYTES", "RunResult", "RunnerHost"]

READY = "m-ready"
LINE_BYTES = 31
"""Bytes of an input that go into a line."""
_OLD_ANSWERS = 4
"""Answers to what nobody asked: a board says that it is ready when it starts."""
_LINES_OF_RUN = re.compile(r"m-lap-us-(\d+)|m-results-\[([^]]*)\]")


@dataclass(frozen=True, slots=True)
class RunResult:
    """Answer of a board to ``infer``.

    Parameters
    ----------
    scores
        Its results, as they are printed.
    microseconds
        Time of all inferences behind the warm-ups.
    """

    scores: tuple[float, ...]
    microseconds: int


class RunnerHost:
    """A host that scores a board as MLPerf Tiny's runner does.

    Parameters
    ----------
    transport
        Carries the bytes.
    patience
        Seconds for an answer.
    """

    def __init__(self, transport: Transport, patience: float = 30.0) -> None:
        self._transport = transport
        self._patience = patience
        self._received = b""

    def ask(self, command: str) -> list[str]:
        """Send a command; return the lines of the answer, without ``m-ready``.

        Raises
        ------
        LinkError
            If no answer comes, or it is an error.
        """
        self._transport.write(command.encode("ascii") + b"%")
        return self.answer(command)

    def answer(self, command: str = "") -> list[str]:
        """Return the lines up to ``m-ready``.

        Raises
        ------
        LinkError
            As :meth:`ask` does.
        """
        lines: list[str] = []
        while True:
            while b"\n" not in self._received:
                data = self._transport.read(self._patience)
                if not data:
                    raise LinkError(
                        f"the board does not answer {command!r}",
                        remedy="check port and baud rate, and that the build has --link mlperf",
                    )
                self._received += data
            line, _, self._received = self._received.partition(b"\n")
            text = line.decode("ascii", "replace").strip()
            if text == READY:
                break
            lines.append(text)
        errors = [line for line in lines if line.startswith("e-[")]
        if errors:
            raise LinkError(f"the board answers {command!r} with {errors[0]}")
        return lines

    def greet(self) -> str:
        """Return the name that the board answers; what it has said before is dropped.

        Raises
        ------
        LinkError
            As :meth:`ask` does, or if it does not say its name.
        """
        command = "name"
        self._transport.write(f"{command}%".encode("ascii"))
        for _ in range(_OLD_ANSWERS):
            for line in self.answer(command):
                if found := re.fullmatch(r"m-name-dut-\[([^]]+)\]", line):
                    return found[1]
        raise LinkError("the board does not say its name")

    def model(self) -> str:
        """Return the name of the benchmark that the board answers for.

        Raises
        ------
        LinkError
            As :meth:`ask` does, or if the answer has none.
        """
        for line in self.ask("profile"):
            if found := re.fullmatch(r"m-model-\[([^]]+)\]", line):
                return found[1]
        raise LinkError("the board does not say its model")

    def load(self, data: bytes) -> None:
        """Load an input.

        Raises
        ------
        LinkError
            As :meth:`ask` does, or if the board does not say that it has all of it.
        """
        self.ask(f"db load {len(data)}")
        lines: Sequence[str] = ()
        for begin in range(0, len(data), LINE_BYTES):
            lines = self.ask(f"db {data[begin : begin + LINE_BYTES].hex()}")
        if "m-load-done" not in lines:
            raise LinkError(f"the board has not taken all {len(data)} bytes of the input")

    def infer(self, runs: int = 1, warm_ups: int = 0) -> RunResult:
        """Let the board run the input that is loaded.

        Raises
        ------
        LinkError
            As :meth:`ask` does, or if times or results are missing.
        """
        laps, scores = [], None
        for line in self.ask(f"infer {runs} {warm_ups}"):
            if found := _LINES_OF_RUN.fullmatch(line):
                if found[1] is not None:
                    laps.append(int(found[1]))
                else:
                    scores = tuple(float(x) for x in found[2].split(",") if x.strip())
        if len(laps) != 2 or not scores:
            raise LinkError("the board has sent no times or no results")
        return RunResult(scores, laps[1] - laps[0])
