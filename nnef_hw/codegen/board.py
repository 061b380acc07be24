"""Plan and fixed graph -> the board's top in Verilog, with its constraints."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from nnef_hw.architecture.architecture import Plan, queued_ports
from nnef_hw.architectures import find_architecture
from nnef_hw.boards import Board
from nnef_hw.boards.hardware.core import DEFAULT_BAUD
from nnef_hw.boards.hardware.memory_pins import memory_pins, package_ports
from nnef_hw.boards.hardware.top import board_constraints, board_top
from nnef_hw.boards.hardware.uart import uart_divider
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError
from nnef_hw.host.manifest import manifest_hash
from nnef_hw.ir import Graph
from nnef_hw.parts.streams.stream import make_fifo
from nnef_hw.rtl.readers.pads import pad_ports, padded_top, pads_verilog

__all__ = ["DEFAULT_BAUD", "BoardDesign", "check_clock", "design_board", "fastest_clock"]

# A packet of 70 bytes and its reply take 146 ms then, of the 200 ms for which a host waits.
MIN_BAUD = 9600


@dataclass(frozen=True, slots=True)
class BoardDesign:
    """What place and route needs: Verilog of module ``board_top``, and constraints."""

    verilog: str
    constraints: str
    suffix: str


def check_clock(board: Board, clock_mhz: float, baud: int | None = DEFAULT_BAUD) -> None:
    """Refuse a clock that the board's PLL cannot make, or that a UART cannot be divided from.

    ``baud`` is None if there is no UART.

    Raises
    ------
    TargetError
        Naming the nearest possible clocks.
    """
    board.clock(clock_mhz)
    if baud is not None and baud < MIN_BAUD:
        raise TargetError(
            f"a UART of {baud} baud is too slow: the link forgets a packet after 10 ms of silence",
            remedy=f"give --baud {MIN_BAUD} or more",
        )
    try:
        if baud is not None:
            uart_divider(round(clock_mhz * 1e6), baud)
    except ValueError as error:
        raise TargetError(str(error), remedy="choose another --freq or --baud") from None


def fastest_clock(board: Board, limit_mhz: float, baud: int | None = DEFAULT_BAUD) -> float:
    """Return the fastest clock in MHz, up to a limit, that PLL and UART take; at least the slowest.

    Raises
    ------
    TargetError
        If the UART cannot be divided from any clock up to the limit.
    """
    frequencies: tuple[float, ...] = board.frequencies
    for clock_mhz in reversed(frequencies):
        if clock_mhz <= limit_mhz:
            with contextlib.suppress(ValueError):
                if baud is not None:
                    uart_divider(round(clock_mhz * 1e6), baud)
                return clock_mhz
    raise TargetError(
        f"{board.name} has no clock up to {limit_mhz:g} MHz for a UART of {baud} baud",
        remedy="choose another --baud",
    )


def design_board(plan: Plan, graph: Graph, manifest: dict[str, Any], board: Board) -> BoardDesign:
    """Put the accelerator behind the board's host link, clock and reset."""
    architecture = find_architecture(plan.arch)
    accelerator = architecture.component(plan, graph, restartable=True, counted=plan.layer_counters)
    queues = {
        port.name: make_fifo(
            port.bits, port.signed, port.queue_depth, port.beats, board.device, lanes=port.lanes
        ).build(shape=getattr(accelerator, port.name).payload.shape())
        for port in queued_ports(plan.inputs, plan.outputs)
    }
    top, ports = board_top(
        board, accelerator, plan.clock_mhz, manifest_hash(manifest),
        baud=manifest["link"].get("baud", DEFAULT_BAUD), link=manifest["link"]["kind"],
        frames={port.name: port.beats for port in (*plan.inputs, *plan.outputs)}, queues=queues,
        layers=len(plan.stations) if plan.layer_counters else 0, batch=plan.batch,
    )  # fmt: skip
    pads = top.core.pads
    verilog = to_verilog(top, name="board_core" if pads else "board_top", ports=ports)
    pins: dict[str, Any] = {}
    if pads:
        [memory] = [x for x in board.memories if x.prefix == pads[0].prefix]
        pins = memory_pins(board, memory)
        inner = {*pad_ports(pads), "core_clk"}
        outer = {
            signal.name: ("output" if signal.name in {"tx", "cipo", "led"} else "input", 1)
            for signal in ports if signal.name not in inner
        }  # fmt: skip
        padded = padded_top(
            "board_core", pads, outer, clock="core_clk", names=package_ports(board, memory)
        )
        verilog = "\n".join([verilog, padded, pads_verilog()])
    return BoardDesign(
        verilog=verilog,
        constraints=board_constraints(board, manifest["link"]["kind"], pins),
        suffix=board.device.family.constraints_suffix,
    )
