"""Texts to tokens and back."""

import re
import struct

import pytest

from nnef_hw.errors import UsageError
from nnef_hw.host.tokenizer import read_tokenizer


def llama(folder, pieces):
    """Write a file of llama2.c: three tokens, those of bytes, and pieces with scores."""
    known = [(b"<unk>", 0.0), (b"\n<s>\n", 0.0), (b"\n</s>\n", 0.0)]
    known += [(f"<0x{byte:02X}>".encode(), 0.0) for byte in range(256)]
    data = struct.pack("<i", 8)
    for piece, score in (*known, *pieces):
        data += struct.pack("<fi", score, len(piece)) + piece
    path = folder / "tokenizer.bin"
    path.write_bytes(data)
    return path


PIECES = [(b" ", -9.0), (b"a", -8.0), (b"b", -7.0), (b"ab", -2.0), (b" a", -1.0), (b" ab", -5.0)]


def test_the_best_pairs_of_pieces_are_merged(tmp_path):
    tokenizer = read_tokenizer(llama(tmp_path, PIECES))
    names = {259 + n: piece for n, (piece, _) in enumerate(PIECES)}
    # " a" is better than "ab", and " ab" follows from it; "é" is two bytes
    assert [names.get(token, token) for token in tokenizer.encode("abbaé")] == [
        b" ab", b"b", b"a", 3 + 0xC3, 3 + 0xA9,
    ]  # fmt: skip
    assert tokenizer.count == 259 + len(PIECES)


def test_of_pairs_that_overlap_the_better_one_stays(tmp_path):
    tokenizer = read_tokenizer(llama(tmp_path, PIECES[:-1]))
    pieces = [PIECES[token - 259][0] for token in tokenizer.encode("ab")]
    assert pieces == [b" a", b"b"]


@pytest.mark.parametrize("text", ["abba", "a b é\n", "", "日本 ab"])
def test_a_text_comes_back(text, tmp_path):
    tokenizer = read_tokenizer(llama(tmp_path, PIECES))
    assert tokenizer.decode([tokenizer.start, *tokenizer.encode(text)]) == text


def test_a_tokenizer_that_is_in_use(attention):
    tokenizer = read_tokenizer(attention / "stories260k" / "tok512.bin")
    text = "Once upon a time, there was a little girl named Lily."
    tokens = tokenizer.encode(text)
    assert tokenizer.count == 512
    assert tokens[:5] == [403, 407, 261, 378, 432]
    assert tokenizer.decode([1, *tokens]) == text


def test_a_file_with_a_token_per_line(tmp_path):
    path = tmp_path / "tokens.txt"
    path.write_text("a\nb\nab\n\\n\n")
    tokenizer = read_tokenizer(path)
    assert (tokenizer.count, tokenizer.start) == (4, 3)
    assert tokenizer.encode("aab\nb") == [0, 2, 3, 1]
    assert tokenizer.decode([0, 2, 3]) == "aab\n"
    with pytest.raises(UsageError, match=re.escape("has no token for 'c'")):
        tokenizer.encode("abc")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(UsageError, match="there is no tokenizer"):
        read_tokenizer(tmp_path / "none.bin")
    (tmp_path / "x.bin").write_bytes(struct.pack("<ifi", 8, 0.0, 5) + b"ab")
    with pytest.raises(UsageError, match="it ends within token 0"):
        read_tokenizer(tmp_path / "x.bin")
    (tmp_path / "x.dat").write_bytes(b"")
    with pytest.raises(UsageError, match="of no known kind"):
        read_tokenizer(tmp_path / "x.dat")
