import re
from dataclasses import replace

import numpy as np
import pytest

from examples import EXAMPLES
from nnef_hw.codegen.verilog import to_verilog

PART = EXAMPLES["DepthwiseArray"]["whole window"].part


@pytest.mark.parametrize(("lut_ram", "style"), [(True, "distributed"), (False, "logic")])
def test_sums_wait_in_lut_ram_if_there_is_any(lut_ram, style):
    array = replace(PART, lut_ram=lut_ram).build(weights=np.ones((6, 9), int))
    text = to_verilog(array)
    assert re.findall(r'ram_style = "(\w+)" \*\)\n *reg \[.*\] waiting ', text) == [style]


@pytest.mark.parametrize("kind", ["DepthwiseArray", "SystolicArray"])
def test_refuses_weights_of_another_shape(kind):
    example = next(iter(EXAMPLES[kind].values()))
    weights = example.contents["weights"]
    message = f"{kind} needs weights of shape {weights.shape}, not {weights.T.shape}"
    with pytest.raises(ValueError, match=re.escape(message)):
        example.part.build(weights=weights.T)
