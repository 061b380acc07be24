"""Operators of tract: how they are called, and what NumPy says they make."""

import math
import re

import numpy as np

POOL = {
    "x": (2, 3), "y": (2, 3), "u": (2, 3), "n": (2, 3), "k": (2, 3), "flag": (2, 3),
    "a": (1, 4, 6), "b": (1, 2, 4, 4), "s6": (6,), "pre": (2, 8), "c": (2, 2), "g": (2, 6),
    "r": (6, 2), "w": (6, 3), "bias": (1, 12), "t": (2, 5, 3), "h0": (2, 1, 2),
    "q4": (1, 4, 3, 2), "k4": (1, 2, 5, 2), "grid": (1, 3, 3, 2), "kernel": (4, 2, 2, 2),
    "grouped": (4, 1, 2, 2), "q8": (1, 1, 3), "k1": (1, 3), "rows": (3, 3), "s2": (1, 1, 3),
}  # fmt: skip
"""Inputs by name, with their shapes; ``u`` and ``k1`` are positive."""
TYPES = {"n": "i64", "k": "i64", "q8": "i8", "flag": "bool"}
"""Those that are not floats, with tract's names of their types."""

REGISTRIES = ("core", "transformers", "extra", "onnx")


def document_of(call):
    """Return a document of one invocation, and the names of its inputs."""
    words = re.findall(r"\b(\w+)\b(?! = )", call)
    inputs = list(dict.fromkeys(word for word in words if word in POOL))
    pair = re.match(r"tract_core_(topk|lstm_epilogue|gru_seq)\(", call)
    outputs = "first, second" if pair else "first"
    lines = [f"extension tract_registry tract_{name};" for name in REGISTRIES]
    externals = [
        f"{name} = tract_core_external(shape = {list(POOL[name])}, "
        f"datum_type = '{TYPES.get(name, 'f32')}');"
        for name in inputs
    ]
    return (
        f"version 1.0; {''.join(lines)} graph net({', '.join(inputs)}) -> ({outputs})"
        f"{{ {''.join(externals)} {outputs} = {call}; }}"
    ), inputs


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def hard_swish(x):
    return x * np.clip(x + 3, 0, 6) / 6


def gelu(x, power):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**power)))


def rms_norm(x, eps=1e-6):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def lstm_epilogue(pre, c):
    i, o, f, g = np.split(pre, 4, 1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru_step(xh, rh, h):
    (xz, xr, xn), (rz, rr, rn) = np.split(xh, 3, -1), np.split(rh, 3, -1)
    n = np.tanh(xn + sigmoid(xr + rr) * rn)
    return n + sigmoid(xz + rz) * (h - n)


def gru_sequence(x, w, r, bias, h, step=1):
    outputs, h = {}, h[:, 0]
    for time in range(x.shape[1])[::step]:
        h = gru_step(x[:, time] @ w.T + bias[:, :6], h @ r.T + bias[:, 6:], h)
        outputs[time] = h
    return np.stack([outputs[time] for time in sorted(outputs)], 1), h[:, None]


def attention(q, k, v, mask=0.0, scale=None):
    k, v = (np.repeat(part, q.shape[1] // k.shape[1], 1) for part in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    return softmax(scores + mask) @ v


def causal(rows, columns):
    later = np.arange(columns) > np.arange(rows)[:, None] + columns - rows
    return np.where(later, -np.inf, 0)


def running(x, state, function, alpha=0.9):
    """Normalize along axis 1 by an average that starts at ``state``."""
    outputs = []
    for index in range(x.shape[1]):
        state, y = function(x[:, index], state, alpha)
        outputs.append(y)
    return np.stack(outputs, 1)


def unit(x, state, alpha):
    return divided(x, abs(x), state, alpha)


def complex_unit(x, state, alpha):
    return divided(x, np.sqrt((x**2).sum(-1, keepdims=True)), state, alpha)


def divided(x, norm, state, alpha):
    state = np.maximum(norm, 1e-14) * (1 - alpha) + state * alpha
    return state, x / np.sqrt(state)


def mean(x, state, alpha):
    state = x * (1 - alpha) + state * alpha
    return state, (x - state) / 40


def transposed_conv(x, kernel, groups=1):
    """Stride 2, a filter [outputs, inputs / groups, 2, 2]."""
    batch, channels, height, width = x.shape
    result = np.zeros((batch, len(kernel), 2 * height, 2 * width))
    per_in, per_out = channels // groups, len(kernel) // groups
    for group in range(groups):
        part = x[:, group * per_in :][:, :per_in]
        taps = kernel[group * per_out :][:per_out]
        for i in range(2):
            for j in range(2):
                product = np.einsum("nchw,oc->nohw", part, taps[:, :, i, j])
                result[:, group * per_out :, i::2, j::2][:, :per_out] = product
    return result


def spectrum(x, axis, function=np.fft.fft):
    found = function(x[..., 0] + 1j * x[..., 1], axis=axis)
    return np.stack([found.real, found.imag], -1)


def grid_sample(b, grid, border):
    """Bilinear, corners not aligned."""
    found = np.zeros((1, 2, 3, 3))
    for i, j in np.ndindex(3, 3):
        x, y = ((grid[0, i, j] + 1) * 4 - 1) / 2
        if border:
            x, y = np.clip([x, y], 0, 3)
        for row in (math.floor(y), math.floor(y) + 1):
            for column in (math.floor(x), math.floor(x) + 1):
                if 0 <= row < 4 and 0 <= column < 4:
                    weight = (1 - abs(x - column)) * (1 - abs(y - row))
                    found[0, :, i, j] += weight * b[0, :, row, column]
    return found


def codes(values, scale, zero):
    return np.clip(np.rint(values / scale) + zero, -128, 127)


erf = np.vectorize(math.erf, otypes=[float])
CASES = {
    "arithmetic": ("(n + k) / 2 - n * 3", lambda n, k: np.trunc((n + k) / 2) - n * 3),
    "integer_meets_scalar": ("n * 0.5 + x", lambda n, x: n * 0.5 + x),
    "comparison": ("select(n >= 0, n, k)", lambda n, k: np.where(n >= 0, n, k)),
    "select_by_integer": ("select(n, x, 0.0)", lambda n, x: np.where(n != 0, x, 0)),
    "logicals_are_counted": ("flag + flag", lambda flag: flag * 2),
    "square": ("square(x) + recip(u)", lambda x, u: x**2 + 1 / u),
    "erf": ("tract_core_erf(x)", erf),
    "round_even": ("tract_core_round_even(x * 2.5)", lambda x: np.rint(x * 2.5)),
    "is_nan": ("tract_core_is_nan(x)", np.isnan),
    "is_inf": ("tract_core_is_inf(x / 0.0, detect_negative = false)", lambda x: x > 0),
    "xor": ("tract_core_xor(x > 0.0, flag)", lambda x, flag: (x > 0) ^ flag),
    "bitwise": ("tract_core_bitand(n, tract_core_bitxor(k, tract_core_bitnot(n)))",
                lambda n, k: n & (k ^ ~n)),
    "bitor": ("tract_core_bitor(n, k)", lambda n, k: n | k),
    "shift": ("tract_shr(tract_shl(n, 3), 1)", lambda n: n << 3 >> 1),
    "pow_const": ("tract_core_pow_const(u, exponent = 2.5)", lambda u: u**2.5),
    "hard_swish": ("tract_core_hard_swish(3.0 * x)", lambda x: hard_swish(3 * x)),
    "silu": ("tract_core_silu(x)", lambda x: x * sigmoid(x)),
    "gelu_approx": ("tract_core_gelu_approx(x, fast_impl = false)", lambda x: gelu(x, 3)),
    "gelu_fast": ("tract_core_gelu_approx(x, fast_impl = true)", lambda x: gelu(x, 2)),
    "clamped_swiglu": ("tract_core_clamped_swiglu(x, y, alpha = 1.7, limit = 0.5)",
                       lambda x, y: np.minimum(x, 0.5) * sigmoid(1.7 * np.minimum(x, 0.5))
                       * (np.clip(y, -0.5, 0.5) + 1)),
    "softmax": ("tract_core_softmax(x, axes = [1], exp = 'libc')", softmax),
    "softmax_by_position": ("softmax(x, 1)", softmax),
    "log_softmax": ("tract_core_log_softmax(x, axes = [1])", lambda x: np.log(softmax(x))),
    "rms_norm": ("tract_core_rms_norm(x, axis = 1, eps = 0.01)", lambda x: rms_norm(x, 0.01)),
    "scaled_rms_norm": ("tract_core_scaled_rms_norm(a, s6, axis = 2)",
                        lambda a, s6: rms_norm(a) * s6),
    "product_reduce": ("tract_core_product_reduce(x, axes = [1])",
                       lambda x: x.prod(1, keepdims=True)),
    "argmax_last": ("tract_core_argmax_reduce_last(n, axes = [1])",
                    lambda n: 2 - n[:, ::-1].argmax(1, keepdims=True)),
    "cumsum": ("tract_core_cumsum(x, axis = 1, exclusive = true, reverse = true)",
               lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1] - x),
    "gather": ("tract_core_gather(x, [-1, 0], axis = 1)", lambda x: x[:, [-1, 0]]),
    "gather_scalar": ("tract_core_gather(a, -1, axis = 1)", lambda a: a[:, -1]),
    "gather_elements": ("tract_core_gather_elements(x, [[0.0], [-1.0]], axis = 1)",
                        lambda x: x[[0, 1], [0, -1]][:, None]),
    "gather_nd": ("tract_core_gather_nd(x, [[1, 2], [0, 0]], batch_dims = 0)",
                  lambda x: x[[1, 0], [2, 0]]),
    "scatter_elements": ("tract_core_scatter_elements(x, [[1], [2]], [[5.0], [6.0]], axis = 1)",
                         lambda x: np.where([[0, 1, 0], [0, 0, 1]], [[5], [6]], x)),
    "scatter_nd": ("tract_core_scatter_nd(x, [[1]], [[7.0, 8.0, 9.0]])",
                   lambda x: np.stack([x[0], [7, 8, 9]])),
    "topk": ("tract_core_topk(x, k = 2, axis = 1, largest = false)",
             lambda x: (np.sort(x, 1)[:, :2], np.argsort(x, 1)[:, :2])),
    "one_hot": ("tract_core_one_hot(n * 0 + 1, axis = 2, dim = 3, value_off = 0.5)",
                lambda n: np.broadcast_to([0.5, 1, 0.5], (2, 3, 3))),
    "trilu": ("tract_core_trilu(x, k = 1, upper = true)", lambda x: np.triu(x, 1)),
    "dyn_slice": ("tract_core_dyn_slice(x, 1, 3, axis = 1, len = 2)", lambda x: x[:, 1:3]),
    "downsample": ("tract_core_downsample(a, axis = 2, stride = 2, modulo = 1)",
                   lambda a: a[:, :, 1::2]),
    "slice_to_end": ("slice(a, axes = [2], begin = [-3], end = [0], stride = [2])",
                     lambda a: a[:, :, -3::2]),
    "slice_negative_end": ("slice(a, axes = [1, 2], begin = [0, 1], end = [-1, -2])",
                           lambda a: a[:, :-1, 1:-2]),
    "shape_of": ("reshape(a, shape = [1, tract_core_shape_of(a)[1] * 2, -1])",
                 lambda a: a.reshape(1, 8, 3)),
    "unsqueeze_repeated": ("unsqueeze(a, axes = [4, 1, 1])",
                           lambda a: a[:, None, None, :, None]),
    "squeeze_repeated": ("squeeze(unsqueeze(a, axes = [1, 2, 4]), axes = [1, 1])",
                         lambda a: a[:, :, None]),
    "range": ("x + tract_core_cast(unsqueeze(tract_core_range(0, 3, 1), axes = [0]), to = 'f32')",
              lambda x: x + np.arange(3)),
    "broadcast": ("x + tract_core_broadcast([[2.0]], shape = [2, 3])", lambda x: x + 2),
    "cast_to_integer": ("tract_core_cast(x * 9.0, to = 'i64')", lambda x: np.trunc(x * 9)),
    "cast_to_logical": ("tract_core_cast(n, to = 'bool')", lambda n: n != 0),
    "concat": ("concat([n, tract_core_cast(k, to = 'i64')], axis = 0)",
               lambda n, k: np.concatenate([n, k])),
    "einsum": ("tract_core_einsum([x, y], expr = 'mk,nk->nm', acc = 'f32', output = '')",
               lambda x, y: y @ x.T),
    "einsum_q": (
        ("tract_core_einsum_q([q8, tract_core_cast([[1, 2], [3, 4], [-5, 6]], to = 'i8')],"
         " expr = 'bmk,kn,,,,,,,->bmn', acc = 'i32', bias = tract_core_cast(2, to = 'i32'), a0 = 1,"
         " a_scale = 0.5, b0 = 1, b_scale = 2.0, c0 = 3, c_scale = 0.75, output = 'i8')"),
        lambda q8: codes((q8 - 1.0) @ np.array([[0, 1], [2, 3], [-6, 5]]) + 2, 0.75, 3)),
    "qconv": (
        ("tract_core_qconv(q8, tract_core_cast([[[1, 2]], [[3, 4]]], to = 'i8'),"
         " tract_core_cast([2, 3], to = 'i32'), groups = 1, dilation = [1], stride = [1],"
         " padding = [[0, 0]], border = 'constant', a0 = 1, a_scale = 0.5, b0 = 1, b_scale = 2.0,"
         " c0 = 3, c_scale = 0.75, output_dt = 'i8')"),
        lambda q8: codes(np.stack([
            (q8[:, 0, :-1] - 1) * first + (q8[:, 0, 1:] - 1) * second + bias
            for first, second, bias in [(0, 1, 2), (2, 3, 3)]], 1), 0.75, 3)),
    "deconv": ("deconv(b, kernel, stride = [2, 2], padding = [(0, 0), (0, 0)])",
               lambda b, kernel: transposed_conv(b, kernel)),
    "deconv_constant": (
        "deconv(s2, [[[1.0, 2.0]], [[3.0, 4.0]]], 0.0, stride = [2], padding = [(0, 0)])",
        lambda s2: np.stack([s2[:, 0, :, None] * [1, 2], s2[:, 0, :, None] * [3, 4]], 1)
        .reshape(1, 2, 6)),
    "deconv_groups": (
        "deconv(b, grouped, stride = [2, 2], padding = [(0, 0), (0, 0)], groups = 2)",
        lambda b, grouped: transposed_conv(b, grouped, 2)),
    "max_pool_leaves_out_the_border": (
        ("max_pool(b - 9.0, size = [1, 1, 3, 1], padding = [(0, 0), (0, 0), (1, 1), (0, 0)],"
        " stride = [1, 1, 1, 1], dilation = [1, 1, 1, 1], border = 'constant')"),
        lambda b: np.max([np.pad(b - 9, [(0, 0)] * 2 + [(1, 1), (0, 0)],
                                 constant_values=-np.inf)[:, :, i:][:, :, :4]
                          for i in range(3)], 0)),
    "pad_replicated": ("pad(x, padding = [[0, 0], [1, 2]], border = 'replicated')",
                       lambda x: np.pad(x, [(0, 0), (1, 2)], "edge")),
    "resize_sizes": (
        ("tract_core_resize(b, sizes = [1, 2, 8, 4], interpolator = 'nearest',"
        " coord_transformer = 'asymmetric', nearest_mode = 'floor')"),
        lambda b: np.repeat(b, 2, 2)),
    "onnx_resize": (
        ("tract_onnx_resize(b, scales = [1.0, 1.0, 1.0, 2.0], interpolator = 'nearest',"
         " coord_transformer = 'asymmetric', nearest_mode = 'floor')"),
        lambda b: np.repeat(b, 2, 3)),
    "lstm_epilogue": ("tract_core_lstm_epilogue(pre, c, hidden = 2)", lstm_epilogue),
    "gru_epilogue": ("tract_core_gru_epilogue(g, g, c, hidden = 2)",
                     lambda g, c: gru_step(g, g, c)),
    "gru_seq": (
        ("tract_core_gru_seq(x = t, w = w, r = r, b = bias, initial_h = h0, hidden = 2, chunk = 1,"
        " has_bias = 1, reset_every_turn = 0, emit_y = 1, projected = 0)"), gru_sequence),
    "gru_seq_backwards": (
        ("tract_core_gru_seq(x = t, w = w, r = r, b = bias, initial_h = h0, hidden = 2, chunk = -1,"
        " has_bias = 1, reset_every_turn = 0, emit_y = 1, projected = 0)"),
        lambda *inputs: gru_sequence(*inputs, step=-1)),
    "gru_seq_without_bias": (
        ("tract_core_gru_seq(x = t, w = w, r = r, initial_h = h0, hidden = 2, chunk = 1,"
         " has_bias = 0)"),
        lambda t, w, r, h0: gru_sequence(t, w, r, np.zeros((1, 12)), h0)),
    "exp_unit_norm_complex": (
        ("tract_extra_exp_unit_norm(q4, k1, axis = 1, alpha = 0.9, stateless = true,"
         " complex = true)"),
        lambda q4, k1: running(q4, k1[..., None], complex_unit)),
    "exp_unit_norm": ("tract_extra_exp_unit_norm(t, u, axis = 1, alpha = 0.9, stateless = true)",
                      lambda t, u: running(t, u, unit)),
    "exp_mean_norm": (
        ("tract_extra_exp_mean_norm(t, x, axis = 1, alpha = 0.9, stateless = true,"
        " scaling_factor = 40.0)"), lambda t, x: running(t, x, mean)),
    "sdpa_shared_heads": (
        ("tract_transformers_sdpa(q4, k4, k4, datum_type = 'f32', acc_datum_type = 'f32',"
        " is_causal = false)"), lambda q4, k4: attention(q4, k4, k4)),
    "sdpa_causal": (
        ("tract_transformers_sdpa(q4, k4, k4, datum_type = 'f32', acc_datum_type = 'f32',"
        " is_causal = true, scale = 0.7)"),
        lambda q4, k4: attention(q4, k4, k4, causal(3, 5), 0.7)),
    "sdpa_mask": (
        ("tract_transformers_sdpa(q4, q4, q4, rows, datum_type = 'f32', acc_datum_type = 'f32',"
         " is_causal = false)"), lambda q4, rows: attention(q4, q4, q4, rows)),
    "softmax_of_masked": (
        "tract_transformers_scaled_masked_softmax(x, y, scale = 0.5, post_softmax_mask = false)",
        lambda x, y: softmax(x / 2 + y)),
    "masked_softmax": (
        "tract_transformers_scaled_masked_softmax(x, flag, scale = 0.5, post_softmax_mask = true)",
        lambda x, flag: np.nan_to_num(softmax(np.where(flag, x / 2, -1e30)) * flag)),
    "apply_rope": ("tract_transformers_apply_rope(a, a, a)",
                   lambda a: a * a + np.concatenate([-a[..., 3:], a[..., :3]], -1) * a),
    "fft": ("tract_core_fft(q4, axis = 1, inverse = false)", lambda q4: spectrum(q4, 1)),
    "inverse_fft": ("tract_core_fft(q4, axis = 2, inverse = true)",
                    lambda q4: spectrum(q4, 2, np.fft.ifft) * 3),
    "stft": ("tract_core_stft(k4, axis = 2, frame = 3, stride = 2, window = [1.0, 2.0])",
             lambda k4: spectrum(np.stack([k4[:, :, :3], k4[:, :, 2:]], 2)
                                 * np.reshape([1, 2, 0], (3, 1)), 3)),
    "grid_sample": ("tract_core_grid_sample(b, grid, mode = 'bilinear', padding_mode = 'zeros')",
                    lambda b, grid: grid_sample(b, grid, False)),
    "grid_sample_border": (
        "tract_core_grid_sample(b, grid, mode = 'bilinear', padding_mode = 'border')",
        lambda b, grid: grid_sample(b, grid, True)),
    "lrn": ("tract_onnx_lrn(b, alpha = 0.5, beta = 0.75, bias = 1.0, size = 3)",
            lambda b: b / (1 + 0.5 / 3 * (b**2).sum(1, keepdims=True)) ** 0.75),
}  # fmt: skip
"""Invocation, and what makes the expected result or results."""

NOT_COMPARED = {
    "arithmetic": "tract's result is a dimension, which it does not hand out",
    "integer_meets_scalar": "tract makes 0 of 0.5 here",
    "select_by_integer": "tract takes logicals only",
    "logicals_are_counted": "tract does not add logicals",
    "gru_seq_without_bias": "tract 0.23.9 stops the process",
    "shift": "tract takes the 3 for a dimension and does not shift by it",
    "slice_to_end": "tract 0.23.9 fails at a negative begin",
}
"""What tract does not compute."""
