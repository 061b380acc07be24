"""The report as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from nnef_hw.architecture.timeline import Timeline
from nnef_hw.report.model.device import Floorplan
from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.floorplan import draw_floorplan
from nnef_hw.report.pages.memory_map import draw_memory_map
from nnef_hw.report.pages.pages import page_template
from nnef_hw.report.pages.picture import draw
from nnef_hw.report.pages.roofline import draw_roofline
from nnef_hw.report.pages.timeline import draw_timeline
from nnef_hw.report.wording import bounds, units
from nnef_hw.report.wording.blocks import blocks, each_alone
from nnef_hw.report.wording.labels import with_short_names, with_short_regions, with_short_rows
from nnef_hw.system.files import write_atomic

__all__ = ["render_html", "write_html"]


def write_html(
    report: Report,
    timeline: Timeline,
    path: Path,
    floorplan: Floorplan | None = None,
) -> None:
    """Write :func:`render_html` to a file, whose folder is made if need be.

    The page links files beside it.
    """
    write_atomic(path, render_html(report, timeline, floorplan))


def render_html(report: Report, timeline: Timeline, floorplan: Floorplan | None = None) -> str:
    """Return a page that needs no other file, no network and no script.

    Parameters
    ----------
    report
        What is known of a build; steps are shown in the order they have here. Equal reports give
        equal bytes.
    timeline
        Activity of every block in a steady frame.
    floorplan
        Where its parts are in the device.
    """
    report, full_names = with_short_names(report)
    timeline = with_short_rows(timeline, full_names)
    if floorplan is not None:
        floorplan = with_short_regions(floorplan, full_names)
    clock_hz = report.clock_mhz * 1e6 if report.clock_mhz else None
    shown = blocks(report.layers)
    steps = {step: seconds for step, seconds in report.seconds.items() if step != "total"}
    template = page_template("build.html", keeps_newline=True, finalize=_shown)
    return template.render(
        say=units,
        report=report,
        full_names=full_names,
        picture=draw(report, full_names, shown),
        whole_picture=draw(report, full_names, each_alone(report.layers)),
        blocks=shown,
        is_folded=len(shown) < len(report.layers),
        timeline=draw_timeline(report, timeline),
        roofline=draw_roofline(report),
        memory_map=draw_memory_map(report),
        floorplan=draw_floorplan(report, floorplan),
        placed=report.placed,
        bounds=list(bounds.explain(report)),
        ceilings=list(bounds.ceilings(report)),
        is_shortened=any(name != full for name, full in full_names.items()),
        bottlenecks=units.bottlenecks(report),
        noise=report.noise,
        resources=list(units.resource_rows(report.resources)),
        latency_seconds=units.share(report.latency_cycles, clock_hz),
        steps=steps,
        # Steps run side by side: the total is less than their sum.
        total_seconds=report.seconds.get("total", sum(steps.values())),
        longest_step=max(steps.values(), default=0),
    )


def _shown(value: object) -> object:
    """Spell out control characters before they are escaped, which HTML and XML cannot hold."""
    if value is None:
        return units.MISSING
    return units.printable(value) if type(value) is str else value
