"""What is built and installed: one package, whole, whatever the names of the files it is used beside."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINKED = {"instances", "models", "optimizer", "plans", "plugins_compat"}
"""Folders beside ``stowplan/`` that are installed below it."""

IMPORT_EVERYTHING = """
import importlib, pkgutil, stowplan
names = [module.name for module in pkgutil.walk_packages(stowplan.__path__, "stowplan.")]
for name in names:
    importlib.import_module(name)
for name in stowplan.__all__:
    getattr(stowplan, name)
print(len(names), stowplan.__file__)
"""


@dataclass(frozen=True)
class Distributions:
    """Both distributions as the checkout builds them, and the wheel that the sdist builds."""

    sdist: Path
    wheel: Path
    wheel_of_sdist: Path


def build(source: Path, *arguments: str, into: Path) -> Path:
    """Run the build backend and return the file it made."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into), *arguments]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("dist")
    for name in ("sdist", "wheel", "wheel-of-sdist", "unpacked"):
        (folder / name).mkdir()
    sdist = build(ROOT, "-t", "sdist", into=folder / "sdist")
    wheel = build(ROOT, "-t", "wheel", into=folder / "wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Distributions(sdist, wheel, build(unpacked, "-t", "wheel", into=folder / "wheel-of-sdist"))


@pytest.fixture(scope="module")
def installed(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a folder of its own; its dependencies are those of this environment."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(built.wheel)], check=True, capture_output=True, text=True)
    return target


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """Return a folder whose files bear the names of our packages, each of which fails when it is imported."""
    for name in sorted(LINKED):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('this is another {name}')\n")
    (tmp_path / "models.py").write_text("raise ImportError('these are other models')\n")
    return tmp_path


def run(installed: Path, folder: Path, *arguments: str) -> str:
    """Run Python in a folder, where the first place it looks for modules is that folder, then the installation."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(installed)])}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names)), "a file is packed twice"
        return {name: archive.read(name) for name in names if ".dist-info/" not in name}


def sources() -> dict[str, bytes]:
    """Return every file of the packages by the name it is to be installed under."""
    folders = {"stowplan": ROOT / "stowplan"} | {f"stowplan/{name}": ROOT / name for name in LINKED}
    return {
        f"{package}/{file.relative_to(folder).as_posix()}": file.read_bytes()
        for package, folder in folders.items()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_folders_are_linked_by_relative_paths() -> None:
    links = {path.name: path.readlink() for path in (ROOT / "stowplan").iterdir() if path.is_symlink()}
    assert links == {name: Path("..", name) for name in LINKED}


def test_the_wheel_holds_every_file_once_below_one_name(built: Distributions) -> None:
    packed = contents(built.wheel)
    assert {name.split("/")[0] for name in packed} == {"stowplan"}
    assert packed.keys() == sources().keys()
    assert packed == sources()


def test_the_wheel_has_what_is_no_module(built: Distributions) -> None:
    packed = contents(built.wheel)
    assert "stowplan/py.typed" in packed
    assert "stowplan/instances/data/demo.json.gz" in packed
    assert {"stowplan/emitters/shell/pods.sh", "stowplan/emitters/shell/waves.sh"} <= packed.keys()


def test_the_sdist_has_real_folders_tests_and_docs(built: Distributions) -> None:
    with tarfile.open(built.sdist) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if not member.isfile()]
    names = {member.name.partition("/")[2] for member in members}
    assert sources().keys() <= names
    assert {"README.md", "LICENSE", "CHANGELOG.md", "tests/test_packaging.py", "docs/index.md"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(".venv")]


def test_the_sdist_builds_the_same_wheel(built: Distributions) -> None:
    assert contents(built.wheel_of_sdist) == contents(built.wheel)


def test_every_module_is_imported_beside_files_of_the_same_names(installed: Path, crowded: Path) -> None:
    count, _, file = run(installed, crowded, "-W", "error::ImportWarning", "-c", IMPORT_EVERYTHING).partition(" ")
    assert int(count) == sum(name.endswith(".py") for name in sources()) - 1
    assert Path(file.strip()).is_relative_to(installed)


def test_the_installed_command_answers_beside_files_of_the_same_names(installed: Path, crowded: Path) -> None:
    program = str(installed / "bin" / "stowplan")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(installed, crowded, program, "--version").strip() == version
    (crowded / "cluster.json").write_text(run(installed, crowded, program, "generate", "--nodes", "3", "--pods", "9"))
    rows = run(installed, crowded, program, "simulate", "cluster.json", "--all", "-o", "csv").splitlines()
    assert len(rows) == 1 + 9
    assert (installed / "bin" / "kubectl-stowplan").exists()
    completion = str(installed / "bin" / "kubectl_complete-stowplan")
    assert run(installed, crowded, completion, "comp").split() == ["compare", ":4"]


def test_ruff_reads_every_file_once() -> None:
    """The folders are linked below ``stowplan/``, where nothing may be read a second time."""
    ruff = [sys.executable, "-m", "ruff", "check", "--show-files", str(ROOT)]
    shown = subprocess.run(ruff, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {str(ROOT / name) for name in ("models/quantity.py", "stowplan/cli/app.py")} <= set(shown)
    assert len({Path(file).resolve() for file in shown}) == len(shown)


def test_coverage_reads_every_package_once() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert set(settings["run"]["source"]) == {"stowplan", *LINKED}
