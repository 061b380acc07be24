"""The page of other people's networks is the generated one."""

import importlib.util
from pathlib import Path

from real_networks import known_networks

ROOT = Path(__file__).parents[1]


def test_the_page_is_current():
    path = ROOT / "scripts" / "record" / "real_networks.py"
    spec = importlib.util.spec_from_file_location("real_networks_script", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = (ROOT / "docs" / "models.md").read_text()
    page = script.make_page(known_networks())
    assert written == page, "run python scripts/record/real_networks.py --table"
