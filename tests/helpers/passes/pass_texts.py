"""Files of small graphs before and after a pass: tests/passes/texts/NAME.txt, NAME its module.

::

    # What the file is about.
    == title of a case
    float graph net { ... }
    --
    float graph net { ... }

Behind ``--`` stands the graph that the pass makes, or ``unchanged``, or ``error: MESSAGE`` for
each error. ``make passes`` writes what is missing there. Arrays of more than :data:`MOST_VALUES`
elements are known by their digest behind ``--``.
"""

import importlib
import pkgutil
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import nnef_hw.passes
from nnef_hw.errors import ErrorGroup, Location, NnefHwError, raise_all
from nnef_hw.ir import Graph, Trait, format_graph, parse_graph, verify
from nnef_hw.ir.batch import sample_extents
from nnef_hw.passes import Pass
from nnef_hw.passes.checks.check_supported import find_unsupported
from nnef_hw.reference import run_float

FOLDER = Path(__file__).parents[2] / "passes" / "texts"
MOST_VALUES = 24
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Case:
    """A graph and what becomes of it; ``before_line``, ``after_line`` are where these begin."""

    path: Path
    title: str
    before: str
    after: str
    before_line: int
    after_line: int

    def __str__(self):
        return f"{self.path.stem}: {self.title}"

    def graph(self):
        """Return the graph before, with a place for each node: node n is at line n of net.nnef."""
        return with_places(parse_graph(self.before, self.path.name, self.before_line))

    def expected(self):
        """Return the last part in the printer's form."""
        if self.after == UNCHANGED or self.after.startswith("error: ") or "<" in self.after:
            return self.after
        return format_graph(parse_graph(self.after, self.path.name, self.after_line)).strip()


def read_cases(path):
    """Return the cases of a file."""
    cases, lines = [], path.read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("== ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        (middle,) = (n for n in range(start, end) if lines[n] == "--")
        before, after = "\n".join(lines[start + 1 : middle]), "\n".join(lines[middle + 1 : end])
        cases.append(Case(path, lines[start][3:], before, after.strip(), start + 2, middle + 2))
    return cases


def passes():
    """Return a function of a graph by the name of its module: every pass, and what refuses."""
    found = {"check_supported": refuse}
    for module in pkgutil.walk_packages(nnef_hw.passes.__path__, "nnef_hw.passes."):
        name = module.name.rpartition(".")[2]
        kind = getattr(importlib.import_module(module.name), name.title().replace("_", ""), None)
        if isinstance(kind, type) and issubclass(kind, Pass):
            found[name] = kind()
    return found


def refuse(graph):
    """Raise what cannot be built of a graph, or return it."""
    raise_all(find_unsupported(graph))
    return graph


def outcome(rewrite, graph):
    """Return the graph that a pass makes (None if it raises), and the text of a last part."""
    try:
        result = rewrite(graph)
    except NnefHwError as error:
        errors = error.errors if isinstance(error, ErrorGroup) else [error]
        return None, "\n".join(f"error: {each}" for each in errors)
    if result is graph:
        return result, UNCHANGED
    return result, format_graph(without_places(result), most_values=MOST_VALUES).strip()


def with_places(graph):
    """Return a graph whose nodes, those of loops too, stand at line 1, 2, 3..."""
    nodes = []
    for line, node in enumerate(graph.nodes, 1):
        bodies = {
            key: with_places(body) for key, body in node.attrs.items() if isinstance(body, Graph)
        }
        nodes.append(replace(node.with_attrs(**bodies), location=Location("net.nnef", line)))
    return replace(graph, nodes=tuple(nodes))


def without_places(graph):
    """Return a graph whose nodes and tensors stand nowhere."""
    nodes = tuple(replace(node, location=None) for node in graph.nodes)
    tensors = {name: replace(tensor, location=None) for name, tensor in graph.tensors.items()}
    return replace(graph, nodes=nodes, tensors=tensors)


def assert_same_function(before, after, rng):
    """Both compute the same from random inputs, and each node says what it was made from."""
    verify(after)
    assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    assert all(node.location is not None for node in after.nodes)
    # integers that are places are those of tables with three rows
    has_places = any(node.has(Trait.INDEXED) for node in after.nodes)
    inputs = {}
    for name in before.inputs:
        tensor = before.tensor(name)
        values = rng.normal(size=(4, *sample_extents(tensor.shape)))
        kind = {"scalar": np.float64, "integer": np.int64, "logical": np.bool_}[tensor.dtype]
        if tensor.dtype == "integer":
            values = np.abs(values * 2) % 3 if has_places else values * 3
        inputs[name] = values.astype(kind)
    expected, found = run_float(before, inputs), run_float(after, inputs)
    for name in before.outputs:
        assert before.tensor(name).shape == after.tensor(name).shape
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


def complete(path, rewrite):
    """Write the last part of each case that has none."""
    lines = path.read_text().splitlines()
    for case in reversed(read_cases(path)):
        if not case.after:
            _, after = outcome(rewrite, case.graph())
            lines.insert(case.after_line - 1, f"{after}\n")
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    path.write_text(text.rstrip() + "\n")
