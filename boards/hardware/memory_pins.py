"""Pins of the memories beside an FPGA, for the pads of :mod:`nnef_hw.rtl.readers.pads`."""

from amaranth.build import Pins

from nnef_hw.boards.hardware.pins import platform_resources
from nnef_hw.errors import TargetError
from nnef_hw.hardware.families import Pin

__all__ = ["memory_pins", "package_ports"]


def memory_pins(board, memory):
    """Pins of a memory's pads, as :class:`.Pin` by port: ``flash_cs_n``, ``flash_dq[0]``.

    Those of a memory in the FPGA's package have no places; see :func:`package_ports`.

    Raises
    ------
    TargetError
        When the board's platform does not have the memory's resource, or one with another set of
        subsignals than the pads have ports; or there are no pads for the memory.
    """
    return {} if memory.in_package else _pins(board, memory)


def package_ports(board, memory):
    """Names that the pins of a memory in the FPGA's package must have at the top, by their own.

    ``sdram_dq`` is ``IO_sdram_dq`` of a GW2AR. Other memories' pins keep their names.

    Raises
    ------
    TargetError
        The same as for :func:`memory_pins`.
    """
    if not memory.in_package:
        return {}
    return {port.partition("[")[0]: pin.site.partition("[")[0]
            for port, pin in _pins(board, memory).items()}


def _pins(board, memory):
    if not memory.ports:
        raise TargetError(f"board {board.name!r}: designs cannot use its {memory.kind}")
    resource = next(
        (x for x in platform_resources(board) if (x.name, x.number) == (memory.resource, 0)), None)
    if resource is None:
        raise TargetError(
            f"board {board.name!r}: its platform {board.platform!r} has no {memory.resource!r}")
    pins = {}
    for signal in resource.ios:
        if signal.name in memory.unused:
            continue
        if signal.name not in memory.ports:
            raise TargetError(f"board {board.name!r}: {memory.resource}.{signal.name} is unknown")
        names = [name for io in signal.ios if isinstance(io, Pins) for name in io.names]
        port = memory.prefix + memory.ports[signal.name]
        for n, name in enumerate(names):
            # the ports have the levels of the memory's own pins
            pin = Pin(name, False, {**resource.attrs, **signal.attrs})
            pins[port if len(names) == 1 else f"{port}[{n}]"] = pin
    return pins
