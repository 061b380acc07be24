"""Spellings of provisional NNEF."""

import logging

import pytest

from nnef_hw.errors import NnefHwError
from nnef_hw.frontend.nnef.language import syntax
from nnef_hw.frontend.nnef.language.parser import parse_document

PROVISIONAL = """version 1.0
fragment foo( input: tensor, size: extent[] = [1] ) -> ( output: tensor )
fragment bar( input: tensor, alpha: scalar = 0.5 )
-> ( output: tensor, extra: tensor[] )
{
    sizes = [2 * i for i in shape_of(input) if i > 1]
    pair = extent(alpha), 2
    output, extra = baz(input, sizes = sizes) if alpha > 0.0 else input, []
}
graph barfoo( input ) -> ( output )
{
    input = external(shape = [1,10])
    intermediate, extra = bar(input, alpha = 2)
    output = foo(intermediate, size = [3,5])
}
"""


def test_provisional_nnef_is_read_leniently():
    document = parse_document(PROVISIONAL, "m", lenient=True)
    foo, bar = document.fragments

    assert [str(parameter.type) for parameter in foo.parameters] == ["tensor<scalar>", "integer[]"]
    assert foo.body is None
    assert [type(line.value) for line in bar.body] == [
        syntax.Comprehension,
        syntax.Tuple,
        syntax.Tuple,
    ]
    assert bar.body[1].value.items[0].function == "integer"
    assert len(document.graph.assignments) == 3


def test_every_legacy_spelling_is_told_once(caplog):
    with caplog.at_level(logging.WARNING):
        parse_document(PROVISIONAL, "m", lenient=True)

    assert [record.getMessage() for record in caplog.records] == [
        "m:1:12: a ';' is missing; write one after every statement",
        "m:2:22: a tensor has a data-type; write tensor<scalar> instead of tensor",
        "m:2:36: the type extent is called integer; write integer",
        (
            "m:6:20: the value of a comprehension comes last; "
            "write [for i in items yield value] instead of [value for i in items]"
        ),
        "m:7:12: a tuple of values must be in parentheses; write (a, b) instead of a, b",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version 1.0;", "version 1.0"),
        ("tensor<scalar>", "tensor"),
        ("integer", "extent"),
        ("relu(x);", "relu(x)"),
        ("(x, x);", "x, x;"),
        ("[for i in [1] yield i]", "[i for i in [1]]"),
    ],
)
def test_a_legacy_spelling_is_an_error_unless_asked_for(old, new, caplog):
    text = """version 1.0;
fragment f(x: tensor<scalar>, a: integer[] = []) -> (y: tensor<scalar>)
{
    p = (x, x);
    q = [for i in [1] yield i];
    y = relu(x);
}
graph g(x) -> (y) {}
"""
    assert old in text
    legacy = text.replace(old, new, 1)

    assert len(parse_document(text, "m").fragments) == 1
    with pytest.raises(NnefHwError):
        parse_document(legacy, "m")
    assert not caplog.records
    assert len(parse_document(legacy, "m", lenient=True).fragments) == 1
    assert len(caplog.records) == 1


def test_modern_nnef_is_read_leniently_without_a_warning(caplog):
    text = "version 1.0; graph extents(extent_) -> (y) { extent_ = external(); y = f(extent_); }"

    assert parse_document(text, "m", lenient=True).graph.name == "extents"
    assert not caplog.records


def test_other_mistakes_stay_errors():
    with pytest.raises(NnefHwError, match="4:9: expected a value after '=', found '}'"):
        parse_document("version 1.0\ngraph g(x) -> (y)\n{\n    y = }", "m", lenient=True)
