"""The table of what yosys maps to for other FPGAs is made of the record, by patterns of cells."""

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts" / "bench")
        yield importlib.import_module("bench_mapping")


def test_the_table_is_current(bench):
    text = bench.PAGE.read_text()
    assert bench.with_table(text) == text, "run python scripts/bench/bench_mapping.py --pages"
    assert "digits" in text


def test_every_cell_of_the_record_is_counted_or_known(bench):
    """A LUT, a multiplier and a memory under a new name would be missed; these are the others."""
    others = {
        # flip-flops, carries and multiplexers behind LUTs
        "amd7": r"FD\w+|CARRY4|MUXF\d", "cyclone5": r"MISTRAL_FF",
        "efinix": r"EFX_FF|EFX_GBUFCE", "gatemate": r"CC_DFF|CC_BUFG|CC_L2T\d",
        "nexus": r"FD1P3\w+|VLO|VHI|OXIDE_\w+|WIDEFN9|L6MUX21",
    }  # fmt: skip
    record = json.loads(bench.RECORD.read_text())
    for network, row in record["networks"].items():
        for name, found in row.items():
            mapping = bench.MAPPINGS[name]
            patterns = f"{mapping.lut}|{mapping.dsp}|{mapping.ram}|{others[name]}"
            unknown = [x for x in found.get("cells", ()) if not bench.matches(patterns, x)]
            assert not unknown, (network, name)
    assert record["networks"]
