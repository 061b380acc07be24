"""Operators, their precedence, and the other parts of compositional NNEF."""

import math

import pytest

from nnef_hw.frontend.nnef.language import syntax
from nnef_hw.frontend.nnef.language.parser import parse_document, parse_library


def parse_value(text, extension=""):
    document = f"version 1.0; {extension}\ngraph g(x) -> (y)\n{{ y = {text}; }}"
    return parse_document(document, "m").graph.assignments[0].value


def show(node):
    """Write an expression with all its parentheses."""
    match node:
        case syntax.Identifier(name):
            return name
        case syntax.Literal(value):
            return repr(value)
        case syntax.Unary(operator, operand):
            return f"({operator}{show(operand)})"
        case syntax.Binary(operator, left, right):
            return f"({show(left)} {operator} {show(right)})"
        case syntax.Conditional(condition, then, otherwise):
            return f"({show(then)} if {show(condition)} else {show(otherwise)})"
        case syntax.Array(items):
            return f"[{', '.join(map(show, items))}]"
        case syntax.Tuple(items):
            return f"<{', '.join(map(show, items))}>"
        case syntax.Subscript(sequence, index):
            return f"{show(sequence)}[{show(index)}]"
        case syntax.Invocation(operator, _, arguments):
            return f"{operator}({', '.join(show(argument.value) for argument in arguments)})"
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a in b || c in d", "((a in (b || c)) in d)"),
        ("a && b || c && d", "(((a && b) || c) && d)"),
        ("a < b && c == d", "((a < b) && (c == d))"),
        ("a + b < c - d", "((a + b) < (c - d))"),
        ("a - b - c + d", "(((a - b) - c) + d)"),
        ("a + b * c ^ d", "(a + (b * (c ^ d)))"),
        ("a / b / c * d", "(((a / b) / c) * d)"),
        ("x ^ y ^ z", "((x ^ y) ^ z)"),
        ("(a + b) * c", "((a + b) * c)"),
        ("a - (b - c)", "(a - (b - c))"),
        ("- r - 1.0", "((-r) - 1.0)"),
        ("-x * y", "((-x) * y)"),
        ("-x ^ 2.0", "(-(x ^ 2.0))"),
        ("-2.0 ^ 2.0", "(-(2.0 ^ 2.0))"),
        ("(-2.0) ^ 2.0", "(-2.0 ^ 2.0)"),
        ("x ^ -2.0", "(x ^ -2.0)"),
        ("x ^ -y * z", "((x ^ (-y)) * z)"),
        ("2.0*-x", "(2.0 * (-x))"),
        ("x-1", "(x - 1)"),
        ("x - -1", "(x - -1)"),
        ("--x", "(-(-x))"),
        ("+x", "(+x)"),
        ("!a && !b", "((!a) && (!b))"),
        ("!f(a)[0]", "(!f(a)[0])"),
        ("-x[0] + y", "((-x[0]) + y)"),
        ("a if b else c if d else e", "(a if b else (c if d else e))"),
        ("a + 1 if b == 0 else c", "((a + 1) if (b == 0) else c)"),
        ("(a if b else c) + 1", "((a if b else c) + 1)"),
        ("(a, b) if c else (d, e)", "(<a, b> if c else <d, e>)"),
        ("[a, b] + [c] * 2", "([a, b] + ([c] * 2))"),
        ("f(g(x) + 1.0, a = b / c)", "f((g(x) + 1.0), (b / c))"),
        ("a < b", "(a < b)"),
        ("a<scalar>(c)", "a(c)"),
    ],
)
def test_precedence_and_associativity(text, meaning):
    assert show(parse_value(text)) == meaning


def test_a_unary_or_binary_operator_is_located_at_its_sign():
    value = parse_value("a + -b")

    assert (value.location.line, value.location.column) == (3, 9)
    assert value.right.location.column == 11


@pytest.mark.parametrize(
    ("text", "begin", "end"), [("x[1:2]", 1, 2), ("x[:2]", None, 2), ("x[-1:]", -1, None)]
)
def test_ranges_may_be_open(text, begin, end):
    value = parse_value(text)

    assert isinstance(value, syntax.Range)
    assert [limit and limit.value for limit in (value.begin, value.end)] == [begin, end]


def test_subscripts_chain_on_any_value():
    assert show(parse_value("[x, y][1][0]")) == "[x, y][1][0]"
    assert isinstance(parse_value("'abc'[1:][0]").sequence, syntax.Range)
    assert show(parse_value("f(x)[0]")) == "f(x)[0]"


def test_comprehensions_have_several_iterators_and_a_condition():
    value = parse_value("[for i in a + b, (j, k) in c if i < j if d else true yield i * k]")

    assert [show(target) for target, _ in value.iterators] == ["i", "<j, k>"]
    assert [show(sequence) for _, sequence in value.iterators] == ["(a + b)", "c"]
    assert show(value.condition) == "((i < j) if d else True)"
    assert show(value.value) == "(i * k)"
    assert parse_value("[for i in a yield i]").condition is None


@pytest.mark.parametrize(
    "function",
    ["shape_of", "length_of", "range_of", "integer", "scalar", "logical", "string"],
)
def test_builtins(function):
    value = parse_value(f"{function}(x)")

    assert isinstance(value, syntax.Builtin)
    assert value.function == function


@pytest.mark.parametrize("gap", ["", " ", "\n "])
@pytest.mark.parametrize("dtype", ["integer", "?"])
def test_generic_invocations(dtype, gap):
    value = parse_value(f"f{gap}<{gap}{dtype}{gap}>{gap}(x)")

    assert value == syntax.Invocation("f", dtype, value.arguments, value.location)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0.1", 0.1),
        ("-1e-320", -1e-320),
        ("- 5", -5),
        ("-# one bit more\n9223372036854775808", -(2**63)),
        ("--9223372036854775808.0", 2.0**63),
    ],
)
def test_integers_have_64_bits_and_scalars_are_doubles(text, number):
    value = parse_value(text)

    assert value.value == number
    assert type(value.value) is type(number)


def test_infinities_belong_to_tracts_dialect():
    extension = "extension tract_registry tract_core;"

    assert isinstance(parse_value("inf"), syntax.Identifier)
    assert parse_value("inf", extension).value == math.inf
    assert parse_value("-inf", extension).value == -math.inf


def test_escaped_names_belong_to_tracts_dialect():
    extension = "extension tract_registry tract_core;"

    assert parse_value('f(i"a/b.c")', extension).arguments[0].value.name == "a/b.c"


def test_aliases_and_array_literals_are_values_and_lists_may_be_empty():
    text = 'f() -> (p: (string, tensor<scalar>)[]) { p = [("a", 1.0)]; q = p; }'
    (fragment,) = parse_library(f"fragment {text}", "m")

    assert fragment.parameters == ()
    assert str(fragment.results[0].type) == "(string, tensor<scalar>)[]"
    assert [type(line.value) for line in fragment.body] == [syntax.Array, syntax.Identifier]


def test_fragments_stand_between_extensions_and_graph():
    text = """version 1.0;
    extension KHR_enable_fragment_definitions KHR_enable_operator_expressions;
    fragment f<?>(x: tensor<?>, axes: integer[] = [0, -1]) -> (y: tensor<?>, z: tensor<?>[])
    { (y, [z]) = g<?>(x); }
    fragment g<? = integer>(x: tensor<?>) -> (y: tensor<?>);
    graph h(x) -> (y) { x = external(shape = []); y = f(x); }"""
    document = parse_document(text, "m")
    first, second = document.fragments

    assert [len(extension.names) for extension in document.extensions] == [2]
    assert (first.generic, first.default_dtype, len(first.body)) == (True, None, 1)
    assert (second.generic, second.default_dtype, second.body) == (True, "integer", None)
    assert [item.value for item in first.parameters[1].default.items] == [0, -1]
    assert show(first.body[0].target) == "<y, [z]>"


@pytest.mark.parametrize(
    ("line", "names", "text"),
    [
        ("tract_registry tract_core", ["tract_registry", "tract_core"], "tract_core"),
        ("tract_symbol  B", ["tract_symbol", "B"], "B"),
        ("tract_assert B >= 1", ["tract_assert"], "B >= 1"),
        ("tract_assert long: B%2 <= 16 && S != 0 ", ["tract_assert"], "long: B%2 <= 16 && S != 0"),
        ("tract_pulse_streaming_symbol", ["tract_pulse_streaming_symbol"], ""),
        ("KHR_a, KHR_b", ["KHR_a", "KHR_b"], "KHR_b"),
    ],
)
def test_the_text_of_tracts_extension_lines_is_free(line, names, text):
    document = parse_document(f"version 1.0; extension {line};\ngraph g(x) -> (y) {{}}", "m")
    (extension,) = document.extensions

    assert [name.name for name in extension.names] == names
    assert extension.text == text
    assert extension.names[0].location.column == len("version 1.0; extension ") + 1
