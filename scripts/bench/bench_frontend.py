"""Measure the front end, or feed it damaged models: ``make bench-frontend``.

``python scripts/bench/bench_frontend.py --fuzz 10000`` loads that many damaged models; every one
must load or be refused with a place. Documents of others are read from NNEF_HW_SHARED (or a folder
``shared`` beside the repository); without them only those of our own are used.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import logging
import os
import random
import re
import shutil
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from nnef_hw.errors import ErrorGroup, Location, NnefHwError, UsageError
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.frontend.nnef.archive.archive import write_archive
from nnef_hw.frontend.nnef.archive.tensor_file import read_tensor, write_tensor
from nnef_hw.frontend.nnef.language.parser import parse_document

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("NNEF_HW_SHARED", ROOT.parent / "shared"))
ALEXNET = SHARED / "suites" / "khronos-examples" / "flat" / "alexnet.txt"
MEBI = 1 << 20
WEIGHTS = 10
FLOATS = 10 * MEBI // 4
MAX_SIZE = 300_000
SECONDS = 20
WRONG = "neither loaded nor refused with a place"
PIECES = [
    "x", "y", "input", "output", "1", "0", "-1", "1.5", "99999999999", "'a'", "[]", "[1, 2]",
    "(", ")", "[", "]", "{", "}", ",", ";", "=", "<", ">", ":", "?", "+", "-", "*", "/", "^", "!",
    " in ", " if ", " else ", " for ", "integer", "scalar", "tensor", "true", "shape_of", "graph ",
    "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) { y = f(x); }", "extension ", "add(",
    "constant(shape = [2], value = [1.0])", "(x if true else y)", "[for i in [1] yield i]", "[:-1]",
]  # fmt: skip
CHARACTERS = [*" \n\t;,()[]{}<>=+-*/^!&|?:#'\"\\.0123456789aeinx_\x00\u00e9"]
QUANTIZATION = """"y": min_max_linear_quantize(min = -1.0, max = 1.0, bits = 8, signed = true,
    symmetric = false);
"w": zero_point_linear_quantize(zero_point = 0, scale = [0.5, 0.25], bits = 8, signed = true,
    symmetric = true);
"""
OWN = [
    """version 1.0;
extension KHR_enable_fragment_definitions, KHR_enable_operator_expressions;
fragment sum_of(items: tensor<scalar>[]) -> (sum: tensor<scalar>)
{
    sum = items[0] + sum_of(items[1:]) if length_of(items) > 1 else items[0];
}
fragment twice<? = scalar>(x: tensor<?>, axes: integer[] = [0, -1])
-> (y: tensor<?>[], z: tensor<?>)
{
    y = [for i in range_of(axes), a in axes if a >= -1 && !(a in [5]) yield copy<?>(x)];
    z = copy(y[0]);
}
graph net(x) -> (y, z)
{
    x = external(shape = [2, 3]);
    w = variable(shape = [2, 3], label = 'w');
    [a, b], z = twice(x, axes = [1 + 1, integer(3.5)] * 1);
    y = sum_of([a, -b ^ 2.0, x / 2.0 + w]) * scalar(length_of([1, 2]));
}
""",
    """version 1.0;
graph net(x) -> (y, i)
{
    x = external<scalar>(shape = [2, 3]);
    w = variable<scalar>(shape = [2, 3], label = 'w');
    u = update(w, x);
    y, i = max_pool_with_index(x, size = [1, 2], padding = [(0, 0), (1, 0)], border = 'ignore');
}
""",
    """version 1.0;
extension tract_registry tract_core;
extension tract_symbol B;
fragment body(a: tensor<scalar>, s: tensor<scalar>) -> (t: tensor<scalar>) { t = a + s; }
graph net(x) -> (y)
{
    x = tract_core_external(shape = [B, 3], datum_type = "f32");
    w = variable<scalar>(shape = [2, 3], label = "w");
    z = slice(w, axes = [0], begin = [0], end = [1]);
    y = tract_core_scan(body = "body", scan = [("a", x, 0, 1)], full = [], state = [("s", z, "t")],
        output = [("t", "full", 0, 1)], skip = 0);
}
""",
]


def main() -> None:
    """Measure, or fuzz."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fuzz", type=int, metavar="N", help="load N damaged models instead")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.fuzz:
            sys.exit(fuzz(options.fuzz, options.seed, Path(folder)) > 0)
        for name, figure in measure(Path(folder)):
            print(f"{name:44} {figure}", flush=True)


def measure(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of the table."""
    if ALEXNET.exists():
        text = ALEXNET.read_text()
        parse_document(text, "alexnet")
        yield "AlexNet's text, parsed", f"{1e3 * best(lambda: parse_document(text, 'm')):.1f} ms"
    text = flat_document(10_000)
    parsing = best(lambda: parse_document(text, "m"), 3)
    (folder / "graph.nnef").write_text(text)
    loading = best(lambda: load_nnef(folder), 3)
    yield "10,000 flat operators, parsed", f"{parsing:.2f} s"
    yield "10,000 flat operators, checked and lowered", f"{loading - parsing:.2f} s"

    data = np.random.default_rng(0).normal(size=(WEIGHTS, FLOATS)).astype(np.float32)
    members = {f"w{i}.dat": write_tensor(row) for i, row in enumerate(data)}
    members["graph.nnef"] = big_document().encode()
    size = sum(map(len, members.values()))
    for name, content in members.items():
        (folder / name).write_bytes(content)
    for suffix in (".tar", ".tgz"):
        write_archive(folder / f"model.nnef{suffix}", members)
    inflated = best(lambda: gzip.decompress((folder / "model.nnef.tgz").read_bytes()), 2)
    speeds = {
        "folder": size / best(lambda: touch(folder)) / 1e9,
        ".tar": size / best(lambda: touch(folder / "model.nnef.tar")) / 1e9,
    }
    for kind, speed in speeds.items():
        yield f"{size / 1e6:.0f} MB as {kind}, loaded and read once", f"{speed:.2f} GB/s"
    zipped = best(lambda: touch(folder / "model.nnef.tgz"), 2)
    yield f"{size / 1e6:.0f} MB as .tgz", f"{size / zipped / 1e6:.0f} MB/s"
    yield "    inflated alone", f"{size / inflated / 1e6:.0f} MB/s"
    content, where = members["w0.dat"], Location("w0.dat")
    seconds = best(lambda: float(read_tensor(content, where).array.sum()))
    yield "float32 .dat, decoded and read once", f"{len(content) / seconds / 1e9:.2f} GB/s"


def best(run: Callable[[], object], times: int = 5) -> float:
    """Return the shortest time of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def touch(path: Path) -> float:
    """Load a model and read all its numbers."""
    tensors = load_nnef(path).tensors.values()
    return sum(float(tensor.data.sum()) for tensor in tensors if tensor.data is not None)


def flat_document(count: int) -> str:
    """Return a residual network of that many operators, four in a block."""
    blocks = "".join(
        f"""    k{i} = constant(shape = [8, 8, 3, 3], value = [0.125]);
    c{i} = conv(t{i}, k{i}, 0.0, stride = [1, 1], padding = [(1, 1), (1, 1)],
        dilation = [1, 1], border = 'constant', groups = 1);
    r{i} = relu(c{i});
    t{i + 1} = add(r{i}, t{i});
"""
        for i in range(count // 4)
    )
    return f"""version 1.0;
graph net(t0) -> (y)
{{
    t0 = external<scalar>(shape = [1, 8, 16, 16]);
{blocks}    y = copy(t{count // 4});
}}
"""


def big_document() -> str:
    """Return a document with the weights of :func:`measure`."""
    lines = [
        f"    w{i} = variable<scalar>(shape = [{FLOATS}], label = 'w{i}');\n"
        f"    x{i + 1} = add(x{i}, w{i});\n"
        for i in range(WEIGHTS)
    ]
    head = f"version 1.0;\ngraph net(x0) -> (x{WEIGHTS})\n{{\n"
    return f"{head}    x0 = external<scalar>(shape = [{FLOATS}]);\n{''.join(lines)}}}\n"


def fuzz(count: int, seed: int, folder: Path) -> int:
    """Load damaged models; return how many were neither loaded nor properly refused."""
    logging.disable()
    sources = list(models(folder))
    worker = ThreadPoolExecutor(max_workers=1)
    results: collections.Counter[str] = collections.Counter()
    begin = time.perf_counter()
    for case in range(count):
        rng = random.Random(f"{seed} {case}")
        source = rng.choice(sources)
        target = folder / "model"
        shutil.copytree(source, target)
        document = next(source.rglob("graph.nnef")).read_text()
        dims = dict.fromkeys(re.findall(r"tract_symbol (\w+)", document), 8)
        dims |= {"S": 8} if "tract_pulse_streaming_symbol" in document else {}
        damage(target, rng)
        job = worker.submit(load_nnef, target, dims=dims, lenient=rng.random() < 0.3)
        outcome, details = judge(job.exception(SECONDS))
        results[outcome] += 1
        if details:
            kept = Path(tempfile.gettempdir()) / f"nnef-hw-fuzz-{seed}-{case}"
            shutil.copytree(target, kept, dirs_exist_ok=True)
            print(f"case {case} of seed {seed}, {source}, kept in {kept}: {details}", flush=True)
        shutil.rmtree(target)
    print(f"{count} models from {len(sources)}, {time.perf_counter() - begin:.0f} s")
    for outcome, number in results.most_common():
        print(f"{number:8} {outcome}")
    return results[WRONG]


def models(folder: Path) -> Iterator[Path]:
    """Yield folders of small models."""
    for index, text in enumerate(OWN):
        path = folder / f"own{index}"
        path.mkdir()
        (path / "graph.nnef").write_text(text)
        (path / "w.dat").write_bytes(write_tensor(np.ones((2, 3), np.float32)))
        (path / "graph.quant").write_text(QUANTIZATION)
        yield path
    for index, archive in enumerate(sorted(SHARED.glob("exports/*/*.nnef.tgz"))):
        if archive.stat().st_size < MAX_SIZE:
            path = folder / f"archive{index}"
            with tarfile.open(archive) as members:
                members.extractall(path, filter="data")
            yield path
    for document in sorted(SHARED.glob("suites/**/graph.nnef")):
        if sum(file.stat().st_size for file in document.parent.iterdir()) < MAX_SIZE:
            yield document.parent


def damage(folder: Path, rng: random.Random) -> None:
    """Change one of the files, mostly the document."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".quant", ".dat"})
    if not files or rng.random() < 0.8:
        files = sorted(folder.rglob("graph.nnef"))
    path = rng.choice(files)
    content = path.read_bytes()
    if path.suffix == ".dat":
        changed = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(min(len(changed), 160))] = rng.choice([0, 1, 2, 255, 128, 8])
        path.write_bytes(changed[: rng.choice([len(changed), rng.randrange(len(changed))])])
        return
    text = content.decode()
    if rng.random() < 0.5:
        words = re.findall(r"\s+|\w+|[^\w\s]", text)
        text = "".join(change(words, rng, [*PIECES, *words]))
    else:
        text = "".join(change(list(text), rng, [*PIECES, *CHARACTERS]))
    path.write_bytes(text.encode(errors="surrogatepass"))


def change(pieces: list[str], rng: random.Random, extra: list[str]) -> list[str]:
    """Delete, insert, replace, swap or repeat some pieces."""
    for _ in range(rng.randint(1, 3)):
        first = rng.randrange(len(pieces) + 1)
        second = first + rng.randrange(8)
        match rng.randrange(5):
            case 0:
                del pieces[first:second]
            case 1:
                pieces.insert(first, rng.choice(extra))
            case 2:
                pieces[first : first + 1] = [rng.choice(extra)]
            case 3:
                pieces[first:second] = reversed(pieces[first:second])
            case 4:
                pieces[first:first] = pieces[first:second]
    return pieces


def judge(error: BaseException | None) -> tuple[str, str]:
    """Return what came of loading a model, and what is wrong with that."""
    if error is None:
        return "loaded", ""
    if isinstance(error, UsageError):
        return "refused because of its symbols", ""
    if not isinstance(error, NnefHwError):
        return WRONG, "".join(traceback.format_exception(error)[-4:])
    errors = error.errors if isinstance(error, ErrorGroup) else (error,)
    if wrong := [str(one) for one in errors if one.location is None]:
        return WRONG, wrong[0]
    return f"refused with {len(errors)} error{'s' * (len(errors) > 1)}", ""


if __name__ == "__main__":
    main()
