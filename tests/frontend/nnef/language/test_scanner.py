import pytest

from nnef_hw.errors import ModelError, NnefHwError
from nnef_hw.frontend.nnef.language.parser import parse_document, parse_library


def value_of(text):
    """Return the value that is assigned in a document."""
    document = parse_document(f"version 1.0; graph g(x) -> (y) {{ y = {text}; }}", "m")
    return document.graph.assignments[0].value


@pytest.mark.parametrize("gap", [" ", "\t", "\n", "\r\n", "\f", "\v", "# y = ;\n", "# \f# }\n\n"])
def test_white_space_and_comments_stand_between_all_lexemes(gap):
    text = " version 1.0 ; graph g ( x ) -> ( y ) { y = f ( a = - 1 , b = 'c' ) ; } "
    document = parse_document(text.replace(" ", gap), "m")

    assert [item.value.value for item in document.graph.assignments[0].value.arguments] == [-1, "c"]


def test_a_comment_may_end_the_text():
    assert parse_library("fragment f() -> (); # end", "m")[0].name == "f"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a b'", "a b"),
        ('"it\'s"', "it's"),
        (r"'it\'s'", "it's"),
        (r'"a\"b\\c"', 'a"b\\c'),
        (r"'\n'", "n"),
        ("'# no comment; }'", "# no comment; }"),
        ("''", ""),
        ("'\u00e9\u4e2d'", "\u00e9\u4e2d"),
    ],
)
def test_strings_unescape_every_character(text, value):
    assert value_of(text).value == value


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("007", 7), ("1.", 1.0), ("1.5e+3", 1500.0), ("2E-2", 0.02)]
)
def test_a_number_is_an_integer_without_point_and_exponent(text, value):
    literal = value_of(text)

    assert literal.value == value
    assert type(literal.value) is type(value)


@pytest.mark.parametrize("name", ["inx", "_if", "for_", "i", "true_", "version1", "a\u0062"])
def test_keywords_may_be_part_of_names(name):
    assert value_of(name).name == name


@pytest.mark.parametrize("character", ["@", "$", "\u00a0", "\x00", "\u2028", "~", "`", "\\"])
def test_other_characters_are_refused_where_they_stand(character):
    with pytest.raises(ModelError, match="means nothing in NNEF") as info:
        value_of(f"f({character}x)")
    assert info.value.location.column == 40


def test_a_place_has_line_column_and_text_whatever_ends_the_lines():
    text = "version 1.0;\r\n\r\n\tgraph g(x) -> (y)\r\n{ y = @; }"
    with pytest.raises(ModelError) as info:
        parse_document(text, "m")
    assert str(info.value).splitlines()[0].startswith("m:4:7: ")
    assert info.value.location.text == "{ y = @; }"

    graph = parse_document(text.replace("@", "x"), "m").graph
    assert (graph.location.line, graph.location.column) == (3, 2)
    assert graph.location.text == "\tgraph g(x) -> (y)"


@pytest.mark.parametrize(
    "text", [" " * 200_000, "#" * 200_000, "'" + "\\'" * 100_000, "<" * 20_000, "(" * 20_000]
)
def test_the_time_is_linear_in_the_length_of_the_text(text):
    with pytest.raises(NnefHwError):
        parse_document(f"version 1.0;\ngraph g(x) -> (y) {{ y = {text}", "m")
