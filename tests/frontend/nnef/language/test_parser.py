import pytest

from nnef_hw.frontend.nnef.evaluation.operators import standard_operators
from nnef_hw.frontend.nnef.language import syntax
from nnef_hw.frontend.nnef.language.parser import parse_document, parse_library

HEAD = "version 1.0;\ngraph g(x) -> (y)\n{\n"


def parse_body(body):
    return parse_document(f"{HEAD}{body}", "graph.nnef").graph.assignments


def test_every_node_knows_its_place():
    (assignment,) = parse_body("  y = conv(x, alpha = [(1, -2)]);\n}")
    argument = assignment.value.arguments[1]

    assert str(assignment.location) == "graph.nnef:4:3"
    assert str(argument.location) == "graph.nnef:4:15"
    assert str(argument.value.items[0].items[1].location) == "graph.nnef:4:28"
    assert argument.location.text == "  y = conv(x, alpha = [(1, -2)]);"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("1.0", 1.0),
        ("5.", 5.0),
        ("-1e3", -1000.0),
        ("2.5E-1", 0.25),
        ("true", True),
        ("'a b'", "a b"),
        (r'"a\"b\\c"', r"a\"b\\c".replace("\\\\", "\\").replace('\\"', '"')),
    ],
    ids=lambda value: str(value),
)
def test_literals(text, value):
    (assignment,) = parse_body(f"y = f(a = {text});}}")
    literal = assignment.value.arguments[0].value

    assert literal.value == value
    assert type(literal.value) is type(value)


def test_all_forms_of_targets():
    body = "a, b = f(x); (c, d) = f(x); [e, g] = f(x); h = f<scalar>(x); }"
    targets = [assignment.target for assignment in parse_body(body)]

    assert [type(target) for target in targets] == [
        syntax.Tuple,
        syntax.Tuple,
        syntax.Array,
        syntax.Identifier,
    ]


def test_comments_line_ends_and_both_forms_of_extensions():
    text = f"# one\r\nversion 1.0;\r\nextension A B;\nextension C, D;{HEAD[12:]}y = f(x); # end\n}}"
    document = parse_document(text, "graph.nnef")

    names = [[name.name for name in extension.names] for extension in document.extensions]
    assert names == [["A", "B"], ["C", "D"]]
    assert document.extensions[0].location.text == "extension A B;"


def test_keywords_may_begin_names():
    (assignment,) = parse_body("y = f(integer_x, format = inner);}")

    assert assignment.value.arguments[0].value.name == "integer_x"


def test_declarations():
    text = "fragment f<? = scalar>(x: tensor<>, p: (integer,integer)[] = []) -> (y: tensor<?>[]);"
    (declaration,) = parse_library(text, "library")

    assert declaration.default_dtype == "scalar"
    assert [str(parameter.type) for parameter in declaration.parameters] == [
        "tensor<>",
        "(integer, integer)[]",
    ]
    assert [parameter.is_tensor for parameter in declaration.parameters] == [True, False]
    assert str(declaration.results[0].type) == "tensor<?>[]"


def test_the_standard_library_is_complete():
    operators = standard_operators()

    assert len(operators) == 118
    assert [parameter.name for parameter in operators["conv"].parameters] == [
        "input", "filter", "bias", "border", "padding", "stride", "dilation", "groups",
    ]  # fmt: skip
    assert operators["reshape"].generic
    assert len(operators["moments"].results) == 2
