"""The command quantize, and the options by which a model is quantized."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from nnef_hw.arithmetic.records import Fields
from nnef_hw.cli.common import (
    Commands,
    add_command,
    console,
    print_json,
    reading,
    streaming,
)
from nnef_hw.errors import UsageError

if TYPE_CHECKING:
    from nnef_hw.flow.fixed import Judged
    from nnef_hw.ir import Graph
    from nnef_hw.quantize import Scheme
    from nnef_hw.quantize.sensitivity import Sensitivities
    from nnef_hw.report.model.quantization import Quantization
    from nnef_hw.samples.samples import Samples

__all__ = ["accuracy_drop", "add_commands", "add_scheme", "scheme"]

DEFAULT_DROP = 1.0


def add_commands(commands: Commands) -> None:
    """Declare the command."""
    sub = add_command(
        commands,
        "quantize",
        _quantize,
        "turn a float model into the integers of the hardware",
        "model",
    )
    sub.add_argument("--calibrate", type=Path, metavar="S.npz", help="representative inputs")
    sub.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="NAME.nnef.tgz, or NAME/ for a folder"
    )
    add_scheme(sub)
    sub.add_argument("--board", help="board whose memory and multipliers --bits auto saves")
    sub.add_argument(
        "--report",
        type=Path,
        metavar="OUT.html",
        help="write what every layer loses, and the accuracy",
    )
    sub.add_argument(
        "--advise",
        action="store_true",
        help="say what the results lose with weights of 4 bits in each layer, and gain with codes "
        "of 16",
    )


def add_scheme(parser: argparse.ArgumentParser, *, widths: bool = True) -> None:
    """Declare the options that :func:`scheme` and :func:`accuracy_drop` read.

    Without ``widths`` the widths of weights are for the caller to choose.
    """
    group = parser.add_argument_group(
        "quantization",
        "how to quantize what the model's author left in floats; see docs/quantization.md",
    )
    parser.set_defaults(weight_bits=None)
    if widths:
        group.add_argument("--weight-bits", type=int, metavar="N", help="1..8 (default: 8)")
    group.add_argument("--activation-bits", type=int, metavar="N", help="2..16 (default: 8)")
    group.add_argument(
        "--calibration",
        choices=("minmax", "percentile", "mse", "entropy"),
        help="how ranges of activations come from the samples (default: mse)",
    )
    group.add_argument(
        "--round",
        dest="weight_rounding",
        choices=("adaptive", "nearest"),
        help="round weights together, by least squares on the samples, or each alone "
        "(default: adaptive)",
    )
    group.add_argument(
        "--correct-bias",
        action=argparse.BooleanOptionalAction,
        help="subtract mean errors from the biases (default: yes)",
    )
    group.add_argument(
        "--feature-scales",
        action=argparse.BooleanOptionalAction,
        help="give each feature of an input a scale where one for all costs accuracy "
        "(default: yes)",
    )
    group.add_argument(
        "--equalize",
        action=argparse.BooleanOptionalAction,
        help="move scales between layers (default: no)",
    )
    group.add_argument(
        "--scheme",
        type=Path,
        metavar="FILE.toml",
        help="file with these and more options, also for single layers",
    )
    group.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="[LAYER.]KEY=VALUE",
        help="one line of such a file, e.g. per_channel=false or conv1.activation_bits=16 "
        "(repeatable)",
    )
    if widths:
        _add_search(group)


def _add_search(group: Any) -> None:
    group.add_argument(
        "--bits",
        choices=("auto",),
        help="search for the cheapest widths of weights for every layer",
    )
    group.add_argument(
        "--accuracy-drop",
        type=float,
        metavar="POINTS",
        help=f"points of 100 that --bits auto may lose (default: {DEFAULT_DROP:g})",
    )


def scheme(options: argparse.Namespace) -> Any:
    """Return the :class:`~nnef_hw.quantize.Scheme` that the user asked for.

    Options of the command line take precedence over those of the file.
    """
    from nnef_hw.quantize import Scheme, read_scheme
    from nnef_hw.quantize.scheme_file import with_settings

    found = Scheme() if options.scheme is None else read_scheme(options.scheme)
    found = with_settings(found, options.settings)
    keys = (
        "weight_bits", "activation_bits", "calibration", "weight_rounding", "correct_bias",
        "feature_scales", "equalize",
    )  # fmt: skip
    overrides = {key: value for key in keys if (value := getattr(options, key)) is not None}
    try:
        return replace(found, **overrides)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("Scheme ")) from error


def accuracy_drop(options: argparse.Namespace) -> float | None:
    """Return how many points a search of widths may lose; None if none is wanted."""
    drop: float | None = options.accuracy_drop
    if options.bits is None:
        if drop is not None:
            raise UsageError("--accuracy-drop is for a search", remedy="give --bits auto, too")
        return None
    if drop is not None and not 0 <= drop <= 100:
        raise UsageError(f"--accuracy-drop must be 0 to 100 points, not {drop:g}")
    return DEFAULT_DROP if drop is None else drop


def _quantize(options: argparse.Namespace) -> int:
    from nnef_hw.boards import find_board
    from nnef_hw.flow.fixed import buildable, device_budget, judge_model, windows
    from nnef_hw.frontend import graph_hash, save
    from nnef_hw.quantize import Budget
    from nnef_hw.quantize.judgement.warnings import announce
    from nnef_hw.report.model.conversion import to_json
    from nnef_hw.report.pages.quantization_html import write_quantization_html
    from nnef_hw.report.progress import progress_bar
    from nnef_hw.report.quantization import describe_quantization
    from nnef_hw.samples.samples import load_samples

    wanted, drop, budget = scheme(options), accuracy_drop(options), None
    if options.board is not None and drop is None:
        raise UsageError("--board is for a search", remedy="give --bits auto, too")
    if options.advise and drop is not None:
        raise UsageError("--advise is for given widths", remedy="omit --bits auto")
    if options.advise and options.calibrate is None:
        raise UsageError("--advise needs samples", remedy="give --calibrate samples.npz")
    if drop is not None:
        budget = Budget(drop)
        if options.board is not None:
            budget = device_budget(drop, find_board(options.board).device)
    stream = streaming(options)
    graph = reading(options).load(options.model)
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    extended: Fields = {}
    if stream is not None:
        graph, samples, extended = windows(graph, samples, stream)
    with progress_bar() as progress:
        made = judge_model(
            graph, samples, wanted, budget=budget, progress=progress, check=buildable
        )
    fixed, canonical = made.fixed, made.canonical
    announce(made.warnings)
    saved = fixed if stream is None else stream.steps(fixed, extended)[0]
    save(saved, options.output)
    if canonical is None:
        samples = None  # the formats were there already
    if not options.json:
        _print_summary(fixed, samples, options.output, searched=drop is not None)
    advice = _advice(made, samples, wanted) if options.advise else None
    if not options.json:
        if advice is not None:
            _print_advice(advice, wanted)
        if options.report is None:
            if samples is not None:
                scored = "them" if samples.are_few else "the others"
                print(f"--report FILE.html compares float and fixed on {scored}")
            return 0
    used, others = (None, None) if samples is None else samples.split()
    described = describe_quantization(
        canonical or fixed,
        fixed,
        others,
        calibrated=samples is not None and samples.are_few,
        warnings=made.warnings,
    )
    if options.report is not None:
        write_quantization_html(described, options.report)
    if options.json:
        print_json({
            **to_json(described),
            **({} if advice is None else {"sensitivities": to_json(advice)}),
            "output": options.output,
            "calibration_samples": 0 if used is None else len(used),
            "hash": graph_hash(saved),
        })
    else:
        _print_accuracy(described, options.report)
    return 0


def _advice(made: Judged, samples: Samples | None, wanted: Scheme) -> Sensitivities:
    from nnef_hw.flow.fixed import buildable
    from nnef_hw.quantize.sensitivity import sensitivities
    from nnef_hw.report.progress import progress_bar

    if samples is None or made.canonical is None:
        raise UsageError(
            "--advise is for a model that is quantized here",
            remedy="omit it: the model has its formats already",
        )
    used, others = samples.split()
    with progress_bar() as progress:
        return sensitivities(
            made.canonical, used.inputs, others.inputs, wanted, progress, buildable
        )


def _print_advice(advice: Sensitivities, wanted: Scheme) -> None:
    from nnef_hw.report.wording.tables import rows_table

    def decibels(value: float | None) -> str:
        return "" if value is None else f"{value:.1f} dB"

    now = decibels(advice.results_db) or "exact"
    print(f"results: {now} signal to noise on {advice.samples} samples; with another width of one "
          "layer alone:")  # fmt: skip
    console().print(rows_table([
        {"layer": layer.name, "weights of 4 bits": decibels(layer.narrow_db),
         "codes of 16 bits": decibels(layer.wide_db)}
        for layer in advice.layers
    ]))  # fmt: skip
    if (layer := advice.cheapest) is not None:
        print(f"cheapest to narrow: --set {quote(layer.name)}.weight_bits=4")
    if (layer := advice.best) is not None:
        print(f"most to gain: --set {quote(layer.name)}.activation_bits=16")


def _print_summary(fixed: Graph, samples: Samples | None, output: str, *, searched: bool) -> None:
    from nnef_hw.report.quantization import weight_bytes, weight_widths

    print(f"{output}: {weight_bytes(fixed):,} bytes of weights")
    if searched:
        print("bits of weights: " + ", ".join(f"{n} {b}" for n, b in weight_widths(fixed).items()))
    if samples is not None:
        used = int(samples.calibration_mask().sum())
        print(f"{used} of {len(samples)} samples calibrated")


def _print_accuracy(described: Quantization, report: Path) -> None:
    from nnef_hw.report.wording import units

    accuracy = described.accuracy
    if accuracy is not None:
        metric = accuracy.metric
        real, fixed = (units.score(x, metric) for x in (accuracy.float, accuracy.fixed))
        title = "accuracy" if metric == "accuracy" else "mean error"
        samples = f"{described.samples} others"
        if described.calibrated:
            samples = units.scored_samples(described.samples, calibrated=True)
        print(f"{title} on {samples}: float {real}, fixed {fixed}")
        if accuracy.nats is not None:
            found = accuracy.nats
            print(f"nats per label: float {found.float:.4f}, fixed {found.fixed:.4f}")
    print(f"report: {report}")
