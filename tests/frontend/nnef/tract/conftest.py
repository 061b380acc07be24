"""Documents of tract's dialect, written where a test wants them."""

import pytest

from nnef_hw.frontend import load


@pytest.fixture
def load_tract(tmp_path):
    """Load a document from its extension lines, fragments and graph; dimensions by keyword."""

    def load_text(text, extensions=(), **dims):
        lines = ["version 1.0;", "extension tract_registry tract_core;"]
        lines += [f"extension {line};" for line in extensions]
        (tmp_path / "graph.nnef").write_text("\n".join([*lines, text]))
        return load(tmp_path, dims=dims)

    return load_text
