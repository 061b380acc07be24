"""``model.h``: what it says is what the manifest says, to a C compiler."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from nnef_hw.codegen.header import model_header
from nnef_hw.manifest import Manifest, TensorStream
from nnef_hw.numerics import QType


def tensor(name, bits, *, signed, zero_point, beats=6, lanes=2):
    qtype = QType(bits, signed, 0.1 / 3, zero_point)
    return TensorStream(name, (1, 3, 2, 2), qtype, (2, 2, 3), lanes, beats)


MANIFEST = Manifest(
    model='hostile */ #error "x" /*', board="icebreaker", clock_mhz=24.0,
    cycles_per_inference=1152, inputs=(tensor("x", 8, signed=True, zero_point=-3),),
    outputs=(tensor("y", 12, signed=False, zero_point=7), tensor("*/ z", 4, signed=False,
                                                                zero_point=0, beats=5)),
    link="uart", baud=1_000_000, counted_layers=0, memory=None, hash=bytes(range(200, 232)),
)  # fmt: skip


def printed(manifest, folder, *names):
    """Return what a program prints of these names, as real numbers, and the bytes of the hash."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler called cc")
    (folder / "model.h").write_text(model_header(manifest))
    values = "".join(f'printf("%.17g\\n", (double){name});' for name in names)
    (folder / "main.c").write_text(
        '#include <stdio.h>\n#include "model.h"\n#include "model.h"\n'
        "int main(void) { for (int n = 0; n < 32; n++) printf(\"%02x\", MODEL_HASH[n]);"
        f'printf("\\n"); {values} return 0; }}\n'
    )  # fmt: skip
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([compiler, *strict, "main.c", "-o", "main"], cwd=folder, check=True)
    run = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    first, *others = run.stdout.split()
    return first, [float(value) for value in others]


def test_a_compiler_reads_what_the_manifest_says(tmp_path):
    hash_, found = printed(
        MANIFEST, tmp_path, "MODEL_BAUD", "MODEL_CYCLES_PER_INFERENCE", "MODEL_INPUT_BYTES",
        "MODEL_INPUT_CODES", "MODEL_INPUT_SCALE", "MODEL_INPUT_ZERO_POINT", "MODEL_INPUT_LOWEST",
        "MODEL_OUTPUT_BYTES", "MODEL_OUTPUT0_SCALE", "MODEL_OUTPUT0_ZERO_POINT",
        "MODEL_OUTPUT0_HIGHEST", "sizeof(model_output0_code)", "sizeof(model_input_code)",
        "MODEL_OUTPUT1_CODES",
    )  # fmt: skip
    assert hash_ == MANIFEST.hash.hex()
    scale = 0.1 / 3
    assert found == [
        1e6, 1152, 12, 12, scale, -3, -128, 24 + 10, scale, 7, 4095, 2, 1, 10,
    ]  # fmt: skip


def test_a_single_output_has_no_number(tmp_path):
    one = replace(MANIFEST, outputs=MANIFEST.outputs[:1])
    assert printed(one, tmp_path, "MODEL_OUTPUT_CODES")[1] == [12]
