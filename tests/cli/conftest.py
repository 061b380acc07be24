"""The commands, run in the test's own folder, on a tiny network."""

import re
import shutil

import pytest

from nnef_hw.flow.options import BuildOptions
from nnef_hw.flow.pipeline import build


@pytest.fixture(scope="session")
def built(tiny):
    """A build without bitstream; nobody changes it."""
    folder = tiny / "built"
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    build(
        BuildOptions(model, "icebreaker", folder, calibrate=samples, bitstream=False, frames="all")
    )
    return folder


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def refused(cli, tmp_path):
    """Run a command that must be refused: status 2, one clear message, nothing touched."""

    def check(*arguments, match, status=2):
        before = contents(tmp_path)
        result = cli(*arguments)
        assert result.status == status, result.err
        assert not result.out
        assert result.err.startswith("nnef-hw: ")
        assert "Traceback" not in result.err
        assert re.search(match, result.err, re.DOTALL), result.err
        assert contents(tmp_path) == before
        return result

    return check


@pytest.fixture(params=["new", "old"])
def out(request, tmp_path):
    """Folder for a build that is not there, or holds a good one."""
    folder = tmp_path / "out"
    if request.param == "old":
        shutil.copytree(request.getfixturevalue("built"), folder)
    return folder
