"""The command quantize, and the options by which a model is quantized."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from nnef_hw.cli.common import Commands, add_command, print_json, reading
from nnef_hw.errors import UsageError

__all__ = ["add_commands", "add_scheme", "scheme"]


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


def add_scheme(parser: argparse.ArgumentParser) -> None:
    """Declare the options that :func:`scheme` reads."""
    parser.add_argument("--weight-bits", type=int, default=8, metavar="N", help="2..8 (default: 8)")
    parser.add_argument(
        "--activation-bits", type=int, default=8, metavar="N", help="2..16 (default: 8)"
    )


def scheme(options: argparse.Namespace) -> Any:
    """Return the :class:`~nnef_hw.quantize.Scheme` that the user asked for."""
    from nnef_hw.quantize import Scheme

    try:
        return Scheme(weight_bits=options.weight_bits, activation_bits=options.activation_bits)
    except ValueError as error:
        raise UsageError(str(error).removeprefix("Scheme ")) from error


def _quantize(options: argparse.Namespace) -> int:
    from nnef_hw.build.pipeline import fix_model
    from nnef_hw.frontend import graph_hash, load, save
    from nnef_hw.samples import load_samples

    graph = load(options.model, **reading(options))
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    fixed, _ = fix_model(graph, samples, scheme(options))
    save(fixed, options.output)
    if options.json:
        used = 0 if samples is None else len(samples.split()[0])
        print_json({
            "model": graph.name,
            "output": options.output,
            "calibration_samples": used,
            "hash": graph_hash(fixed),
        })
    return 0
