"""The page of registers in docs/ is the generated one."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_page_of_registers_is_current():
    path = ROOT / "scripts" / "generate" / "register_table.py"
    spec = importlib.util.spec_from_file_location("register_table", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = (ROOT / "docs" / "registers.md").read_text()
    assert written == script.make_table(), "run python scripts/generate/register_table.py"
