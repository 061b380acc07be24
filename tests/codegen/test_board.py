import pytest

from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.board import check_clock
from nnef_hw.errors import TargetError


def test_impossible_clock_names_the_nearest():
    with pytest.raises(TargetError, match=r"cannot make 23\.456 MHz .* nearest possible: 23\.25"):
        check_clock(find_board("icebreaker"), 23.456)


def test_rate_that_does_not_divide_the_clock_is_refused():
    with pytest.raises(TargetError, match=r"at 7000000 baud needs a clock .* --freq or --baud"):
        check_clock(find_board("icebreaker"), 24, [Uart(7_000_000)])
