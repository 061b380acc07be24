"""What tests of components share."""

import pytest
from examples.example import RAM


@pytest.fixture
def stall():
    """Probabilities of an idle source and of a sink that is not ready, per cycle.

    A component is run with both; the cycles are those of the first.
    """
    return 0.0, 0.5


@pytest.fixture(scope="session")
def ram():
    """Block RAM so small that most memories take several."""
    return RAM
