import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import MODEL

from nnef_hw.system.doctor import ToolStatus

pytestmark = pytest.mark.system


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


def test_brackets_of_extras_are_printed(cli, monkeypatch):
    row = ToolStatus("x", "y", False, "", "", "x was not found", "pip install 'nnef-hw[ecp5]'")
    monkeypatch.setattr("nnef_hw.system.doctor.doctor", lambda chains, _: [row])
    monkeypatch.setattr("nnef_hw.system.doctor.is_well", lambda rows, chains: True)
    assert "pip install 'nnef-hw[ecp5]'" in cli("doctor").out


def test_doctor_tells_each_remedy_once(cli, monkeypatch):
    """A table that fits 80 columns, without paths; then what is missing, by what helps."""
    rows = [
        ToolStatus("make", "the cocotb bench", True, "4.3", "/usr/bin/make", "", ""),
        ToolStatus("ecppack", "bitstreams for ECP5", False, "", "", "not found", "pip install y"),
        ToolStatus("nextpnr-ecp5", "placing", False, "", "", "not found", "pip install y"),
        ToolStatus("loader", "flashing", False, "1.0", "/x/loader", "loader lacks z", "install z"),
    ]
    monkeypatch.setattr("nnef_hw.system.doctor.doctor", lambda chains, _: rows)
    monkeypatch.setattr("nnef_hw.system.doctor.is_well", lambda rows, chains: False)
    result = cli("doctor")
    assert result.status == 3
    assert [" ".join(line.split()) for line in result.out.splitlines()] == [
        "tool version purpose",
        "make 4.3 the cocotb bench",
        "ecppack missing bitstreams for ECP5",
        "nextpnr-ecp5 missing placing",
        "loader does not start flashing",
        "",
        "ecppack, nextpnr-ecp5: pip install y",
        "loader lacks z: install z",
    ]


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
def test_wrong_arguments_lead_to_the_help(arguments, cli):
    result = cli(*arguments)
    command = "".join(f"{word} " for word in arguments[:1] if word != "frobnicate")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("nnef-hw: ")
    assert result.err.endswith(f"see nnef-hw {command}--help\n")


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("biuld",), "there is no command 'biuld'; did you mean 'build'? see nnef-hw --help"),
        (
            ("--verison",),
            "unrecognized arguments: --verison; did you mean '--version'? see nnef-hw --help",
        ),
        (("frobnicate",), "there is no command 'frobnicate'; see nnef-hw --help"),
        (
            ("check", "x", "--jsn"),
            "unrecognized arguments: --jsn; did you mean '--json'? see nnef-",
        ),
        (
            ("build", "x", "--freq", "fast"),
            "argument --freq: 'fast' is neither MHz nor 'auto'; see",
        ),
        (("sim",), "the following arguments are required: BUILD; see nnef-hw sim --help"),
    ],
)
def test_wrong_arguments_are_one_line(cli, words, message):
    result = cli(*words)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("nnef-hw: ")
    assert message in result.err
    assert result.err.count("\n") == 1


def test_an_error_is_an_object_too(cli, tmp_path, built):
    """If the command prints JSON; and only one is printed."""
    (tmp_path / "wrong").mkdir()
    lines = ("version 1.0;", "graph g(x) -> (y)", "{", "    x = external(shape = [1, 2]);",
             "    y = foo(x);", "}\n")  # fmt: skip
    (tmp_path / "wrong" / "graph.nnef").write_text("\n".join(lines))
    found = cli("inspect", "wrong", "--json")
    [error] = found.json["error"]["errors"]
    assert (found.status, found.json["error"]["status"]) == (2, 2)
    assert error["reason"] in found.err
    assert (error["location"]["line"], error["location"]["column"]) == (5, 9)
    for words in (
        ("inspect", "none.onnx"),
        ("check", "x", "--jsn"),
        ("sim", built, "--limit", "0"),
    ):
        wrong = cli(*words, "--json")
        assert wrong.json["error"]["errors"][0]["kind"] == "UsageError"
        assert cli(*words).out == ""
