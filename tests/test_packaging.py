import tomllib
from importlib import metadata
from pathlib import Path

import nnef_hw

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
