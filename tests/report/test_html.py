import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from nnef_hw.report import write_html

SVG = "{http://www.w3.org/2000/svg}"
TIMES = "\N{MULTIPLICATION SIGN}"
HOSTILE = '</svg><script>alert("1")</script>&\'\x00\x1b\u202e{{ 7 * 7 }}'
VOID = {"meta", "br", "wbr", "link", "img"}


class _Balance(HTMLParser):
    """Finds elements that are closed wrongly, and collects tags and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def render(tmp_path):
    def page(report):
        write_html(report, tmp_path / "report.html")
        return (tmp_path / "report.html").read_text("utf-8")

    return page


def picture(page):
    """Return the drawing of the network, parsed as XML."""
    root = ET.fromstring(re.search(r'<svg class="picture".*?</svg>', page, re.S)[0])
    return root, root.findall(f"{SVG}g")


def travel(path):
    """Return where a path of M, H, V and q begins and ends."""
    x = y = 0.0
    start = None
    for command, numbers in re.findall(r"([MHVq])([^MHVq]*)", path):
        values = [float(n) for n in numbers.split()]
        if command == "M":
            start = x, y = tuple(values)
        elif command == "H":
            (x,) = values
        elif command == "V":
            (y,) = values
        else:
            x, y = x + values[2], y + values[3]
    return start, (x, y)


def texts(box):
    return [x.text for x in box.findall(f"{SVG}text")]


def words(page):
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", body.replace("<wbr>", "")).split())


def test_page_is_balanced_and_needs_nothing_else(render, any_report):
    page = render(any_report)
    parser = _Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert not parser.tags & {"script", "link", "img", "iframe", "object"}
    assert not [x for x, _ in parser.attributes if x in {"src", "href"} or x.startswith("on")]
    assert "@import" not in page
    assert set(re.findall(r"url\((.*?)\)", page)) == {"#head"}
    assert "None" not in page
    assert "nan" not in page.replace("nance", "")


def test_every_svg_is_xml_and_the_picture_is_described(render, any_report):
    page = render(any_report)
    for drawing in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(drawing)
    root, boxes = picture(page)
    ids = {x.get("id"): x for x in root.iter()}
    title, description = (ids[x] for x in root.get("aria-labelledby").split())
    assert any_report["model"] in title.text
    assert f"{len(any_report['layers'])} layers" in description.text
    assert len(boxes) == len(any_report["layers"])


def test_box_says_what_the_layer_does_and_costs(render, tiny):
    _, boxes = picture(render(tiny))
    assert texts(boxes[0]) == [
        "conv1", f"conv 3{TIMES}3", f"28{TIMES}28{TIMES}1 → 28{TIMES}28{TIMES}8",
        "cycles", "28,224", "multipliers", "2", "block RAM", "3",
    ]  # fmt: skip
    assert texts(boxes[6])[:3] == ["fc", "linear", "288 → 10"]


def test_only_the_slowest_layer_is_marked(render, tiny):
    _, boxes = picture(render(tiny))
    assert [x.get("class") for x in boxes] == [None, None, "bottleneck", None, None, None, None]
    assert ["slowest" in texts(x) for x in boxes].index(True) == 2
    assert sum("slowest" in texts(x) for x in boxes) == 1


def test_bars_are_shares_of_interval_and_of_the_largest(render, tiny):
    _, boxes = picture(render(tiny))
    bars = [
        [float(x.get("width")) for x in box.findall(f"{SVG}rect") if "bar" in x.get("class")]
        for box in boxes
    ]
    tracks = [x for x in boxes[0].findall(f"{SVG}rect") if x.get("class") == "track"]
    room = float(tracks[0].get("width"))
    assert bars[2][0] == pytest.approx(room, abs=0.1)
    assert bars[0][0] == pytest.approx(room * 28224 / 30030, abs=0.1)
    assert bars[0][1] == pytest.approx(room * 2 / 8, abs=0.1)
    assert bars[1][1] == 0
    assert bars[4][2] == pytest.approx(room, abs=0.1)
    assert bars[2][2] == pytest.approx(room * 6 / 11, abs=0.1)


def test_boxes_neither_overlap_nor_leave_the_drawing(render, any_report):
    root, boxes = picture(render(any_report))
    _, _, width, height = map(float, root.get("viewBox").split())
    places = [tuple(map(float, re.findall(r"[\d.]+", x.get("transform")))) for x in boxes]
    box = boxes[0].find(f"{SVG}rect")
    box_width, box_height = float(box.get("width")), float(box.get("height"))
    for i, (x, y) in enumerate(places):
        assert 0 < x < x + box_width < width
        assert 0 < y < y + box_height < height
        for other_x, other_y in places[:i]:
            assert abs(x - other_x) > box_width or abs(y - other_y) > box_height
    assert places == sorted(places, key=lambda place: (place[1], place[0]))
    assert len(root.findall(f"{SVG}path")) == len(boxes) + 1


def test_wires_lead_from_each_box_to_the_next(render, any_report):
    root, boxes = picture(render(any_report))
    places = [tuple(map(float, re.findall(r"[\d.]+", x.get("transform")))) for x in boxes]
    box = boxes[0].find(f"{SVG}rect")
    width, half = float(box.get("width")), float(box.get("height")) / 2
    trips = [travel(x.get("d")) for x in root.findall(f"{SVG}path")]
    assert [x for _, x in trips[:-1]] == [pytest.approx((x, y + half)) for x, y in places]
    leaving = [pytest.approx((x + width, y + half), abs=0.11) for x, y in places]
    assert [x for x, _ in trips[1:]] == leaving


def test_long_names_fit_their_boxes_and_differ(render, deep):
    page = render(deep)
    _, boxes = picture(page)
    labels = [texts(x)[0] for x in boxes]
    assert len(set(labels)) == 30
    assert max(map(len, labels)) <= 21
    full = deep["layers"][3]["name"]
    assert boxes[3].find(f"{SVG}title").text == full
    assert full in words(page)


def test_hostile_texts_stay_texts(render, tiny):
    tiny["layers"][0] |= {"name": HOSTILE, "op": HOSTILE, "location": HOSTILE}
    for key in ("model", "board", "device", "arch", "bitstream"):
        tiny[key] = HOSTILE
    tiny["commands"] = [HOSTILE]
    tiny["seconds"] = {HOSTILE: 1.0}
    page = render(tiny)
    assert "<script" not in page
    assert not re.search("[\x00\x1b\u202e]", page)
    assert "{{ 7 * 7 }}" in page
    _, boxes = picture(page)
    assert boxes[0].find(f"{SVG}title").text == (
        '</svg><script>alert("1")</script>&\'\\x00\\x1b\\u202e{{ 7 * 7 }}'
    )


def test_lone_surrogates_of_file_names_can_be_written(render, tiny):
    tiny["bitstream"] = "build/\udcff.bin"
    assert "build/\\udcff.bin" in render(tiny)


def test_finished_build_shows_its_figures(render, tiny):
    said = words(render(tiny))
    for figure in (
        "799/s", "14.6/s over the host link", "30,030 cycles per inference",
        "1.72 ms 41,377 cycles",
        "19 89.5% of their cycles used", "24 MHz 27.31 MHz possible", "510,912 MACs",
        "✓ Bit-exact over 1,000 frames", "✓ Timing met at 24 MHz",
        "✓ Bitstream build/mnist_tiny_cnn/board/top.bin",
        "LUT 83.6% 4,412 5,280 4,190", "SPRAM 25.0% 1 4 1", "float network 98.88%",
        "generated Verilog 98.62%", "800 samples; 200 others", "place 1 min 12 s",
        "total 2 min 18 s", "nnef-hw flash build/mnist_tiny_cnn",
    ):  # fmt: skip
        assert figure in said
    row = f"conv2 graph.nnef:12:5 conv 3{TIMES}3 14{TIMES}14{TIMES}8 → 14{TIMES}14{TIMES}16"
    row += f" 1,168 225,792 30,030 100.0% 8 4 {TIMES} 2 7 94.0% 1,152 448 6 720"
    assert row in said
    assert "All layers 8,778 510,912 30,030 19 16 89.5%" in said


def test_planned_build_claims_nothing_that_was_not_run(render, planned):
    page = render(planned)
    said = words(page)
    for open_point in ("Not simulated", "Not placed and routed", "No bitstream"):
        assert f"○ {open_point}" in said
    assert "asked for, not routed yet" in said
    assert "LUT 79.4% \N{EN DASH} 5,280 4,190" in said
    assert "✓" not in said
    assert "Bit-exact" not in said
    assert "Timing met" not in said
    assert page.count('class="meter estimate"') == 5


def test_failures_are_said_in_words(render, deep):
    deep["simulation"] |= {"bit_exact": False, "mismatches": 17, "latency_cycles": 41380}
    page = render(deep)
    said = words(page)
    assert "✗ Not bit-exact: 17 mismatches over 1,000 frames" in said
    assert "✗ Timing not met at 100 MHz" in said
    assert '<td class="n bad">41,380</td>' in page
    assert '<td class="n bad">36,864</td>' not in page
    assert "LUT 109.0% 91,204 83,640" in said
    assert page.count('class="meter over"') == 1
    assert "SPRAM" not in said


def test_mean_error_is_no_percentage(render, tiny):
    tiny["accuracy"] |= {"metric": "mae", "float": 0.012345, "fixed": 0.0131, "rtl": None}
    said = words(render(tiny))
    assert "Mean absolute error" in said
    assert "float network 0.01235 fixed-point model 0.0131 generated Verilog \N{EN DASH}" in said


def test_network_without_multipliers(render, single):
    said = words(render(single))
    assert "Multipliers 0 none needed" in said
    assert "1 layer, 0 MACs" in said


def test_equal_reports_give_equal_bytes(render, deep):
    assert render(deep) == render(dict(reversed(deep.items())))
