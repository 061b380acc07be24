import re
from dataclasses import replace

import pytest

from examples import EXAMPLES
from nnef_hw.codegen.verilog import to_verilog

PARTS = [example.part for example in EXAMPLES["MatrixProduct"].values()]
REGISTER = re.compile(
    r"^ +reg (?:signed )?(?:\[(\d+):0\] )?((?:code_in|sum|code)\d+_\d+)(?: = .*)?;", re.M
)


@pytest.mark.parametrize("chained", [1, 2, 4, 30])
def test_registers_are_those_of_the_estimate(chained):
    part = replace(max(PARTS, key=lambda part: len(part.graph.adders)), chained=chained)
    text = to_verilog(part.build())
    bits = sum(int(top or 0) + 1 for top, _ in REGISTER.findall(text))
    assert bits == part.in_lanes * part.in_bits + part.cuts.bits


def test_chained_adders_are_at_least_one():
    with pytest.raises(ValueError, match="MatrixProduct chained must be at least 1, not 0"):
        replace(PARTS[0], chained=0)
