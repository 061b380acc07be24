"""Cocotb benches: run against Verilog here, or written out for everybody else."""

import contextlib
import json
import re
import shutil
import tempfile
from pathlib import Path

import cocotb_tools.config
import numpy as np
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from nnef_hw.errors import CheckError, ToolError
from nnef_hw.sim.verilator import build_model
from nnef_hw.system.files import write_atomic

__all__ = ["run_cocotb", "run_tests", "write_bench"]

_FOLDER = Path(__file__).parent


def run_cocotb(
    verilog, vectors, *, top="top", defines=(), seed=1, idle_limit=100_000, test_dir=None
):
    """Run the stream bench in this process's Python under Verilator.

    Every combination of pauses is one cocotb test, see :mod:`nnef_hw.sim.stream_bench`.

    Parameters
    ----------
    verilog : str
        The module's Verilog, complete.
    vectors : Mapping[str, ndarray]
        Payloads of every stream as :func:`~nnef_hw.sim.frames.pack_frames` makes them: to be fed to
        ``i`` or ``i_...``, expected of ``o`` or ``o_...``.
    top : str
        Name of the module.
    defines : Sequence[str]
        Verilog macros.
    seed : int
        Seed of the pauses.
    idle_limit : int
        Cycles without a beat on either side that count as a deadlock.
    test_dir : Path, optional
        Folder for vectors, log and results; a temporary one by default.

    Returns
    -------
    int
        Number of tests, all passed.

    Raises
    ------
    CheckError
        A test failed; the message has what the tests found.
    ToolError
        The simulation did not get as far as its results.
    """
    with contextlib.ExitStack() as stack:
        if test_dir is None:
            test_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="nnef-hw-"))
        folder = Path(test_dir)
        _write_vectors(folder, vectors)
        environment = {
            "STREAM_BENCH_VECTORS": str(folder.absolute()),
            "STREAM_BENCH_IDLE_LIMIT": str(idle_limit),
        }
        return run_tests(
            verilog, "nnef_hw.sim.stream_bench", folder, top=top, ports=_ports(vectors),
            defines=defines, seed=seed, environment=environment,
        )  # fmt: skip


def run_tests(
    verilog, module, folder, *, top="top", ports=None, defines=(), seed=1, environment=None
):
    """Run the cocotb tests of any Python module under Verilator.

    Parameters
    ----------
    verilog : str
        Everything under test, complete.
    module : str
        Importable name of the module with the tests.
    folder : Path
        Receives log and results.
    top : str
        Name of the Verilog module.
    ports : Mapping[str, str], optional
        Ports that it must have, with their directions.
    defines : Sequence[str]
        Verilog macros.
    seed : int
        Seed of ``random`` in the tests.
    environment : Mapping[str, str], optional
        Further variables that the tests find in ``os.environ``.

    Returns
    -------
    int
        Number of tests, all passed.

    Raises
    ------
    CheckError
        A test failed; the message has what the tests found.
    ToolError
        The simulation did not get as far as its results.
    """
    libraries = Path(cocotb_tools.config.libs_dir)
    model = build_model(
        verilog,
        top=top,
        harness=Path(cocotb_tools.config.share_dir) / "lib" / "verilator" / "verilator.cpp",
        ports=ports,
        vpi=True,
        defines=defines,
        link=[f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lcocotbvpi_verilator"],
    )
    log = folder / "cocotb.log"
    results = folder.absolute() / "results.xml"
    results.unlink(missing_ok=True)
    # the runner leaves through SystemExit when a test fails; the results say more
    with contextlib.suppress(SystemExit):
        get_runner("verilator").test(
            test_module=module,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=model.directory,
            test_dir=folder,
            results_xml=str(results),
            log_file=str(log),
            seed=seed,
            extra_env={"COCOTB_ANSI_OUTPUT": "0", **(environment or {})},
        )
    if not results.is_file():
        tail = "\n".join(log.read_text().splitlines()[-40:])
        raise ToolError(f"the cocotb simulation broke off:\n{tail}")
    tests, failures = get_results(results)
    if failures or not tests:
        lines = [line.strip() for line in log.read_text().splitlines()]
        reasons = dict.fromkeys(line for line in lines if re.match(r"\w+(Error|Exception)\b", line))
        listing = "".join(f"\n    {reason}" for reason in list(reasons)[:5])
        raise CheckError(f"{failures} of {tests} cocotb tests failed (seed {seed}):{listing}")
    return tests


def write_bench(directory, vectors, *, top="top", verilog="../rtl/top.v"):
    """Write a bench that runs without this package: ``python run.py``.

    Parameters
    ----------
    directory : Path
        Folder that receives the bench.
    vectors : Mapping[str, ndarray]
        The same as for :func:`run_cocotb`.
    top : str
        Name of the module.
    verilog : str
        Where its Verilog is, from the folder.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_FOLDER / "stream_bench.py", directory / "test_accelerator.py")
    shutil.copyfile(_FOLDER / "run_bench.py", directory / "run.py")
    bench = {"top": top, "verilog": verilog}
    write_atomic(directory / "bench.json", json.dumps(bench, indent=1) + "\n")
    _write_vectors(directory, vectors)


def _ports(streams):
    """Ports of a module with these streams, and their directions."""
    ports = {"clk": "in", "rst": "in"}
    for name in streams:
        forth, back = ("in", "out") if name.startswith("i") else ("out", "in")
        ports |= {f"{name}__payload": forth, f"{name}__valid": forth, f"{name}__ready": back}
    return ports


def _write_vectors(folder, vectors):
    for name, payloads in vectors.items():
        write_atomic(folder / f"{name}.hex", _hex_lines(payloads))


def _hex_lines(payloads):
    """One payload per line, as wide as they all are."""
    words = np.asarray(payloads, np.uint64)
    words = words.reshape(len(words), -1)[:, ::-1]
    return "".join("".join(f"{int(word):016x}" for word in row) + "\n" for row in words)
