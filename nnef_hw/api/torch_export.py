"""Export of PyTorch's modules to ONNX files."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Protocol, TextIO

from nnef_hw.errors import UsageError

__all__ = ["TorchModule", "write_torch"]

_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Exceptions of modules and exporters."""


class TorchModule(Protocol):
    """Members of ``torch.nn.Module`` that an export needs; torch may not be there."""

    training: bool
    forward: Callable[..., object]

    def __call__(self, *inputs: object) -> object:
        """Run the module."""

    def modules(self) -> Iterable[TorchModule]:
        """Yield the module and its parts."""

    def eval(self) -> object:
        """Let the module evaluate."""


def write_torch(module: TorchModule, path: Path, example: object) -> None:
    """Write a module to an ONNX file by running it, in evaluation, on an example of its inputs.

    The exporter by tracing goes first, which needs no library but torch itself; the one that needs
    onnxscript follows where tracing fails. Neither writes to the console.
    The module and PyTorch's settings are afterwards what they were.

    Raises
    ------
    UsageError
        If there is no example, or the module cannot be exported.
    """
    import torch

    if example is None:
        raise UsageError(
            "a PyTorch module is exported by running it", remedy="give example=inputs, a tensor"
        )
    given = tuple(example) if isinstance(example, tuple | list) else (example,)
    inputs = tuple(torch.as_tensor(each) for each in given)
    options = {"input_names": _arguments(module, inputs), "output_names": ["output"]}
    with _in_evaluation(module), _without_fast_path(torch), torch.no_grad(), _silently():
        try:
            with _without_defaults(module, len(inputs)):
                torch.onnx.export(module, inputs, str(path), dynamo=False, **options)
        except _FAILURES as error:
            _check_runs(module, inputs)
            if find_spec("onnxscript") is not None:
                with contextlib.suppress(*_FAILURES):
                    torch.onnx.export(
                        module, inputs, str(path), dynamo=True, external_data=False, **options
                    )
                    return
            raise _refusal(module, error) from error


def _check_runs(module: TorchModule, inputs: tuple[object, ...]) -> None:
    try:
        module(*inputs)
    except _FAILURES as error:
        raise UsageError(
            f"{type(module).__name__} does not run on the example: {_reason(error)}",
            remedy="give example=inputs as its forward takes them",
        ) from error


def _refusal(module: TorchModule, error: Exception) -> UsageError:
    remedy = "replace this part of the module, or export it to a file yourself"
    if find_spec("onnxscript") is None:
        remedy = "install what PyTorch's newer exporter needs: pip install onnxscript"
    return UsageError(
        f"PyTorch cannot export {type(module).__name__}: {_reason(error)}", remedy=remedy
    )


def _reason(error: Exception) -> str:
    """Return the first line of an error: behind it, exporters list the graph."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].partition(" [Caused by")[0]


def _arguments(module: TorchModule, inputs: tuple[object, ...]) -> list[str]:
    """Return the names of a module's inputs."""
    names = list(inspect.signature(module.forward).parameters)
    return names[: len(inputs)]


@contextlib.contextmanager
def _in_evaluation(module: TorchModule) -> Iterator[None]:
    """Let a module and its parts evaluate; each trains afterwards if it did before."""
    trained = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in trained:
            part.training = True


@contextlib.contextmanager
def _without_defaults(module: TorchModule, count: int) -> Iterator[None]:
    """Hide the parameters of a module that have no input: of defaults, tracing makes inputs."""
    forward = module.forward
    if len(inspect.signature(forward).parameters) <= count:
        yield
        return
    module.forward = lambda *inputs: forward(*inputs)
    try:
        yield
    finally:
        del module.forward


@contextlib.contextmanager
def _without_fast_path(torch: ModuleType) -> Iterator[None]:
    """Let attention be computed by operators that exporters know."""
    attention = torch.backends.mha
    was_enabled = attention.get_fastpath_enabled()
    attention.set_fastpath_enabled(False)
    try:
        yield
    finally:
        attention.set_fastpath_enabled(was_enabled)


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    """Suppress what is printed, logged or warned of; libraries in C write to the file itself."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            _into_nothing(sys.__stdout__),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@contextlib.contextmanager
def _into_nothing(stream: TextIO | None) -> Iterator[None]:
    """Let a stream's file be the null device; without a file there is nothing to do."""
    if stream is None:
        yield
        return
    try:
        stream.flush()
        number = stream.fileno()
        kept = os.dup(number)
    except (AttributeError, OSError, ValueError):
        yield
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(nothing)
        os.close(kept)
