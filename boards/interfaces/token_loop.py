"""The loop of a language model on the board: which streams it joins."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.errors import TargetError
from nnef_hw.host.protocol import NO_STOP
from nnef_hw.host.tokens import Roles

__all__ = ["ChipLoop"]

MOST_BITS = 10
"""Width of scores at most: each code has a weight in a memory."""


@dataclass(frozen=True)
class ChipLoop:
    """A loop between an output of a network and its inputs, which writes texts without the host.

    Parameters
    ----------
    token, position, scores
        Names of tensors: the input of a token, that of its place in the text (None if the network
        counts by itself), the output of scores.
    tokens, context
        How many tokens there are, and places; 0 if there is no end.
    channels
        Channels of a pixel of the scores' stream.
    is_choice
        The output is the token that the network itself has chosen.
    """

    token: str
    position: str | None
    scores: str
    tokens: int
    context: int
    channels: int
    is_choice: bool

    @classmethod
    def of(cls, roles: Roles, image: tuple[int, int, int]) -> "ChipLoop":
        """Return the loop of a network whose scores have such an image (height, width, channels).

        Raises
        ------
        TargetError
            If scores are too wide, lie in several pixels of several channels, or are too many.
        """
        where = f"--token-loop cannot choose by output {roles.scores!r}"
        if not roles.is_choice and roles.qtype.bits > MOST_BITS:
            raise TargetError(
                f"{where}: its scores have {roles.qtype.bits} bits, and at most {MOST_BITS} have "
                "room for a weight of each code",
                remedy=f"give --set {roles.scores}.activation_bits=8, or omit --token-loop")
        if roles.tokens > NO_STOP:
            raise TargetError(
                f"{where}: there are {roles.tokens:,} tokens, and the link has numbers for "
                f"{NO_STOP:,}", remedy="omit --token-loop")
        height, width, channels = image
        if channels > 1 and height * width > 1:
            raise TargetError(
                f"{where}: its scores are {height * width} pixels of {channels} channels",
                remedy="omit --token-loop")
        return cls(roles.token, roles.position, roles.scores, roles.tokens, roles.context,
                   channels, roles.is_choice)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that it feeds."""
        return (self.token,) if self.position is None else (self.token, self.position)

    def named(self, names: Mapping[str, str]) -> "ChipLoop":
        """Return the loop with other names of tensors: those of streams."""
        place = None if self.position is None else names[self.position]
        return replace(self, token=names[self.token], position=place, scores=names[self.scores])

    def to_json(self) -> JsonObject:
        """Return the entry of the manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: JsonObject) -> "ChipLoop":
        """Return the loop of an entry."""
        return cls(**entry)
