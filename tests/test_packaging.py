import re
import tomllib
from importlib import metadata
from pathlib import Path

import nnef_hw
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.system.tools import TOOLS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PROJECT["tool"]["setuptools"]


def package_folders():
    """Map the name of every package in the tree to its folder."""
    folders = {}
    for name, top in SETUPTOOLS["package-dir"].items():
        for init in (ROOT / top).rglob("__init__.py"):
            below = init.parent.relative_to(ROOT / top).parts
            folders[".".join((name, *below))] = init.parent
    return folders


def data_files(folder):
    """Yield the files of a package, also of folders in it that are not packages."""
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.name != "__pycache__" and not (path / "__init__.py").exists():
            yield from data_files(path)


def test_every_package_is_listed():
    assert sorted(SETUPTOOLS["packages"]) == sorted(package_folders())


def test_every_data_file_is_packaged():
    for name, folder in package_folders().items():
        patterns = SETUPTOOLS["package-data"].get(name, [])
        files = {path for path in data_files(folder) if path.suffix != ".py"}
        assert files == {path for pattern in patterns for path in folder.glob(pattern)}, name


def test_version():
    assert nnef_hw.__version__ == PROJECT["project"]["version"] == metadata.version("nnef-hw")


def test_the_source_distribution_has_everything():
    """What is in the tree and not in a package is named; the tests run from it."""
    named = {line.split()[-1] for line in (ROOT / "MANIFEST.in").read_text().splitlines()}
    included = " ".join((ROOT / "MANIFEST.in").read_text().split())
    by_setuptools = {"nnef_hw", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"}
    ours = {
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".") and path.suffix != ".egg-info" and path.name != "build"
    } | {".ci"}
    assert {name for name in ours - by_setuptools if name not in included} == set()
    assert ".ci" in named


def test_extras_hold_the_tools_of_families():
    extras = PROJECT["project"]["optional-dependencies"]
    for family in FAMILIES:
        packages = {re.split(r"[^\w-]", line)[0] for line in extras.get(family.name, ())}
        owned = [x for x in toolchain_of(family).programs if x.name not in TOOLS]
        assert packages == {x.distribution for tool in owned for x in tool.packages}


def test_the_citation_is_of_this_version():
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {nnef_hw.__version__}" in lines
    assert f"license: {PROJECT['project']['license']}" in lines
