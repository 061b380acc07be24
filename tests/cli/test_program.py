import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import MODEL


def test_boards(cli):
    value = cli("boards", "--json").json
    assert {"icebreaker", "ulx3s_85f"} <= {row["name"] for row in value["boards"]}
    assert "iCEBreaker" in cli("boards").out


def test_doctor(cli):
    result = cli("doctor", "--json")
    rows = {row["name"]: row for row in result.json["tools"]}
    assert {"verilator", "yosys", "nextpnr-ice40"} <= rows.keys()
    assert result.status == (0 if all(row["found"] for row in rows.values()) else 3)
    assert all(row["remedy"] for row in rows.values() if not row["found"])


def test_doctor_reports_a_missing_tool(cli, monkeypatch):
    monkeypatch.setenv("NNEF_HW_YOSYS", "no-such-yosys")
    result = cli("doctor", "--json")
    row = next(row for row in result.json["tools"] if row["name"] == "yosys")
    assert (result.status, row["found"]) == (3, False)
    assert "no-such-yosys" in row["problem"]


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["frobnicate"], ["check"], ["build", "m"], ["sim", "b", "--limit", "many"],
        ["build", "m", "--board", "ice40", "--frames", "0"], ["run", "m", "--on", "paper"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_arguments_show_the_usage(arguments, cli):
    result = cli(*arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("usage: nnef-hw")


def program(*arguments, **options):
    command = [Path(sys.executable).with_name("nnef-hw"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_program_gives_its_status():
    good = program("check", MODEL, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["valid"] is True
    assert program("--version").stdout.startswith("nnef-hw ")

    bad = program("inspect", "nowhere/model.nnef.tgz")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "nnef-hw: nowhere/model.nnef.tgz does not exist; check the model's path\n"


def test_missing_tool_gives_status_3(tmp_path, built, monkeypatch):
    monkeypatch.setenv("NNEF_HW_VERILATOR", "no-such-verilator")
    result = program("sim", built, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert "Traceback" not in result.stderr
    assert "NNEF_HW_VERILATOR names 'no-such-verilator'" in result.stderr


def test_closed_pipe_is_no_traceback():
    command = f"{Path(sys.executable).with_name('nnef-hw')} inspect {MODEL} --json | head -c 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("{", "")
