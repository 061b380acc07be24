"""What the compiler knows of a board is what the board's own file says."""

import pytest

from nnef_hw.boards import get_board
from nnef_hw.codegen.board import check_clock
from nnef_hw.errors import TargetError
from nnef_hw.schedule import TARGETS


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_targets_agree_with_boards(target):
    board = get_board(target.name)
    assert (board.family, board.device, board.package) == (
        target.device.family,
        target.part,
        target.package,
    )
    assert board.default_mhz == target.clock_mhz
    assert all(get_board(alias) is board for alias in target.aliases)


def test_impossible_clock_names_the_nearest():
    with pytest.raises(TargetError, match=r"cannot make 23\.456 MHz .* nearest possible: 23\.25"):
        check_clock("icebreaker", 23.456)
