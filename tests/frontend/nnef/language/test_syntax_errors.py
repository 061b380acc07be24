"""What is said about text that is no NNEF."""

import re

import pytest

from nnef_hw.errors import ErrorGroup, ModelError
from nnef_hw.frontend.nnef.language.parser import parse_document, parse_library, parse_quantization

HEAD = "version 1.0;\ngraph g(x) -> (y)\n{\n"


def parse_body(body):
    return parse_document(f"{HEAD}{body}", "graph.nnef")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "  y = relu(x)\n  z = relu(y);\n}",
            (
                "graph.nnef:4:14: expected ';' after the invocation\n"
                "      y = relu(x)\n"
                "                 ^"
            ),
        ),
        ("y = relu(x) z;}", "graph.nnef:4:13: expected ';' after the invocation, found 'z'"),
        ("y = relu(x)}", "graph.nnef:4:12: expected ';' after the invocation, found '}'"),
        ("y = 1 2;}", "graph.nnef:4:7: expected ';' after '1', found '2'"),
        ("y = relu(x));}", "expected ';' after the invocation, found ')'; remove it"),
        ("y = relu(x);;}", "4:13: expected '}' or an assignment after ';', found ';'; remove one"),
        ("y = ;}", "graph.nnef:4:5: expected a value after '=', found ';'"),
        ("y = -;}", "graph.nnef:4:6: expected a value after '-', found ';'"),
        ("y relu(x);}", "graph.nnef:4:3: expected ',' or '=' after 'y', found 'relu'"),
        ("y := relu(x);}", "4:3: expected ',' or '=' after 'y', found ':'; write ="),
        ("y-1 = relu(x);}", "found '-'; a name consists of letters, digits and _"),
        ("1y = relu(x);}", "found '1'; a name does not begin with a digit"),
        ("(y) = relu(x);}", "expected ',' after 'y', found ')'; a tuple has two or more items"),
        (
            "y = relu<float>(x);}",
            "4:10: expected a data-type (scalar, integer, logical, string) after '<', found 'floa",
        ),
        (
            "scalar = relu(x);}",
            "after '{', found 'scalar'; 'scalar' is a keyword and cannot be a name",
        ),
        ("graph = relu(x); y = relu(x);}", "'graph' is a keyword and cannot be a name"),
        ("y = add(x x);}", "4:11: expected ',' or ')' after 'x', found 'x'"),
        ("y = add(x, x,);}", "4:14: expected a value after ',', found ')'; remove the ','"),
        ("y = add(x, [1, 2);}", "found ')'; close the '[' of line 4, column 12"),
        (
            "y = relu(x\nz = relu(x);\n}",
            "4:11: expected ',' or ')' after 'x'; close the '(' of line 4, column 9",
        ),
        ("y = f(shape = {1});}", "found '{'; an array is written [1, 2]"),
        ("y = f(a: 1);}", "4:8: expected ',' or ')' after 'a', found ':'; write ="),
        ("y = length_of(x, y);}", "found ','; these parentheses can hold only one value"),
        ("y = x if b;}", "4:11: expected 'else' after 'b', found ';'"),
        ("y = [for i in x];}", "4:16: expected 'yield' after 'x', found ']'"),
        ("// y\ny = relu(x);}", "found '/'; a comment begins with #"),
        ("y = 'abc;\n}", "graph.nnef:4:5: the string has no end on its line; close it with '"),
        ("y = a @ b;}", "graph.nnef:4:7: the character '@' means nothing in NNEF; remove it"),
        ("y = a & b;}", "the character '&' means nothing in NNEF; write &&"),
        ("y = f(a = \u201cb\u201d);}", "means nothing in NNEF; write ' or \""),
        ("y = .5;}", "the character '.' means nothing in NNEF; a number begins with a digit"),
        ("y = relu(x);", "4:13: the document ends too early: expected '}' or an assignment"),
        ("y = add(x", "4:10: the document ends too early: expected ',' or ')'; close the '('"),
        ("} graph", "graph.nnef:4:3: expected nothing after the graph, found 'graph'; remove it"),
        ("y = f(a = 1e999);}", "graph.nnef:4:11: the number 1e999 is too large"),
        ("y = f(a = 9223372036854775808);}", "the number 9223372036854775808 is too large"),
        ("y = f(a = 1 - 9223372036854775808);}", "number 9223372036854775808 is too large"),
        ("y = f(a = --9223372036854775808);}", "4:11: the number 9223372036854775808 is too la"),
        ("y = f(a = -9223372036854775809);}", "number 9223372036854775809 is too large"),
        ("y = f(a = " + "1" * 500 + ");}", "graph.nnef:4:11: the number is too long; shorten it"),
        ("y = x, x;}", "4:5: a tuple of values must be in parentheses; write (a, b)"),
        ("y = [i for i in x];}", "4:8: the value of a comprehension comes last; write"),
        ('y = relu(i"a/b");}', "4:10: escaped names are not NNEF but an extension of tract"),
    ],
    ids=lambda value: value[:20],
)
def test_one_mistake_is_one_message_with_its_place_and_remedy(body, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_body(body)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "graph.nnef: the document is empty; begin it with: version 1.0;"),
        ("# nothing\n", "graph.nnef: the document is empty"),
        ("version 1.0", "graph.nnef:1:12: the document ends too early: expected ';'"),
        ("graph g(x) -> (y) {}", "graph.nnef:1:1: expected 'version' at the beginning"),
        ("version 2.0; graph g(x) -> (y) {}", "1:9: NNEF version 2.0 does not exist; write: vers"),
        ("version one; graph g(x) -> (y) {}", "1:9: expected a number after 'version'"),
        ("version 1.0\ngraph g(x) -> (y) {}", "graph.nnef:1:12: expected ';' after '1.0'"),
        ("version 1.0; graph g(x) - (y) {}", "1:25: expected '->' after ')', found '-'"),
        ("version 1.0; graph g(x) -> y {}", "1:28: expected '(' after '->', found 'y'"),
        ("version 1.0; graph g(x: scalar) -> (y) {}", "only the parameters and results of frag"),
        ("version 1.0; graph g(x) -> (y) y = f(x);}", "1:32: expected '{' after ')', found 'y'"),
        ("version 1.0; extension 5; graph g(x) -> (y) {}", "expected a name after 'extension'"),
        ("version 1.0; extension A\ngraph g(x) -> (y) {}", "1:25: expected ';' after 'A'"),
        ("version 1.0; extension tract_x y\ngraph g(x) -> (y) {}", "1:33: expected ';' after"),
    ],
    ids=lambda value: value[:30],
)
def test_one_mistake_outside_of_bodies_is_one_message(text, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_document(text, "graph.nnef")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fragment f(x: float) -> (y: scalar);", "1:15: expected a type after ':', found 'float'"),
        ("fragment f(x: extent) -> (y: scalar);", "extent is called integer since NNEF 1.0"),
        ("fragment f(x: tensor) -> (y: scalar);", "1:15: a tensor has a data-type; write tensor<"),
        ("fragment f(x) -> (y: scalar);", "1:13: expected ':' after 'x', found ')'"),
        ("fragment f(x: scalar) -> (y: scalar = 1.0);", "; only parameters have default values"),
        ("fragment f(x: scalar = 1.0 + 2.0) -> (y: scalar);", "1:28: the default value of 'x' is"),
        ("fragment f(x: scalar[] = [a]) -> (y: scalar);", "1:27: the default value of 'x' is not"),
        ("fragment f<x>(x: scalar) -> (y: scalar);", "1:12: expected '?' after '<', found 'x'"),
        (
            "fragment f(x: scalar) -> (y: scalar) { y = x;}}\nfragment g() -> (y: scalar);",
            "1:47: expected 'fragment' after '}', found '}'; remove it",
        ),
        (
            "fragment f(x: scalar) -> (y: scalar) { y = x;\nfragment g() -> (y: scalar);",
            "1:46: expected '}' after ';'",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_one_mistake_in_a_fragment_is_one_message(text, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_library(text, "library.nnef")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'y': f(bits = 8)", "1:17: the document ends too early: expected ';'"),
        ("y: f(bits = 8);", "1:1: expected a string at the beginning, found 'y'"),
        ("'y': f(bits = );\n'z': f(bits = 8);", "1:15: expected a value after '=', found ')'"),
        ("'y': f() } graph g\n;'z': f();", "1:10: expected ';' after the invocation, found '}'"),
    ],
    ids=lambda value: value[:30],
)
def test_one_mistake_in_a_quantization_file_is_one_message(text, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_quantization(text, "graph.quant")


def test_every_independent_mistake_is_reported_in_the_order_of_the_text():
    text = """version 1.0;
extension 5;
fragment f(x: float) -> (y: tensor<scalar>) { y = x +; }
fragment h(x) -> (y: tensor<scalar>);
graph g(x) -> y
{
    a = relu(x)
    b = relu(a;
    c = add(a,, b);
    d = 'abc
    e = {1, 2};
    f = relu(1e999); f2 = relu(x);
    g = relu @ ( b;
}
"""
    with pytest.raises(ErrorGroup) as info:
        parse_document(text, "m")

    places = [(error.location.line, error.location.column) for error in info.value.errors]
    assert places == [
        (2, 11), (3, 15), (3, 54), (4, 13), (5, 15), (7, 16), (8, 15), (9, 15), (10, 9), (11, 9),
        (12, 14), (13, 14),
    ]  # fmt: skip


DOCUMENT = """version 1.0;
extension KHR_a KHR_b;
fragment f<? = scalar>(x: tensor<?>, axes: integer[] = [0, 1]) -> (y: scalar, z: tensor<?>[])
{
    y, [a, b] = g<integer>(x, axes = [for i in axes if i > 0 yield -i + 2]);
    z = [a if b else c, d[1:], e[0]];
}
fragment g(x: scalar) -> (y: scalar);
graph net(x) -> (y)
{
    x = external(shape = [1, 2]);
    (y, z) = max(x, size = [(1, 2)], border = 'constant');
}
"""
LEXEMES = list(re.finditer(r"\w+(?:\.\d)?|'\w+'|->|[^\s\w]", DOCUMENT))


def count_messages(text):
    try:
        parse_document(text, "m")
    except ErrorGroup as group:
        return len(group.errors)
    except ModelError:
        return 1
    return 0


@pytest.mark.parametrize("change", ["", "{0} {0}", "@"], ids=["deleted", "doubled", "replaced"])
def test_one_wrong_lexeme_is_one_message(change):
    counts = {
        lexeme: count_messages(
            DOCUMENT[: lexeme.start()] + change.format(lexeme[0]) + DOCUMENT[lexeme.end() :]
        )
        for lexeme in LEXEMES
    }
    assert sum(counts.values()) > 0.8 * len(counts)
    assert all(count <= 1 for lexeme, count in counts.items() if lexeme[0] not in {"{", "}"})
    assert max(counts.values()) <= 2


def test_the_end_of_the_text_is_located_behind_what_was_skipped():
    with pytest.raises(ErrorGroup) as info:
        parse_body("y = 'abc\n")
    assert [(e.location.line, e.location.column) for e in info.value.errors] == [(4, 5), (4, 9)]


def test_a_document_that_is_cut_by_a_mistake_has_no_other_mistake():
    text = "version 1.0; x = external(); graph_ = g(x);\n}\n"
    with pytest.raises(ModelError, match="1:14: expected 'extension', 'fragment' or 'graph'"):
        parse_document(text, "m")


def test_twenty_errors_are_enough():
    with pytest.raises(ErrorGroup) as info:
        parse_body("y = ;\n" * 50 + "}")
    assert len(info.value.errors) == 20


DEEP = 3000


@pytest.mark.parametrize(
    "value",
    [
        "[" * DEEP + "]" * DEEP,
        "(1, " * DEEP + "2" + ")" * DEEP,
        "f(" * DEEP + "x" + ")" * DEEP,
        "!" * DEEP + "x",
        "--" * DEEP + "x",
        "x" + "[0]" * DEEP,
        "x" + " + x" * DEEP,
        "x if c else " * DEEP + "x",
        "[for i in x yield " * DEEP + "x" + "]" * DEEP,
        "integer(" * DEEP + "x" + ")" * DEEP,
    ],
    ids=lambda value: value[:10],
)
def test_nothing_is_nested_too_deeply_for_those_who_walk_the_tree(value):
    message = "more than 100 levels are nested in each other; assign a part of it to a name"
    with pytest.raises(ModelError, match=message) as info:
        parse_body(f"y = {value};}}")
    assert info.value.location.line == 4


def test_parentheses_are_no_levels():
    parse_body("y = " + "(" * DEEP + "x" + ")" * DEEP + ";}")


@pytest.mark.parametrize(
    "kind", ["(scalar, " * DEEP + "scalar" + ")" * DEEP, "scalar" + "[]" * DEEP], ids=["(", "[]"]
)
def test_types_have_a_greatest_depth(kind):
    with pytest.raises(ModelError, match="more than 100 levels are nested"):
        parse_library(f"fragment f(x: {kind}) -> (y: tensor<scalar>);", "m")


def test_targets_have_a_greatest_depth():
    with pytest.raises(ModelError, match="more than 100 levels are nested"):
        parse_body("[" * DEEP + "y" + "]" * DEEP + " = f(x);}")
