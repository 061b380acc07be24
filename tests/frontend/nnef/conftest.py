"""Small models, written where a test wants them."""

import io
import tarfile

import numpy as np
import pytest

from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor

DOCUMENT = """version 1.0;
graph net({inputs}) -> ({outputs})
{{
    x = external(shape = {shape});
    {body}
}}
"""


@pytest.fixture
def write_model(tmp_path):
    """Write a folder from statements (the first is in line 5) and arrays by label."""

    def write(*body, inputs="x", outputs="y", shape="[1, 2, 4, 4]", **arrays):
        text = DOCUMENT.format(
            body="\n    ".join(body), inputs=inputs, outputs=outputs, shape=shape
        )
        (tmp_path / "graph.nnef").write_text(text)
        for label, array in arrays.items():
            content = array if isinstance(array, bytes) else write_tensor(np.asarray(array))
            (tmp_path / f"{label}.dat").write_bytes(content)
        return tmp_path

    return write


@pytest.fixture
def load_model(write_model):
    """Write a folder and load it."""
    return lambda *body, **options: load_nnef(write_model(*body, **options))


@pytest.fixture
def write_tar(tmp_path):
    """Write a tar of (name, bytes) or TarInfo members in the given order."""

    def write(*members, name="model.tar", mode="w"):
        with tarfile.open(tmp_path / name, mode) as tar:
            for member in members:
                if isinstance(member, tarfile.TarInfo):
                    tar.addfile(member)
                else:
                    info = tarfile.TarInfo(member[0])
                    info.size = len(member[1])
                    tar.addfile(info, io.BytesIO(member[1]))
        return tmp_path / name

    return write


@pytest.fixture
def assert_same():
    """Compare two graphs in every field."""
    return _assert_same


def _assert_same(left, right):
    for key in ("name", "stage", "inputs", "outputs"):
        assert getattr(left, key) == getattr(right, key)
    assert len(left.nodes) == len(right.nodes)
    for one, other in zip(left.nodes, right.nodes, strict=True):
        assert (one.op, one.inputs, one.outputs) == (other.op, other.inputs, other.outputs)
        assert one.attrs.keys() == other.attrs.keys()
        for key, value in one.attrs.items():
            assert type(value) is type(other.attrs[key])
            np.testing.assert_equal(value, other.attrs[key])
    assert left.tensors.keys() == right.tensors.keys()
    for name, tensor in left.tensors.items():
        other = right.tensors[name]
        for key in ("name", "shape", "dtype", "label", "qtype"):
            assert getattr(tensor, key) == getattr(other, key)
        assert (tensor.data is None) == (other.data is None)
        if tensor.data is not None:
            assert tensor.data.dtype == other.data.dtype
            np.testing.assert_array_equal(tensor.data, other.data)
