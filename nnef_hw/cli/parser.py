"""The parser of the command line: wrong arguments are one message, with what may be meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from nnef_hw.errors import UsageError

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """Raises errors of ours where others print their usage and end the program."""

    def error(self, message: str, meant: str = "") -> NoReturn:
        """Refuse arguments.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError(message, remedy=f"{meant}see {self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse arguments; unknown ones are refused by the command that they are for."""
        words = sys.argv[1:] if args is None else list(args)
        has_commands = any(isinstance(x, argparse._SubParsersAction) for x in self._actions)
        if has_commands and words and words[0].startswith("--") and not self._is_option(words[0]):
            # argparse would only say that a command is missing
            meant = _meant(words[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {words[0]}", meant)
        found, unknown = super().parse_known_args(words, namespace)
        if unknown and not has_commands:
            meant = _meant(unknown[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}", meant)
        return found, unknown

    def _is_option(self, word: str) -> bool:
        """Whether a word is an option, or begins like one, as argparse allows."""
        name = word.partition("=")[0]
        return any(option.startswith(name) for option in self._option_string_actions)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            self.error(f"there is no command {value!r}", _meant(value, action.choices))
        super()._check_value(action, value)


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word.partition("=")[0], list(known), n=1)
    return f"did you mean {close[0]!r}? " if close else ""
