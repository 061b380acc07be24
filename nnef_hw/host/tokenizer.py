"""Texts to tokens and back, by the files that models come with."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from nnef_hw.errors import ToolError, UsageError

__all__ = ["LlamaTokenizer", "Tokenizer", "VocabularyTokenizer", "read_tokenizer"]


class Tokenizer(ABC):
    """Texts to tokens and back.

    Attributes
    ----------
    count
        How many tokens there are.
    start
        The token that begins a text, and ends one; None if there is none.
    """

    count: int
    start: int | None = None

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without the one that begins it."""

    @abstractmethod
    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""


class VocabularyTokenizer(Tokenizer):
    r"""A text file with a token per line, ``\n`` for the end of a line; the longest one is taken.

    The token that is the end of a line begins a text.
    """

    def __init__(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines()
        self._texts = [line.replace("\\n", "\n") for line in lines]
        self._path, self.count = path, len(lines)
        if "\n" in self._texts:
            self.start = self._texts.index("\n")

    def encode(self, text: str) -> list[int]:
        """Return the longest tokens that a text begins with, one after the other."""
        tokens = []
        while text:
            known = [n for n, piece in enumerate(self._texts) if piece and text.startswith(piece)]
            if not known:
                raise UsageError(
                    f"{str(self._path)!r} has no token for {text[:10]!r}",
                    remedy="give a text of its tokens",
                )
            best = max(known, key=lambda n: len(self._texts[n]))
            tokens.append(best)
            text = text[len(self._texts[best]) :]
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the lines of tokens."""
        return "".join(self._texts[token] for token in tokens)


class LlamaTokenizer(Tokenizer):
    """The file of llama2.c: pieces of bytes with scores, the best pairs of which are merged."""

    start = 1
    _BYTES = 3
    """Of 256 tokens of single bytes the first."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self._pieces: list[bytes] = []
        self._scores: list[float] = []
        place = 4
        try:
            while place < len(data):
                score, length = struct.unpack_from("<fi", data, place)
                piece = data[place + 8 : place + 8 + length]
                if length < 0 or len(piece) != length:
                    raise struct.error
                self._pieces.append(piece)
                self._scores.append(score)
                place += 8 + length
        except struct.error as error:
            raise UsageError(
                f"{str(path)!r} is no tokenizer file of llama2.c: it ends within token "
                f"{len(self._pieces)}",
                remedy="give its tokenizer.bin",
            ) from error
        self.count = len(self._pieces)
        self._places = {piece: n for n, piece in reversed([*enumerate(self._pieces)])}

    def encode(self, text: str) -> list[int]:
        """Return the tokens of letters, of which the best pairs are merged until there is none."""
        tokens: list[int] = []
        for letter in f" {text}" if text else "":
            data = letter.encode()
            known = self._places.get(data)
            tokens += [self._BYTES + byte for byte in data] if known is None else [known]
        while True:
            pairs = [
                (-self._scores[merged], n, merged)
                for n, pair in enumerate(pairwise(tokens))
                if (merged := self._places.get(b"".join(self._pieces[x] for x in pair))) is not None
            ]
            if not pairs:
                return tokens
            _, n, merged = min(pairs)
            tokens[n : n + 2] = [merged]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of pieces, without the blank in front of it."""
        data = b""
        for n, token in enumerate(tokens):
            piece = self._pieces[token]
            if n and tokens[n - 1] == self.start:
                piece = piece.removeprefix(b" ")
            if token < self._BYTES:
                continue
            if token < self._BYTES + 256:
                piece = bytes([token - self._BYTES])
            data += piece
        return data.decode(errors="replace")


class _HubTokenizer(Tokenizer):
    """A ``tokenizer.json`` of the package ``tokenizers``."""

    def __init__(self, path: Path) -> None:
        self._tokenizer: Any = _package("tokenizers", path).Tokenizer.from_file(str(path))
        self.count = self._tokenizer.get_vocab_size()
        for name in ("<s>", "<|endoftext|>", "<bos>", "<|begin_of_text|>"):
            found = self._tokenizer.token_to_id(name)
            if found is not None:
                self.start = found
                break

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens)))


class _SentencePieceTokenizer(Tokenizer):
    """A ``tokenizer.model`` of the package ``sentencepiece``."""

    def __init__(self, path: Path) -> None:
        package = _package("sentencepiece", path)
        self._processor: Any = package.SentencePieceProcessor(model_file=str(path))
        self.count = self._processor.vocab_size()
        self.start = self._processor.bos_id() if self._processor.bos_id() >= 0 else None

    def encode(self, text: str) -> list[int]:
        return list(self._processor.encode(text))

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._processor.decode(list(tokens)))


def _package(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ToolError(
            f"{str(path)!r} needs the package {name}", remedy="pip install nnef-hw[tokens]"
        ) from error


_KINDS: dict[str, Callable[[Path], Tokenizer]] = {
    ".bin": LlamaTokenizer,
    ".json": _HubTokenizer,
    ".model": _SentencePieceTokenizer,
    ".txt": VocabularyTokenizer,
}


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer's file, whose suffix says of which kind it is.

    Raises
    ------
    UsageError
        If there is no such file, or no such kind.
    ToolError
        If a package is missing.
    """
    if not path.is_file():
        raise UsageError(f"there is no tokenizer {str(path)!r}")
    kind = _KINDS.get(path.suffix)
    if kind is None:
        raise UsageError(
            f"{str(path)!r} is a tokenizer of no known kind",
            remedy="give a tokenizer.bin of llama2.c, tokenizer.json, tokenizer.model, or a .txt "
            "with a token per line",
        )
    return kind(path)
