"""The command that lets a language model write."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from nnef_hw.arithmetic.records import Fields
from nnef_hw.cli.common import Commands, add_command, positive_number, print_json
from nnef_hw.errors import UsageError

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Declare the command of this module."""
    sub = add_command(
        commands, "generate", _generate, "let a build's language model write texts", "build"
    )
    sub.add_argument(
        "--prompt", default="", help="text to continue; without --tokenizer its tokens, as 3,17"
    )
    sub.add_argument(
        "--tokens", type=positive_number, default=100, metavar="N",
        help="end a text behind so many tokens (default: 100)",
    )  # fmt: skip
    sub.add_argument(
        "--texts", type=positive_number, default=1, metavar="N", help="write so many (default: 1)"
    )
    sub.add_argument(
        "--temperature", type=float, default=0.0, metavar="T",
        help="choose at random, by a softmax of scores divided by T (default: 0, the greatest)",
    )  # fmt: skip
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers")
    sub.add_argument(
        "--tokenizer", type=Path, metavar="FILE",
        help="tokenizer.bin of llama2.c, tokenizer.json, tokenizer.model, or a .txt with a token "
        "per line",
    )  # fmt: skip
    sub.add_argument("--start", type=int, metavar="ID", help="token that begins a text")
    sub.add_argument("--stop", type=int, metavar="ID", help="token that ends a text")
    sub.add_argument(
        "--port",
        help="serial port of the board; 'sim' simulates the board down to its pins (default: the "
        "fixed model computes)",
    )


def _generate(options: argparse.Namespace) -> int:
    from nnef_hw.host.tokenizer import read_tokenizer
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.generate import open_loop

    tokenizer = read_tokenizer(options.tokenizer) if options.tokenizer else None
    build = BuildFolder.open(options.build)
    start, stop = options.start, options.stop
    if tokenizer is not None:
        start = tokenizer.start if start is None else start
        stop = tokenizer.start if stop is None else stop
    prompt = [] if start is None else [start]
    prompt += tokenizer.encode(options.prompt) if tokenizer else _tokens(options.prompt)
    texts: list[list[int]] = []
    settings: Fields = {"temperature": options.temperature, "seed": options.seed}
    with open_loop(build, options.port, **settings) as loop:
        if tokenizer is not None and tokenizer.count != loop.roles.tokens:
            raise UsageError(
                f"{str(options.tokenizer)!r} has {tokenizer.count} tokens, the network "
                f"{loop.roles.tokens}",
                remedy="give the tokenizer that it was trained with",
            )
        for _ in range(options.texts):
            written: list[int] = []
            shown = ""
            for token in loop.generate(prompt, options.tokens, stop):
                written.append(token)
                if not options.json:
                    text = _shown(tokenizer, [*prompt, *written])
                    sys.stdout.write(text[len(shown) :])
                    sys.stdout.flush()
                    shown = text
            texts.append(written)
            if not options.json and not shown.endswith("\n"):
                sys.stdout.write("\n")
    if options.json:
        decoded = [_shown(tokenizer, [*prompt, *text]) for text in texts]
        print_json({"prompt": prompt, "tokens": texts, "texts": decoded})
    return 0


def _shown(tokenizer: Any, tokens: list[int]) -> str:
    """Return the text of tokens; without a tokenizer their numbers."""
    if tokenizer is None:
        return " ".join(map(str, tokens))
    return str(tokenizer.decode(tokens[1:] if tokens[0] == tokenizer.start else tokens))


def _tokens(text: str) -> list[int]:
    try:
        return [int(token) for token in text.replace(",", " ").split()]
    except ValueError as error:
        raise UsageError(
            f"the prompt {text!r} is not a list of tokens",
            remedy="give --tokenizer FILE, or numbers as 3,17",
        ) from error
