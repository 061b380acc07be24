"""Pages and tables that scripts make of the code, and of records, are those that scripts make."""

from importlib import util
from pathlib import Path

import pytest
from real_networks import known_networks

ROOT = Path(__file__).parents[1]
PAGES = {
    "engine_fields": ("generate", lambda script: {"docs/engine.md": script.make_text}),
    "measured_pages": (
        "bench", lambda script: dict.fromkeys(script.PAGES, script.with_tables),
    ),
    "operator_table": ("generate", lambda script: {"docs/operators.md": script.make_table}),
    "pass_table": ("generate", lambda script: {"docs/passes.md": script.make_page}),
    "real_networks": (
        "record", lambda script: {"docs/models.md": lambda: script.make_page(known_networks())},
    ),
    "register_table": ("generate", lambda script: {"docs/registers.md": script.make_table}),
    "report_schema": (
        "generate",
        lambda script: {
            script.SCHEMA: script.schema_text, script.PAGE: script.page,
            script.RESULTS: script.results_page,
        },
    ),
    "resource_table": ("measure", lambda script: {"docs/resources.md": script.make_text}),
}  # fmt: skip
"""Rooms of scripts, and what each makes: of the text that there is, or of nothing."""
OTHERS = {"notebooks", "site_pages"}  # which make no page of docs/
REWRITING = ("engine_fields", "measured_pages", "resource_table")


def loaded(name, room, monkeypatch):
    """A script is a module of its own name, and finds its neighbours; one has a helper's name."""
    folder = ROOT / "scripts" / room
    monkeypatch.syspath_prepend(folder)
    spec = util.spec_from_file_location(f"script_{name}", folder / f"{name}.py")
    script = util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name, monkeypatch):
    room, made = PAGES[name]
    for page, make in made(loaded(name, room, monkeypatch)).items():
        text = (ROOT / page).read_text()
        found = make(text) if name in REWRITING else make()
        assert text == found, f"{page}: run python scripts/{room}/{name}.py"


def test_every_script_that_makes_pages_is_among_these():
    scripts = {path.stem for path in (ROOT / "scripts" / "generate").glob("*.py")}
    assert scripts == {name for name, (room, _) in PAGES.items() if room == "generate"} | OTHERS
