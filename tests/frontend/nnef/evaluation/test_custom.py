"""Operators beyond the standard, which a document declares as fragments without a body."""

import re

import pytest

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.nnef import load_nnef

TOPK = (
    "fragment topk<?>( input: tensor<?>, k: integer, axis: integer, largest: logical = true ) -> "
    "( values: tensor<?>, indices: tensor<integer> );"
)


@pytest.fixture
def load_with(tmp_path):
    """Load a model of one fragment and one statement that invokes it."""

    def load(fragment, statement):
        (tmp_path / "graph.nnef").write_text(
            "version 1.0;\nextension KHR_enable_fragment_definitions;\n"
            f"{fragment}\n"
            "graph net(x) -> (y)\n{\n    x = external<scalar>(shape = [1, 4]);\n"
            f"    {statement}\n}}\n"
        )
        return load_nnef(tmp_path)

    return load


@pytest.mark.parametrize("fragment", [TOPK, TOPK.replace("( ", "(").replace(", ", ",\n  ")])
def test_known_operator_is_what_its_declaration_says(fragment, load_with):
    graph = load_with(fragment, "y, i = topk(x, k = 2, axis = 1);")
    (node,) = graph.nodes
    assert (node.op, node.attrs) == ("topk", {"k": 2, "axis": 1, "largest": True})
    assert [graph.tensor(name).dtype for name in node.outputs] == ["scalar", "integer"]


@pytest.mark.parametrize(
    "fragment",
    [
        TOPK.replace("k: integer, ", ""),
        TOPK.replace("true", "false"),
        TOPK.replace("input", "x"),
        TOPK.replace("tensor<integer>", "tensor<scalar>"),
        TOPK.replace("?", "scalar").replace("topk<scalar>", "topk"),
    ],
)
def test_another_operator_of_the_same_name_is_refused(fragment, load_with):
    attrs = "k = 2, axis = 1" if "k: " in fragment else "axis = 1"
    message = "the fragment 'topk' has no body, and its declaration is not that of the operator "
    with pytest.raises(UnsupportedError, match=re.escape(message)) as caught:
        load_with(fragment, f"y, i = topk(x, {attrs});")
    assert caught.value.remedy == f"write: {TOPK}"
    assert caught.value.location.line == 3


@pytest.mark.parametrize("name", ["magic", "scan", "hard_sigmoid"])
def test_operator_that_nobody_knows_is_refused(name, load_with):
    reason = f"the fragment '{name}' has no body, so it is not known what it computes"
    with pytest.raises(UnsupportedError, match=re.escape(f"7:9: {reason}; define it")):
        load_with(f"fragment {name}(x: tensor<scalar>) -> (y: tensor<scalar>);", f"y = {name}(x);")
