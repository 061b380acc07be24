"""One file per board, all facts about it as data; and the hardware between its pins and a design.

Importing this does not import Amaranth: the schedule reads it. The hardware is in
:mod:`~nnef_hw.boards.hardware.top` and what that imports.
"""

import importlib.util
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from nnef_hw.boards.amd7 import ARTY_A7_35, ARTY_A7_100, BASYS3, CMOD_A7, PYNQ_Z2
from nnef_hw.boards.board import Board, Pins
from nnef_hw.boards.colorlight_5a_75b import COLORLIGHT_5A_75B
from nnef_hw.boards.fomu_pvt import FOMU_PVT
from nnef_hw.boards.ice40_hx8k_b_evn import ICE40_HX8K_B_EVN
from nnef_hw.boards.icebreaker import ICEBREAKER
from nnef_hw.boards.icepi_zero import ICEPI_ZERO
from nnef_hw.boards.icesugar import ICESUGAR
from nnef_hw.boards.orangecrab import ORANGECRAB, ORANGECRAB_85F
from nnef_hw.boards.tang_console_138k import TANG_CONSOLE_138K
from nnef_hw.boards.tang_mega_138k import TANG_MEGA_138K
from nnef_hw.boards.tang_nano_9k import TANG_NANO_9K
from nnef_hw.boards.tang_nano_20k import TANG_NANO_20K
from nnef_hw.boards.tang_primer_25k import TANG_PRIMER_25K
from nnef_hw.boards.tinyfpga_bx import TINYFPGA_BX
from nnef_hw.boards.ulx3s import ULX3S_12F, ULX3S_25F, ULX3S_45F, ULX3S_85F
from nnef_hw.boards.upduino_v3 import UPDUINO_V3
from nnef_hw.boards.versa_ecp5 import VERSA_ECP5
from nnef_hw.errors import NnefHwError, UsageError

__all__ = ["ALL", "BOARDS", "Board", "Pins", "find_board", "find_boards"]

ALL = "all"

BOARDS = (
    ICEBREAKER, UPDUINO_V3, ICESUGAR, ICE40_HX8K_B_EVN, TINYFPGA_BX, FOMU_PVT, ULX3S_12F, ULX3S_25F,
    ULX3S_45F, ULX3S_85F, ORANGECRAB, ORANGECRAB_85F, COLORLIGHT_5A_75B, ICEPI_ZERO, VERSA_ECP5,
    TANG_NANO_9K, TANG_NANO_20K, TANG_PRIMER_25K, TANG_MEGA_138K, TANG_CONSOLE_138K,
    ARTY_A7_35, ARTY_A7_100, BASYS3, CMOD_A7, PYNQ_Z2,
)


def find_board(name: str) -> Board:
    """Return the board of a name or alias, in any case of letters, or the one of a Python file.

    Raises
    ------
    UsageError
        If there is none; the message lists all boards.
    """
    if name.endswith(".py"):
        return _board_of_file(Path(name))
    known = {alias: board for board in BOARDS for alias in (board.name, *board.aliases)}
    if name.lower() in known:
        return known[name.lower()]
    close = get_close_matches(name.lower(), known, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    raise UsageError(
        f"board {name!r} is not known",
        remedy=f"{meant}choose one of {', '.join(sorted(known))}, or give a file ./{name}.py")


def find_boards(names: Sequence[str]) -> dict[str, Board]:
    """Return boards by the names that they are asked for; of ``all`` those that are known.

    Raises
    ------
    UsageError
        If one of them is not known.
    """
    known = {board.name: board for board in BOARDS}
    return known if list(names) == [ALL] else {name: find_board(name) for name in names}


def _board_of_file(path: Path) -> Board:
    """Return the board that a user's file defines."""
    if not path.is_file():
        raise UsageError(f"board file {str(path)!r} does not exist", remedy="see docs/boards.md")
    spec = importlib.util.spec_from_file_location("nnef_hw_user_board", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except NnefHwError as error:
        raise UsageError(
            f"board file {str(path)!r}: {error.reason}", remedy=error.remedy or "see docs/boards.md"
        ) from error
    except Exception as error:  # whatever a user's program raises
        raise UsageError(
            f"board file {str(path)!r} fails: {type(error).__name__}: {error}",
            remedy="see docs/boards.md") from error
    boards = [value for value in vars(module).values() if isinstance(value, Board)]
    if len(boards) != 1:
        raise UsageError(
            f"board file {str(path)!r} defines {len(boards)} boards, not one",
            remedy="see docs/boards.md")
    return boards[0]
