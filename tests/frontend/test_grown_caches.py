"""Caches that grow by a row in each step, read for a context of a fixed length."""

import re

import numpy as np
import pytest
from sweeps import few

import nnef_hw as nh
from nnef_hw.errors import NnefHwError, UnsupportedError, UsageError

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
helper, TensorProto = onnx.helper, onnx.TensorProto

TOKENS, FEATURES, HEADS, SIZE, CONTEXT = 11, 8, 2, 4, 6


class Step:
    """A step of one layer of attention whose caches grow, as torch.onnx writes it."""

    def __init__(self, path, rng, **wishes):
        self.path = path
        self.rng, self.nodes, self.constants = rng, [], []
        self.wishes = {
            "mask": False, "length": "past_sequence_length", "place": "position_ids",
            "before": "past_key_values.0", "behind": False, "mean": False, "slope": False,
            "pool": False,
        } | wishes  # fmt: skip
        onnx.save(self.model(), path)

    def __getitem__(self, name):
        return self.wishes[name]

    def op(self, kind, *inputs, out=None, **attrs):
        out = out or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attrs))
        return out

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *shape):
        return self.constant(self.rng.normal(size=shape).astype(np.float32) / shape[0] ** 0.5)

    def model(self):
        integer, real, length = TensorProto.INT64, TensorProto.FLOAT, self["length"]
        cache = [1, HEADS, length, SIZE]
        before = [f"{self['before']}.{name}" for name in ("key", "value")]
        inputs = [("input_ids", integer, [1, 1]), (self["place"], integer, [1, 1])]
        inputs += [(name, real, cache) for name in before]
        x = self.op("Gather", self.weights(TOKENS, FEATURES), "input_ids")
        x = self.op("Add", x, self.op("Gather", self.weights(40, FEATURES), self["place"]))
        shape = self.constant(np.array([1, 1, HEADS, SIZE]))
        q, k, v = (
            self.op(
                "Transpose",
                self.op("Reshape", self.op("MatMul", x, self.weights(FEATURES, FEATURES)), shape),
                perm=[0, 2, 1, 3],
            )
            for _ in range(3)
        )
        caches = []
        for name, row, old in zip(("key", "value"), (k, v), before, strict=True):
            pair = (row, old) if self["behind"] else (old, row)
            caches.append(self.op("Concat", *pair, axis=2, out=f"present.0.{name}"))
        scores = self.op("MatMul", q, self.op("Transpose", caches[0], perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.constant(np.float32(0.5)))
        if self["pool"]:
            scores = self.op("AveragePool", scores, kernel_shape=[1, 3], pads=[0, 1, 0, 1])
        if self["mask"]:
            inputs.append(("attention_mask", integer, [1, f"{length} + 1"]))
            mask = self.op("Cast", "attention_mask", to=real)
            mask = self.op("Sub", self.constant(np.float32(1)), mask)
            scores = self.op("Add", scores, self.op("Mul", mask, self.constant(np.float32(-1e9))))
        if self["slope"]:
            count = self.op("Shape", caches[0], start=2, end=3)
            slopes = self.op("Range", *(self.op("Squeeze", n) for n in (
                self.constant(np.array([0])), count, self.constant(np.array([1])))))  # fmt: skip
            scores = self.op("Add", scores, self.op("Cast", slopes, to=real))
        weights = self.op("Softmax", scores, axis=-1)
        y = self.op("Transpose", self.op("MatMul", weights, caches[1]), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.constant(np.array([1, 1, FEATURES])))
        if self["mean"]:
            y = self.op("Add", y, self.op("ReduceMean", caches[1], axes=[1, 2, 3], keepdims=0))
        self.op("MatMul", self.op("Add", x, y), self.weights(FEATURES, TOKENS), out="logits")
        after = [(f"present.0.{name}", real, None) for name in ("key", "value")]
        graph = helper.make_graph(
            self.nodes, "step", [helper.make_tensor_value_info(*item) for item in inputs],
            [helper.make_tensor_value_info(*x) for x in [("logits", real, None), *after]],
            self.constants,
        )  # fmt: skip
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)

    def texts(self, tokens):
        """Return the logits [T, TOKENS] of a text, with caches that grow from nothing."""
        run = reference.ReferenceEvaluator(str(self.path)).run
        caches, found = [np.zeros((1, HEADS, 0, SIZE), np.float32)] * 2, []
        for place, token in enumerate(tokens):
            feed = {"input_ids": np.array([[token]]), self["place"]: np.array([[place]])}
            feed |= {
                f"{self['before']}.{x}": c for x, c in zip(("key", "value"), caches, strict=True)
            }
            if self["mask"]:
                feed["attention_mask"] = np.ones((1, place + 1), np.int64)
            logits, *caches = run(None, feed)
            found.append(logits.reshape(-1))
        return np.array(found)


@pytest.fixture
def make(tmp_path, rng):
    """Write a step with some peculiarities."""
    return lambda **wishes: Step(tmp_path / "step.onnx", rng, **wishes)


def samples(tokens, place="position_ids"):
    tokens = np.asarray(tokens)
    places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    return {"input_ids": tokens[..., None, None], place: places[..., None, None]}


@pytest.mark.parametrize("mask", [False, True], ids=["plain", "mask"])
def test_a_step_gives_what_growing_caches_give(mask, make, rng):
    """From the first token to the last place; texts of a batch are apart."""
    step = make(mask=mask)
    model = nh.load(step.path, context=CONTEXT)
    assert model.graph.inputs == ("input_ids", "position_ids")
    assert model.graph.outputs == ("logits",)
    states = {name: state.initial.shape for name, state in model.graph.states.items()}
    assert set(states.values()) == {(CONTEXT, FEATURES)}
    texts = rng.integers(0, TOKENS, (3, CONTEXT))
    found = model.run(samples(texts))["logits"].reshape(3, CONTEXT, TOKENS)
    for text, logits in zip(texts, found, strict=True):
        assert logits == pytest.approx(step.texts(text), abs=1e-5)


@pytest.mark.system
@pytest.mark.verilator
@pytest.mark.parametrize("arch", few(["streaming", "engine"], ["streaming"]))
def test_a_step_writes_one_row_in_hardware(arch, make, rng, cli, tmp_path):
    """And the board's own loop writes what the fixed model's does."""
    step = make(mask=True)
    np.savez(tmp_path / "samples.npz", **samples(rng.integers(0, TOKENS, (8, CONTEXT))))
    found = cli(
        "build", step.path, "--context", CONTEXT, "--board", "ulx3s_85f", "--arch", arch,
        "--calibrate", "samples.npz", "--token-loop", "--no-bitstream", "--out", "out",
    )  # fmt: skip
    assert found.status == 0, found.err
    build = nh.open_build(tmp_path / "out")
    ops = [layer.op for layer in build.report.layers]
    assert ops.count("contraction") == 2
    assert not {"concat", "write_row"} & {*ops}  # what computes a row writes it
    wanted = [list(build.generate([token], 99)) for token in range(4)]
    assert [len(text) for text in wanted] == [CONTEXT] * 4
    with build.open_device("sim") as board:
        assert [list(board.generate([token], 99)) for token in range(4)] == wanted


def test_names_and_extents_may_be_said(make):
    path = make(length="rows", before="h").path
    with pytest.raises(UsageError, match=r"no cache has an open extent; inputs are input_ids \["):
        nh.load(make(length=5, before="past").path, context=CONTEXT)
    path = make(length="rows", before="h").path
    states = {"h.key": "present.0.key", "h.value": "present.0.value"}
    assert len(nh.load(path, context=CONTEXT, states=states).graph.states) == 2
    with pytest.raises(UsageError, match="omit --state, or name these"):
        nh.load(path, context=CONTEXT, states={"h.key": "present.0.value"})


@pytest.mark.parametrize(
    ("wishes", "match"),
    [
        ({"place": "n"}, "no input tells the place of a token in a text; inputs are input_ids, n"),
        (
            {"behind": True},
            "grows with the context, and is no cache: no output is the input with a",
        ),
        ({"mean": True}, "mean_reduce .*: it computes something of all rows of a cache, also of"),
        ({"pool": True}, "rows of a cache go into other rows, also those that are not yet written"),
        ({"slope": True}, "the constant .* depends on how many rows of a cache there are"),
    ],
)
def test_what_depends_on_rows_otherwise_is_refused(wishes, match, make):
    with pytest.raises(NnefHwError, match=match):
        nh.load(make(**wishes).path, context=CONTEXT)


def test_other_formats_and_numbers_are_refused(make, tiny, tmp_path):
    with pytest.raises(UsageError, match="--context 1 is no context; give 2 or more places"):
        nh.load(make().path, context=1)
    with pytest.raises(UsageError, match="no cache has an open extent; inputs are "):
        nh.load(tiny / "tiny.nnef.tgz", context=8)
    (tmp_path / "step.tflite").write_bytes(b"")
    with pytest.raises(UsageError, match="--context is for ONNX and NNEF models"):
        nh.load(tmp_path / "step.tflite", context=8)
    with pytest.raises(UsageError, match="a context of 8 is for caches, which states='loops' does"):
        nh.load(make().path, context=8, states="loops")


def test_a_context_longer_than_the_memory_is_refused(make, cli, rng):
    step = make()
    found = cli(
        "build", step.path, "--context", 40_000, "--board", "icebreaker", "--no-bitstream",
        "--out", "out",
    )  # fmt: skip
    assert found.status == 2
    assert re.search(
        r"caches of 40,000 places take 640,000 bytes \(2 of them, 16 bytes a place\), and up5k has "
        r"\d+,\d+ bytes of memory on the chip; give --context \d+ or less",
        found.err.replace("\n    ", " "),
    )


def test_nnef_2_is_refused_by_name(tmp_path):
    folder = tmp_path / "model.sknd"
    folder.mkdir()
    (folder / "main.sknd").write_text("graph {}")
    with pytest.raises(UnsupportedError, match=r"is a model of SkriptND \(NNEF 2\)"):
        nh.load(folder)
