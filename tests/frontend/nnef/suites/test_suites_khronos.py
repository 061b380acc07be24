"""Documents of the Khronos group's own tests and examples; their weights are not there."""

import json

import pytest
from pass_list import PassList

from nnef_hw.errors import NnefHwError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.evaluation.rules import LENIENT, STRICT
from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.frontend.nnef.lower import lower

PARSER_TESTS = PassList("khronos-parser-tests")
VERDICTS = PassList("khronos-verdicts")
EXAMPLES = PassList("khronos-examples")
FLAT = [name for name in EXAMPLES.passing if name.startswith("flat/")]
COMPOSITIONAL = [name for name in EXAMPLES.passing if name.startswith("compositional_old/")]
FLAT_OPERATIONS = {"alexnet": 18, "googlenet": 138, "resnet": 141, "vgg": 42}
COMPOSITIONAL_OPERATIONS = {"alexnet": 21, "googlenet": 141, "resnet": 403, "vgg19": 43}


def is_valid(load):
    try:
        load()
    except NnefHwError:
        return False
    return True


@pytest.mark.parametrize("name", PARSER_TESTS.passing)
def test_parser_tests(suites, name):
    text = (suites / "khronos-parser-tests" / f"{name}.nnef").read_text()

    assert is_valid(lambda: lower(parse_document(text, name))) == name.startswith("valid_")


@pytest.mark.parametrize("name", VERDICTS.passing)
def test_verdicts(suites, tmp_path, name):
    case = json.loads((suites / "khronos-verdicts" / "verdicts.json").read_text())[int(name)]
    (tmp_path / "graph.nnef").write_text(case["doc"])
    if case["quant"]:
        (tmp_path / "graph.quant").write_text(case["quant"])

    assert is_valid(lambda: load_nnef(tmp_path)) == case["spec_1.0.5"].startswith("accept")


@pytest.mark.parametrize("name", FLAT)
def test_flat_examples(suites, name):
    text = (suites / "khronos-examples" / f"{name}.txt").read_text()
    graph = lower(parse_document(text, name), rules=STRICT)

    assert len(graph.nodes) == FLAT_OPERATIONS[name.partition("/")[2]]


@pytest.mark.parametrize("name", COMPOSITIONAL)
def test_documents_of_version_1_0_with_variables_in_fragments(suites, name):
    folder = suites / "khronos-examples"
    graph = lower(parse_document(assembled(folder, name), name, lenient=True), rules=LENIENT)
    net = name.partition("/")[2]

    assert len(graph.nodes) == COMPOSITIONAL_OPERATIONS[net]
    assert all(
        tensor.label
        for tensor in graph.tensors.values()
        if tensor.volume > 1000 and tensor.data is not None
    )
    if net != "resnet":  # its flat document is another, shallower network
        twin = lower(parse_document((folder / f"{name}_flat.txt").read_text(), name))
        assert operations(graph) == operations(twin)


def assembled(folder, name):
    """Return a document with the fragments of the library file it was made for."""
    text = (folder / f"{name}_comp.txt").read_text()
    library = (folder / "compositional_old" / "layers.txt").read_text()
    end = text.index(";", text.index("extension" if "extension" in text else "version")) + 1
    return f"{text[:end]}\n{library}{text[end:]}"


def operations(graph):
    """Return operators in order; the flat documents do without two kinds."""
    left_out = {"softmax", "local_response_normalization"}
    return [node.op for node in graph.nodes if node.op not in left_out]


def test_every_case_is_listed(suites):
    parser_tests = [path.stem for path in (suites / "khronos-parser-tests").glob("*.nnef")]
    cases = json.loads((suites / "khronos-verdicts" / "verdicts.json").read_text())
    examples = suites / "khronos-examples"
    documents = [f"flat/{path.stem}" for path in (examples / "flat").glob("*.txt")]
    documents += [
        f"compositional_old/{path.stem.removesuffix('_comp')}"
        for path in (examples / "compositional_old").glob("*_comp.txt")
    ]

    assert not PARSER_TESTS.missing(parser_tests)
    assert not VERDICTS.missing(f"{index:02}" for index in range(len(cases)))
    assert not EXAMPLES.missing(documents)
