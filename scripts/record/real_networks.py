"""Record how far networks of other people come, and write docs/models.md from that.

``python scripts/record/real_networks.py FOLDER`` takes the files of the record that FOLDER has
(found by name, and known by their hashes) through the commands: it records what became better, and
names what became worse, which is a failure. ``--new MANIFEST.json`` adds files; ``--table`` writes
the page alone; ``--only NAME,...`` takes some; ``--bitstream BUILD --only NAME`` records what the
report of a build says of its bitstream, and with what options it was made (``--with``). Needs
onnxruntime and ai-edge-litert (``pip install nnef-hw[crosscheck]``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(x) for x in (ROOT / "tests" / "helpers").rglob("*") if x.is_dir()]

from real_networks import (  # noqa: E402  the folder is put on the path above
    BOARDS,
    RECORD,
    STAGES,
    Bitstream,
    Network,
    Verdict,
    known_networks,
    survey,
)

TARGET = ROOT / "docs" / "models.md"
SECONDS = 1800


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--new", type=Path, metavar="MANIFEST.json")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--bitstream", type=Path, metavar="BUILD")
    parser.add_argument("--with", dest="options", type=str.split, default=[], metavar="OPTIONS")
    parser.add_argument("--any", action="store_true", help="record what became worse, too")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    networks = {network.name: network for network in known_networks()} if RECORD.exists() else {}
    if options.new is not None:
        for value in json.loads(options.new.read_text()):
            if value.get("file"):
                keys = ("name", "source", "commit", "path", "file", "sha256")
                networks.setdefault(
                    value["name"], Network(**{key: value.get(key, "") for key in keys})
                )
        _write(networks)
    if options.one:
        network = networks[options.one]
        path = network.find(options.folder)
        assert path is not None
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(asdict(survey(network, path, Path(folder)))))
        return 0
    if options.bitstream is not None:
        (name,) = options.only
        report = json.loads((options.bitstream / "report.json").read_text())
        made = Bitstream.of(report, tuple(options.options))
        networks[name] = replace(networks[name], bitstream=made)
        _write(networks)
    worse = 0
    if options.folder is not None and not options.table:
        for name in options.only or list(networks):
            if networks[name].find(options.folder) is None:
                continue
            start = time.monotonic()
            found = _survey(name, options.folder)
            old = networks[name].verdict
            seconds = time.monotonic() - start
            print(f"{name}: {found.stage} {found.board} {found.interval or ''} {found.reason}"
                  f" [{seconds:.0f} s]", flush=True)  # fmt: skip
            if found.rank < old.rank:
                print(f"WORSE {name}: was {old.stage}", flush=True)
                worse += 1
            if found.rank >= old.rank or options.any:
                networks[name] = replace(networks[name], verdict=found)
                _write(networks)
    TARGET.write_text(make_page(list(networks.values())))
    return 1 if worse else 0


def _survey(name: str, folder: Path) -> Verdict:
    """Return a network's verdict; a crash, a difference and a timeout are the lowest one."""
    words = [sys.executable, __file__, str(folder), "--one", name]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Verdict("refused", f"takes more than {SECONDS} s")
    if ran.returncode:
        lines = ran.stderr.strip().splitlines() or ["?"]
        return Verdict("refused", f"DEFECT {lines[-1]}")
    return Verdict(**json.loads(ran.stdout.strip().splitlines()[-1]))


def _write(networks: dict[str, Network]) -> None:
    values = [network.to_json() for network in networks.values()]
    RECORD.write_text(json.dumps(values, indent=1) + "\n")


def make_page(networks: list[Network]) -> str:
    """Return the text of docs/models.md."""
    built = sorted((n for n in networks if n.verdict.stage == "built"), key=_order)
    others = [n for n in networks if n.verdict.stage != "built" and n.bitstream is None]
    others.sort(key=lambda n: (-n.verdict.rank, n.name))
    counts = [sum(n.verdict.rank >= rank for n in networks) for rank in range(len(STAGES))]
    read = [f"{count} {text}" for count, text in zip(counts[1:], _COUNTED, strict=True)]
    rows = "".join(f"| {' | '.join(_row(network))} |\n" for network in built)
    left = "".join(
        f"| {_link(n)} | {_STANDS[n.verdict.stage]} | {_shown(n.verdict.reason)} |\n"
        for n in others
    )
    summary = textwrap.fill(f"Of {len(networks)} files, {', '.join(read)}.", WIDTH)
    made = "".join(f"| {' | '.join(_bitstream_row(n))} |\n" for n in networks if n.bitstream)
    return f"{HEAD}{summary}\n" + BITSTREAMS + made + BUILT + rows + LEFT + left


HEAD = """# Networks of other people

This page is generated by `scripts/record/real_networks.py` from `tests/cases/real_networks.json`,
which names the commit and the SHA-256 of each file; none of them is in this repository. With the
files in the folder `realworld/models` of `NNEF_HW_SHARED`,

    python -m pytest -m nightly tests/e2e/test_real_networks.py

takes each through `inspect`, `run`, `check`, `quantize` and `build --no-bitstream`, and fails if
one comes less far than recorded here.

Results are compared with onnxruntime and with TensorFlow Lite's reference kernels, to 1e-4 of the
largest. Where these differ by more, what they round on the way is taken out: an ONNX file is
computed in 64 bits by the reference of the `onnx` package (mp_selfie: 32 bits lose up to 1.2e-4,
the float reference agrees to 5e-14), and one of TensorFlow Lite with filters of 8 bits and real
activations by the kernels of real filters (t_dtln_q1: the others round activations to 8 bits,
which is 1.6e-2; with the same rounding the float reference agrees to 2e-7).

"""
_COUNTED = (
    "are read",
    "give the results of onnxruntime or TensorFlow Lite, where these can run the file",
    "have nothing in the way of hardware",
    "are built, and simulated bit-exact with latency and interval as predicted",
)
BITSTREAMS = """
## With bitstreams

Placed and routed at the board's default clock, by

    nnef-hw build FILE --board BOARD --calibrate samples.npz

(without samples where the author quantized the network) and the options in the table. The clock
that place and route reached is in brackets.

| network | options | board | interval | clock | inferences/s | LUTs | DSP blocks | block RAMs |
|---|---|---|---|---|---|---|---|---|
"""
BUILT = """
## Built

For the first of icebreaker, tang_nano_20k and ulx3s_85f that has room, with 8-bit weights unless
the author quantized them, at the board's default clock, without place and route. Interval: cycles
per inference. SQNR: of the first result of the fixed network against the real-valued one, on noise
at the input, which is harder than what the network was made for; there are no samples beside these
files. None is given where nothing differs.

| network | options | board | interval | inferences/s | SQNR |
|---|---|---|---|---|---|
"""
LEFT = """
## Not built

| network | comes as far as | reason |
|---|---|---|
"""
_STANDS = {
    "refused": "not read",
    "read": "read; results differ",
    "equal": "float results",
    "buildable": "hardware; not built",
}


def _order(network: Network) -> tuple[int, str]:
    return BOARDS.index(network.verdict.board), network.name


def _row(network: Network) -> list[str]:
    verdict = network.verdict
    sqnr = "" if verdict.sqnr_db is None else f"{verdict.sqnr_db:.1f} dB"
    options = f"`{' '.join(network.options)}`" if network.options else ""
    interval = f"{verdict.interval:,}"
    return [_link(network), options, verdict.board, interval, _rate(verdict.rate), sqnr]


def _bitstream_row(network: Network) -> list[str]:
    made = network.bitstream
    assert made is not None
    words = " ".join((*network.options, *made.options))
    return [
        _link(network), f"`{words}`" if words else "", made.board, f"{made.interval:,}",
        f"{made.clock_mhz:g} MHz ({made.fmax_mhz:g})", _rate(made.rate), f"{made.lut:,}",
        f"{made.dsp}", f"{made.bram}",
    ]  # fmt: skip


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _link(network: Network) -> str:
    kind, _, place = network.source.partition(":")
    if kind == "github":
        path = quote(network.path)
        return f"[{network.name}](https://github.com/{place}/blob/{network.commit}/{path})"
    return f"{network.name} ({place})"


def _shown(reason: str) -> str:
    """Return a reason in one cell of a table."""
    text = reason.split("; ")[0].replace("|", "\\|").replace("[", "\\[").replace("<", "&lt;")
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} ..."


LONGEST = 140
WIDTH = 110


if __name__ == "__main__":
    sys.exit(main())
