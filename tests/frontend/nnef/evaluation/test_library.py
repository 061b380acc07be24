from dataclasses import replace
from importlib import resources

import pytest

from nnef_hw.frontend.nnef.checking.checker import check_document
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.evaluation.rules import STRICT
from nnef_hw.frontend.nnef.language.parser import parse_document, parse_library

DOCUMENT = "version 1.0;\ngraph g(x) -> (y) { x = external(shape = [1]); y = copy(x); }"
LIBRARIES = ("standard", "extended")


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_definition_keeps_the_rules_of_the_specification(name):
    library = load_library(name)
    document = replace(parse_document(DOCUMENT, "f"), fragments=tuple(library.values()))
    rules = replace(STRICT, extension_lines=False, redefinitions=True)

    assert [str(error) for error in check_document(document, rules, {}).errors] == []


@pytest.mark.parametrize("name", LIBRARIES)
def test_operators_are_parsed_one_by_one(name):
    folder = resources.files("nnef_hw.frontend.nnef.evaluation") / "library"
    text = (folder / f"{name}.nnef").read_text()
    library = load_library(name)
    whole = parse_library(text, library.file)

    assert [declaration.name for declaration in whole] == list(library)
    assert len(library) == len(whole)
    for declaration in whole:
        parsed = library[declaration.name]
        assert parsed.location.file == f"{name}.nnef"
        assert list(map(describe, parsed.parameters)) == list(map(describe, declaration.parameters))
        assert (parsed.body is None) == (declaration.body is None)


def describe(parameter):
    return parameter.name, parameter.type, getattr(parameter.default, "value", None)


def test_the_standard_has_all_operators_of_1_0_5():
    library = load_library("standard")

    assert len(library) == 118
    assert sum(declaration.body is not None for declaration in library.values()) == 45
    assert "conv" in library
    assert "erf" not in library
