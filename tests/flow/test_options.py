"""The clock that a build asks for first, as options say before anything is read."""

import pytest

from nnef_hw.boards.interfaces import Uart
from nnef_hw.errors import TargetError
from nnef_hw.flow.options import BuildOptions, check_options


def options(tmp_path, **wishes):
    return BuildOptions(
        model=tmp_path / "model.nnef", board="icebreaker", out=tmp_path / "build", **wishes
    )


@pytest.mark.parametrize(("baud", "clock_mhz"), [(1_000_000, 36.75), (3_000_000, 36.0)])
def test_the_first_clock_is_one_that_the_link_works_with(baud, clock_mhz, tmp_path):
    assert check_options(options(tmp_path, link=Uart(baud))).clock_mhz == clock_mhz


def test_a_clock_that_was_asked_for_stays(tmp_path):
    with pytest.raises(TargetError, match=r"off by 2\.1%"):
        check_options(options(tmp_path, link=Uart(3_000_000), clock_mhz=36.75))


def test_a_rate_that_no_clock_makes_is_refused_for_the_first_one(tmp_path):
    with pytest.raises(TargetError, match="needs a clock of at least"):
        check_options(options(tmp_path, link=Uart(40_000_000)))
