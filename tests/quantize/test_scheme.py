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


@pytest.mark.parametrize("bits", range(2, 9))
def test_weights_use_the_whole_narrow_range_of_each_channel(bits, rng):
    weights = rng.standard_normal((4, 3, 3, 3)) * np.array([1, 2, 0.5, 0.7]).reshape(4, 1, 1, 1)
    codes, qtype = Scheme(weight_bits=bits).weights(weights, np.zeros(4), 0.1)
    top = 2 ** (bits - 1) - 1
    assert (np.abs(codes.reshape(4, -1)).max(axis=1) == top).all()
    step = np.array(qtype.scale).reshape(4, 1, 1, 1)
    assert (np.abs(qtype.dequantize(codes) - weights) <= step * 0.5 + 1e-12).all()


def test_dead_channels_take_the_scale_of_others(rng):
    weights = np.stack([np.zeros(9), rng.standard_normal(9)])
    codes, qtype = Scheme().weights(weights, [0.0, 0.0], 0.1)
    assert qtype.scale[0] == qtype.scale[1]
    assert not codes[0].any()


def test_an_all_zero_filter_has_a_format():
    codes, qtype = Scheme().weights(np.zeros((2, 3)), [0.0, 0.0], 0.1)
    assert qtype.scale == (1.0, 1.0)
    assert not codes.any()


def test_small_channels_keep_precise_multipliers_and_short_biases():
    weights = np.array([[1.0], [1e-9], [1e-9]])
    _, qtype = Scheme().weights(weights, [0.0, 0.0, 50.0], 0.01)
    assert qtype.scale[1] >= qtype.scale[0] / 512
    assert 50.0 / (0.01 * qtype.scale[2]) <= 2**23


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight_bits": 9}, "weight_bits must be in 2..8, not 9"),
        ({"activation_bits": 17}, "activation_bits must be in 2..16, not 17"),
        ({"mult_bits": 1}, "mult_bits must be in 8..24, not 1"),
        ({"clipping": "none"}, "clipping must be 'minmax' or 'mse', not 'none'"),
        ({"headroom": -0.1}, "headroom must be in 0..10, not -0.1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_impossible_schemes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Scheme(**arguments)
