"""Jobs of a sweep and what they left: a job whose inputs were seen before is not run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nnef_hw.errors import NnefHwError, ToolError, raise_all
from nnef_hw.flow.cache import cached_step, finished_step
from nnef_hw.system.files import digest
from nnef_hw.system.sources import package_digest
from nnef_hw.system.workers import Pool, as_done

__all__ = ["Job", "JobCache", "Outcome", "run_job"]

KEY_DIGITS = 32
JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a job.

    Parameters
    ----------
    value
        JSON values.
    files
        Contents of files by name, which later jobs need.
    """

    value: Any
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Job:
    """Something to compute.

    Parameters
    ----------
    stage
        What it is for, in a word.
    key
        Digest of everything that its outcome depends on, but this package.
    function
        Computes an :class:`Outcome`, in whatever process.
    arguments
        Gives its arguments; they are not needed if the outcome is there.
    """

    stage: str
    key: str
    function: Callable[..., Outcome]
    arguments: Callable[[], tuple[object, ...]]

    @property
    def name(self) -> str:
        """Name of the job's step: a digest of its contents."""
        return f"{self.stage}-{digest(package_digest(), self.key)[:KEY_DIGITS]}"


class JobCache:
    """A folder's steps, and what computes those that are missing.

    Every outcome is recorded as it comes; a sweep that is killed goes on from there.
    """

    def __init__(self, folder: Path, pool: Pool) -> None:
        self.folder, self.pool = folder, pool
        self.computed = 0

    def run(
        self, jobs: Sequence[Job], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Outcome]:
        """Return the outcomes of jobs; equal ones are computed once.

        Raises
        ------
        NnefHwError
            Of jobs that fail; the others are completed and recorded before.
        """
        names = [job.name for job in jobs]
        missing = {}
        for name, job in zip(names, jobs, strict=True):
            if name not in missing and finished_step(self.folder, name) is None:
                missing[name] = job
        begun = [
            self.pool.submit(run_job, package_digest(), job.function, *job.arguments())
            for job in missing.values()
        ]
        progress(0, len(begun))
        errors: list[NnefHwError] = []
        awaited = list(missing)
        for done, (position, future) in enumerate(as_done(begun)):
            try:
                self._record(awaited[position], future.result())
            except NnefHwError as error:
                errors.append(error)
            progress(done + 1, len(begun))
        raise_all(list({str(error): error for error in errors}.values()))
        return [self._recorded(name) for name in names]

    def _record(self, name: str, outcome: Outcome) -> None:
        def produce(scratch: Path) -> object:
            place = scratch / JOBS / name
            for file, content in outcome.files.items():
                place.mkdir(parents=True, exist_ok=True)
                (place / file).write_bytes(content)
            return outcome.value

        cached_step(self.folder, name, name, produce)
        self.computed += 1

    def _recorded(self, name: str) -> Outcome:
        found = finished_step(self.folder, name)
        assert found is not None, f"{name} was recorded just now"
        value, files = found
        return Outcome(
            value, {Path(file).name: (self.folder / file).read_bytes() for file in files}
        )


def run_job(expected: str, function: Callable[..., Outcome], *arguments: object) -> Outcome:
    """Run a job's function, if this process has the same package as the one that asked for it.

    Raises
    ------
    ToolError
        If it has another one.
    """
    if package_digest() != expected:
        raise ToolError(
            "a worker has another nnef-hw than this process",
            remedy="install the same version where its workers run",
        )
    return function(*arguments)
