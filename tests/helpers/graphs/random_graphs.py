"""Random small graphs over every operator that has a shape rule."""

import numpy as np

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.language.syntax import ArrayType
from nnef_hw.frontend.shapes import SHAPE_RULES
from nnef_hw.ir import Quantization, State, Tensor

SHAPE = (1, 2, 4, 6)
NUMPY = {"scalar": np.float64, "integer": np.int64, "logical": np.bool_}
PAIRS = [(0, 0), (0, 0), (1, 0), (1, 2)]


class RandomGraph:
    """A graph in the making: :meth:`apply` adds an operator with random arguments."""

    def __init__(self, rng):
        self.rng = rng
        self.builder = Builder("net")
        self.pool = [self.builder.input(Tensor(f"input_{dtype}", SHAPE, dtype)) for dtype in NUMPY]

    def choice(self, *options):
        return options[self.rng.integers(len(options))]

    def values(self, shape, dtype="scalar"):
        numbers = (
            self.rng.integers(-3, 4, shape) if dtype != "scalar" else self.rng.normal(size=shape)
        )
        data = np.asarray(numbers).astype(NUMPY[dtype])
        return data.astype(np.float32) if dtype == "scalar" and self.rng.random() < 0.5 else data

    def constant(self, shape, dtype="scalar", data=None):
        """Add a variable, a literal, or a variable that was quantized."""
        data = self.values(shape, dtype) if data is None else data
        name = self.builder.unique(f"k{len(self.builder.tensors)}")
        label, quant = self.choice(None, f"labels/{name}"), None
        if dtype == "scalar" and shape and self.rng.random() < 0.3:
            label = f"labels/{name}"
            scale = self.choice(0.125, np.linspace(0.125, 0.5, shape[0]))
            quant = Quantization(
                "zero_point_linear_quantize",
                {"zero_point": 3, "scale": scale, "bits": 8, "signed": True, "symmetric": False},
            )
            steps = np.reshape(scale, np.shape(scale) + (1,) * (len(shape) - np.ndim(scale)))
            data = (np.round(data * 9) - 3) * steps
        return self.builder.add(Tensor(name, tuple(shape), dtype, data, label, quant=quant))

    def pick(self, dtype="scalar", shape=SHAPE):
        fitting = [x for x in self.pool if x.dtype == dtype and shape in {None, x.shape}]
        return fitting[self.rng.integers(len(fitting))] if fitting else self.constant(shape, dtype)

    def apply(self, op):
        """Add one operator; its results may be arguments of later ones."""
        library = load_library("standard")
        declaration = library[op] if op in library else load_library("extended")[op]
        generic = self.choice("scalar", "integer", "logical") if declaration.generic else None
        generic = SCALARS_ONLY.get(op, generic)
        make = RECIPES.get(op)
        if make is None:
            inputs, attrs = self._tensors(declaration, generic), {}
        else:
            inputs, attrs = make(self, generic)
        for parameter in declaration.parameters:
            if not parameter.is_tensor and parameter.name not in attrs:
                attrs[parameter.name] = getattr(parameter.default, "value", [])
        count = sum(result.is_tensor for result in declaration.results)
        kinds = [
            (result.type.item if isinstance(result.type, ArrayType) else result.type).item
            for result in declaration.results
        ]
        dtypes = [generic if kind == "?" else kind for kind in kinds]
        assert count == len(dtypes)
        self.pool += self.builder.node(op, inputs, attrs, op, dtypes)

    def _tensors(self, declaration, generic):
        tensors = []
        for parameter in declaration.parameters:
            if parameter.is_tensor:
                dtype = generic if parameter.type.item == "?" else parameter.type.item
                shape = SHAPE if not tensors else self.choice(SHAPE, (1, 2), (), (1, 1, 4))
                fresh = shape != SHAPE or self.rng.random() < 0.3
                tensors.append(self.constant(shape, dtype) if fresh else self.pick(dtype))
        return tensors

    def keep_state(self):
        """Add a variable that takes a new value in each inference."""
        state = self.builder.add(Tensor(self.builder.unique("state"), SHAPE))
        self.pool += [state]
        self.apply("add")
        label = self.choice(None, "kept/h")
        self.builder.states[state.name] = State(self.values(SHAPE), self.pool[-1].name, label)

    def build(self):
        results = [
            tensor.name for tensor in self.pool[3:] if tensor.name not in self.builder.states
        ]
        return self.builder.build(results[-4:])


def _window(net, rank, border):
    stride = [int(net.choice(1, 2)) for _ in range(rank)]
    padding = net.choice([], [net.choice(*PAIRS) for _ in range(rank)])
    return {"border": border, "padding": padding, "stride": net.choice([], stride)}


def _pool(net, _, borders=("constant", "ignore", "replicate")):
    window = _window(net, 2, net.choice(*borders))
    whole = {
        "padding": [(0, 0), (0, 0), *window["padding"]] if window["padding"] else [],
        "stride": [1, 1, *window["stride"]] if window["stride"] else [],
    }
    return [net.pick()], {**window, **whole, "size": [1, 1, 2, 3]}


def _indexed(net, size, shape):
    index = net.constant(shape, "integer", np.zeros(shape, np.int64))
    return [net.constant(shape), index], {"size": size, "stride": size}


def _conv(net, _):
    groups = int(net.choice(0, 1, 2))
    kernel = net.constant((4, 2 if groups == 1 else 1, 2, 3))
    window = _window(net, 2, net.choice("constant", "replicate"))
    return [net.pick(), kernel, net.constant((1, 4))], {**window, "groups": groups}


def _deconv(net, _):
    kernel = net.constant((2, 3, 2, 3))
    return [net.pick(), kernel, net.constant((1, 3))], {"stride": [2, 1], "groups": 1}


def _separable(net, _):
    tensors = [net.pick(), net.constant((2, 1, 3, 3)), net.constant((4, 2, 1, 1))]
    return [*tensors, net.constant((1, 4))], _window(net, 2, "constant")


def _reduce(net, dtype):
    return [net.pick(dtype)], {"axes": net.choice([1], [2, 3], [0], [3, 1])}


def _matrices(net, _):
    left, right = net.choice(False, True), net.choice(False, True)
    inner = 4 if left else 6
    other = net.constant((1, 2, 3, inner) if right else (1, 2, inner, 3))
    return [net.pick(), other], {"transposeA": left, "transposeB": right}


def _axes(net, dtype, *options, **more):
    return [net.pick(dtype)], {"axes": net.choice(*options), **more}


def _slice(net, dtype):
    attrs = net.choice(
        {"begin": [1], "end": [0], "stride": [1], "axes": [3]},
        {"begin": [0, -4], "end": [-1, 6], "stride": [1, 2], "axes": [2, 3]},
        {"begin": [-1], "end": [-7], "stride": [-1], "axes": [3]},
    )
    return [net.pick(dtype)], attrs


def _indices(net, shape, below):
    return net.constant(shape, "integer", net.rng.integers(0, below, shape))


def _quantize(net, parameters, **attrs):
    constants = {
        "min": np.float32(-1.5),
        "max": np.float32(2.0),
        "zero_point": np.int64(5),
        "scale": np.float32(0.1),
    }
    tensors = [
        net.constant(
            (), "integer" if name == "zero_point" else "scalar", np.asarray(constants[name])
        )
        for name in parameters
    ]
    return [net.pick(), *tensors], {"bits": 8, **attrs}


def _codes(net):
    return {"signed": net.choice(False, True), "symmetric": net.choice(False, True)}


def _regions(net, **attrs):
    rois = net.constant((2, 4), data=np.array([[0.0, 0, 3, 3], [1, 1, 5, 3]], np.float32))
    index = net.constant((2,), "integer", np.zeros(2, np.int64))
    return [net.pick(), rois, index], {"output_size": [2, 2], **attrs}


SCALARS_ONLY = {
    "product_reduce": "scalar",
    "cumsum": "scalar",
    "einsum": "scalar",
    "mod": "scalar",
    "topk": "scalar",
}
LOGICAL_REDUCE = ("any_reduce", "all_reduce")
RECIPES = {
    "leaky_relu": lambda net, _: ([net.pick()], {"alpha": float(net.rng.normal())}),
    "elu": lambda net, _: ([net.pick()], {"alpha": 0.1}),
    "prelu": lambda net, _: ([net.pick(), net.constant((1, 2))], {}),
    "softmax": lambda net, d: _axes(net, "scalar", [1], [2, 3]),
    "conv": _conv,
    "deconv": _deconv,
    "separable_conv": _separable,
    "separable_deconv": lambda net, _: (
        [net.pick(), net.constant((4, 1, 3, 3)), net.constant((2, 4, 1, 1)), net.constant(())],
        {},
    ),
    **dict.fromkeys(("max_pool", "avg_pool", "rms_pool", "box"), _pool),
    **dict.fromkeys(
        ("argmax_pool", "max_pool_with_index"),
        lambda net, _: _pool(net, _, ("constant", "ignore")),
    ),
    "debox": lambda net, _: ([net.pick()], {"size": [1, 1, 2, 2], "stride": [1, 1, 2, 2]}),
    "sample": lambda net, _: (
        [net.pick(), net.constant((1, 2, 2, 3), "integer", np.zeros((1, 2, 2, 3), np.int64))],
        {"size": [1, 1, 2, 2], "stride": [1, 1, 2, 2]},
    ),
    "desample": lambda net, _: _indexed(net, [1, 1, 2, 2], (1, 2, 2, 3)),
    **dict.fromkeys(
        ("nearest_downsample", "area_downsample", "nearest_upsample"),
        lambda net, _: ([net.pick()], {"factor": [2, 3]}),
    ),
    "depth_to_space": lambda net, generic: ([net.pick(generic)], {"factor": [1, 2]}),
    "multilinear_upsample": lambda net, _: (
        [net.pick()],
        {"factor": [2, 2], "method": net.choice("symmetric", "asymmetric", "aligned"),
         "border": net.choice("constant", "replicate")},
    ),
    **dict.fromkeys(
        ("sum_reduce", "mean_reduce", "max_reduce", "min_reduce", "moments", "l1_normalization",
         "l2_normalization", "argmax_reduce", "argmin_reduce", "argmax_reduce_last",
         "argmin_reduce_last", "product_reduce"),
        lambda net, _: _reduce(net, "scalar"),
    ),
    **dict.fromkeys(LOGICAL_REDUCE, lambda net, _: _reduce(net, "logical")),
    "reshape": lambda net, d: (
        [net.pick(d)],
        net.choice({"shape": [1, -1]}, {"shape": [0, 3, 8], "axis_start": 1}),
    ),
    "transpose": lambda net, d: _axes(net, d, [0, 2, 3, 1], [1, 0]),
    "squeeze": lambda net, d: _axes(net, d, [0]),
    "unsqueeze": lambda net, d: _axes(net, d, [0], [2, 5]),
    "concat": lambda net, d: ([net.pick(d), net.constant(SHAPE, d), net.pick(d)], {"axis": 2}),
    "stack": lambda net, d: ([net.pick(d), net.constant(SHAPE, d)], {"axis": net.choice(0, 4)}),
    "split": lambda net, d: ([net.pick(d)], {"axis": 3, "ratios": net.choice([1, 2], [1] * 6)}),
    "unstack": lambda net, d: ([net.pick(d)], {"axis": net.choice(1, 2)}),
    "slice": _slice,
    "tile": lambda net, d: ([net.pick(d)], {"repeats": [1, 2, 1, 3]}),
    "pad": lambda net, _: (
        [net.pick()],
        {"padding": [(0, 0), (0, 0), (1, 1), (2, 0)], "value": -1.5,
         "border": net.choice("constant", "reflect", "replicate", "reflect-even")},
    ),
    "gather": lambda net, d: ([net.pick(d), _indices(net, (2, 3), 2)], {"axis": 1}),
    "cast": lambda net, d: ([net.pick(net.choice(*NUMPY))], {}),
    "copy_n": lambda net, d: ([net.pick(d)], {"times": 3}),
    "add_n": lambda net, _: ([net.pick(), net.constant(SHAPE), net.pick()], {}),
    "matmul": _matrices,
    "linear": lambda net, _: (
        [net.constant((3, 5)), net.constant((4, 5)), net.constant(net.choice((), (1, 4)))], {}
    ),
    "batch_normalization": lambda net, _: (
        [net.pick(), *(net.constant((1, 2)) for _ in range(4))],
        {"epsilon": 1e-5},
    ),
    "normalize": lambda net, _: (
        [net.pick(), net.constant(net.choice((), (1, 1, 4), (1, 2))), net.constant((1, 2))],
        {"axes": net.choice([1], [3], [1, 2, 3]), "epsilon": 1e-3,
         "centered": net.choice(False, True)},
    ),
    "rescale": lambda net, _: ([net.pick()], {"factor": -2.5, "offset": net.choice(0.5, 3.0)}),
    "integer_normalize": lambda net, _: (
        [net.pick(), net.constant(net.choice((), (1, 2))), net.constant((1, 2))],
        {"axes": net.choice([1], [1, 3]), "shift": 2, "centered": net.choice(False, True)},
    ),
    "integer_softmax": lambda net, _: (
        [net.pick(), net.builder.constant("exponentials", 2.0 ** np.arange(16)[None, ::-1])],
        {"axes": net.choice([1], [3]), "levels": net.choice(16, 256)},
    ),
    **dict.fromkeys(
        ("local_response_normalization", "local_mean_normalization",
         "local_variance_normalization", "local_contrast_normalization"),
        lambda net, _: ([net.pick()], {"size": [1, 1, 3, 3]}),
    ),
    **dict.fromkeys(
        ("avg_roi_pool", "max_roi_pool", "roi_resample"), lambda net, _: _regions(net)
    ),
    **dict.fromkeys(
        ("avg_roi_align", "max_roi_align"), lambda net, _: _regions(net, sampling_rate=[2, 2])
    ),
    "min_max_linear_quantize": lambda net, _: _quantize(net, ("min", "max"), **_codes(net)),
    "zero_point_linear_quantize": lambda net, _: _quantize(
        net, ("zero_point", "scale"), **_codes(net)
    ),
    "linear_quantize": lambda net, _: _quantize(net, ("min", "max")),
    "logarithmic_quantize": lambda net, _: _quantize(net, ("max",)),
    **dict.fromkeys(
        ("shift_left", "shift_right"),
        lambda net, _: ([net.pick("integer"), _indices(net, SHAPE, 5)], {}),
    ),
    "mod": lambda net, _: ([net.pick(), net.constant(SHAPE)], {"fmod": net.choice(False, True)}),
    "einsum": lambda net, _: (
        [net.pick(), net.constant((6, 5))],
        {"expr": net.choice("abcd,de->abce", "abcd,de->ea")},
    ),
    "broadcast": lambda net, d: ([net.pick(d)], {"shape": [3, 2, 4, 6]}),
    "gather_elements": lambda net, d: ([net.pick(d), _indices(net, (1, 2, 4, 3), 6)], {"axis": 3}),
    "gather_nd": lambda net, d: ([net.pick(d), _indices(net, (1, 2, 1), 2)], {"batch_dims": 1}),
    "scatter_elements": lambda net, d: (
        [net.pick(d), _indices(net, (1, 1, 1, 3), 6), net.constant((1, 1, 1, 3), d)],
        {"axis": 3},
    ),
    "scatter_nd": lambda net, d: (
        [net.pick(d), _indices(net, (1, 2), 1), net.constant((1, 4, 6), d)], {}
    ),
    "topk": lambda net, _: ([net.pick()], {"k": 2, "axis": 3, "largest": net.choice(False, True)}),
    "one_hot": lambda net, d: (
        [_indices(net, (1, 3), 4), net.constant((), d), net.constant((), d)],
        {"depth": 4, "axis": 2},
    ),
    "trilu": lambda net, d: ([net.pick(d)], {"k": net.choice(0, -1, 2), "upper": True}),
    "cumsum": lambda net, _: ([net.pick()], {"axis": 2, "reverse": net.choice(False, True)}),
    "contraction": lambda net, _: (
        [net.pick(), net.constant((1, 3, 2, 2))],
        {"order": net.choice("kmn", "mkn"), "matrices": 2, "repeats": net.choice(1, 3),
         "scale": 0.5, "offset": net.choice(0.0, -1.5)},
    ),
    "lookup": lambda net, _: (
        [net.constant((5, 3)), _indices(net, (1, 1, 2, 2), 5)], {}
    ),
    "causal_mask": lambda net, _: ([net.pick(), _indices(net, (1, 1), 4)], {"axes": [2]}),
    "write_row": lambda net, _: (
        [net.constant((1, 3, 5)), net.constant((1, 3)), _indices(net, (1, 1), 5)], {}
    ),
    "log_mel": lambda net, _: (
        [net.constant((1, 1, 80, 1))],
        {"rate": 16_000, "window": 30, "hop": net.choice(10, 30), "points": 32, "shape": "hann",
         "periodic": net.choice(False, True), "emphasis": 0.5, "bands": 3, "low": 100.0,
         "high": 7_000.0, "gain": 0.25, "offset": 1.0, "lowest": 0.0, "highest": 1.5,
         "padding": net.choice([(0, 0), (0, 0)], [(1, 0), (0, 0)])},
    ),
    "log_bands": lambda net, _: (
        [net.constant((1, 1, 80, 1))],
        {"hop": net.choice(10, 32), "points": 64, "emphasis": net.choice(0.0, 0.25),
         "shape": [0.5, 1.0] * 16, "first": [1, 4, 6], "lengths": [4, 2, 20],
         "factors": [0.25, 0.5, 0.75, 1.0] * 6 + [0.5, 0.125], "floor": net.choice(0.0, 0.125),
         "gain": 0.25, "offset": 1.0, "lowest": 0.0, "highest": 1.5,
         "padding": [(0, 0), (0, 0)]},
    ),
    "micro_frontend": lambda net, _: (
        [net.constant((1, 1, 900, 1))], {"hop": net.choice(160, 320), "scale": 0.25}
    ),
    "micro_frontend_step": lambda net, _: (
        [net.constant((1, 1, 900, 1)), net.constant((1, 40, 1, 1))],
        {"hop": net.choice(160, 320), "scale": 0.25},
    ),
    "micro_noise": lambda net, _: (
        [net.constant((1, 1, 900, 1)), net.constant((1, 40, 1, 1))], {"hop": net.choice(160, 320)}
    ),
    "interpolate": lambda net, _: (
        [net.pick()],
        {"size": [3, 5], "coordinates": net.choice("half_pixel", "asymmetric", "align_corners")},
    ),
    "resize": lambda net, _: (
        [net.pick()],
        {"size": [1, 2, 6, 3], "scale": [1.0, 1.0, 1.5, 0.5],
         "interpolation": net.choice("nearest", "linear", "cubic")},
    ),
}  # fmt: skip

MADE_BY_PASSES = ["causal_mask", "contraction", "lookup", "write_row"]
"""Operators that no network has before its passes."""
OPERATORS = sorted(SHAPE_RULES.keys() - {"scan", *MADE_BY_PASSES})
"""Every other operator but the loop, which has no text."""
