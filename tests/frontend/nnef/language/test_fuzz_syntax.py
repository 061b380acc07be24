"""Random valid documents mean what they say, and damaged ones are errors with a place."""

import os
import tarfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nnef_syntax import documents, gaps, lexemes, without_places, write

from nnef_hw.errors import ErrorGroup, NnefHwError
from nnef_hw.frontend.nnef.language import syntax
from nnef_hw.frontend.nnef.language.parser import parse_document

# With more examples than in the suite they are other ones each time.
EXAMPLES = int(os.environ.get("NNEF_HW_FUZZ_EXAMPLES", "300"))
FUZZ = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 300,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def parse_or_refuse(text, **options):
    """Return the document, or None after a proper error."""
    try:
        document = parse_document(text, "m", **options)
    except NnefHwError as error:
        for one in error.errors if isinstance(error, ErrorGroup) else [error]:
            assert one.location.file == "m", text
            assert one.reason, text
        return None
    assert isinstance(document, syntax.Document), text
    return document


@FUZZ
@given(documents(), gaps)
def test_a_document_means_the_tree_it_was_written_from(tree, gaps):
    text = write(tree, gaps)
    parsed = parse_document(text, "m")

    assert without_places(parsed) == without_places(tree), text
    assert lexemes(parsed) == lexemes(tree)
    assert without_places(parse_document(text, "m", lenient=True)) == without_places(tree), text


def damage(draw, pieces, extra):
    """Delete, insert, replace or swap some of the pieces of a text."""
    pieces = list(pieces)
    for _ in range(draw(st.integers(1, 3))):
        if not pieces:
            break
        place = draw(st.integers(0, len(pieces) - 1))
        match draw(st.sampled_from(["delete", "insert", "replace", "swap", "cut", "repeat"])):
            case "delete":
                del pieces[place]
            case "insert":
                pieces.insert(place, draw(extra))
            case "replace":
                pieces[place] = draw(extra)
            case "swap":
                other = draw(st.integers(0, len(pieces) - 1))
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case "cut":
                del pieces[place:]
            case "repeat":
                pieces[place:place] = pieces[max(0, place - 5) : place]
    return pieces


LEXEMES = st.sampled_from([
    "version", "extension", "fragment", "graph", "tensor", "integer", "true", "shape_of", "for",
    "in", "yield", "if", "else", "x", "extent", "inf", "tract_core", "1.0", "1", "1e999", "'a'",
    "\"", "'", "[", "]", "(", ")", "{", "}", "<", ">", "<=", "==", "!=", "=", "+", "-", "*", "!",
    "&&", "&", "->", "?", ":", ";", ",", ".", "#", "\\", "\n", 'i"a/b"', "\u201c", "\x00",
])  # fmt: skip
CHARACTERS = st.sampled_from(" \n\t;,()[]{}<>=+-*/^!&|?:#'\"\\.0123456789aeinx_\x00\xa0\u2028é")


@st.composite
def damaged_documents(draw):
    """Draw a text that is nearly a document."""
    if draw(st.booleans()):
        return " ".join(damage(draw, draw(documents().map(lexemes)), LEXEMES))
    return "".join(damage(draw, draw(documents().map(write)), CHARACTERS))


@FUZZ
@given(damaged_documents(), st.booleans())
def test_damage_is_no_traceback(text, lenient):
    parse_or_refuse(text, lenient=lenient)


@FUZZ
@given(st.text(CHARACTERS, max_size=40) | st.lists(LEXEMES, max_size=30).map(" ".join))
def test_no_text_at_all_is_a_traceback(text):
    parse_or_refuse(text)
    parse_or_refuse(f"version 1.0; graph g(x) -> (y) {{ y = {text}; }}")


def read_documents(folder):
    """Return the texts of all documents in a folder and its archives."""
    texts = [path.read_text() for path in sorted(folder.rglob("graph.nnef"))]
    for path in sorted(folder.rglob("*.nnef.t*")):
        with tarfile.open(path) as archive:
            texts += [
                archive.extractfile(member).read().decode()
                for member in archive
                if member.name.endswith("graph.nnef")
            ]
    return texts


def read_examples(folder):
    """Return the examples of the Khronos group and the fragments that torch_to_nnef pastes."""
    examples = sorted(folder.glob("khronos-examples/*/*.txt"))
    fragments = sorted(folder.glob("torch_to_nnef-fragments/*.nnef"))
    texts = [path.read_text() for path in examples if path.stem != "layers"]
    libraries = [path.read_text() for path in examples if path.stem == "layers"]
    libraries += [path.read_text() for path in fragments if ".tmpl" not in path.suffixes]
    return [
        *texts,
        *(f"version 1.0;\n{library}\ngraph g(x) -> (y) {{}}" for library in libraries),
    ]


@pytest.fixture(scope="module")
def real_documents(suites, exports):
    return read_documents(suites) + read_documents(exports) + read_examples(suites)


def test_documents_of_others_survive_a_round_trip(real_documents):
    for text in real_documents:
        parsed = parse_document(text, "m")
        again = parse_document(write(parsed), "m")
        assert without_places(again) == without_places(parsed)


@FUZZ
@given(data=st.data())
def test_damage_of_documents_of_others_is_no_traceback(data, real_documents):
    text = data.draw(st.sampled_from(real_documents))
    start = data.draw(st.integers(0, max(0, len(text) - 1000)))
    middle = "".join(damage(data.draw, text[start : start + 1000], CHARACTERS))
    parse_or_refuse(text[:start] + middle + text[start + 1000 :])
