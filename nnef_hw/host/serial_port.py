"""A serial port as a transport, and what to do if it cannot be opened."""

from __future__ import annotations

import errno
import sys
from types import TracebackType
from typing import Any

from nnef_hw.errors import ToolError, UsageError
from nnef_hw.host.link import LinkError

__all__ = ["SerialTransport"]

UDEV_FILE = "/etc/udev/rules.d/70-nnef-hw.rules"


class SerialTransport:
    """Carries bytes over a serial port; to be closed, or used as a context manager.

    Raises
    ------
    UsageError
        If there is no such port, or it may not be opened, or somebody else has it.
    ToolError
        If pyserial is missing.
    """

    def __init__(self, port: str, baud: int) -> None:
        try:
            import serial
        except ImportError as error:
            raise ToolError("pyserial is not installed", remedy="pip install pyserial") from error
        self.port = port
        exclusive = True if sys.platform != "win32" else None
        try:
            self._serial = serial.Serial(port, baud, timeout=0, exclusive=exclusive)
        except (OSError, ValueError) as error:
            raise _translated(port, baud, error) from error

    def __enter__(self) -> SerialTransport:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Send all bytes."""
        try:
            self._serial.write(data)
        except OSError as error:
            raise self._lost(error) from error

    def read(self, timeout: float) -> bytes:
        """Bytes received, as soon as there are any; none after ``timeout`` seconds of silence."""
        try:
            self._serial.timeout = timeout
            return bytes(self._serial.read(1) + self._serial.read(self._serial.in_waiting))
        except OSError as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Release the port."""
        self._serial.close()

    def _lost(self, error: OSError) -> LinkError:
        return LinkError(
            f"port {self.port!r} was lost: {error}", remedy="check the cable and run again"
        )


def _translated(port: str, baud: int, error: OSError | ValueError) -> UsageError:
    number = getattr(error, "errno", None)
    if number == errno.EACCES:
        return UsageError(f"port {port!r} may not be opened by this user", remedy=_permission(port))
    if number in {errno.EAGAIN, errno.EWOULDBLOCK, errno.EBUSY}:
        return UsageError(f"port {port!r} is used by another program", remedy="close that program")
    if isinstance(error, ValueError):
        return UsageError(f"port {port!r} cannot be set to {baud} baud: {error}")
    if number == errno.ENOENT or isinstance(error, FileNotFoundError):
        ports = ", ".join(_ports())
        return UsageError(
            f"port {port!r} does not exist",
            remedy=f"the ports are {ports}" if ports else "no serial port is connected",
        )
    return UsageError(
        f"port {port!r} is not a serial port: {error}", remedy="see the board's manual"
    )


def _ports() -> list[str]:
    """Return the ports of USB devices; the others are rarely connected to anything."""
    return sorted(item.device for item in _comports() if item.vid is not None)


def _comports() -> list[Any]:
    from serial.tools.list_ports import comports

    return list(comports())


def _permission(port: str) -> str:
    """Say how the port becomes the user's: a udev rule for the board's USB interface."""
    if not sys.platform.startswith("linux"):
        return "ask the administrator for access"
    vendor = next((item.vid for item in _comports() if item.device == port), None)
    match = (
        f'SUBSYSTEM=="tty", ATTRS{{idVendor}}=="{vendor:04x}"'
        if vendor
        else 'KERNEL=="ttyUSB*|ttyACM*"'
    )
    return (
        f"""put the line '{match}, TAG+="uaccess"' into {UDEV_FILE}, run """
        "'sudo udevadm control --reload' and plug the board in again; or join the group that "
        "owns the port ('sudo usermod -aG dialout $USER') and log in again"
    )
