"""Random syntax trees of NNEF, and how a tree is written as text."""

import dataclasses
import re

from hypothesis import strategies as st

from nnef_hw.errors import Location
from nnef_hw.frontend.nnef.language import syntax

NOWHERE = Location("nowhere")
CONDITIONAL, COMPARISON, UNARY, POWER, PRIMARY = 0, 3, 6, 7, 8
LEVELS = {
    "in": 1, "&&": 2, "||": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "^": POWER,
}  # fmt: skip


def without_places(node):
    """Return a tree as nested tuples that compare without the places of the nodes."""
    if isinstance(node, tuple):
        return tuple(without_places(item) for item in node)
    if not dataclasses.is_dataclass(node):
        return type(node).__name__, node
    fields = [field.name for field in dataclasses.fields(node) if field.name != "location"]
    return type(node).__name__, *(without_places(getattr(node, name)) for name in fields)


def join(items, separator=","):
    """Put separators between lists of lexemes."""
    result = []
    for index, item in enumerate(items):
        result += [separator] * (index > 0) + item
    return result


def lexemes(node):
    """Return the words and signs of a tree; parentheses only where they are needed."""
    return _WRITERS[type(node)](node)


def operand(node, level):
    """Return the lexemes of an operand, in parentheses if it binds less tightly than that."""
    words = lexemes(node)
    return words if _level(node) >= level else ["(", *words, ")"]


def _level(node):
    match node:
        case syntax.Conditional():
            return CONDITIONAL
        case syntax.Binary(operator):
            return LEVELS[operator]
        case syntax.Unary():
            return UNARY
        case syntax.Literal(value) if not isinstance(value, str | bool) and _sign(value):
            return UNARY
    return PRIMARY


def _sign(value):
    return str(value).startswith("-")


def _literal(node):
    value = node.value
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return [f"'{escaped}'"]
    return ["-", repr(value)[1:]] if _sign(value) else [repr(value)]


def _binary(node):
    level = LEVELS[node.operator]
    # "a < b > (c)" would be an invocation; "x ^ -y ^ z" is "x ^ -(y ^ z)".
    least = level + 1 if level == COMPARISON else level
    left = operand(node.left, least)
    if level == POWER and _ends_with_sign(node.left):
        left = ["(", *lexemes(node.left), ")"]
    right = lexemes(node.right) if _level(node.right) == UNARY else operand(node.right, level + 1)
    return [*left, node.operator, *right]


def _ends_with_sign(node):
    return _level(node) == POWER and _level(node.right) == UNARY


def _unary(node):
    return [node.operator, *operand(node.operand, UNARY)]


def _conditional(node):
    return [
        *operand(node.then, CONDITIONAL + 1),
        "if",
        *operand(node.condition, CONDITIONAL + 1),
        "else",
        *lexemes(node.otherwise),
    ]


def _comprehension(node):
    iterators = [
        [*lexemes(target), "in", *operand(sequence, CONDITIONAL + 1)]
        for target, sequence in node.iterators
    ]
    condition = ["if", *lexemes(node.condition)] if node.condition else []
    return ["[", "for", *join(iterators), *condition, "yield", *lexemes(node.value), "]"]


def _range(node):
    begin = lexemes(node.begin) if node.begin else []
    end = lexemes(node.end) if node.end else []
    return [*operand(node.sequence, PRIMARY), "[", *begin, ":", *end, "]"]


def _argument(node):
    name = [node.name, "="] if node.name else []
    return name + lexemes(node.value)


def _invocation(node):
    opening = f"<{node.dtype}>(" if node.dtype else "("
    return [node.operator, opening, *join(map(lexemes, node.arguments)), ")"]


def _parameter(node):
    default = ["=", *lexemes(node.default)] if node.default else []
    return [node.name, ":", *lexemes(node.type), *default]


def _body(assignments):
    return ["{", *(word for line in assignments for word in lexemes(line)), "}"]


def _signature(inputs, outputs, generic=""):
    inputs, outputs = (join(map(lexemes, items)) for items in (inputs, outputs))
    return [f"{generic}(", *inputs, ")", "->", "(", *outputs, ")"]


def _declaration(node):
    default = f" = {node.default_dtype}" if node.default_dtype else ""
    generic = f"<?{default}>" if node.generic else ""
    signature = _signature(node.parameters, node.results, generic)
    body = [";"] if node.body is None else _body(node.body)
    return ["fragment", node.name, *signature, *body]


def _graph(node):
    signature = _signature(node.inputs, node.outputs)
    return ["graph", node.name, *signature, *_body(node.assignments)]


def _extension(node):
    if node.names[0].name.startswith("tract_"):
        return [f"extension {node.names[0].name} {node.text}", ";"]
    return ["extension", *(name.name for name in node.names), ";"]


def _document(node):
    parts = (*node.extensions, *node.fragments, node.graph)
    return ["version", node.version, ";", *(word for part in parts for word in lexemes(part))]


_WRITERS = {
    syntax.Identifier: lambda node: [node.name],
    syntax.Literal: _literal,
    syntax.Array: lambda node: ["[", *join(map(lexemes, node.items)), "]"],
    syntax.Tuple: lambda node: ["(", *join(map(lexemes, node.items)), ")"],
    syntax.Unary: _unary,
    syntax.Binary: _binary,
    syntax.Conditional: _conditional,
    syntax.Comprehension: _comprehension,
    syntax.Subscript: lambda node: [
        *operand(node.sequence, PRIMARY), "[", *lexemes(node.index), "]"
    ],
    syntax.Range: _range,
    syntax.Builtin: lambda node: [node.function, "(", *lexemes(node.argument), ")"],
    syntax.Argument: _argument,
    syntax.Invocation: _invocation,
    syntax.Assignment: lambda node: [*lexemes(node.target), "=", *lexemes(node.value), ";"],
    syntax.PrimitiveType: lambda node: [node.name],
    syntax.TensorType: lambda node: ["tensor", "<", *([node.item] if node.item else []), ">"],
    syntax.ArrayType: lambda node: [*lexemes(node.item), "[", "]"],
    syntax.TupleType: lambda node: ["(", *join(map(lexemes, node.items)), ")"],
    syntax.Parameter: _parameter,
    syntax.Declaration: _declaration,
    syntax.GraphDefinition: _graph,
    syntax.Extension: _extension,
    syntax.Document: _document,
}  # fmt: skip


_SIGNS = frozenset({"<=", ">=", "==", "!=", "&&", "||", "->"})


def write(node, gaps=(" ",)):
    """Write a tree as text.

    Parameters
    ----------
    gaps
        What stands between lexemes, by turns; nothing becomes a space where one is needed.
    """
    text = ""
    for index, word in enumerate(lexemes(node)):
        gap = gaps[index % len(gaps)]
        touching = text[-1:] + word[0]
        if not gap and (re.fullmatch(r"[\w.]{2}", touching) or touching in _SIGNS):
            gap = " "
        text += gap + word
    return text


def _build(node, *children, **fields):
    return st.builds(node, *children, location=st.just(NOWHERE), **fields)


def _few(items, least=0, most=3):
    return st.lists(items, min_size=least, max_size=most).map(tuple)


# Most of them begin like a keyword.
names = st.sampled_from([
    "x", "y", "_", "A9", "i", "inf", "in_", "ifs", "fort", "graph_", "true1", "integers",
    "tensor_", "yielded", "extents", "versions", "fragment2", "shape_off", "e1", "Else",
])  # fmt: skip
identifiers = _build(syntax.Identifier, names)
texts = st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
literals = _build(syntax.Literal, numbers | texts | st.booleans())
dtypes = st.sampled_from(["integer", "scalar", "logical", "string", "?"])
literal_expressions = st.recursive(
    literals,
    lambda inner: _build(syntax.Array, _few(inner)) | _build(syntax.Tuple, _few(inner, least=2)),
    max_leaves=4,
)
targets = st.recursive(
    identifiers,
    lambda inner: _build(syntax.Array, _few(inner)) | _build(syntax.Tuple, _few(inner, least=2)),
    max_leaves=4,
)


def _compounds(inner):
    """Return all expressions that are made of others."""
    optional = st.none() | inner
    builtins = ["shape_of", "length_of", "range_of", "integer", "scalar", "logical", "string"]
    arguments = _build(syntax.Argument, st.none() | names, inner)
    return st.one_of(
        _build(syntax.Array, _few(inner)),
        _build(syntax.Tuple, _few(inner, least=2)),
        _build(syntax.Invocation, names, st.none() | dtypes, _few(arguments)),
        st.builds(_make_unary, st.sampled_from("+-!"), inner),
        _build(syntax.Binary, st.sampled_from(sorted(LEVELS)), inner, inner),
        _build(syntax.Conditional, inner, inner, inner),
        _build(syntax.Comprehension, _few(st.tuples(targets, inner), least=1), optional, inner),
        _build(syntax.Subscript, inner, inner),
        _build(syntax.Range, inner, optional, optional),
        _build(syntax.Builtin, st.sampled_from(builtins), inner),
    )


def _make_unary(operator, value):
    """Return an operation; a minus before a literal would be part of the literal."""
    if isinstance(value, syntax.Literal):
        operator = operator.replace("-", "!")
    return syntax.Unary(operator, value, NOWHERE)


expressions = st.recursive(identifiers | literals, _compounds, max_leaves=8)
types = st.recursive(
    st.builds(syntax.PrimitiveType, dtypes) | st.builds(syntax.TensorType, st.none() | dtypes),
    lambda inner: (
        st.builds(syntax.ArrayType, inner) | st.builds(syntax.TupleType, _few(inner, least=2))
    ),
    max_leaves=3,
)
bodies = _few(_build(syntax.Assignment, targets, expressions), most=4)
parameters = _build(syntax.Parameter, names, types, st.none() | literal_expressions)
results = _build(syntax.Parameter, names, types, st.none())


@st.composite
def fragments(draw):
    """Draw a fragment with or without a body."""
    generic = draw(st.booleans())
    return syntax.Declaration(
        name=draw(names),
        generic=generic,
        default_dtype=draw(st.none() | dtypes.filter("?".__ne__)) if generic else None,
        parameters=draw(_few(parameters)),
        results=draw(_few(results)),
        location=NOWHERE,
        body=draw(st.none() | bodies),
    )


@st.composite
def documents(draw):
    """Draw a whole document."""
    extensions = []
    for words in draw(st.lists(_few(identifiers, least=1), max_size=2)):
        text = " ".join(word.name for word in words[1:])
        extensions.append(syntax.Extension(words, text, NOWHERE))
    graph = syntax.GraphDefinition(
        draw(names), draw(_few(identifiers)), draw(_few(identifiers)), draw(bodies), NOWHERE
    )
    return syntax.Document(
        "1.0", tuple(extensions), tuple(draw(st.lists(fragments(), max_size=2))), graph, NOWHERE
    )


gaps = st.lists(
    st.sampled_from(["", " ", "\n", "\t", "\r\n", " # comment ; }\n", "\f"]), min_size=1, max_size=9
)
