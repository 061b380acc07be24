"""Which packets of the program stay on the chip: those that save most waiting per byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from nnef_hw.engine.program.design import Design
from nnef_hw.engine.timing.timing import waits
from nnef_hw.parts.engine.codes import Residents

__all__ = ["QUEUES", "feeds", "with_residents"]

QUEUES = (2048, 1024, 512, 256)
"""Words that may wait in block RAM behind the memory, while packets come that stay."""

_ROUNDS = 12
"""How often a design is predicted anew at most."""


def feeds(design: Design, fits: Callable[[Design], bool]) -> Iterator[Design]:
    """Yield the design, the same with packets that stay, and with the deepest queue that fits.

    What waits in the queue came while a packet did that stays: otherwise the memory stands still.

    Parameters
    ----------
    fits
        Whether a design has room for its block RAMs.
    """
    yield design
    found = with_residents(design)
    if found is design:
        return
    yield found
    queued = (design.changed(queue_words=words) for words in QUEUES)
    best = next((trial for trial in queued if fits(trial.changed(resident=found.resident))), None)
    if best is not None and any(waits(found)):
        yield with_residents(best)


def with_residents(design: Design) -> Design:
    """Return the design with packets that stay in the banks of codes, if it waits less with them.

    Of the instructions that wait for their packets, those that wait longest per byte come first,
    until they account for half of all that the design waits; it is predicted then, and so on.
    """
    store = design.store
    if store is None or design.placement.banks is None or not Residents.fits(design.engine):
        return design
    best, least = design, waits(design)
    # In the bank that the instruction before reads, only what still waits then.
    for more in (_more_residents, _more_staged, partial(_more_residents, is_better=False)):
        trial, times = best, least
        for _ in range(_ROUNDS):
            found = more(trial, times)
            if found is None or not store.fits(found.packets.image_words):
                break
            trial, times = found, waits(found)
            if sum(times) < sum(least):
                best, least = trial, times
    return best


def _more_residents(
    design: Design, times: Sequence[int], *, is_better: bool = True
) -> Design | None:
    """Return the design with more packets that stay, where there is room; the first cannot stay.

    With ``is_better`` only in the bank from which they come while the instruction before runs.
    """
    chosen = design.resident
    first = design.program.first + 1
    # Any packet: it tells where a design with residents has room.
    trial = design.changed(resident=chosen or (first,))
    left = [len(words) for words in trial.placement.lasting]

    def put(n: int) -> bool:
        bank = trial.packets.resident_bank(n, left)
        is_taken = bank is not None and (
            n in chosen or not is_better or trial.packets.is_better(n, bank)
        )
        if bank is not None and is_taken:
            left[bank] -= trial.packets.resident_words(trial.instructions[n])
        return is_taken

    for n in chosen:
        put(n)
    found: list[int] = []
    staged = {n for n, _ in design.staged}
    kept = {*chosen, *staged} if design.queue_words else set()
    behind_hosts = {host + 1 for _, host in design.staged}
    waiting = {
        n: times[n] / trial.packets.packet_words(trial.instructions[n])
        for n in range(first, len(times))
        if times[n] and n not in {*chosen, *staged, *behind_hosts}
    }

    def saved(n: int) -> float:
        # With packets beside it that stay, the queue is full: the memory stands still for this one.
        is_full = n - 1 in kept or n + 1 in kept
        return waiting[n] * (1 - 1 / design.packets.beat_cycles) if is_full else waiting[n]

    while waiting:
        n = max(waiting, key=lambda n: (saved(n), -n))
        del waiting[n]
        if put(n):
            found.append(n)
            if design.queue_words:
                kept.add(n)
            if 2 * sum(times[x] for x in found) >= sum(times):
                break
    return design.changed(resident=chosen + tuple(found)) if found else None


def _more_staged(design: Design, times: Sequence[int]) -> Design | None:
    """Return the design with more packets that are staged: those that wait longest, late.

    A host is an instruction during which the memory has time for a packet more, the next one of
    those whose packets come from it. It adds no tensors, and does not read the bank.
    """
    if not design.program.has_residents:
        # Any packet: only such a design knows what instructions read.
        design = design.changed(resident=(design.program.first + 1,))
    trial, saved = design, 0
    for n in sorted(range(design.program.first + 1, len(times)), key=lambda n: (-times[n], n)):
        if not times[n] or 2 * saved >= sum(times):
            break
        hosts = range(n - 2, design.program.first, -1)
        host = next((m for m in hosts if _is_host(trial, m, n)), None)
        if host is not None:
            trial = trial.changed(staged=(*trial.staged, (n, host)))
            saved += times[n]
    return trial if saved else None


def _is_host(design: Design, host: int, n: int) -> bool:
    """Whether the packet of an instruction is staged during another one without any waiting."""
    if design.packets.staged_behind(host) or not design.packets.can_stage(n, host):
        return False
    instruction, following = design.instructions[host : host + 2]
    beats = design.packets.packet_words(following) + design.packets.staging_words(
        design.instructions[n]
    )
    assert instruction.nest is not None
    return (
        design.packets.is_better(n, design.packets.staging_bank(host))
        and design.packets.beat_cycles * beats <= instruction.nest.words
    )
