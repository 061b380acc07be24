import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from report_pages import SVG, drawing, picture, texts, words

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


def test_page_is_balanced_and_needs_nothing_else(render, any_report):
    page = render(any_report)
    parser = _Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert not parser.tags & {"script", "link", "img", "iframe", "object"}
    assert not [x for x, _ in parser.attributes if x in {"src", "href"} or x.startswith("on")]
    assert "@import" not in page
    ids = {value for key, value in parser.attributes if key == "id"}
    assert {name[1:] for name in re.findall(r"url\((.*?)\)", page)} <= ids
    assert "None" not in page
    assert "nan" not in page.replace("nance", "")


def test_every_svg_is_xml_and_the_picture_is_described(render, any_report):
    page = render(any_report)
    for found in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(found)
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


def test_page_names_both_predictions_for_a_short_run(render, tiny):
    assert "short a run" not in words(render(tiny))
    short = {"cycles_per_inference": 29000, "predicted_cycles_per_inference": 29000}
    tiny["simulation"] |= short
    page = words(render(tiny))
    assert (
        "For so short a run 29,000 cycles per inference are predicted; a long run takes 30,030."
    ) in page
    assert "per inference 29,000 29,000" in page


def test_one_frame_has_no_interval_to_predict(render, tiny):
    alone = {"cycles_per_inference": None, "predicted_cycles_per_inference": None}
    tiny["simulation"] |= alone
    assert "short a run" not in words(render(tiny))


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


def wires(root):
    return [travel(x.get("d")) for x in root.findall(f"{SVG}path")]


@pytest.mark.parametrize("name", ["tiny", "deep", "single"])
def test_wires_of_a_chain_lead_from_each_box_to_the_next(render, name, request):
    root, boxes = picture(render(request.getfixturevalue(name)))
    places = [tuple(map(float, re.findall(r"[\d.]+", x.get("transform")))) for x in boxes]
    box = boxes[0].find(f"{SVG}rect")
    width, half = float(box.get("width")), float(box.get("height")) / 2
    trips = wires(root)
    assert [x for _, x in trips[:-1]] == [pytest.approx((x, y + half)) for x, y in places]
    leaving = [pytest.approx((x + width, y + half), abs=0.11) for x, y in places]
    assert [x for x, _ in trips[1:]] == leaving


def test_wires_of_branches_begin_and_end_at_their_boxes(render, residual):
    root, boxes = picture(render(residual))
    places = [tuple(map(float, re.findall(r"[\d.]+", x.get("transform")))) for x in boxes]
    box = boxes[0].find(f"{SVG}rect")
    width, height = float(box.get("width")), float(box.get("height"))

    def touches(point, number):
        x, y = places[number]
        return x - 0.2 <= point[0] <= x + width + 0.2 and y - 0.2 <= point[1] <= y + height + 0.2

    pairs = [(0, 1), (1, 2), (2, 3), (2, 4), (4, 5), (5, 6), (6, 7), (0, 7)]
    trips = wires(root)
    assert all(
        touches(start, source) and touches(end, target)
        for (start, end), (source, target) in zip(trips[1:-2], pairs, strict=True)
    )
    leaving = [start for start, _ in trips[-2:]]
    assert touches(leaving[0], 3), "nobody reads it"
    assert touches(leaving[1], 7)


def test_fifos_are_drawn_on_their_wires_and_listed(render, residual):
    page = render(residual)
    root, _ = picture(page)
    (fifo,) = [x for x in root.findall(f"{SVG}g") if x.get("class") == "fifo"]
    assert texts(fifo) == ["FIFO 1,146"]
    said = words(page)
    assert "reads conv7, conv1 (FIFO of 1,146)" in said
    assert "reads conv3" in said
    assert said.count("reads ") == 2


def test_windows_with_a_memory_per_tap_say_so(render, residual):
    said = words(render(residual))
    assert f"depthwise 3{TIMES}3" in said
    assert f"8 9 taps 94.0% 1,152 448 4 rows {TIMES} 9" in said


def rows_of(page):
    return drawing(page, "timeline").findall(f"{SVG}g")


def filled(path):
    """Return the area of a path of upright rectangles."""
    area = 0.0
    for x, base, top, end in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V", path):
        area += (float(end) - float(x)) * (float(base) - float(top))
    return area


def test_timeline_has_a_row_for_the_input_and_each_layer(render, any_report):
    rows = rows_of(render(any_report))
    assert [x.find(f"{SVG}title").text.split(":")[0] for x in rows] == [
        "input", *(x["name"] for x in any_report["layers"])
    ]  # fmt: skip
    places = [float(x.find(f"{SVG}rect").get("y")) for x in rows]
    assert places == sorted(set(places))


def test_areas_of_the_timeline_are_cycles(render, any_report, timeline_of):
    timeline = timeline_of(any_report)
    rows = rows_of(render(any_report))
    track = rows[0].find(f"{SVG}rect")
    room = float(track.get("width")) * float(track.get("height"))
    visible = float(track.get("width")) / len(timeline.inputs[0].busy)
    for row, activity in zip(rows, (*timeline.inputs, *timeline.blocks), strict=True):
        busy, waiting = sum(activity.busy), sum(activity.waiting)
        paths = {x.get("class"): x.get("d") for x in row.findall(f"{SVG}path")}
        assert filled(paths["busy"]) == pytest.approx(
            room * busy / timeline.interval, rel=0.02, abs=visible
        )
        assert ("wait" in paths) == bool(waiting and activity not in timeline.inputs)
        if "wait" not in paths:
            continue
        occupied = room * (busy + waiting) / timeline.interval
        assert filled(paths["wait"]) == pytest.approx(occupied, rel=0.02, abs=visible)
        said = row.find(f"{SVG}title").text
        starved = timeline.interval - busy - waiting
        assert said.endswith(
            f"works {busy:,} cycles, waits {waiting:,} cycles, starves {starved:,} cycles"
        )


def test_equal_neighbours_of_the_timeline_are_one_rectangle(render, tiny):
    busiest = rows_of(render(tiny))[3].findall(f"{SVG}path")[-1]
    assert busiest.get("d").count("M") == 1


def test_slowest_layers_are_marked_in_the_timeline(render, tiny):
    assert [x.get("class") for x in rows_of(render(tiny))].index("bottleneck") == 3


def test_roofline_has_the_design_its_layers_and_its_bounds(render, tiny):
    plot = drawing(render(tiny), "roofline")
    circles = plot.findall(f"{SVG}circle")
    assert [x.get("class") for x in circles] == [
        "dot", "dot limit", "dot", "dot", "design"
    ]  # fmt: skip
    assert circles[-1].find(f"{SVG}title").text == "17 MACs per cycle with 19 multipliers"
    said = texts(plot)
    assert "busiest stream, one code per cycle: 81.5" in said
    assert "DSP blocks: 16" in said
    assert "with the LUTs left: 25" in said
    slope = next(x for x in plot.findall(f"{SVG}polyline") if x.get("class") == "slope")
    x, y = (float(circles[-1].get(key)) for key in ("cx", "cy"))
    x1, y1, x2, y2 = (float(x) for x in slope.get("points").replace(",", " ").split())
    on_slope = y1 + (x - x1) / (x2 - x1) * (y2 - y1)
    assert 0 < y - on_slope < 12, "below the slope, by what the multipliers idle"


def test_roofline_has_a_slope_for_two_products_of_a_multiplier(render, tiny):
    """Where a layer with a fast inner product may be: above the line of one MAC each."""
    report = tiny | {
        "roofs": tiny["roofs"] | {"macs_per_multiplier": 2},
        "cycles_per_inference": tiny["cycles_per_inference"] * 5 // 9,
    }
    plot = drawing(render(report), "roofline")
    slopes = [x for x in plot.findall(f"{SVG}polyline") if x.get("class") == "slope"]
    design = plot.findall(f"{SVG}circle")[-1]
    x, y = (float(design.get(key)) for key in ("cx", "cy"))
    one, two = (
        [float(n) for n in slope.get("points").replace(",", " ").split()] for slope in slopes
    )
    heights = [y1 + (x - x1) / (x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in (one, two)]
    assert heights[1] < y < heights[0]
    # both end at the top; they are parallel
    assert one[3] == two[3] < two[1] < one[1]
    steep = [(y2 - y1) / (x2 - x1) for x1, y1, x2, y2 in (one, two)]
    assert steep[0] == pytest.approx(steep[1], rel=0.01)
    assert "multipliers built; lines: one MAC per cycle each, and two" in texts(plot)


def test_design_without_multipliers_has_no_roofline(render, single):
    assert 'class="roofline"' not in render(single)


def test_what_half_the_interval_takes_is_said(render, tiny, deep):
    said = words(render(tiny))
    assert "conv2 takes 30,030 cycles a frame." in said
    assert (
        "Half the interval, 15,015 cycles, would take 38 multipliers instead of 19, and 6,604 "
        "LUTs instead of at most 5,016." in said
    )
    assert "conv1 2 4 conv2 8 16" in said
    said = words(render(deep))
    assert "and here 32,768 a frame. No folding of these layers is faster" in said


def test_resources_of_layers_add_up(render, tiny):
    said = words(render(tiny))
    lut = sum(x["lut"] for x in tiny["layers"])
    assert "conv3 760 0 11" in said
    assert f"host link, border 700 0 1 All {lut + 700:,} 0 30" in said


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
    row += f" 1,168 225,792 30,030 100.0% 8 4 rows {TIMES} 2 lanes 94.0% 1,152 448"
    assert row in said
    assert "All layers 8,778 510,912 30,030 19 89.5%" in said


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


def test_noise_stands_beside_folding(render, tiny):
    assert "Signal to" not in render(tiny)
    first, *others = tiny["layers"]
    page = render(tiny | {"noise": {first["name"]: 31.44, **{x["name"]: None for x in others}}})
    rows = re.findall(r'<th scope="row"><span class="mono">.*?</tr>', page, re.S)[: len(others) + 1]
    assert '<td class="n">31.4</td>' in rows[0]
    assert all("31.4" not in row for row in rows[1:])


def test_confusion_and_worst_samples(render, tiny):
    accuracy = tiny["accuracy"] | {
        "confusion": [[17, 1], [0, 23]],
        "worst": [{"sample": 4711, "label": 0, "found": 1, "margin": -0.25}],
    }
    page = render(tiny | {"accuracy": accuracy})
    assert re.search(r'<td class="hit">17</td>\s*<td class="">1</td>', page)
    assert '<td class="none">0</td>' in page
    assert re.search(
        r'4711</th><td class="n">0</td><td class="n bad">1</td><td class="n">-0.25<', page
    )
    errors = {"metric": "mae", "confusion": None, "worst": [{"sample": 3, "error": 0.125}]}
    page = render(tiny | {"accuracy": tiny["accuracy"] | errors})
    assert '3</th><td class="n">0.125</td>' in page
    assert 'id="confusion"' not in page


def test_a_step_stands_beside_its_window(render, tiny):
    stream = {"rows": {"x": 2}, "window_rows": {"x": 32}, "window_macs": 40920,
              "window_cycles": 1728}  # fmt: skip
    page = render(tiny | {"stream": stream})
    assert re.search(r"A step of 2 rows: .* a window of 32: 40,920 MACs, 1,728 cycles\.", page)
