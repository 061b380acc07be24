"""How torch_to_nnef's fragments are called, and what NumPy says they make."""

import math

import numpy as np

POOL = {
    "x": (2, 3), "y": (2, 3), "z": (2, 3), "u": (2, 3), "w": (2, 3), "v3": (3,), "v4": (4,),
    "m24": (2, 4), "m34": (3, 4), "b22": (2, 2), "c223": (2, 2, 3), "b23": (2, 3, 4),
    "b24": (2, 4, 4), "h18": (1, 2), "t513": (5, 1, 3), "w123": (1, 2, 3), "w122": (1, 2, 2),
    "k112": (1, 1, 2), "h122": (1, 2, 2), "g4": (2, 4, 3), "gi": (6, 3), "gh": (6, 2),
    "li": (8, 3), "lh": (8, 2), "r6": (1, 6), "r8": (1, 8), "a5124": (5, 1, 2, 4),
    "a512": (5, 1, 2), "a514": (5, 1, 4), "a124": (1, 2, 4), "a1244": (1, 2, 4, 4),
    "d5124": (5, 1, 2, 4), "im": (1, 1, 4), "k2": (2, 1, 2), "h2": (2, 2), "first": (2, 1),
}  # fmt: skip
"""Inputs by name, with their shapes. ``u`` and ``w`` are between 0.1 and 0.9, ``first`` is 0."""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elementwise(function):
    return np.vectorize(function, otypes=[float])


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def normalized(x, axes, eps=1e-5):
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + eps)


def digamma(x):
    return (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5


def bessel1(x):
    angle = np.linspace(0, np.pi, 20001)
    return np.trapezoid(np.exp(x * np.cos(angle)) * np.cos(angle), angle) / np.pi


def rnn(x, h, w, u, b, function):
    outputs = []
    for row in x:
        h = function(row @ w.T + b + h @ u.T)
        outputs.append(h)
    return np.stack(outputs), h


erf = elementwise(math.erf)
CALLS = {
    "addbmm": ("addbmm(m34, b23, b24, alpha = 2.0, beta = 0.5)",
               lambda m34, b23, b24: 0.5 * m34 + 2 * (b23 @ b24).sum(0)),
    "addcdiv": ("addcdiv(x, y, u, value = 2.0)", lambda x, y, u: x + 2 * y / u),
    "addcmul": ("addcmul(x, y, z)", lambda x, y, z: x + y * z),
    "addmm": ("addmm(m24, x, m34, alpha = 2.0, beta = 3.0)",
              lambda m24, x, m34: 3 * m24 + 2 * x @ m34),
    "addmv": ("addmv(v3, m34, v4, alpha = 2.0, beta = 3.0)",
              lambda v3, m34, v4: 3 * v3 + 2 * m34 @ v4),
    "addr": ("addr(m34, v3, v4, alpha = 2.0, beta = 3.0)",
             lambda m34, v3, v4: 3 * m34 + 2 * np.outer(v3, v4)),
    "angle": ("angle(b22, axis = 1)", lambda b22: np.arctan2(b22[:, 1], b22[:, 0])),
    "atan2": ("atan2(x, y)", lambda x, y: np.arctan2(x, y)),
    "binary_cross_entropy": ("binary_cross_entropy(u, w)",
                             lambda u, w: -w * np.log(u) - (1 - w) * np.log(1 - u)),
    "binary_cross_entropy_with_logits": (
        "binary_cross_entropy_with_logits(x, w)",
        lambda x, w: -w * np.log(sigmoid(x)) - (1 - w) * np.log(1 - sigmoid(x))),
    "cdist": ("cdist(x, y, a_axis = 1, b_axis = 0, reduce_axis = 2)",
              lambda x, y: np.linalg.norm(x[:, None] - y[None], axis=2)),
    "celu": ("celu(x, alpha = 0.5)", lambda x: np.where(x > 0, x, 0.5 * np.expm1(x / 0.5))),
    "complex": ("complex(x, y, axis = 2)", lambda x, y: np.stack([x, y], 2)),
    "conjugate": ("conjugate(b22, axis = 1)", lambda b22: b22 * [1, -1]),
    "copysign": ("copysign(x, y)", lambda x, y: np.copysign(x, y)),
    "cosine_embedding_loss": (
        "cosine_embedding_loss(x, y, [1.0, -1.0], margin = 0.1, feature_axis = 1)",
        lambda x, y: np.where([True, False], 1 - cosine(x, y), np.maximum(cosine(x, y) - 0.1, 0))),
    "cosine_similarity": ("cosine_similarity(x, y, axis = 1)", lambda x, y: cosine(x, y)),
    "cross": ("cross(x, y, axis = 1)", lambda x, y: np.cross(x, y)),
    "cummax": ("tract_cummax_values(x, first, axis = 1)",
               lambda x, first: np.maximum.accumulate(np.maximum(x, 0), 1)),
    "cummin": ("tract_cummin_values(x, first, axis = 1)",
               lambda x, first: np.minimum.accumulate(np.minimum(x, 0), 1)),
    "cumprod": ("tract_cumprod(x, first + 1.0, axis = 1)", lambda x, first: np.cumprod(x, 1)),
    "cumsum": ("tract_cumsum(x, first, axis = 1)", lambda x, first: np.cumsum(x, 1)),
    "digamma": ("digamma(u)", lambda u: elementwise(digamma)(u)),
    "dist": ("dist(x, y, axes = [0, 1], p = 3.0)", lambda x, y: (abs(x - y) ** 3).sum() ** (1 / 3)),
    "dyn_slice": ("dyn_slice(x, 1, -2, 3, 1)", lambda x: x[:, 1:]),
    "dyn_slice_begin": ("dyn_slice_begin(x, 1, 1, 1)", lambda x: x[:, 1:]),
    "elu": ("elu(x, alpha = 2.0)", lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
    "erf": ("erf(x)", erf),
    "erfc": ("erfc(x)", lambda x: 1 - erf(x)),
    "exp2": ("exp2(x)", np.exp2),
    "expm1": ("expm1(x)", np.expm1),
    "eye": ("eye(n = 2, m = 3) + x", lambda x: np.eye(2, 3) + x),
    "fmax": ("fmax(x, y)", lambda x, y: np.fmax(x, y)),
    "fmin": ("fmin(x, y)", lambda x, y: np.fmin(x, y)),
    "fmod": ("fmod(x, u)", lambda x, u: np.fmod(x, u)),
    "frac": ("frac(x)", lambda x: x - np.trunc(x)),
    "frexp": ("frexp(x)", lambda x: np.frexp(x)),
    "gated_delta_scan": (
        "gated_delta_scan(a5124, d5124, a5124, a512, a512, a1244, scan_pace = 1)",
        lambda a5124, d5124, a512, a1244: delta_rule(a5124, d5124, a512, a1244)),
    "gelu": ("gelu(x)", lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    "gelu_fast_approx": (
        "gelu_fast_approx(x)",
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "glu": ("glu(m24, axis = 1, half_dim_size = 2, dim_size = 4)",
            lambda m24: m24[:, :2] * sigmoid(m24[:, 2:])),
    "group_norm": (("group_norm(g4, num_groups = 2, num_channels = 4, batch_size = 2, "
                    "epsilon = 1e-5)"),
                   lambda g4: normalized(g4.reshape(2, 2, 6), 2).reshape(2, 4, 3)),
    "gru": (("gru(t513, k112, w123, w122, w123, w122, w123, w122, k112, k112, k112, k112, "
            "scan_pace = -1)"),
            lambda t513, k112, w123, w122: backwards(gru_loop, t513, k112, w123, w122)),
    "gru_cell": ("gru_cell(x, h2, gi, gh, r6, r6, r_end = 2, z_end = 4, n_end = 6)",
                 lambda x, h2, gi, gh, r6: gru_cell(x, h2, gi, gh, r6)),
    "hard_tanh": ("hard_tanh(x, -0.5, max_val = 0.25)", lambda x: np.clip(x, -0.5, 0.25)),
    "hardshrink": ("hardshrink(x)", lambda x: np.where(abs(x) > 0.5, x, 0)),
    "hardsigmoid": ("hardsigmoid(x)", lambda x: np.clip((x + 3) / 6, 0, 1)),
    "hardswish": ("hardswish(x)", lambda x: x * np.clip((x + 3) / 6, 0, 1)),
    "heaviside": ("heaviside(x, y)", lambda x, y: np.heaviside(x, y)),
    "hinge_embedding_loss": ("hinge_embedding_loss(x, y)",
                             lambda x, y: np.where(y >= 0, x, np.maximum(1 - x, 0))),
    "huber_loss": ("huber_loss(x, y, delta = 0.5)", lambda x, y: np.where(
        abs(x - y) < 0.5, (x - y) ** 2 / 2, 0.5 * (abs(x - y) - 0.25))),
    "hypot": ("hypot(x, y)", lambda x, y: np.hypot(x, y)),
    "i0": ("i0(x)", np.i0),
    "i0e": ("i0e(x)", lambda x: np.i0(x) * np.exp(-abs(x))),
    "i1": ("i1(x)", lambda x: elementwise(bessel1)(x)),
    "i1e": ("i1e(x)", lambda x: elementwise(bessel1)(x) * np.exp(-abs(x))),
    "instance_norm": ("instance_norm(c223, axes = [2])", lambda c223: normalized(c223, 2)),
    "isclose": ("isclose(x, y, atol = 0.5)", lambda x, y: abs(x - y) <= 0.5 + 1e-5 * abs(y)),
    "isfinite": ("isfinite(x)", np.isfinite),
    "kl_div": ("kl_div(x, u)", lambda x, u: u * (np.log(u) - x)),
    "kl_div_log_target": ("kl_div_log_target(x, y)", lambda x, y: np.exp(y) * (y - x)),
    "l1_loss": ("l1_loss(x, y)", lambda x, y: abs(x - y)),
    "layer_norm": ("layer_norm(x, mean_axes = [1], eps = 1e-5)", lambda x: normalized(x, 1)),
    "layer_norm_with_affine": (
        "layer_norm_with_affine(x, y, z, mean_axes = [1], eps = 1e-5)",
        lambda x, y, z: normalized(x, 1) * y + z),
    "ldexp": ("ldexp(x, y)", lambda x, y: x * 2**y),
    "lerp": ("lerp(x, y, z)", lambda x, y, z: x + z * (y - x)),
    "lgamma": ("lgamma(u)", elementwise(math.lgamma)),
    "log1p": ("log1p(u)", np.log1p),
    "log_sigmoid": ("log_sigmoid(x)", lambda x: np.log(sigmoid(x))),
    "log_softmax": ("log_softmax(x, 1)", lambda x: np.log(softmax(x, 1))),
    "logaddexp": ("logaddexp(x, y)", lambda x, y: np.logaddexp(x, y)),
    "logaddexp2": ("logaddexp2(x, y)", lambda x, y: np.logaddexp2(x, y)),
    "logcumsumexp": ("tract_logcumsumexp(x, first - 50.0, first, axis = 1)",
                     lambda x, first: np.log(np.cumsum(np.exp(x), 1))),
    "logit": ("logit(u)", lambda u: np.log(u / (1 - u))),
    "logsumexp": ("logsumexp(x, axis = 1)", lambda x: np.log(np.exp(x).sum(1))),
    "lstm": (("lstm(t513, k112, k112, w123, w122, w123, w122, w123, w122, w123, w122, k112, k112, "
             "k112, k112, scan_pace = 1)"),
             lambda t513, k112, w123, w122: lstm_loop(t513, k112, w123, w122, k112)),
    "lstm_cell": ("lstm_cell(x, h2, b22, li, lh, r8, i_end = 2, f_end = 4, g_end = 6, o_end = 8)",
                  lambda x, h2, b22, li, lh, r8: lstm_cell(x, h2, b22, li, lh, r8)),
    "lstm_opti_latency": (
        ("lstm(t513, k112, k112, w123, k112, w122, k112, w123, k112, w122, k112, w123, k112, w122, "
        "k112, w123, k112, w122, k112)"),
        lambda t513, k112, w123, w122: lstm_loop(t513, k112, w123, w122, 2 * k112)),
    "lstm_with_projection": (
        ("lstm_with_projection(t513, k112, k112, w123, w122, w123, w122, w123, w122, w123, w122, "
        "k112, k112, k112, k112, h122, scan_pace = 1)"),
        lambda t513, k112, w123, w122, h122: lstm_loop(t513, k112, w123, w122, k112, h122)),
    "mamba_ssm_scan": ("mamba_ssm_scan(d5124, a5124, a514, a124, scan_pace = 1)",
                       lambda d5124, a5124, a514, a124: mamba(d5124, a5124, a514, a124)),
    "mamba_ssm_scan_pulse": ("mamba_ssm_scan_pulse(d5124, a5124, a514, a124, scan_pace = 1)",
                             lambda d5124, a5124, a514, a124: mamba(d5124, a5124, a514, a124)[0]),
    "margin_ranking_loss": ("margin_ranking_loss(x, y, z, margin = 0.5)",
                            lambda x, y, z: np.maximum(-z * (x - y) + 0.5, 0)),
    "mish": ("mish(x)", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "mse_loss": ("mse_loss(x, y)", lambda x, y: (x - y) ** 2),
    "norm_neg_inf": ("norm_neg_inf(x, axes = [1])", lambda x: abs(x).min(1, keepdims=True)),
    "norm_p1": ("norm_p1(x, axes = [1])", lambda x: abs(x).sum(1, keepdims=True)),
    "norm_p2": ("norm_p2(x, axes = [1])", lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
    "norm_pinf": ("norm_pinf(x, axes = [1])", lambda x: abs(x).max(1, keepdims=True)),
    "norm_pn": ("norm_pn(u, axes = [1], ord = 3)",
                lambda u: (u**3).sum(1, keepdims=True) ** (1 / 3)),
    "one_hot": ("one_hot(first, [[[0.0, 1.0]]], axis = 2)",
                lambda first: np.eye(2)[first.astype(int)]),
    "pairwise_distance": ("pairwise_distance(x, y, axis = 1)",
                          lambda x, y: np.linalg.norm(x - y + 1e-6, axis=1)),
    "polar": ("polar(x, y, axis = 2)",
              lambda x, y: np.stack([x * np.cos(y), x * np.sin(y)], 2)),
    "relu6": ("relu6(x)", lambda x: np.clip(x, 0, 6)),
    "remainder": ("remainder(x, u)", lambda x, u: np.mod(x, u)),
    "renorm": ("renorm(x, u, maxnorm = 0.5)", lambda x, u: x * np.minimum(0.5 / (u + 1e-7), 1)),
    "rms_norm": ("rms_norm(x, mean_axes = [1], eps = 1e-5)", lambda x: rms(x)),
    "rms_norm_with_affine": ("rms_norm_with_affine(x, y, mean_axes = [1], eps = 1e-5)",
                             lambda x, y: rms(x) * y),
    "rnn_bidi_pack": ("rnn_bidi_pack(t513, t513, shape = 6)",
                      lambda t513: np.concatenate([t513, t513], 2)),
    "rnn_relu": ("rnn_relu(t513, k112, w123, w122, k112, scan_pace = 1)",
                 lambda t513, k112, w123, w122: rnn(
                     t513, k112[0], w123[0], w122[0], k112[0], lambda v: np.maximum(v, 0))),
    "rnn_relu_cell": ("rnn_relu_cell(x, h2, y, b22, h18)", lambda x, h2, y, b22, h18: np.maximum(
        x @ y.T + h2 @ b22.T + h18, 0)),
    "rnn_tanh": ("rnn_tanh(t513, k112, w123, w122, k112, scan_pace = 1)",
                 lambda t513, k112, w123, w122: rnn(
                     t513, k112[0], w123[0], w122[0], k112[0], np.tanh)),
    "rnn_tanh_cell": ("rnn_tanh_cell(x, h2, y, b22, h18)",
                      lambda x, h2, y, b22, h18: np.tanh(x @ y.T + h2 @ b22.T + h18)),
    "rsub": ("rsub(x, y, alpha = 2.0)", lambda x, y: y - 2 * x),
    "selu": ("selu(x)", lambda x: 1.05070102 * np.where(x < 0, 1.67326319 * np.expm1(x), x)),
    "sgn_complex": ("sgn_complex(b22, axis = 1)",
                    lambda b22: b22 / np.linalg.norm(b22, axis=1, keepdims=True)),
    "signbit": ("signbit(x)", np.signbit),
    "silu": ("silu(x)", lambda x: x * sigmoid(x)),
    "sinc": ("sinc(x)", np.sinc),
    "smooth_l1_loss": ("smooth_l1_loss(x, y, beta = 0.5)", lambda x, y: np.where(
        abs(x - y) < 0.5, (x - y) ** 2, abs(x - y) - 0.25)),
    "soft_margin_loss": ("soft_margin_loss(x, y)", lambda x, y: np.log1p(np.exp(-x * y))),
    "softshrink": ("softshrink(x)", lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
    "special_entr": ("special_entr(u)", lambda u: -u * np.log(u)),
    "special_xlog1py": ("special_xlog1py(x, u)", lambda x, u: x * np.log1p(u)),
    "tanhshrink": ("tanhshrink(x)", lambda x: x - np.tanh(x)),
    "threshold": ("threshold(x, 0.25, 2.0)", lambda x: np.where(x > 0.25, x, 2)),
    "tract_gelu": ("tract_gelu(x)", lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    "triplet_margin_loss": (
        "triplet_margin_loss(x, y, z, feature_axis = 1)",
        lambda x, y, z: np.maximum(
            np.linalg.norm(x - y, axis=1) - np.linalg.norm(x - z, axis=1) + 1, 0)),
    "trunc": ("trunc(x)", np.trunc),
    "unfold": (("unfold(im, k2, perm_in = [0, 1, 2], shape_pre_conv = [1, 1, 4], "
               "shape_post_conv = [1, 2, 2], perm_out = [0, 2, 1], stride = 2)"),
               lambda im, k2: im.reshape(1, 2, 2) @ k2[:, 0].T),
    "weight_norm": ("weight_norm(x, y, axes = [1])",
                    lambda x, y: x * y / np.linalg.norm(x, axis=1, keepdims=True)),
    "within_bound_index": ("within_bound_index(-1, 3) + x", lambda x: 2 + x),
    "xlogy": ("xlogy(x, u)", lambda x, u: x * np.log(u)),
}  # fmt: skip
"""Invocation by fragment, and what makes the expected result or results."""


def cosine(x, y):
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return (x * y).sum(1) / norms


def rms(x):
    return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5)


def gru_cell(x, h, wi, wh, b):
    xr, xz, xn = np.split(x @ wi.T + b, 3, 1)
    hr, hz, hn = np.split(h @ wh.T + b, 3, 1)
    n, z = np.tanh(xn + sigmoid(xr + hr) * hn), sigmoid(xz + hz)
    return (1 - z) * n + z * h


def lstm_cell(x, h, c, wi, wh, b):
    i, f, g, o = np.split(x @ wi.T + h @ wh.T + b, 4, 1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def mamba(a, bu, c, h):
    outputs = []
    for t in range(len(a)):
        h = a[t] * h + bu[t]
        outputs.append((h * c[t][:, None]).sum(2, keepdims=True))
    return np.concatenate(outputs, 2), h


def gru_loop(x, h, w, u, b):
    outputs = []
    for row in x:
        gate = sigmoid(row @ w[0].T + b[0] + h[0] @ u[0].T)
        n = np.tanh(row @ w[0].T + b[0] + gate * (h[0] @ u[0].T + b[0]))
        h = ((1 - gate) * n + gate * h[0])[None]
        outputs.append(h)
    return np.concatenate(outputs), h


def backwards(loop, x, h, w, u):
    outputs, last = loop(x[::-1], h, w, u, h)
    return outputs[::-1], last


def lstm_loop(x, h, w, u, b, projection=None):
    outputs, c = [], h
    for row in x:
        sums = (row @ w[0].T + b[0] + h[0] @ u[0].T)[None]
        c = sigmoid(sums) * c + sigmoid(sums) * np.tanh(sums)
        h = sigmoid(sums) * np.tanh(c)
        h = h if projection is None else h @ projection[0].T
        outputs.append(h)
    return np.concatenate(outputs), h, c


def delta_rule(q, k, g, s):
    """Run the gated delta rule where q is also the value and g is also beta."""
    outputs = []
    for t in range(len(q)):
        decayed = s * np.exp(g[t])[..., None, None]
        predicted = (decayed * k[t][..., None]).sum(2, keepdims=True)
        step = (q[t][:, :, None] - predicted) * g[t][..., None, None]
        s = decayed + k[t][..., None] * step
        outputs.append((s * q[t][..., None]).sum(2, keepdims=True))
    return np.concatenate(outputs, 2), s
