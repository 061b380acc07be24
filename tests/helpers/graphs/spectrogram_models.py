"""ONNX models that hear: what torch.onnx makes of torchaudio's spectrograms."""

import numpy as np

POINTS, HOP, SAMPLES, BANDS = 64, 24, 207, 5


def saved(path, nodes, inputs, outputs, constants, opset=18):
    """Write a model of nodes (op, inputs, output, attributes)."""
    import onnx

    helper = onnx.helper
    made = [
        helper.make_node(op, given, [result], **attributes)
        for op, given, result, attributes in nodes
    ]
    shapes = [
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in each.items()]
        for each in (inputs, outputs)
    ]
    data = [onnx.numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()]
    graph = helper.make_graph(made, "net", *shapes, data)
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


EMPHASIZE = [
    ("Slice", ["raw", "ones", "end", "ones"], "later", {}),
    ("Slice", ["raw", "zeros", "minus", "ones"], "earlier", {}),
    ("Mul", ["earlier", "share"], "part", {}),
    ("Sub", ["later", "part"], "rest", {}),
    ("Slice", ["raw", "zeros", "ones", "ones"], "first", {}),
    ("Concat", ["first", "rest"], "x", {"axis": 1}),
]


def spectrogram(
    path, *, points=POINTS, magnitude=False, least=False, mirrored=0, emphasis=0.0, samples=SAMPLES
):  # fmt: skip
    """Write what torch.onnx makes of torchaudio's MelSpectrogram, a logarithm, and a filter.

    With an emphasis, of samples that it is taken from as PyTorch networks write it.
    """
    window = np.hanning(points + 1)[:-1].astype(np.float32)
    edges = np.linspace(1, points // 2 - 1, BANDS + 2)
    bins = np.arange(points // 2 + 1)
    weights = [np.interp(bins, edges[n : n + 3], [0, 1, 0]) for n in range(BANDS)]
    frames = (samples + 2 * mirrored - points) // HOP + 1
    rng = np.random.default_rng(3)
    nodes = [
        ("Pad", ["x", "pads"], "centered", {"mode": "reflect"}),
        ("Unsqueeze", ["centered" if mirrored else "x", "last"], "signal", {}),
        ("STFT", ["signal", "step", "window"], "z", {}),
        ("Transpose", ["z"], "turned", {"perm": [0, 2, 1, 3]}),
        ("ReduceL2", ["turned", "last"], "size", {"keepdims": 0}),
        ("Pow", ["size", "one" if magnitude else "two"], "power", {}),
        ("Transpose", ["power"], "by_bins", {"perm": [0, 2, 1]}),
        ("MatMul", ["by_bins", "weights"], "bands", {}),
        ("Transpose", ["bands"], "by_frames", {"perm": [0, 2, 1]}),
        ("Max" if least else "Add", ["by_frames", "floor"], "lifted", {}),
        ("Log", ["lifted"], "log", {}), ("Conv", ["log", "filter"], "y", {}),
    ]  # fmt: skip
    constants = {
        "last": np.array([-1]), "step": np.int64(HOP), "window": window, "two": np.float32(2),
        "one": np.float32(1), "weights": np.stack(weights, 1).astype(np.float32),
        "floor": np.float32(1e-4), "filter": rng.normal(size=(3, BANDS, 2)).astype(np.float32),
    }  # fmt: skip
    if mirrored:
        constants["pads"] = np.array([0, mirrored, 0, mirrored])
    else:
        del nodes[0]
    if emphasis:
        nodes = [*EMPHASIZE, *nodes]
        constants |= {
            "ones": np.array([1]), "zeros": np.array([0]), "minus": np.array([-1]),
            "end": np.array([samples]), "share": np.float32(emphasis),
        }  # fmt: skip
    result = {"y": [1, 3, frames - 1]}
    return saved(path, nodes, {"raw" if emphasis else "x": [1, samples]}, result, constants)
