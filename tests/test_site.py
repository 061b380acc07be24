"""The documentation's site: built with warnings as errors, and every link in it leads somewhere."""

import importlib.util
import os
import posixpath
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import nnef_hw as nh
from nnef_hw.cli import command_parser
from nnef_hw.system.files import locked

ROOT = Path(__file__).parents[1]
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}


class Page(HTMLParser):
    """Names of a page, what it links to and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loaded, self.text = set(), [], [], text
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}
        for key in ("href", "src"):
            if found.get(key):
                self.links.append(found[key])
                if (tag, key) in LOADED and found.get("rel") not in {"canonical", "alternate"}:
                    self.loaded.append(found[key])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages of the site by name, and its folder, which is built once for all workers."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, failed = shared / "site", shared / "site.failed"
    with locked(shared / "site.lock"):
        if not (folder.exists() or failed.exists()):
            result = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
                cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            if result.returncode:
                failed.write_text(result.stderr, encoding="utf-8")
    assert not failed.exists(), failed.read_text(encoding="utf-8")
    pages = {
        path.relative_to(folder).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
    }
    return folder, pages


def test_nobody_reads_where_it_was_built(site):
    _, pages = site
    assert [name for name, page in pages.items() if str(ROOT) in page.text] == []
    assert "graph.nnef:8" in pages["gallery/digits_cnn.html"].text


def test_every_link_leads_somewhere(site):
    folder, pages = site
    broken = []
    for name, page in pages.items():
        if name == "404.html":  # its links are those of the server's root
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
            target = name if not parts.path else path
            is_there = (folder / target).exists()
            if is_there and parts.fragment and target in pages:
                is_there = _has(pages[target], parts.fragment)
            if not is_there:
                broken.append(f"{name}: {link}")
    assert broken == []


def _has(page, fragment):
    # the tabs and drawers of the theme are of scripts
    return unquote(fragment) in page.names or fragment.startswith("__")


def test_links_show_titles(site):
    _, pages = site
    shown = re.compile(r">(?:<code>)?([\w./-]+\.md)(?:</code>)?</a>")
    named = {name: shown.findall(page.text) for name, page in pages.items()}
    assert {name: found for name, found in named.items() if found} == {}
    assert ">Streaming architecture</a>, width" in pages["limits.html"].text


def test_numbers_are_aligned_at_the_right(site):
    _, pages = site
    text = pages["quantization.html"].text
    assert '<td>mlperf_ic_resnet8</td>\n<td style="text-align: right;">10.0</td>' in text
    assert "<td>1..8</td>\n<td>8</td>" in text  # a column of words and numbers


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("| a | 1,000 | 99.5% | 3 of 4 |", "|---|---:|---:|---|"),
        ("| 36.5 MHz | -0.12 (98.8) | **7** | x |", "|---:|---:|---:|---|"),
        ("| | - | 1 | 2 |", "|---|---|---:|---:|"),
    ],
)
def test_columns_of_numbers_are_found(row, line):
    text = "| a | b | c | d |\n|---|---|---|---|\n{}\n\nNo | table | 1 |\n"
    aligned = _hooks().align_numbers(text.format(row)).splitlines()
    assert aligned[1].replace(" ", "") == line.replace(" ", "")
    assert aligned[2:] == [row, "", "No | table | 1 |"]


def _hooks():
    """Return the module of the site's hooks."""
    path = ROOT / "scripts" / "generate" / "site_pages.py"
    spec = importlib.util.spec_from_file_location("site_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_page_leads_in(site):
    _, pages = site
    first = pages["index.html"]
    assert {"howto/pytorch.html", "howto/keras.html", "tutorial.html"} <= set(first.links)
    assert '<svg class="drawing"' in first.text
    assert "nnef-hw demo" in first.text


def test_nothing_is_loaded_from_elsewhere(site):
    _, pages = site
    assert {x for page in pages.values() for x in page.loaded if urlsplit(x).netloc} == set()


def test_the_reference_is_complete(site):
    _, pages = site
    by_name = pages["reference/api.html"]
    for name in set(nh.__all__) - {"BOARDS"}:
        assert any(found.endswith(f".{name}") for found in by_name.names), name
    commands = pages["reference/cli.html"].names
    [subs] = [x for x in command_parser()._actions if hasattr(x, "choices") and x.choices]
    assert set(subs.choices) <= commands
    boards = pages["reference/boards.html"].text
    assert all(board.name in boards for board in nh.BOARDS)
    messages = pages["reference/messages.html"].text
    for message in ("does not reach … inferences/s on", "sample file … does not exist",
                    "there is no architecture …", "is not a finished build"):  # fmt: skip
        assert message in messages, message


def test_the_gallery_shows_reports(site):
    _, pages = site
    assert "1,152" in pages["gallery/digits_cnn.html"].text
    assert pages["gallery.html"].links.count("gallery/digits_cnn.html") == 2
