"""Third-party models of tract's dialect: what tract and torch_to_nnef test themselves with."""

import json
import re

import numpy as np
import pytest
from pass_list import PassList
from tract_fragments import CALLS, POOL

from nnef_hw.frontend import load
from nnef_hw.frontend.nnef.archive.archive import open_archive
from nnef_hw.frontend.nnef.evaluation.variables import VariableReader
from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.frontend.nnef.lower import lower
from nnef_hw.frontend.nnef.tract import TRACT
from nnef_hw.reference import run_float

HARNESS = PassList("tract-harness")
OPERATORS = PassList("torch_to_nnef-ops")
FRAGMENTS = PassList("torch_to_nnef-fragments")

SYMBOLS = {
    "nnef-test-cases/conv-then-shape-of-mask": {"S": 8},
    "nnef-test-cases/export-scan-state": {"S": 4},
    "nnef-test-cases/range-slice-dyn-tile": {"S": 2, "P": 3},
    "nnef-test-cases/sdpa/simple-grouped-query-att-f32": {"S": 1, "P": 10},
    "nnef-test-cases/slice-of-static-with-streaming-size": {"S": 5},
    "nnef-test-cases/tile-with-tdim": {"B": 1, "S": 3},
    "pulse-multi-axis/ex01-blockified": {"S": 3},
}
HALF_PRECISION = re.compile("f16|upcast|qwen35")
DIALECT_NOT_DECLARED = {
    "nnef-test-cases/cmp-operators",
    "nnef-test-cases/conv-bias",
    "nnef-test-cases/conv-with-batch",
    "nnef-test-cases/uniform-mul",
}
"""Documents that only tract takes, although nothing in them says so."""


def read_as_tract(path):
    archive = open_archive(path)
    document = parse_document(archive.read("graph.nnef").decode(), "graph.nnef")
    return lower(document, VariableReader(archive, tract=True), rules=TRACT)


def error(found, expected):
    """Return the largest difference, relative to the largest number if that is above 1."""
    assert found.shape == expected.shape
    found, expected = (np.asarray(x, np.float64) for x in (found, expected))
    scale = max(1, np.abs(expected).max(initial=0))
    return np.abs(found - expected).max(initial=0) / scale


@pytest.mark.parametrize("name", HARNESS.passing)
def test_harness(suites, name):
    folder = suites / "tract-harness" / name
    index = json.loads((suites / "tract-harness" / "index.json").read_text())
    case = next(case for case in index if case["case"] == name)
    dims = {key: int(value) for key, value in re.findall(r"--set (\w+)=(\d+)", case["flags"])}
    dims |= SYMBOLS.get(name, {})
    packed = folder / "model.nnef.tgz"
    if name in DIALECT_NOT_DECLARED:
        graph = read_as_tract(folder)
    else:
        graph = load(packed if packed.exists() else folder, dims=dims)
    if not case["io"]:
        return
    values = dict(np.load(folder / "io.npz"))
    found = run_float(graph, {key: values[key] for key in graph.inputs})
    tolerance = 1e-3 if HALF_PRECISION.search(name) else 1e-4 if "q40" in name else 2e-6
    assert all(error(found[key], values[key]) <= tolerance for key in graph.outputs)


@pytest.mark.parametrize("name", OPERATORS.passing)
def test_operators_exported_from_torch(suites, name):
    folder = suites / "torch_to_nnef-ops" / name
    graph = load(folder / "model.nnef.tgz")

    found = run_float(graph, {graph.inputs[0]: np.load(folder / "input.npy")})

    assert error(found[graph.outputs[0]], np.load(folder / "output.npy")) <= 1e-6


def document_of(folder, name, call):
    """Return a document that makes one call of a fragment, and the names of its inputs."""
    files = {path.name.partition(".")[0]: path for path in folder.glob("*.nnef")}
    texts, wanted = {}, [name]
    while wanted:
        part = wanted.pop()
        texts[part] = re.sub("(?m)^extension .*;$", "", files[part].read_text())
        called = set(re.findall(r"(\w+)\s*\(", texts[part]))
        own = set(re.findall(r"fragment (\w+)", "".join(texts.values())))
        wanted += (called & files.keys()) - own
    inputs = list(dict.fromkeys(word for word in re.findall(r"\w+", call) if word in POOL))
    operator = re.match(r"\w+", call)[0]
    results = re.search(rf"fragment {operator}\s*\(.*?->\s*\((.*?)\)", texts[name], re.S)[1]
    outputs = [f"result{index}" for index in range(results.count(":"))]
    externals = "".join(f"{key} = external(shape = {list(POOL[key])});" for key in inputs)
    return (
        f"version 1.0; extension tract_registry tract_core; {''.join(texts.values())}"
        f"graph net({', '.join(inputs)}) -> ({', '.join(outputs)})"
        f"{{ {externals} {', '.join(outputs)} = {call}; }}"
    ), inputs


def sample(rng, name):
    if name == "first":
        return np.zeros(POOL[name])
    return rng.uniform(0.1, 0.9, POOL[name]) if name in "uw" else rng.normal(size=POOL[name])


@pytest.mark.parametrize("name", FRAGMENTS.passing)
def test_fragments(suites, name, rng):
    folder = suites / "torch_to_nnef-fragments"
    call, expected = CALLS[name]
    text, names = document_of(folder, name, call)
    inputs = {key: sample(rng, key) for key in names}

    graph = lower(parse_document(text, name), rules=TRACT)
    found = run_float(graph, inputs)

    wanted = expected(*inputs.values())
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for key, values in zip(graph.outputs, wanted, strict=True):
        values = np.reshape(values, found[key].shape)
        np.testing.assert_allclose(found[key], values, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        (HARNESS, lambda suites: [case["case"] for case in json.loads(
            (suites / "tract-harness" / "index.json").read_text())]),
        (OPERATORS, lambda suites: [
            path.name for path in (suites / "torch_to_nnef-ops").iterdir()]),
        (FRAGMENTS, lambda suites: [
            path.name.partition(".")[0]
            for path in (suites / "torch_to_nnef-fragments").glob("*.nnef")]),
    ],
    ids=["tract-harness", "torch_to_nnef-ops", "torch_to_nnef-fragments"],
)  # fmt: skip
def test_every_case_is_listed(suites, listed, names):
    assert not listed.missing(names(suites))
