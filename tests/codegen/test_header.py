"""``model.h``: what it says is what the manifest says, to a C compiler."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.codegen.header import model_header
from nnef_hw.host.manifest import Manifest, TensorStream
from nnef_hw.host.streams import to_stream


def tensor(name, bits, *, signed, zero_point, beats=6, lanes=2):
    qtype = QType(bits, signed, 0.1 / 3, zero_point)
    return TensorStream(name, (1, 3, 2, 2), qtype, (2, 2, 3), lanes, beats)


MANIFEST = Manifest(
    model='hostile */ #error "x" /*', board="icebreaker", clock_mhz=24.0,
    cycles_per_inference=1152, inputs=(tensor("x", 8, signed=True, zero_point=-3),),
    outputs=(tensor("y", 12, signed=False, zero_point=7), tensor("*/ z", 4, signed=False,
                                                                zero_point=0, beats=5)),
    link={"kind": "uart", "baud": 1_000_000}, counted_layers=0, memory=None,
    hash=bytes(range(200, 232)),
)  # fmt: skip


def printed(compiler, manifest, folder, *names, before=""):
    """Return what a program prints of these names, as real numbers, and the bytes of the hash."""
    (folder / "model.h").write_text(model_header(manifest))
    values = "".join(f'printf("%.17g\\n", (double){name});' for name in names)
    (folder / "main.c").write_text(
        f'#include <stdio.h>\n#include "model.h"\n#include "model.h"\n{before}'
        "int main(void) { for (int n = 0; n < 32; n++) printf(\"%02x\", MODEL_HASH[n]);"
        f'printf("\\n"); {values} return 0; }}\n'
    )  # fmt: skip
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([compiler, *strict, "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    run = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    first, *others = run.stdout.split()
    return first, [float(value) for value in others]


def test_a_compiler_reads_what_the_manifest_says(compiler, tmp_path):
    hash_, found = printed(
        compiler, MANIFEST, tmp_path, "MODEL_BAUD", "MODEL_CYCLES_PER_INFERENCE",
        "MODEL_INPUT_BYTES",
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


@pytest.mark.parametrize(
    ("shape", "image", "axis", "lanes"),
    [
        ((1, 5), (1, 1, 5), 1, 1),
        ((1, 5, 2, 3), (2, 3, 5), 1, 2),
        ((1, 2, 3, 5), (1, 6, 5), 3, 1),
        ((1, 4, 5), (1, 1, 20), 2, 4),
        ((1, 5, 4), (1, 1, 20), 1, 1),
    ],
)
def test_a_host_in_c_makes_the_codes_of_features(
    shape, image, axis, lanes, compiler, tmp_path, rng
):
    features = FeatureScales(
        axis,
        tuple((10.0 ** rng.uniform(-4, 4, 5)).tolist()),
        tuple(rng.integers(-900, 300, 5).tolist()),
    )
    beats = image[0] * image[1] * -(-image[2] // lanes)
    source = TensorStream(
        "x", shape, QType(8, signed=False, scale=1.0), image, lanes, beats, features
    )
    x = features.dequantize(rng.integers(-40, 300, (1, *shape[1:])), shape)
    x *= rng.uniform(0.999, 1.001, x.shape)
    filled = -image[2] % lanes
    stream = x.reshape(image[2], *image[:2]).transpose(1, 2, 0)
    stream = np.pad(stream, ((0, 0), (0, 0), (0, filled))).reshape(-1)
    values = ", ".join(map(repr, stream.tolist()))
    code = (
        "floor(X[%d] / MODEL_INPUT_SCALE[%d %% MODEL_INPUT_FEATURES] + 0.5)"
        " + MODEL_INPUT_ZERO_POINT[%d %% MODEL_INPUT_FEATURES]"
    )
    names = [code % (n, n, n) for n in range(len(stream))]
    text = f"#include <math.h>\nstatic const double X[] = {{{values}}};\n"
    _, found = printed(compiler, replace(MANIFEST, inputs=(source,)), tmp_path, *names, before=text)
    expected = to_stream(source.quantize(x), source)
    codes = np.clip(found, 0, 255).reshape(expected.shape)
    is_real = to_stream(np.ones(x.shape), source) == 1
    assert is_real.sum() == x.size
    assert np.array_equal(codes[is_real], expected[is_real])


def test_a_single_output_has_no_number(compiler, tmp_path):
    one = replace(MANIFEST, outputs=MANIFEST.outputs[:1])
    assert printed(compiler, one, tmp_path, "MODEL_OUTPUT_CODES")[1] == [12]
