"""What nobody has foreseen: no traceback on the terminal, but a report to attach."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_cases import MODEL
from sweeps import few

from nnef_hw.errors import UsageError
from nnef_hw.report.model.network import ModelCheck

pytestmark = pytest.mark.system

PROGRAM = Path(sys.executable).with_name("nnef-hw")
LINE = re.compile(
    r"nnef-hw: a defect of nnef-hw, please report it with the file (\S+) "
    r"\((.*)\); to reproduce it: (.*)\n"
)


@pytest.fixture
def broken(monkeypatch):
    """Let every ``check`` do something else."""

    def install(function):
        monkeypatch.setattr(
            "nnef_hw.report.check.check_file", lambda *_, **__: function(), raising=True
        )

    return install


def fail():
    return {}["two words\nand a line"]


def test_defect_is_one_line_and_a_report(cli, broken, tmp_path):
    broken(fail)
    result = cli("check", "a model.onnx", "--json")
    assert (result.status, result.json["error"]["errors"][0]["kind"]) == (3, "DefectError")
    name, what, command = LINE.fullmatch(result.err).groups()
    assert what == r"KeyError: 'two words\nand a line'"
    assert command == "nnef-hw check 'a model.onnx' --json"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    text = (tmp_path / name).read_text()
    for part in ("nnef-hw 0.", command, "Python 3.", "platform: ", "numpy ", "in fail", "KeyError"):
        assert part in text
    cli("check", "m")
    assert len(list(tmp_path.iterdir())) == 2


def test_cause_is_in_the_report(cli, broken, tmp_path):
    def chained():
        try:
            fail()
        except KeyError as error:
            raise RuntimeError from error

    broken(chained)
    name, what, _ = LINE.fullmatch(cli("check", "m").err).groups()
    assert what == "RuntimeError"
    assert "KeyError" in (tmp_path / name).read_text()


def test_report_goes_elsewhere_if_it_must(cli, broken, tmp_path, monkeypatch):
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    gone = tmp_path / "gone"
    gone.mkdir()
    broken(fail)
    monkeypatch.chdir(gone)
    gone.rmdir()
    # the fixture changes the folder once, before this
    name = LINE.fullmatch(cli("check", "m").err)[1]
    assert Path(name).parent == elsewhere
    assert "KeyError" in Path(name).read_text()

    monkeypatch.setattr("tempfile.tempdir", str(gone))
    err = cli("check", "m").err
    assert err.startswith("nnef-hw: a defect of nnef-hw; no report could be written (KeyError: ")
    assert err.count("\n") == 1


def test_thread_that_fails_is_a_defect_too(cli, broken, tmp_path):
    def in_a_thread():
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        return ModelCheck(
            model="m", valid=True, architectures={"streaming": True}, problems=(), refusals={}
        )

    broken(in_a_thread)
    result = cli("check", "m", "--json")
    assert result.status == 3
    name = LINE.fullmatch(result.err)[1]
    assert "in fail" in (tmp_path / name).read_text()


def test_errors_of_the_user_leave_no_report(cli, broken, tmp_path):
    def refuse():
        raise UsageError("no", remedy="yes")

    broken(refuse)
    result = cli("check", "m")
    assert (result.status, result.err) == (2, "nnef-hw: no; yes\n")
    assert not list(tmp_path.iterdir())


def small_files(limit):
    """Return a command after which files end at a limit; Python would cut off its bytecode, too."""
    return f"export PYTHONDONTWRITEBYTECODE=1; ulimit -f {limit}"


def shell(command, **options):
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, **options
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_standard_output():
    result = shell(f"{PROGRAM} boards --json > /dev/full")
    assert result.returncode == 2
    assert result.stderr.startswith(
        "nnef-hw: standard output: cannot be written: No space left on device; free some space"
    )
    assert result.stderr.count("\n") == 1


def test_closed_standard_streams():
    assert shell(f"{PROGRAM} boards >&-").returncode == 0
    result = shell(f"{PROGRAM} boards --json 2>&-")
    assert (result.returncode, result.stderr) == (0, "")


# a limit of the size of files stands for a full disk: the system refuses to write on


@pytest.mark.parametrize(
    ("limit", "command", "files"),
    [
        (4, "run {model} --input s.npz --output y.npz", ["s.npz"]),
        (8, "quantize {model} --calibrate s.npz -o q.nnef.tgz --report r.html", None),
        (1, "quantize {model} --calibrate s.npz -o q.nnef.tgz", ["s.npz"]),
        (1, "convert {model} out.nnef.tgz", ["s.npz"]),
    ],
    ids=["run", "report", "quantize", "convert"],
)
def test_full_disk_is_an_error_with_a_place(limit, command, files, tmp_path):
    inputs = np.random.default_rng(0).uniform(0, 16, (100, 1, 8, 8))
    np.savez(tmp_path / "s.npz", inputs=inputs)
    result = shell(f"{small_files(limit)}; {PROGRAM} {command.format(model=MODEL)}", cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    # what there is to say of the noise that calibrates comes before
    assert re.fullmatch(
        r"(nnef-hw: warning: .*\n(    .*\n)*)?"
        r"nnef-hw: .*(y\.npz|r\.html|nnef\.tgz).*File too large; .*\n",
        result.stderr,
    ), result.stderr
    remaining = sorted(path.name for path in tmp_path.iterdir())
    assert remaining == (files or ["q.nnef.tgz", "s.npz"])


@pytest.mark.verilator
@pytest.mark.parametrize("limit", few([1, 40], [40]))
def test_full_disk_ends_a_build(limit, tiny, tmp_path, tmp_path_factory):
    """At the first file; and when layers are put into the cache, long after that."""
    command = f"{PROGRAM} build {tiny}/tiny.nnef.tgz --board icebreaker --no-bitstream --out a/out"
    cache = tmp_path_factory.mktemp("cache")
    result = shell(
        f"{small_files(limit)}; NNEF_HW_CACHE={cache} {command} --calibrate {tiny}/samples.npz",
        cwd=tmp_path,
    )
    assert result.returncode == 2, result.stderr
    assert re.fullmatch(
        r"nnef-hw: (a/out|/\S*/layers): cannot be written: File too large; raise .*\n",
        result.stderr,
    )
    assert not list(tmp_path.iterdir())
