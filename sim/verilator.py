"""Verilog compiled to executables with Verilator, once per content.

A small model takes about half a second: the generated C++ goes through one compiler call with a
precompiled header; Verilator's run-time library and the runner are compiled once for all models.
"""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnef_hw.errors import ToolError
from nnef_hw.system.files import digest, publish_directory
from nnef_hw.system.process_group import run_parallel
from nnef_hw.system.tools import Tool, cache_directory, find_tool, run_tool

__all__ = ["Model", "Port", "build_model"]

# Everything else that Verilator warns of goes to the log; these are mistakes.
_ERRORS = ("COMBDLY", "IMPLICIT", "LATCH", "MULTIDRIVEN", "PINMISSING", "SELRANGE")
# The emitted Verilog leaves extensions and truncations to assignments.
_SILENT = ("WIDTHEXPAND", "WIDTHTRUNC")

_CXX_FLAGS = (
    "-std=c++17", "-w", "-pthread", "-fno-exceptions", "-DVERILATOR=1", "-DVM_COVERAGE=0",
    "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE_SAIF=0",
)  # fmt: skip
OPTIMIZATION = "-Og"
"""-O1 takes half as long again to compile and runs at most a quarter faster, DS-CNN by 7%."""
_LIBRARY = ("verilated.cpp", "verilated_threads.cpp")
_TRACE_LIBRARY = {
    "": (),
    "vcd": ("verilated_vcd_c.cpp",),
    "fst": ("verilated_fst_c.cpp",),
}
_HEADER = """#include "verilated.h"
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
"""
_UNOPTIMIZED = """#ifdef __clang__
#pragma clang optimize off
#else
#pragma GCC optimize("O0")
#endif
"""
_FEW_BYTES = 300_000
"""C++ of which a compiler call of its own takes longer than waiting for it."""
_PORT = re.compile(r"VL_(IN|OUT|INOUT)(?:8|16|64|W)?\(&(\w+),(\d+),(\d+)(?:,\d+)?\);")


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the Verilog top module; ``member`` is its name in the C++ class."""

    direction: str
    width: int
    member: str


@dataclass(frozen=True, slots=True)
class Model:
    """A compiled model: the program, the folder it is in, and the ports of its top module."""

    executable: Path
    ports: dict[str, Port]

    @property
    def directory(self) -> Path:
        """The folder of the program."""
        return self.executable.parent


def build_model(
    verilog: str,
    *,
    top: str = "top",
    harness: Path,
    runner: Sequence[Path] = (),
    prelude: str = "",
    ports: Mapping[str, str] | None = None,
    trace: str = "",
    vpi: bool = False,
    defines: Sequence[str] = (),
    link: Sequence[str] = (),
    cache_dir: Path | None = None,
) -> Model:
    """Compile Verilog and a C++ main program, or find them in the cache.

    Parameters
    ----------
    verilog : str
        All Verilog sources as one text.
    top : str
        Top module; its C++ class is ``Vtop`` whatever its name.
    harness : Path
        C++ file that is compiled with the model.
    runner : Sequence[Path]
        C++ file with ``main`` that is compiled once for all models, and the headers that it shares
        with the harness; without one the harness has ``main``.
    prelude : str
        C++ text ahead of the harness.
    ports : Mapping[str, str], optional
        Ports that the harness needs, with their directions, "in" or "out".
    trace : str
        "vcd" or "fst" makes a model that can write waveforms; "" one that cannot and is faster.
    vpi : bool
        Make all signals public and include the VPI, for cocotb.
    defines : Sequence[str]
        Verilog macros, ``NAME`` or ``NAME=VALUE``.
    link : Sequence[str]
        Arguments for the linker.
    cache_dir : Path, optional
        Folder of the cache; the user's by default.

    Raises
    ------
    ToolError
        Verilator or the compiler is missing or refuses its input.
    ValueError
        The module lacks one of ``ports``.
    """
    if trace not in _TRACE_LIBRARY:
        raise ValueError(f"trace must be 'vcd', 'fst' or '', not {trace!r}")
    verilator, compiler = find_tool("verilator"), find_tool("c++")
    flags = [OPTIMIZATION, *_CXX_FLAGS]
    if not vpi:
        # cocotb's main program keeps the time itself, and hangs if the library does too
        flags.append("-DVL_TIME_CONTEXT")
    arguments = ["--cc", "--quiet-stats", "-O3", "--x-assign", "fast", "--x-initial", "fast"]
    arguments += ["--prefix", "Vtop", "--top-module", top, "-Wno-fatal"]
    arguments += [f"-Werror-{name}" for name in _ERRORS] + [f"-Wno-{name}" for name in _SILENT]
    arguments += [f"-D{name}" for name in defines]
    if trace:
        arguments += [f"--trace-{trace}", "--trace-structs", "--trace-underscore"]
    if vpi:
        arguments += ["--vpi", "--public-flat-rw"]

    tools = (verilator.identity, compiler.identity, str(compiler.path))
    root = cache_dir or cache_directory()
    library_key = digest(*tools, _HEADER, *flags, str(vpi))[:32]
    key = digest(library_key, verilog, prelude, harness, *runner, *arguments, *link)[:32]
    logs = root / "logs" / key

    def produce(folder):
        compiled, model_flags = _shared(
            root, library_key, verilator, compiler, flags, trace, runner, vpi=vpi
        )
        (folder / "top.v").write_text(verilog)
        command = [*arguments, "--Mdir", "obj", "top.v"]
        run_tool(verilator, command, cwd=folder, log=logs / "verilator.log")
        _check_ports(_ports(folder / "obj" / "Vtop.h"), ports or {}, top)
        # cocotb wants the program to be called like the top module
        program = folder / "bin" / top
        program.parent.mkdir()
        libraries = ["-pthread", *(["-llz4", "-lz"] if trace == "fst" else []), *link]
        objects = _compile_model(folder, logs, (prelude, harness), compiler, model_flags)
        command = [*objects, *compiled, *libraries, "-o", program]
        run_tool(compiler, command, cwd=folder, log=logs / "link.log")
        for path in (*objects, *(folder / "obj").glob("*.cpp")):
            path.unlink()

    model = publish_directory(root / "models" / key, produce)
    return Model(model / "bin" / top, _ports(model / "obj" / "Vtop.h"))


def _shared(root, library_key, verilator, compiler, flags, trace, runner, *, vpi):
    """Return the object files that models of a kind share, and the flags of what goes with them."""
    library = publish_directory(
        root / "verilated" / library_key,
        lambda folder: _compile_library(
            folder, root / "logs" / library_key, verilator, compiler, flags, vpi=vpi
        ),
    )
    compiled = sorted(library.glob("*.o"))
    if trace:
        trace_key = digest(library_key, trace)[:32]
        writer = publish_directory(
            root / "verilated" / trace_key,
            lambda folder: _compile_writer(
                folder, root / "logs" / trace_key, verilator, compiler, flags, trace
            ),
        )
        compiled += sorted(writer.glob("*.o"))

    flags = [*flags, *_includes(verilator), "-include", library / "runtime.h"]
    # Unknown to the library, so that its precompiled header suits models of every kind.
    flags += [f"-DTRACE_{trace.upper()}"] if trace else []
    if runner:
        runner_key = digest(library_key, trace, *runner)[:32]
        runner_logs = root / "logs" / runner_key
        job = [*flags, "-c", runner[0], "-o", "runner.o"]
        folder = publish_directory(
            root / "verilated" / runner_key,
            lambda folder: _compile_all(compiler, [job], folder, runner_logs),
        )
        compiled.append(folder / "runner.o")
    return compiled, flags


def _includes(verilator: Tool) -> list[str]:
    include = Path(verilator.environment["VERILATOR_ROOT"]) / "include"
    return [f"-I{include}", f"-I{include / 'vltstd'}"]


def _compile_library(folder, logs, verilator, compiler, flags, *, vpi):
    include = Path(verilator.environment["VERILATOR_ROOT"]) / "include"
    (folder / "runtime.h").write_text(_HEADER)
    suffix = ".pch" if "clang" in compiler.path.name else ".gch"
    flags = [*flags, *_includes(verilator)]
    jobs = [[*flags, "-x", "c++-header", "runtime.h", "-o", f"runtime.h{suffix}"]]
    names = [*_LIBRARY] + ["verilated_vpi.cpp"] * vpi
    jobs += [
        # without the precompiled header: some of these define macros ahead of verilated.h
        [*flags, "-c", include / name, "-o", f"{Path(name).stem}.o"]
        for name in names
    ]
    _compile_all(compiler, jobs, folder, logs)


def _compile_writer(folder, logs, verilator, compiler, flags, trace):
    """Compile what writes waveforms."""
    include = Path(verilator.environment["VERILATOR_ROOT"]) / "include"
    # That of FST throws.
    flags = [*flags, *_includes(verilator), "-fexceptions"]
    jobs = [
        [*flags, "-c", include / name, "-o", f"{Path(name).stem}.o"]
        for name in _TRACE_LIBRARY[trace]
    ]
    try:
        _compile_all(compiler, jobs, folder, logs)
    except ToolError as error:
        if trace == "fst":
            raise ToolError(
                f"Verilator's FST writer cannot be compiled: {error.reason}",
                remedy="install lz4 and zlib (Debian and Ubuntu: apt install liblz4-dev "
                "zlib1g-dev), or trace to a file that ends in .vcd",
            ) from None
        raise


def _compile_model(folder, logs, main, compiler, flags):
    """Compile what Verilator made and the harness; return the object files."""
    prelude, harness = main
    generated = sorted((folder / "obj").glob("*.cpp"))
    # What runs once, such as filling the memories, is most of the text and not worth optimizing;
    # said by pragmas, because with other flags the precompiled header would be refused.
    once = [path for path in generated if path.stem.endswith("__Slow")]
    every_cycle = [path for path in generated if path not in once]
    texts = [prelude + _including(*every_cycle, harness), _UNOPTIMIZED + _including(*once)]
    if sum(path.stat().st_size for path in once) < _FEW_BYTES:
        texts = ["".join(texts)]
    objects, jobs = [], []
    for n, text in enumerate(texts):
        source = folder / f"model{n}.cpp"
        source.write_text(text)
        objects.append(source.with_suffix(".o"))
        jobs.append([*flags, "-Iobj", "-c", source, "-o", objects[-1]])
    _compile_all(compiler, jobs, folder, logs)
    return objects


def _including(*paths):
    return "".join(f'#include "{path}"\n' for path in paths)


def _compile_all(compiler, jobs, folder, logs):
    def compile_one(job):
        run_tool(compiler, job, cwd=folder, log=logs / f"{Path(job[-1]).stem}.log")

    run_parallel([functools.partial(compile_one, job) for job in jobs], os.cpu_count() or 1)


def _check_ports(ports, wanted, top):
    for name, direction in wanted.items():
        if name not in ports or ports[name].direction != direction:
            raise ValueError(f"module {top!r} must have the {direction}put port {name!r}")


def _ports(header: Path) -> dict[str, Port]:
    """Ports as declared in the generated class."""
    ports = {}
    for direction, member, high, low in _PORT.findall(header.read_text()):
        # Verilator writes the second of two underscores as its character code
        name = member.replace("___05F", "__")
        ports[name] = Port(direction.lower(), int(high) - int(low) + 1, member)
    return ports
