import io

import pytest
from rich.console import Console

from nnef_hw.report.model.conversion import from_json
from nnef_hw.report.model.report import Report
from nnef_hw.report.terminal import print_report

TIMES = "\N{MULTIPLICATION SIGN}"


def printed(report, width=100, encoding="utf-8", **options):
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    print_report(from_json(report, Report), Console(file=file, width=width, **options))
    file.flush()
    return raw.getvalue().decode(encoding)


def row(text, start):
    """Return the words of the only line that begins so."""
    (line,) = [x for x in text.splitlines() if x.startswith(start)]
    return line.split()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_tables_keep_to_the_width_one_line_per_row(any_report, width):
    text = printed(any_report, width)
    tables, results = text.rsplit("\n\n", 1)
    assert max(map(len, tables.splitlines())) <= width
    layers = tables.split("\n\n")[1].splitlines()
    assert len(layers) == len(any_report["layers"]) + 2
    assert len({x.split()[0] for x in layers[2:]}) == len(any_report["layers"])
    assert results.startswith("interval")


def test_the_clock_is_explained(tiny):
    assert "clock from" not in printed(tiny)
    tiny["clock"] = {"by": "constant", "planned_mhz": 30.0, "reason": "a memory is read with it"}
    text = printed(tiny)
    assert " ".join(row(text, "clock from")) == (
        "clock from 30 MHz, a constant: a memory is read with it"
    )


def test_simulation_of_some_frames_says_so(tiny):
    assert "bit-exact over 1,000 frames, cycles as predicted" in printed(tiny)
    assert "98.62% on 800 samples\n" in printed(tiny)
    tiny["simulation"]["frames"] = 7
    tiny["accuracy"] |= {"rtl_samples": 5, "rtl": 0.8}
    text = printed(tiny)
    assert "bit-exact over 7 of 1,000 frames (--frames all for all), cycles as" in text
    assert "98.88%, fixed 98.62% on 800 samples, rtl equal to fixed on 5 of them\n" in text
    assert "80" not in text.split("accuracy")[1].replace("800", "")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rtl_samples": 5, "rtl_equal": False}, "on 800 samples, rtl unlike fixed on 5 of them\n"),
        ({"rtl_samples": 0, "rtl_equal": None}, "on 800 samples, rtl run on none of them\n"),
        ({"calibrated": True}, "rtl 98.62% on 800 samples, those that calibrated\n"),
        (
            {"calibrated": True, "samples": 1, "rtl_samples": 1},
            "rtl 98.62% on 1 sample, the one that calibrated\n",
        ),
    ],
    ids=["unlike", "none", "calibrated", "one"],
)
def test_scores_say_of_which_samples_they_are(changes, text, tiny):
    tiny["accuracy"] |= changes
    assert text in printed(tiny)


def test_layer_row_has_its_figures(tiny):
    text = printed(tiny)
    assert row(text, "layer")[3:] == ["MACs", "mult", "BRAM", "cycles", "interval"]
    assert row(text, "conv3")[:-1] == [
        "conv3", "conv", f"3{TIMES}3", f"7{TIMES}7{TIMES}16", "→", f"7{TIMES}7{TIMES}32",
        "225,792", "8", "11", "28,224", "94.0%",
    ]  # fmt: skip
    assert row(text, "fc")[:4] == ["fc", "linear", "288", "→"]


def test_bars_follow_the_interval(tiny):
    text = printed(tiny)
    assert row(text, "conv2")[-1] == "█" * 12
    assert row(text, "conv1")[-1] == "█" * 11
    assert row(text, "pool3")[-1] == "█"


def test_results_of_a_finished_build(tiny):
    text = printed(tiny)
    assert "mnist_tiny_cnn → icebreaker  up5k, streaming" in text
    assert row(text, "LUT")[:5] == ["LUT", "4,412", "4,190", "5,280", "83.6%"]
    for line in (
        "interval     30,030 cycles, set by conv2",
        "latency      41,377 cycles, 1.72 ms",
        "clock        24 MHz, the routed design allows 27.31 MHz: timing met",
        "throughput   799 inferences/s, 14.6 over the host link",
        "multipliers  19, 89.5% busy with 510,912 MACs",
        "simulation   bit-exact over 1,000 frames, cycles as predicted",
        "accuracy     float 98.88%, fixed 98.62%, rtl 98.62% on 800 samples",
        "bitstream    build/mnist_tiny_cnn/board/top.bin",
    ):
        assert line in text.splitlines()


def test_planned_build_claims_nothing_that_was_not_run(planned):
    text = printed(planned)
    assert row(text, "LUT")[:5] == ["LUT", "\N{EN DASH}", "4,190", "5,280", "79.4%"]
    assert "clock        24 MHz, timing not known before place and route" in text
    assert "simulation   not run" in text
    assert "bitstream    not made" in text
    assert "accuracy" not in text
    assert "timing met" not in text
    assert "None" not in text


def test_a_short_run_has_an_interval_of_its_own(tiny):
    short = {"cycles_per_inference": 29000, "predicted_cycles_per_inference": 29000}
    tiny["simulation"] |= short
    assert "cycles as predicted for so short a run, 29,000 a frame" in printed(tiny)
    tiny["simulation"] |= {"predicted_cycles_per_inference": 29001}
    assert "interval 29,000 instead of 29,001 cycles" in printed(tiny)


def test_failures_are_said_in_words(deep):
    deep["simulation"] |= {"bit_exact": False, "mismatches": 17, "latency_cycles": 41380}
    text = printed(deep)
    assert "100 MHz, the routed design allows 71.3 MHz: timing NOT met" in text
    assert "NOT bit-exact: 17 mismatches over 1,000 frames" in text
    assert "cycles per inference" not in text
    assert "latency 41,380 instead of 41,377 cycles" in text
    assert row(text, "LUT")[4] == "109.0%"
    assert "SPRAM" not in text


def test_several_slowest_layers_are_counted(deep):
    (line,) = [x for x in printed(deep).splitlines() if x.startswith("interval")]
    assert line.endswith("and 5 more")


def test_interval_longer_than_the_slowest_layer_is_told_from_it(tiny):
    tiny["cycles_per_inference"] = 30075
    assert "interval     30,075 cycles, set by conv2 at 30,030 and waits" in printed(tiny)


def test_what_half_the_interval_takes_is_said(tiny):
    assert "halved       15,015 cycles: 38 multipliers, 6,604 LUTs of 5,016" in printed(tiny)


def test_zero_multipliers_have_no_use(single):
    text = printed(single)
    assert "multipliers  0 with 0 MACs" in text
    assert "busy" not in text


def test_narrow_console_drops_bars_before_figures(tiny):
    assert row(printed(tiny, 80), "conv2")[-1] == "100.0%"


def test_piped_text_has_no_escapes_and_paths_stay_whole(tiny):
    tiny["bitstream"] = "build/" + "very_long_folder/" * 12 + "top.bin"
    text = printed(tiny)
    assert "\x1b" not in text
    assert tiny["bitstream"] in text


def test_terminal_has_colour_but_names_cannot_control_it(tiny):
    tiny["layers"][0]["name"] = "a\x1b[2J[red]\r"
    text = printed(tiny, force_terminal=True, color_system="standard")
    assert "\x1b[32m" in text
    assert "\x1b[2J" not in text
    assert "a\\x1b[2J[red]\\r" in text


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_other_encodings_get_plain_letters(any_report, encoding):
    any_report["layers"][-1]["name"] = "couche_\N{GREEK SMALL LETTER PI}"
    text = printed(any_report, encoding=encoding)
    assert text.isascii()
    assert f"{any_report['model']} -> {any_report['board']}" in text
    assert "couche_\\u03c0" in text
