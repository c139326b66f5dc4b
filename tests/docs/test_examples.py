"""The examples of the how-to pages, as a user installs them or a contributor makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stowplan.cli import run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PACKAGES = sorted(file.parent.name for file in EXAMPLES.glob("*/pyproject.toml"))
CHANGES = sorted({file.parent.name for file in EXAMPLES.glob("*/*.diff")})
REVIEW, MONITORING, NOTEBOOKS = "review", "monitoring", "notebooks"
"""What is around a run: ``test_review.py``, ``test_monitoring.py``, and ``test_notebooks.py`` try it."""


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def pytest_of(example: str, *options: str, **environment: str) -> None:
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(EXAMPLES / example), **environment)
    assert not done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install every plugin package into one folder; that is where their entry points are found."""
    target = tmp_path_factory.mktemp("plugins")
    pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--no-index"]
    packages = [str(EXAMPLES / name) for name in PACKAGES]
    done = python(*pip, "--no-build-isolation", "--target", str(target), *packages)
    assert not done.returncode, done.stderr
    return target


def test_every_example_is_of_one_kind() -> None:
    folders = {
        folder.name for folder in EXAMPLES.iterdir() if folder.is_dir() and not folder.name.startswith((".", "_"))
    }
    assert folders == {*PACKAGES, *CHANGES, REVIEW, MONITORING, NOTEBOOKS}
    assert len(PACKAGES) == 4
    assert len(CHANGES) == 5


@pytest.mark.parametrize("name", PACKAGES)
def test_an_installed_plugin_passes_its_test(name: str, installed: Path) -> None:
    pytest_of(name, PYTHONPATH=str(installed))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_passes_its_test(name: str) -> None:
    pytest_of(name, "-p", "tests.docs.overlay", "--overlay", str(EXAMPLES / name))


@pytest.fixture
def dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["generate", "--nodes", "4", "--pods", "30", "--fill", "0.6", "--seed", "1"]) == 0
    path = tmp_path / "dump.json"
    path.write_text(capsys.readouterr().out)
    return str(path)


@pytest.mark.parametrize("name", [name for name in PACKAGES if (EXAMPLES / name / "scheduler.yaml").exists()])
def test_a_scheduler_configuration_switches_it_on(name: str, installed: Path, dump: str) -> None:
    config = ["--config", str(EXAMPLES / name / "scheduler.yaml")]
    simulate = ["-c", "from stowplan.cli import main; main()", "simulate", dump, "--all", "-o", "json", *config]
    done = python(*simulate, PYTHONPATH=str(installed))
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout)["decisions"]
    # Where the package is not installed, the same file names a plugin that nobody knows.
    missing = python(*simulate)
    assert missing.returncode == 1
    assert "is unknown; must be one of" in missing.stderr


def test_the_script_prints_every_move(dump: str) -> None:
    done = python(str(EXAMPLES / "moves.py"), dump)
    assert not done.returncode, done.stderr
    moves = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr.strip().endswith(f"{len(moves)} moves")
    assert all(move["from"] != move["to"] for move in moves)
    assert moves
