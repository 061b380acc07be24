"""Images that a design reads from a memory beside the FPGA, and such memories."""

from __future__ import annotations

from typing import Protocol

from nnef_hw.parts.readers.reader import Reader

__all__ = ["StoredImage", "StoringMemory"]


class StoredImage(Protocol):
    """Contents of a memory beside the FPGA, and how a design reads them."""

    @property
    def kind(self) -> str:
        """Name of the memory for users."""

    @property
    def address(self) -> int:
        """First byte of the image."""

    @property
    def read(self) -> str:
        """Command that reads it."""

    @property
    def data(self) -> bytes:
        """The image."""

    @property
    def words(self) -> int:
        """Words of 16 bits that it has."""

    @property
    def is_loaded(self) -> bool:
        """The host fills the memory over the link."""

    @property
    def part(self) -> Reader:
        """Part that reads the memory."""

    @property
    def memory(self) -> StoringMemory:
        """Kind of the memory."""


class StoringMemory(Protocol):
    """A memory that holds an image, as its model in simulation has to know it."""

    @property
    def model(self) -> str:
        """Module and class of its model."""

    @property
    def clock_mhz(self) -> float:
        """Clock of the memory in MHz."""
