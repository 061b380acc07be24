"""Fixtures every test may use."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    """Seeded by the test's id, so that one failure replays alone."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session")
def zoo():
    """Folder of the trained networks used end to end."""
    path = Path(os.environ.get("NNEF_HW_ZOO", Path(__file__).parents[2] / "shared" / "zoo"))
    if not path.is_dir():
        pytest.skip(f"no trained networks at {path}; set NNEF_HW_ZOO")
    return path
