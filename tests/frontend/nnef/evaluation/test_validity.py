"""Every rule of the specification's chapters 3.3, 4.1, 4.8 and 6: one wrong case, one right."""

import re
from pathlib import Path

import numpy as np
import pytest

from nnef_hw.errors import ErrorGroup, ModelError, NnefHwError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor

CASES = Path(__file__).parents[3] / "cases"
EXTENSIONS = "extension KHR_enable_fragment_definitions, KHR_enable_operator_expressions;"
DOCUMENT = """version 1.0;
{extensions}
{fragments}
graph net({inputs}) -> ({outputs})
{{
    x = external(shape = [1, 4]);
    {body}
}}
"""


def read_cases(name):
    """Return (wrong, right, message) by rule from a file of ``key: value`` lines."""
    text = (CASES / name).read_text()
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n")[1:]
    ]
    return {case["rule"]: (case["wrong"], case["right"], case["error"]) for case in blocks}


STATEMENTS = read_cases("validity_statements.txt")
FRAGMENTS = read_cases("validity_fragments.txt")
DOCUMENTS = {
    "unknown extension": (
        {"extensions": "extension KHR_unknown;"},
        {"extensions": "extension KHR_enable_operator_expressions;"},
        "2:11: the extension 'KHR_unknown' is not supported",
    ),
    "fragments without their extension": (
        {
            "extensions": "extension KHR_enable_operator_expressions;",
            "fragments": "fragment f(a: tensor<scalar>) -> (b: tensor<scalar>) { b = a; }",
        },
        {"fragments": "fragment f(a: tensor<scalar>) -> (b: tensor<scalar>) { b = a; }"},
        "3:1: fragment definitions are not enabled",
    ),
    "operators without their extension": (
        {"extensions": "", "body": "y = x + 1.0;"},
        {"body": "y = x + 1.0;"},
        "7:11: operator expressions are not enabled",
    ),
    "nested invocations without their extension": (
        {"extensions": "", "body": "y = relu(neg(x));"},
        {"extensions": "", "body": "z = neg(x); y = relu(z);"},
        "7:14: operator expressions are not enabled",
    ),
    "an identifier assigned without the extension": (
        {"extensions": "", "body": "y = x;"},
        {"extensions": "", "body": "y = copy(x);"},
        "7:9: operator expressions are not enabled",
    ),
    "expressions in a fragment without their extension": (
        {
            "extensions": "extension KHR_enable_fragment_definitions;",
            "fragments": "fragment f(a: tensor<scalar>) -> (b: tensor<scalar>) { b = -a; }",
        },
        {
            "extensions": "extension KHR_enable_fragment_definitions;",
            "fragments": "fragment f(a: tensor<scalar>) -> (b: tensor<scalar>) { b = neg(a); }",
        },
        "3:60: operator expressions are not enabled",
    ),
    "input that is no external": (
        {"inputs": "x, z", "body": "z = copy(x); y = copy(x);"},
        {"inputs": "x, z", "body": "z = external(shape = [1]); y = copy(x);"},
        "4:14: the graph input 'z' is not the result of an external",
    ),
    "result never assigned": (
        {"outputs": "y, z"},
        {"outputs": "y, z", "body": "y = copy(x); z = neg(x);"},
        "4:21: the graph result 'z' is never assigned",
    ),
    "result that is an input": (
        {"outputs": "y, x"},
        {"outputs": "y"},
        "4:21: 'x' is both an input and a result of the graph",
    ),
    "input listed twice": (
        {"inputs": "x, x"},
        {"inputs": "x"},
        "4:14: 'x' is listed twice",
    ),
    "result listed twice": (
        {"outputs": "y, y"},
        {"outputs": "y"},
        "4:21: 'y' is listed twice",
    ),
}


@pytest.fixture
def load_document(tmp_path):
    def load(**parts):
        defaults = {
            "extensions": EXTENSIONS,
            "fragments": "",
            "inputs": "x",
            "outputs": "y",
            "body": "y = copy(x);",
        }
        (tmp_path / "graph.nnef").write_text(DOCUMENT.format(**(defaults | parts)))
        (tmp_path / "v.dat").write_bytes(write_tensor(np.zeros(1, np.float32)))
        return load_nnef(tmp_path)

    return load


def expect_error(load, message, **parts):
    """Expect one error: its place, its whole reason, the line and a caret."""
    with pytest.raises(NnefHwError) as info:
        load(**parts)
    error = info.value
    assert not isinstance(error, ErrorGroup), str(error)
    assert isinstance(error, ModelError)
    assert f"{error.location.line}:{error.location.column}: {error.reason}" == message
    assert str(error).endswith(" " * (error.location.column - 1) + "^")


@pytest.mark.parametrize(("wrong", "right", "message"), STATEMENTS.values(), ids=STATEMENTS)
def test_statements(load_document, wrong, right, message):
    expect_error(load_document, message, body=wrong)
    load_document(body=right)


@pytest.mark.parametrize(("wrong", "right", "message"), FRAGMENTS.values(), ids=FRAGMENTS)
def test_fragments(load_document, wrong, right, message):
    expect_error(load_document, message, fragments=wrong, body="y = f(x);")
    load_document(fragments=right, body="y = f(x);")


@pytest.mark.parametrize(("wrong", "right", "message"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents(load_document, wrong, right, message):
    expect_error(load_document, message, **wrong)
    load_document(**right)


def test_keys_of_the_quantization_file_are_tensors_of_the_graph(load_document, tmp_path):
    line = '"{}": linear_quantize(min = -1.0, max = 1.0, bits = 8);'
    (tmp_path / "graph.quant").write_text(line.format("yy"))
    message = "1:1: the quantization file names 'yy', which is not a tensor of the graph; did you"
    with pytest.raises(ModelError, match=re.escape(message)):
        load_document()

    (tmp_path / "graph.quant").write_text(line.format("y"))
    assert load_document().tensor("y").quant.op == "linear_quantize"


def test_keys_of_tensors_whose_statement_is_wrong_are_no_further_error(load_document, tmp_path):
    (tmp_path / "graph.quant").write_text('"q": linear_quantize(min = 0.0, max = 1.0, bits = 8);')

    expect_error(
        load_document,
        "7:13: the operator '+': its right side must be tensor<scalar>, not the integer 1",
        body="q = x + 1; y = relu(q);",
    )


def test_independent_errors_are_found_in_one_run_and_consequences_are_not(load_document, tmp_path):
    (tmp_path / "graph.quant").write_text('"y": unknown_quantize(bits = 8);')
    with pytest.raises(ErrorGroup) as info:
        load_document(
            fragments="fragment f(a: tensor<scalar>) -> (b: tensor<scalar>) { b = a + 1; } "
            "fragment g(a: tensor<scalar>) -> (b: tensor<scalar>) { b = f(a); }",
            inputs="x, z",
            body="p = g(x); q = relu(p); r = matmul(x, x); s = add(r, 1); y = q + s;",
        )

    found = [(error.location.line, error.location.column) for error in info.value.errors]
    assert found == [(1, 6), (3, 64), (4, 14), (7, 32), (7, 57)]
