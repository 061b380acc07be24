"""The loop of a language model on a board behind a line of texts (docs/protocol.md, section 9)."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterator
from dataclasses import dataclass

from nnef_hw.host.chip_loop import ChipTextLoop
from nnef_hw.host.link import LinkError, Transport
from nnef_hw.host.protocol import LINE_ANSWER, LINE_HASH_BYTES, LINE_LAST
from nnef_hw.host.tokens import Roles

__all__ = ["LineLoop", "LineTiming"]

_CRC_START = 0xFFFF
_MOST_GARBAGE = 1 << 18


@dataclass(frozen=True, slots=True)
class LineTiming:
    """Time limits of a host, in seconds of the transport.

    ``silence`` makes the board forget an unfinished text and must exceed its 50 to 100 ms;
    ``reply`` is how long an answer or a token may take.
    """

    silence: float = 0.15
    reply: float = 1.0

    def scaled(self, slowness: float) -> LineTiming:
        """Return the limits of a board on which everything takes so many times as long."""
        return LineTiming(self.silence * slowness, self.reply * slowness)


class LineLoop(ChipTextLoop):
    """The loop on a board, whose line carries texts alone.

    Parameters
    ----------
    roles, temperature, seed
        As of any :class:`.TextLoop`.
    line
        The line to the board.
    timing
        Its time limits.
    manifest_hash
        Hash of the manifest, of which the board knows the beginning.
    """

    def __init__(
        self,
        roles: Roles,
        line: Transport,
        timing: LineTiming,
        manifest_hash: bytes,
        *,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(roles, temperature=temperature, seed=seed)
        self._line, self._timing = line, timing
        self._hash = manifest_hash[:LINE_HASH_BYTES]
        self._received = b""
        self._in_step = True

    def _run(self, given: list[int], tokens: int, stop: int | None) -> Iterator[int]:
        if tokens < 1:
            return
        self._begin(self._text([], tokens, stop))
        self._in_step = False
        for number, token in enumerate(given):
            last = LINE_LAST if number == len(given) - 1 else 0
            self._line.write((token | last).to_bytes(2, "little"))
            if (echo := self._token("its echo of a prompt's token")) != token:
                raise LinkError(
                    f"the board took the token {token} of the prompt for {echo}",
                    remedy="check the cable and run again",
                )
        for number in range(tokens):
            token = self._token("a token")
            self._chosen()
            self._in_step = number == tokens - 1 or token == stop
            yield token
            if self._in_step:
                return

    def _begin(self, begin: bytes) -> None:
        """Send what is in front of a prompt, once more behind a silence if that is not answered."""
        wanted = LINE_ANSWER.pack(self._hash, crc_hqx(begin, _CRC_START))
        if self._in_step and self._answer(begin) == wanted:
            return
        self._wait_for_silence()
        if (answer := self._answer(begin)) == wanted:
            return
        if len(answer) < len(wanted):
            raise LinkError(
                f"the board gave {len(answer)} of the {len(wanted)} bytes of its answer to the "
                "head of a text",
                remedy="check port and cable, and that the board has this build's bitstream",
            )
        if not answer.startswith(self._hash):
            raise LinkError(
                f"the board runs another build, whose hash begins {answer[:LINE_HASH_BYTES].hex()},"
                f" not {self._hash.hex()}",
                remedy="flash the build that belongs to the model",
            )
        raise LinkError(
            "the board has got other bytes than those of the text's head",
            remedy="check the cable and run again",
        )

    def _answer(self, begin: bytes) -> bytes:
        self._line.write(begin)
        return self._take(LINE_ANSWER.size)

    def _wait_for_silence(self) -> None:
        """Read until nothing more comes, by when the board has forgotten an unfinished text."""
        self._received = b""
        left = _MOST_GARBAGE
        while data := self._line.read(self._timing.silence):
            left -= len(data)
            if left < 0:
                raise LinkError(
                    "the board does not end its text", remedy="reset the board, and run again"
                )

    def _token(self, what: str) -> int:
        data = self._take(2)
        if len(data) < 2:
            raise LinkError(
                f"the board stopped before {what}", remedy="check the cable and run again"
            )
        return int.from_bytes(data, "little")

    def _take(self, count: int) -> bytes:
        """Return so many bytes that come, or fewer if no more do."""
        while len(self._received) < count:
            data = self._line.read(self._timing.reply)
            if not data:
                break
            self._received += data
        taken, self._received = self._received[:count], self._received[count:]
        return taken
