import pytest

from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import bounds


def said(what, report):
    """Return what a function of :mod:`bounds` yields of a report."""
    return list(getattr(bounds, what)(from_json(report, Report)))


def limit(name, cycles, codes):
    return {"name": name, "cycles": cycles, "codes": codes}


@pytest.mark.parametrize(
    ("layers", "text"),
    [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"),
     (["a", "b", "c", "d"], "a, b, c and d"), (list("abcde"), "a, b, c and 2 more")],
    ids=repr,
)  # fmt: skip
def test_names_are_listed_or_counted(layers, text):
    assert bounds.names(layers) == text


def test_lacking_resources_are_said(tiny):
    slowest, half = said("explain", tiny)
    assert slowest == "conv2 takes 30,030 cycles a frame."
    assert half == (
        "Half the interval, 15,015 cycles, would take 38 multipliers instead of 19, and 6,604 "
        "LUTs instead of at most 5,016."
    )
    assert said("summary", tiny) == [
        ("halved", "15,015 cycles: 38 multipliers, 6,604 LUTs of 5,016")
    ]


def test_what_a_softmax_of_several_frames_costs_is_said(tiny):
    tiny["layers"][-1] |= {"overlap": {"cycles_alone": 1640, "lut": 1247, "bram": 1}, "cycles": 50}
    name = tiny["layers"][-1]["name"]
    cost = "every 50 cycles instead of 1,640, for 1,247 LUTs and 1 block RAM more"
    assert [*said("explain", tiny)][-1] == f"{name} computes several frames at once, {cost}."
    assert said("summary", tiny)[0] == ("overlap", f"{name}: {cost}")


def test_half_that_fits_is_said(tiny):
    tiny["headroom"]["lacking"] = []
    assert said("summary", tiny) == [
        ("halved", "15,015 cycles: 38 multipliers, which the device has")
    ]


def test_several_lacking_resources_are_said(tiny):
    tiny["headroom"]["lacking"].append({"resource": "bram", "wanted": 52, "usable": 29})
    (line,) = said("summary", tiny)
    assert line[1].endswith("6,604 LUTs of 5,016 and 52 block RAMs of 29")


def test_waits_between_layers_are_told_from_layers(tiny):
    tiny["cycles_per_inference"] += 45
    first, _ = said("explain", tiny)
    assert first == "conv2 takes 30,030 cycles a frame; waits between layers add 45."


def test_a_loop_that_bounds_the_interval_is_named(tiny):
    tiny |= {"cycles_per_inference": 40_000, "loop": ["h", "gates"]}
    (only,) = said("explain", tiny)
    assert only.startswith(
        "conv2 takes 30,030 cycles a frame, but the way around the loop of h and gates 40,000: a "
    )
    assert said("summary", tiny) == [("bound by", "the loop of 2 layers: 40,000 cycles")]


def test_full_stream_is_a_reason_and_the_best_is_said(tiny):
    tiny["headroom"] |= {
        "cycles": 20000,
        "limits": [limit("conv1", 20000, 20000), limit("fc", 17000, 288), limit("x", 20000, 20000)],
    }
    _, stream, other, best = said("explain", tiny)
    assert stream == (
        "Half the interval, 15,015 cycles, is out of reach for conv1 and x: streams pass one "
        "code per cycle, and here 20,000 a frame."
    )
    assert other == "It is out of reach for fc: no folding takes fewer than 17,000 cycles."
    assert best.startswith("The best that any folding gives, 20,000 cycles, would take 38 mult")
    assert [title for title, _ in said("summary", tiny)] == ["halved", "at best"]


def test_full_stream_at_the_interval_ends_the_matter(tiny):
    tiny["headroom"] |= {"limits": [limit("conv1", 30030, 30030)], "changes": []}
    *_, last = said("explain", tiny)
    assert last == "No folding of these layers is faster, whatever the device."
    assert said("summary", tiny) == [
        ("halved", "15,015 cycles: not with conv1, 30,030 codes, one per cycle")
    ]


def test_architectures_that_were_not_taken_are_told(tiny):
    other = {"arch": "engine", "cycles_per_inference": 44100, "lut": 3445, "refused": None}
    reason = "model 'm' does not fit, by far; use another board"
    tiny["other_architectures"] = [
        other,
        {"arch": "third", "cycles_per_inference": None, "lut": None, "refused": reason},
    ]
    *_, first, second = said("explain", tiny)
    assert first == "With --arch engine: 44,100 cycles, an estimate of 3,445 LUTs."
    assert second == f"With --arch third: {reason}."
    lines = dict(
        text.split(": ", 1) for title, text in said("summary", tiny) if title == "otherwise"
    )
    assert lines == {
        "--arch engine": "44,100 cycles, an estimate of 3,445 LUTs",
        "--arch third": "refused, see the report",
    }


def test_lines_fit_a_narrow_terminal(any_report):
    assert all(len(f"{title:<12} {text}") <= 80 for title, text in said("summary", any_report))


def test_boards_are_listed_fastest_first_with_what_ends_them(tiny):
    tiny["boards"][3]["floor"] = 5000
    assert [(names, end) for names, _, _, end in said("ceilings", tiny)] == [
        ("ulx3s_85f", "several resources at once"),
        ("icebreaker, fomu_pvt", "LUTs (15,015) or block RAMs (28,224)"),
        ("tinyfpga_bx", "it does not fit"),
    ]


def test_a_board_as_fast_as_any_folding_is_not_ended_by_resources(tiny):
    _, device, row, end = said("ceilings", tiny)[0]
    assert (device, row.cycles_per_inference) == ("ecp5-85k", 6272)
    assert end == "no folding is faster"
