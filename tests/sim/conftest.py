"""Skips what needs Verilator where there is none, except in continuous integration."""

import os

import pytest

from nnef_hw.errors import ToolError
from nnef_hw.tools import find_tool


def pytest_runtest_setup(item):
    if item.get_closest_marker("verilator"):
        try:
            find_tool("verilator"), find_tool("c++")
        except ToolError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))
