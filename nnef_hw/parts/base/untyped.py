"""Names for what Amaranth has no types for; a plan is made without importing it."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Content", "Hardware"]

Hardware: TypeAlias = Any
"""An Amaranth component, one of its streams, a signal, or a platform."""
Content: TypeAlias = Any
"""Weights, tables or constants, which a component is made with."""
