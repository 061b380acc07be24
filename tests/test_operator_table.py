"""The operator table in docs/ is the generated one."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_operator_table_is_current():
    path = ROOT / "scripts" / "generate" / "operator_table.py"
    spec = importlib.util.spec_from_file_location("operator_table", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = (ROOT / "docs" / "operators.md").read_text()
    assert written == script.make_table(), "run python scripts/generate/operator_table.py"
