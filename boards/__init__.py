"""One file per board: pins, clock generation and host link."""

from difflib import get_close_matches

from nnef_hw.boards.board import Board
from nnef_hw.boards.core import LinkedCore
from nnef_hw.boards.icebreaker import ICEBREAKER
from nnef_hw.boards.ulx3s import ULX3S_12F, ULX3S_25F, ULX3S_45F, ULX3S_85F
from nnef_hw.errors import UsageError

__all__ = ["BOARDS", "Board", "LinkedCore", "get_board"]

BOARDS = {board.name: board for board in (ICEBREAKER, ULX3S_12F, ULX3S_25F, ULX3S_45F, ULX3S_85F)}


def get_board(name):
    """Board of a name or alias, in any case of letters.

    Raises
    ------
    UsageError
        When there is none; names the boards, and the one that was probably meant.
    """
    known = {alias: board for board in BOARDS.values() for alias in (board.name, *board.aliases)}
    if name.lower() in known:
        return known[name.lower()]
    close = get_close_matches(name.lower(), known, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    raise UsageError(f"there is no board {name!r}", remedy=f"{meant}boards: {', '.join(BOARDS)}")
