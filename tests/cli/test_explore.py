"""``explore``: its table, its page, and what it refuses."""

import pathlib
import re
from html.parser import HTMLParser

import pytest

pytestmark = pytest.mark.system


@pytest.fixture
def words(tiny):
    """A sweep that ends with plans."""
    return ("explore", tiny / "tiny.nnef.tgz", "--calibrate", tiny / "samples.npz", "--until",
            "planned", "--jobs", "1")  # fmt: skip


class Page(HTMLParser):
    """Collects references and what they may refer to; every element has to be closed."""

    VOID = ("meta", "br", "path", "rect", "line", "polyline", "circle")

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.names, self.text = [], [], set(), ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found["href"]] if "href" in found else []
        self.names |= {found["id"]} if "id" in found else set()
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in self.VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_page_with_the_command_of_every_design(cli, words):
    result = cli(*words, "--boards", "icebreaker,tang_nano_9k", "--bits", "8,4", "--seeds", "3")
    assert result.status == 0
    assert re.search(r"^no\. +board +bits +goal/s +cycles ", result.out)
    assert result.out.endswith("build them: explore/tiny/index.html\n")
    found = cli(*words, "--boards", "icebreaker,tang_nano_9k", "--bits", "8,4", "--seeds", "3",
                "--json").json  # fmt: skip
    with pathlib.Path("explore/tiny/index.html").open(encoding="utf-8") as file:
        page = Page(file.read())
    for point in found["points"]:
        assert point["build"] in page.text
        words = point["build"].split()
        assert words[words.index("--board") + 1] == point["board"]
        assert words[words.index("--weight-bits") + 1] == str(point["weight_bits"])
        assert words[-2:] == ["--seeds", "3"]
        assert "--until" not in words
        assert f"p{point['number']}" in page.names
    assert {link.removeprefix("#") for link in page.links} <= page.names
    assert len(page.links) > 2 * len(found["points"])


def test_a_board_that_is_named_twice_is_asked_once(cli, words):
    found = cli(*words, "--boards", "icebreaker,icebreaker", "--bits", "8", "--json")
    assert {point["board"] for point in found.json["points"]} == {"icebreaker"}


def test_what_does_not_fit_is_told(cli, words):
    result = cli(*words, "--boards", "fomu_pvt", "--target-fps", "1e9")
    assert result.status == 2
    assert "1 (fomu_pvt, 8 bits): model 'tiny' does not reach 1e+09 " in result.out
    with pathlib.Path("explore/tiny/index.html").open(encoding="utf-8") as file:
        assert "does not reach" in Page(file.read()).text


def test_without_labels_noise_is_compared(cli, words, tiny):
    found = cli(*words, "--boards", "icebreaker", "--target-fps", "1e5", "--bits", "8,3",
                "--calibrate", tiny / "bare.npz", "--json").json  # fmt: skip
    wide, narrow = (point["quality"] for point in found["points"])
    assert wide["metric"] is None
    assert wide["output_sqnr_db"] > narrow["output_sqnr_db"] + 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--boards", "fomu"), "board 'fomu' is not known; did you mean"),
        (("--boards", "icebreaker", "--bits", "12"), "weight_bits must be in 1..8, not 12"),
        (("--boards", "icebreaker", "--bits", "eight"), "'eight' is not a list of widths"),
        (("--boards", "icebreaker", "--target-fps", "fast"), "'fast' is not a list of rates"),
        (("--boards", "icebreaker", "--arch", "engin"), "there is no architecture 'engin'"),
        (("--boards", "icebreaker", "--board", "x"), "unrecognized arguments: --board"),
        ((), "the following arguments are required: --boards"),
    ],
)
def test_wrong_wishes(options, message, cli, words, tmp_path):
    result = cli(*words, *options)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert list(tmp_path.iterdir()) == []
