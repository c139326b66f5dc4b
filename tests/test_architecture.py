"""The house keeps its shape: who may import whom, and what must stay cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT = {
    "models": set(),
    "plugins_compat": {"models"},
    "optimizer": {"models"},
    "instances": {"models"},
    "plans": {"models", "plugins_compat"},
    "stowplan": {"models", "plugins_compat", "optimizer", "instances", "plans"},
}
SOLVERS = {"ortools", "pulp", "highspy", "numba"}
GRAPHS = {"networkx"}
HEAVY = {*SOLVERS, *GRAPHS, "numpy", "yaml", "msgspec", "aiohttp", "prometheus_client", "stowplan.models.kubernetes"}
HEAVY |= {f"stowplan.{package}" for package in ("optimizer", "plugins_compat", "plans", "instances")}


def files_of(package: str) -> list[Path]:
    """Return the files of a package; links to the other packages are not followed."""
    return list((ROOT / package).rglob("*.py"))


def imports(file: Path) -> set[str]:
    """Return the packages that a file imports anywhere in it, our own without their prefix."""
    found = set()
    for part in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
        if isinstance(part, ast.ImportFrom) and part.module and not part.level:
            names.append(part.module)
        for name in names:
            top, _, rest = name.partition(".")
            inner = rest.partition(".")[0]
            found.add(inner if top == "stowplan" and inner in MAY_IMPORT else top)
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package: str) -> None:
    forbidden = set(MAY_IMPORT) - MAY_IMPORT[package] - {package}
    wrong = {str(f.relative_to(ROOT)): imports(f) & forbidden for f in files_of(package)}
    assert not {file: found for file, found in wrong.items() if found}


def test_solvers_are_imported_in_the_optimizer_only() -> None:
    files = [f for package in MAY_IMPORT if package != "optimizer" for f in files_of(package)]
    assert not {str(f.relative_to(ROOT)) for f in files if imports(f) & SOLVERS}


def test_graphs_are_for_engines_and_for_the_order_of_moves() -> None:
    files = [f for package in MAY_IMPORT if package not in {"optimizer", "plans"} for f in files_of(package)]
    assert not {str(f.relative_to(ROOT)) for f in files if imports(f) & GRAPHS}


def test_inside_plugins_compat_the_framework_knows_no_plugin() -> None:
    for file in (ROOT / "plugins_compat" / "framework").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert "stowplan.plugins_compat.plugins" not in text, file.name
        assert "from plugins_compat.registry" not in text, file.name


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom stowplan.cli import run\n"
        f"run({arguments!r})\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(done.stderr.strip().splitlines()[-1])
    assert not loaded


def test_files_stay_small() -> None:
    long = {
        str(f.relative_to(ROOT)): lines
        for package in MAY_IMPORT
        for f in files_of(package)
        if (lines := len(f.read_text(encoding="utf-8").splitlines())) > 460
    }
    assert not long


def test_no_room_is_called_utils() -> None:
    names = {f.stem for package in MAY_IMPORT for f in files_of(package)}
    assert not names & {"utils", "util", "helpers", "common", "misc"}


def test_solver_libraries_live_together_in_either_order() -> None:
    """Two of them ship a library of the same name; the versions we allow do not clash."""
    for order in (
        ("ortools.sat.python.cp_model", "highspy", "pulp"),
        ("pulp", "highspy", "ortools.sat.python.cp_model"),
    ):
        code = "; ".join(f"import {name}" for name in order)
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True)
