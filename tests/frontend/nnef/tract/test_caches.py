"""Caches of keys and values in tract's dialect, which grow by a row in each step."""

import numpy as np
import pytest

import nnef_hw as nh
from nnef_hw.errors import NnefHwError, UnsupportedError, UsageError
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.passes import simplify

TOKENS, FEATURES, HEADS, SIZE, CONTEXT = 11, 8, 2, 4, 6
GROUPS = HEADS // 2

HEAD = """version 1.0;
extension tract_registry tract_core;
extension tract_registry tract_transformers;
extension tract_symbol P;
extension tract_assert P + 1 <= 6;
"""
GROWING = """{0}1 = tract_transformers_dyn_kv_cache({0}, name = "{0}.cache", axis = 2,
    datum_type = "f32", past_sequence_shape = [1, {1}, P, 4],
    input_sequence_shape = [1, {1}, 1, 4]);
"""
ATTENTION = """y = tract_transformers_sdpa(q, k1, v1, scale = 0.5, datum_type = "f32",
    acc_datum_type = "f32", is_causal = false);"""
GROWN = GROWING.format("k", GROUPS) + GROWING.format("v", GROUPS) + ATTENTION
PAIRS = f"""{{0}}0 = tract_core_external(shape = [1, {GROUPS}, {{2}}, 4], datum_type = "f32");
{{1}}0 = tract_core_external(shape = [1, {GROUPS}, P, 4], datum_type = "f32");
k1 = concat([k0, k], axis = 2); v1 = concat([v0, v], axis = 2);
{ATTENTION}"""
WINDOW = """y = tract_transformers_window_kv_sdpa(q, k, v, axis = {axis}, window = {window},
    scale = 0.5);"""


@pytest.fixture
def make(tmp_path, rng):
    """Write a step of one layer of attention, whose queries share groups of keys and values."""

    def made(attention, inputs="", outputs="", head=HEAD):
        lines = []

        def weights(name, *shape):
            data = rng.normal(size=shape).astype(np.float32) / np.float32(shape[0] ** 0.5)
            (tmp_path / f"{name}.dat").write_bytes(write_tensor(data))
            lines.append(f'{name} = variable<scalar>(label = "{name}", shape = {list(shape)});')

        weights("table", TOKENS, FEATURES)
        weights("places", CONTEXT, FEATURES)
        lines.append("x = tract_core_gather(table, token, axis = 0)")
        lines[-1] += " + tract_core_gather(places, position, axis = 0);"
        for name, heads in (("q", HEADS), ("k", GROUPS), ("v", GROUPS)):
            weights(f"{name}_weights", 1, FEATURES, heads * SIZE)
            product = f"reshape(matmul(x, {name}_weights), shape = [1, 1, {heads}, {SIZE}])"
            lines.append(f"{name} = transpose({product}, axes = [0, 2, 1, 3]);")
        lines.append(attention)
        weights("last", 1, FEATURES, TOKENS)
        lines.append(f"z = reshape(transpose(y, axes = [0, 2, 1, 3]), shape = [1, 1, {FEATURES}]);")
        lines.append("logits = matmul(x + z, last);")
        externals = [
            f"{name} = tract_core_external(shape = [1, 1], datum_type = 'i64');"
            for name in ("token", "position")
        ]
        graph = f"graph net(token, position{inputs}) -> (logits{outputs})"
        text = "\n".join([head, graph, "{", *externals, *lines, "}"])
        (tmp_path / "graph.nnef").write_text(text)
        return tmp_path

    return made


def samples(tokens):
    places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    return {"token": tokens[..., None, None], "position": places[..., None, None]}


def by_tract(path, tokens):
    """Return the logits [T, TOKENS] that tract gives, whose state keeps the caches."""
    tract = pytest.importorskip("tract", reason="pip install nnef-hw[crosscheck]")
    reader = tract.nnef().with_tract_extra().with_tract_transformers()
    state = reader.load(path).into_runnable().spawn_state()
    steps = [
        state.run([np.array([[token]]), np.array([[place]])]) for place, token in enumerate(tokens)
    ]
    return np.array([logits.to_numpy().reshape(-1) for [logits] in steps])


@pytest.mark.parametrize("attention", [GROWN, WINDOW.format(axis=2, window=CONTEXT)])
def test_caches_of_operators_give_what_tract_gives(attention, make, rng):
    path = make(attention)
    model = nh.load(path, context=CONTEXT)
    assert model.graph.inputs == ("token", "position")
    assert model.graph.outputs == ("logits",)
    shapes = {state.initial.shape for state in model.graph.states.values()}
    assert (len(model.graph.states), shapes) == (2, {(CONTEXT, GROUPS * SIZE)})
    texts = rng.integers(0, TOKENS, (3, CONTEXT))
    found = model.run(samples(texts))["logits"].reshape(3, CONTEXT, TOKENS)
    for text, logits in zip(texts, found, strict=True):
        np.testing.assert_allclose(logits, by_tract(path, text), atol=1e-5)


def test_pairs_of_inputs_and_outputs_are_the_same_caches(make, rng):
    """A step writes a row of each; whatever its caches are called."""
    text = rng.integers(0, TOKENS, (1, CONTEXT))
    path = make(GROWN)
    wanted = nh.load(path, context=CONTEXT).run(samples(text))["logits"]
    document = (path / "graph.nnef").read_text().replace(GROWN, PAIRS.format("k", "v", "P"))
    document = document.replace("(token, position)", "(token, position, k0, v0)")
    (path / "graph.nnef").write_text(document.replace("(logits)", "(logits, k1, v1)"))
    model = nh.load(path, context=CONTEXT)
    assert list(model.graph.states) == ["k0", "v0"]
    np.testing.assert_array_equal(model.run(samples(text))["logits"], wanted)
    named = nh.load(path, context=CONTEXT, states={"k0": "k1", "v0": "v1"})
    assert named.graph.states.keys() == model.graph.states.keys()
    operators = [node.op for node in simplify(model.graph).nodes]
    assert (operators.count("write_row"), operators.count("causal_mask")) == (2, 1)


def test_a_length_that_is_given_leaves_caches_as_inputs(make):
    graph = nh.load(make(GROWN), dims={"P": 3}).graph
    assert graph.inputs == ("token", "position", "k_cache", "v_cache")
    assert [graph.tensor(name).shape[2] for name in graph.outputs[1:]] == [4, 4]


@pytest.mark.parametrize(
    ("attention", "options", "match"),
    [
        (
            GROWN,
            {},
            r"has caches that grow by a row in each step: k.cache, v.cache; give --context",
        ),
        (
            WINDOW.format(axis=2, window=CONTEXT),
            {},
            "has caches that grow by a row in each step: y_keys, y_values; give --context N",
        ),
        (
            WINDOW.format(axis=2, window=4),
            {"context": 5},
            "a text of 5 places is longer than its window of 4, .*; give --context 4 or less",
        ),
        (WINDOW.format(axis=1, window=4), {"context": 4}, "rows are along axis 2 of 4, not 1 of 4"),
        (GROWN, {"context": 7}, r"the model asserts P \+ 1 <= 6, but P = 6"),
        (GROWN.replace("axis = 2", "axis = 4"), {"context": 4}, "axis 4 is not one of"),
        (
            GROWN.replace("P, 4]", "P, 5]"),
            {"context": 4},
            r"rows of shape \[1, 1, 3, 5\] and a row of \[1, 1, 1, 4\] do not fit along axis 2",
        ),
    ],
)
def test_what_caches_cannot_be_is_refused(attention, options, match, make):
    with pytest.raises(NnefHwError, match=match):
        nh.load(make(attention), **options)


def test_two_lengths_are_not_clear(make):
    path = make(PAIRS.format("k", "v", "R"), ", k0, v0", ", k1, v1")
    with pytest.raises(UsageError, match="which axis of which cache has the context is not clear"):
        nh.load(path, context=CONTEXT)


def test_a_cache_inside_of_a_loop_is_refused(load_tract):
    with pytest.raises(UnsupportedError, match=r"a cache inside of a loop is not supported"):
        load_tract(
            """fragment body(x: tensor<scalar>, s: tensor<scalar>) -> (y: tensor<scalar>) {
                y = s + sum_reduce(tract_transformers_dyn_kv_cache(x, name = "c", axis = 0,
                    datum_type = "f32", past_sequence_shape = [2, 3]), axes = [0]);
            }
            graph net(x) -> (y) {
                x = external(shape = [4, 3]);
                y = tract_core_scan("body", scan = [("x", x, 0, 1)], full = [],
                    state = [("s", [[0.0, 0.0, 0.0]], "y")], output = [("y", "last", 0, 1)],
                    skip = 0, reset_every_turn = false);
            }"""
        )


def test_a_quantized_model_has_its_length(tiny, tmp_path):
    nh.load(tiny / "tiny.nnef.tgz").quantize(tiny / "samples.npz").save(tmp_path / "fixed.nnef.tgz")
    with pytest.raises(UsageError, match="the caches of a quantized model have their length"):
        nh.load(tmp_path / "fixed.nnef.tgz", context=CONTEXT)
