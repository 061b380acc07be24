# amaranth: UnusedElaboratable=no
"""Contents with which a component cannot be made."""

import re
from dataclasses import replace

import numpy as np
import pytest
from examples.audio import AUDIO
from examples.example import RAM
from examples.requantizers import REQUANTIZERS, TYPICAL
from examples.streams import REQUANTIZER

from nnef_hw import parts
from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.numerics import AddRequant, QType, Requant
from nnef_hw.arithmetic.tflite.division import tflite_quotient
from nnef_hw.parts.functions.corrected_table import corrected_table

U8 = {"in_bits": 8, "in_signed": False, "out_bits": 8, "out_signed": False, "ram": RAM}
KNOTS = parts.InterpolatedTable(**U8 | {"in_bits": 12}, rise_bits=2)
BENT = np.arange(512)
BENT[::2] += 1  # as steep between knots as before
BENT[3::8] -= 2
STRAIGHT = corrected_table(np.arange(512), *[QType(9, False, 1.0)] * 2, RAM)
SUM = parts.EltwiseSum(in_bits=(8, 8), in_signed=(True, True), out_bits=8, out_signed=True)
UNSIGNED = parts.EltwiseSum(in_bits=(8, 8), in_signed=(True, True), out_bits=8, out_signed=False)


def sum_to(lo, hi):
    return {"requant": AddRequant((1, 1), 4, 0, lo, hi), "in_zero_points": (0, 0)}


S4 = {"bits": 4, "signed": True, "ram": RAM}
CONSTANT = parts.Constant(count=2, repeats=1, **S4)
STATE = parts.State(count=2, **S4)

LOOKUP = parts.Lookup(rows=2, channels=2, in_bits=1, bits=4, signed=False, ram=RAM)

NORMALIZATION = parts.IntegerNormalize(
    channels=4, bits=8, signed=True, out_bits=8, out_signed=True, centered=True, scale_bits=8,
    offset_bits=8, scales=1, offsets=1, ram=RAM,
)  # fmt: skip


def normalized(**changes):
    integers = {"channels": 4, "centered": True, "shift": 3, "lo": -128, "hi": 127, **changes}
    return {"requant": IntegerNormalizeRequant(**integers), "scale": [1], "offset": [0]}


SCALED = REQUANTIZERS["Requantizer"]["typical"].part
AVERAGE = REQUANTIZERS["AverageRequantizer"]["verilog"]
REFUSED = {
    "Table needs 256 entries, not 255": (parts.Table(**U8), {"entries": [0] * 255}),
    "Table needs 256 entries, not 257": (parts.Table(**U8), {"entries": [0] * 257}),
    "InterpolatedTable needs 257 knots, not 256": (KNOTS, {"knots": [0] * 256}),
    "InterpolatedTable rises -2..2 do not fit 2 bits": (KNOTS, {"knots": [0, 2, *[0] * 255]}),
    "needs 512 entries, not 511": (STRAIGHT, {"entries": list(range(511))}),
    "corrections -3..0 do not fit 1 bits": (STRAIGHT, {"entries": BENT.tolist()}),
    "TableSum has 15 entries for the 16 codes of b": (
        parts.TableSum(in_bits=(4, 4), in_signed=(True, True), acc_bits=8, ram=RAM),
        {"entries": ([0] * 16, [0] * 15)},
    ),
    "Quotient limits -64..63 must lie within -32..31": (
        parts.Quotient(in_bits=(4, 4), in_signed=(True, True), out_bits=6, out_signed=True,
                       digit_bits=1, ram=RAM),
        {"requant": tflite_quotient((0.5, 0.1), QType(7, True, 0.3, 1)), "in_zero_points": (0, 0)},
    ),
    "EltwiseSum limits -129..127 must lie within -128..127": (SUM, sum_to(-129, 127)),
    "EltwiseSum limits -128..128 must lie within -128..127": (SUM, sum_to(-128, 128)),
    "EltwiseSum limits -128..127 must lie within 0..255": (UNSIGNED, sum_to(-128, 127)),
    "Constant of 4 bits cannot hold 8": (CONSTANT, {"codes": [7, 8]}),
    "Constant needs 2 codes, not 1": (CONSTANT, {"codes": [7]}),
    "State of 4 bits cannot hold 8": (STATE, {"codes": [7, 8]}),
    "State needs 2 codes, not 1": (STATE, {"codes": [7]}),
    "State of equal codes has several": (STATE, {"codes": [7, 6]}),
    "Lookup needs 2 rows of 2 codes": (LOOKUP, {"codes": [[1, 2], [3]]}),
    "Lookup of 4 bits cannot hold 16": (LOOKUP, {"codes": [[1, 2], [3, 16]]}),
    "Requantizer has 2 biases for 3 channels": (SCALED, {"requant": TYPICAL[0], "bias": (1, 2)}),
    "Requantizer has 2 mult for 3 biases": (
        SCALED, {"requant": Requant((1, 2), 23, 7, 0, 255), "bias": TYPICAL[1]},
    ),
    "Requantizer factors have 17 bits, not 16": (
        SCALED, {"requant": Requant((1 << 16,), 23, 7, 0, 255, 17), "bias": TYPICAL[1]},
    ),
    "Requantizer has 2 offsets for 3 biases": (
        SCALED, {"requant": replace(TYPICAL[0], offset=(1, 0)), "bias": TYPICAL[1]},
    ),
    "Requantizer offsets have 1 bits, not 0": (
        SCALED, {"requant": replace(TYPICAL[0], offset=(1,)), "bias": TYPICAL[1]},
    ),
    "IntegerNormalize has channels, mean, scales and offsets (5, True, 1, 1)": (
        NORMALIZATION, normalized(channels=5),
    ),
    "IntegerNormalize limits results to -128..126, not to -128..127": (
        NORMALIZATION, normalized(hi=126),
    ),
    "AverageRequantizer has 4 mult, positions up to 4": (
        AVERAGE.part, {**AVERAGE.contents, "positions": [[0, 4]]},
    ),
    "LogMel has window, hop, points, weights and power (32, 16, 32": (
        AUDIO["LogMel"]["radix 2 first"].part, AUDIO["LogMel"]["radix 4"].contents,
    ),
    "2 copies, not 0": (parts.Lanes(part=REQUANTIZER, lanes=2), {"copies": []}),
}  # fmt: skip


@pytest.mark.parametrize(("message", "case"), REFUSED.items(), ids=REFUSED)
def test_refuses(message, case):
    part, contents = case
    with pytest.raises(ValueError, match=re.escape(message)):
        part.component_class()(part, **contents)
