"""What is kept of a folding depends on no other choice than those that are declared."""

from dataclasses import fields
from functools import wraps

import pytest
from golden_digests import fixed_graph
from golden_networks import lenet, perceptron, residual, separable, signs

from nnef_hw.boards import find_board
from nnef_hw.streaming.filters import arrays, systolic, taps, whole
from nnef_hw.streaming.search.solver import schedule

MODULES = (arrays, systolic, taps, whole)


def kept_methods():
    """Yield every class with a kept method, the method's name, and the method."""
    seen = set()
    for module in MODULES:
        for kind in vars(module).values():
            for name, value in vars(kind).items() if isinstance(kind, type) else ():
                if hasattr(value, "choices") and (kind, name) not in seen:
                    seen.add((kind, name))
                    yield kind, name, value


def recorded(folding, reads):
    """Return an equal folding that notes which of its choices are read."""
    kind = type(folding)
    choices = {field.name for field in fields(kind)}

    class Recorded(kind):
        __slots__ = ()

        def __getattribute__(self, name):
            if name in choices:
                reads.add(name)
            return super().__getattribute__(name)

        def __hash__(self):
            # a key of what others keep, which reads nothing
            return hash(folding)

        def __eq__(self, other):
            return folding == other

    found = object.__new__(Recorded)
    for name in choices:
        object.__setattr__(found, name, getattr(folding, name))
    return found


@pytest.fixture
def undeclared(monkeypatch):
    """Ask every kept method once more, and return what it reads beyond its declaration."""
    found, asked, keys = set(), set(), set()

    def check(kind, name, method):
        @wraps(method)
        def checking(folding, layer, *rest):
            if type(folding).__name__ == "Recorded":
                return method.__wrapped__(folding, layer, *rest)
            key = kind, name, layer, *(getattr(folding, choice) for choice in method.choices)
            if key not in keys:
                keys.add(key)
                reads = set()
                method.__wrapped__(recorded(folding, reads), layer, *rest)
                asked.add((kind.__name__, name))
                found.update((kind.__name__, name, read) for read in reads - set(method.choices))
            return method(folding, layer, *rest)

        monkeypatch.setattr(kind, name, checking)

    for kind, name, method in list(kept_methods()):
        check(kind, name, method)
    return found, asked


def test_choices_that_are_read_are_declared(undeclared):
    found, asked = undeclared
    for network, board, rate in (
        (lenet, "icebreaker", None), (residual, "ulx3s_85f", None),
        (separable, "tang_nano_20k", None), (perceptron, "icebreaker", None),
        (signs, "ulx3s_85f", 50e6),
    ):  # fmt: skip
        schedule(fixed_graph(network), find_board(board), target_fps=rate)
    assert found == set()
    assert asked == {(kind.__name__, name) for kind, name, _ in kept_methods()}
