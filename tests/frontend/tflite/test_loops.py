"""WHILE: recurrent layers as TensorFlow's converter writes them."""

import numpy as np
import pytest
from tflite_file import TfliteFile

from nnef_hw.errors import NnefHwError
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

STEPS, INPUTS, UNITS = 5, 3, 4
OPEN = [-1, 1, UNITS]


class Recurrent:
    """A loop over h = tanh(x[t] W + h R + b), and a list of all h, in parts that tests replace."""

    def __init__(self, *, turns=STEPS, step=1):
        rng = np.random.default_rng(0)
        self.weights = [
            rng.normal(0, 0.5, shape).astype(np.float32)
            for shape in ((UNITS, INPUTS), (UNITS, UNITS), (UNITS,))
        ]
        self.turns, self.step = turns, step
        self.first = 0 if step > 0 else STEPS - 1

    def model(self, write, read="gather", *, limit=None, more=lambda body, h, t: h):
        """Return the whole file; ``write`` makes what a turn leaves in the list."""
        model = TfliteFile()
        x = model.input("x", [STEPS, 1, INPUTS])
        t, count, places = (
            model.constant(name, np.array(value, np.int32))
            for name, value in (("begin", self.first), ("count", 0), ("places", self.turns))
        )
        rows = model.constant("rows", np.array([STEPS, 1, UNITS], np.int32))
        zero = model.constant("zero", np.float32(0))
        items = model.op("FILL", [rows, zero], "items", [STEPS, 1, UNITS])
        h = model.constant("h0", np.full((1, UNITS), 0.25, np.float32))
        (cond, condition), (number, body) = model.subgraph(), model.subgraph()
        self._condition(condition, limit)
        self._body(body, write, read, more)
        results = [
            (f"while{n}", shape, kind, {})
            for n, (shape, kind) in enumerate(
                [([], "int32"), ([], "int32"), ([STEPS, 1, UNITS], "float32"),
                 ([1, UNITS], "float32"), ([], "int32"), ([STEPS, 1, INPUTS], "float32")]
            )
        ]  # fmt: skip
        ends = model.ops(
            "WHILE", [t, count, items, h, places, x], results,
            ("WhileOptions", {"CondSubgraphIndex": cond, "BodySubgraphIndex": number}),
        )  # fmt: skip
        model.output(ends[3], ends[2])
        return model

    @staticmethod
    def _carried(graph):
        return [
            graph.input("t", [], "int32"), graph.input("count", [], "int32"),
            graph.input("items", [STEPS, 1, UNITS]), graph.input("h", [1, UNITS]),
            graph.input("places", [], "int32"), graph.input("x", [STEPS, 1, INPUTS]),
        ]  # fmt: skip

    def _condition(self, graph, limit):
        _, count, _, h, places, _ = self._carried(graph)
        if limit is None:
            graph.output(graph.op("LESS", [count, places], "less", [], "bool"))
        else:
            axes = graph.constant("axes", np.array([0, 1], np.int32))
            top = graph.op("REDUCE_MAX", [h, axes], "top", [])
            bound = graph.constant("bound", np.float32(limit))
            graph.output(graph.op("LESS", [top, bound], "less", [], "bool"))

    def _body(self, graph, write, read, more):
        t, count, items, h, places, x = self._carried(graph)
        one = graph.constant("one", np.array(1, np.int32))
        step = graph.constant("step", np.array(self.step, np.int32))
        xt = READS[read](graph, x, t)
        w, r, b = (
            graph.constant(name, data) for name, data in zip("WRb", self.weights, strict=True)
        )
        options = ("FullyConnectedOptions", {})
        seen = graph.op("FULLY_CONNECTED", [xt, w, b], "seen", [1, UNITS], options=options)
        kept = graph.op("FULLY_CONNECTED", [h, r, -1], "kept", [1, UNITS], options=options)
        total = graph.op("ADD", [seen, kept], "total", [1, UNITS], options=("AddOptions", {}))
        after = more(graph, graph.op("TANH", [total], "after", [1, UNITS]), t)
        axis = graph.constant("axis", np.array(0, np.int32))
        item = graph.op("EXPAND_DIMS", [after, axis], "item", [1, 1, UNITS])
        graph.output(
            graph.op("ADD", [t, step], "next_t", [], "int32", options=("AddOptions", {})),
            graph.op("ADD", [count, one], "next_count", [], "int32", options=("AddOptions", {})),
            write(graph, items, t, item), after, places, x,
        )  # fmt: skip

    def expected(self, x):
        w, r, b = self.weights
        h, items = np.full((1, UNITS), 0.25), np.zeros((STEPS, 1, UNITS))
        for turn in range(self.turns):
            place = self.first + turn * self.step
            h = np.tanh(x[place] @ w.T + h @ r.T + b)
            items[place] = h
        return h, items


def gathered(graph, x, t):
    return graph.op("GATHER", [x, t], "xt", [1, INPUTS], options=("GatherOptions", {}))


def sliced(graph, x, t):
    """Slice as x[t : t + 1] and reshape."""
    vector = place_of(graph, t, 0, "place_x")
    size = graph.constant("size_x", np.array([1, 1, INPUTS], np.int32))
    part = graph.op(
        "SLICE", [x, vector, size], "part", [1, 1, INPUTS], options=("SliceOptions", {})
    )
    shape = graph.constant("shape_x", np.array([1, INPUTS], np.int32))
    return graph.op("RESHAPE", [part, shape], "xt", [1, INPUTS])


def place_of(graph, t, rest, name):
    """Return the vector [t, rest, rest]."""
    one = graph.constant(f"{name}_one", np.array([1], np.int32))
    row = graph.op("RESHAPE", [t, one], f"{name}_row", [1], "int32")
    others = graph.constant(f"{name}_rest", np.array([rest, rest], np.int32))
    options = ("ConcatenationOptions", {"Axis": 0})
    return graph.op("CONCATENATION", [row, others], name, [3], "int32", options=options)


def concatenated(graph, items, t, item, *, first=0):
    """Write an item as the converter does: what is before and behind it, in one."""
    size = place_of(graph, t, -1, "size")
    begin = graph.constant("begin", np.array([first, 0, 0], np.int32))
    before = graph.op("SLICE", [items, begin, size], "before", [1, 1, UNITS], signature=OPEN)
    one = graph.constant("another", np.array(1, np.int32))
    after_t = graph.op("ADD", [t, one], "after_t", [], "int32", options=("AddOptions", {}))
    start = place_of(graph, after_t, 0, "start")
    left = graph.constant("left", np.array([-1, -1, -1], np.int32))
    behind = graph.op("SLICE", [items, start, left], "behind", [1, 1, UNITS], signature=OPEN)
    options = ("ConcatenationOptions", {"Axis": 0})
    whole = graph.op(
        "CONCATENATION", [before, item, behind], "whole", [1, 1, UNITS], options=options,
        signature=OPEN,
    )  # fmt: skip
    return graph.op(
        "CAST", [whole], "cast", [1, 1, UNITS], options=("CastOptions", {}), signature=OPEN
    )


def updated(graph, items, t, item):
    place = place_of(graph, t, 0, "place")
    return graph.op("DYNAMIC_UPDATE_SLICE", [items, item, place], "whole", [STEPS, 1, UNITS])


READS = {"gather": gathered, "slice": sliced}
WRITES = {"slices": concatenated, "update": updated}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("step", [1, -1])
def test_a_recurrence_is_a_scan(write, read, step, rng, tmp_path):
    from nnef_hw.frontend import load

    cell = Recurrent(step=step)
    graph = load(cell.model(WRITES[write], read).save(tmp_path / "model.tflite"))
    [node] = [node for node in graph.nodes if node.op == "scan"]
    assert node.attrs["scans"] == [(0, step)]
    assert len(node.attrs["states"]) == 1
    labelled = [x.volume for x in node.attrs["body"].tensors.values() if x.label]
    assert sum(labelled) >= UNITS * (INPUTS + UNITS)
    x = rng.normal(size=(STEPS, 1, INPUTS))
    for form in (graph, simplify(graph)):
        found = run_float(form, {"x": x})
        for name, value in zip(form.outputs, cell.expected(x), strict=True):
            np.testing.assert_allclose(found[name].reshape(value.shape), value, atol=1e-6)


@pytest.mark.parametrize("write", WRITES)
def test_the_numbers_are_those_of_tensorflow_lite(write, rng):
    interpreter = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="pip install nnef-hw[crosscheck]"
    )
    cell = Recurrent()
    runner = interpreter.Interpreter(model_content=cell.model(WRITES[write]).content())
    runner.allocate_tensors()
    x = rng.normal(size=(STEPS, 1, INPUTS)).astype(np.float32)
    runner.set_tensor(runner.get_input_details()[0]["index"], x)
    runner.invoke()
    for item, value in zip(runner.get_output_details(), cell.expected(x), strict=True):
        np.testing.assert_allclose(runner.get_tensor(item["index"]), value, atol=1e-6)


def turn_added(body, h, t):
    number = body.op("CAST", [t], "number", [], options=("CastOptions", {}))
    return body.op("ADD", [h, number], "moved", [1, UNITS], options=("AddOptions", {}))


def always_first(graph, items, t, item):
    place = graph.constant("place", np.array([0, 0, 0], np.int32))
    return graph.op("DYNAMIC_UPDATE_SLICE", [items, item, place], "whole", [STEPS, 1, UNITS])


@pytest.mark.parametrize(
    ("options", "turns", "reason"),
    [
        ({"limit": 2.0}, STEPS, "its condition is computed when the network runs"),
        ({"more": turn_added}, STEPS, "turns compute with 'number', another number in each"),
        ({}, 3, "its 3 turns do not write the 5 items of 'items' one after the other"),
        ({"write": always_first}, STEPS, "its 5 turns do not write the 5 items of 'items'"),
        ({"write": lambda *a: concatenated(*a, first=1)}, STEPS, "its 5 turns do not write the 5"),
        ({}, 1, "it has 1 turns, and takes steps of 1 inputs"),
        ({"write": lambda graph, items, t, item: items}, 2000, "it runs more than 1024 turns"),
    ],
    ids=["condition", "turn", "too few", "one place", "other slices", "once", "long"],
)
def test_other_loops_are_refused(options, turns, reason, read):
    cell = Recurrent(turns=turns, step=0 if turns > STEPS else 1)
    model = cell.model(**{"write": updated, **options})
    with pytest.raises(NnefHwError, match="WHILE 'while0'.*" + reason):
        read(model)


def test_a_problem_in_the_body_is_reported(read):
    def unknown(body, h, t):
        del t
        return body.op("BUCKETIZE", [h], "odd", [1, UNITS])

    with pytest.raises(NnefHwError, match="BUCKETIZE 'odd': the operator is not supported"):
        read(Recurrent().model(updated, more=unknown))
