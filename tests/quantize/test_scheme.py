import re

import numpy as np
import pytest

from nnef_hw.quantize import Scheme


@pytest.mark.parametrize("bits", [2, 4, 8, 12, 16])
@pytest.mark.parametrize("limits", [(-3.0, 5.0), (0.0, 6.0), (-2.0, 0.0), (1.0, 5.0), (-5.0, -1.0)])
def test_activation_ranges_contain_zero_exactly(bits, limits):
    qtype = Scheme(activation_bits=bits).activation(*limits)
    assert (qtype.bits, qtype.signed) == (bits, False)
    assert qtype.dequantize([qtype.zero_point]) == 0.0
    ends = qtype.dequantize([qtype.lo, qtype.hi])
    assert ends[0] == pytest.approx(min(limits[0], 0.0), abs=0.51 * qtype.scale)
    assert ends[1] == pytest.approx(max(limits[1], 0.0), abs=0.51 * qtype.scale)


def test_non_negative_activations_have_zero_point_zero():
    assert Scheme().activation(0.0, 3.0).zero_point == 0
    assert Scheme().activation(0.5, 3.0).zero_point == 0


@pytest.mark.parametrize("limits", [(0.0, 0.0), (0.0, 1e-300)])
def test_ranges_of_nothing_have_a_format(limits):
    assert Scheme().activation(*limits).scale == 1.0


@pytest.mark.parametrize("bits", [2, 8, 16])
@pytest.mark.parametrize(
    ("limits", "signed"), [((0.0, 5.0), False), ((-3.0, 5.0), True), ((-5.0, 0.0), True)]
)
def test_symmetric_activations_have_zero_point_zero(bits, limits, signed):
    qtype = Scheme(activation_bits=bits, symmetric=True).activation(*limits)
    assert (qtype.signed, qtype.zero_point) == (signed, 0)
    ends = qtype.dequantize([qtype.lo, qtype.hi])
    assert ends[0] <= limits[0] + 1e-12
    assert ends[1] >= limits[1] - 1e-12


@pytest.mark.parametrize("limits", [(-3.0, 5.0), (0.0, 6.0), (-0.1, 0.2), (0.0, 255 / 64)])
def test_powers_of_two_are_the_least_that_cover_a_range(limits):
    scale = Scheme(power_of_two=True).activation(*limits).scale
    needed = (limits[1] - limits[0]) / 255
    assert np.log2(scale) == round(np.log2(scale))
    assert needed <= scale < 2 * needed


def test_layers_may_have_values_of_their_own():
    scheme = Scheme(4, layers={"c1": {"weight_bits": 8, "symmetric": True}})
    assert scheme.of("c1") == Scheme(8, symmetric=True)
    assert scheme.of("c2") == scheme


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight_bits": 9}, "weight_bits must be in 1..8, not 9"),
        ({"activation_bits": 17}, "activation_bits must be in 2..16, not 17"),
        ({"mult_bits": 0}, "mult_bits must be in 1..31, not 0"),
        ({"calibration": "max"}, "calibration must be 'minmax', 'percentile', 'mse' or 'entropy'"),
        ({"weight_rounding": "up"}, "weight_rounding must be 'adaptive' or 'nearest', not 'up'"),
        ({"layers": {"c1": {"weight_bits": 0}}}, "weight_bits must be in 1..8, not 0"),
        ({"headroom": -0.1}, "headroom must be in 0..10, not -0.1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_impossible_schemes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Scheme(**arguments)
