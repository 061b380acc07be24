"""Every operator of tract against NumPy, and against tract where it is installed."""

import numpy as np
import pytest
from tract_operators import CASES, NOT_COMPARED, POOL, TYPES, document_of

from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.frontend.nnef.lower import lower
from nnef_hw.frontend.nnef.tract import TRACT
from nnef_hw.reference import run_float

NUMPY = {"i8": np.int8, "i64": np.int64}


def sample(rng, name):
    if name in TYPES and name != "flag":
        return rng.integers(-4, 5, POOL[name]).astype(NUMPY[TYPES[name]])
    if name == "flag":
        return rng.random(POOL[name]) < 0.7
    values = rng.normal(size=POOL[name]).astype(np.float32)
    return np.abs(values) + 0.1 if name in {"u", "k1"} else values


@pytest.fixture
def inputs(rng):
    return {name: sample(rng, name) for name in POOL}


def compute(text, inputs):
    graph = lower(parse_document(text, "graph.nnef"), rules=TRACT)
    found = run_float(graph, {name: inputs[name] for name in graph.inputs})
    return [found[name] for name in graph.outputs]


@pytest.mark.parametrize("name", CASES)
def test_operator_computes_its_formula(name, inputs):
    call, expected = CASES[name]
    text, names = document_of(call)
    wanted = expected(*(np.asarray(inputs[name], float) if inputs[name].dtype.kind == "f"
                        else inputs[name] for name in names))  # fmt: skip

    found = compute(text, inputs)

    for value, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(CASES.keys() - NOT_COMPARED.keys()))
def test_operator_computes_what_tract_computes(name, inputs, tmp_path):
    tract = pytest.importorskip("tract", reason="pip install nnef-hw[crosscheck]")
    text, names = document_of(CASES[name][0])
    (tmp_path / "graph.nnef").write_text(text)
    reader = tract.nnef().with_tract_extra().with_tract_transformers().with_onnx()

    results = reader.load(tmp_path).into_runnable().run([inputs[name] for name in names])

    for value, other in zip(compute(text, inputs), results, strict=True):
        np.testing.assert_allclose(value, other.to_numpy(), rtol=1e-4, atol=1e-5)
