"""The house keeps its shape: who may import whom, and what must stay cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
FLOORS = {
    "models": (
        "arrays hosts html words command_line errors whole_file messages network input_bounds yaml_input interning "
        "quantity bin_packing document manifest moments metrics stop validation limits objective assignment problem "
        "kubernetes platform result arguments options snapshot node_health move_limits settings trace plan solution"
    ),
    "instances": (
        "documents items defaulting own_pins metrics openb platform load_aware_traces traces manifests completeness "
        "pruning manifest_list anonymize load suites synthetic demo"
    ),
    "plugins_compat": (
        "curves isolation release feature_gates resize requests extenders framework matching plugins registry "
        "platform_scores policy profiles screening admission simulate scoring final_state compiler coverage parity"
    ),
    "optimizer": (
        "compiled deadline threads memory highs processes distributed evaluate domains kinds subproblem cpsat backend "
        "annealing annealing_elsewhere bounds column_generation lns checkpoint run constructive node_changes "
        "rearrangement reconfiguration closing transfers parts regions final_state parameters workplace proofs "
        "portfolio move_limits warm"
    ),
    "plans": (
        "preconditions cordons disruption budgets movability move creations replacements tokens dry_run sequencing "
        "any_order document consistency drift reasons replay arrangement replayed unassisted"
    ),
    "stowplan": (
        "build_info settings scenarios cluster answers planning explaining api hypothetical applying bench emitters "
        "serving bundles documents report html_report run_metrics cli __main__"
    ),
    "instances/suites": "numbers suite published packing triplets roadef openb priority_matters opening",
    "optimizer/annealing": (
        "kernel parameters budgets violations choices relation_builder schedule sampling state_builder anneal"
    ),
    "optimizer/rearrangement": "kernel parameters queue model_builder division walking engine",
    "optimizer/reconfiguration": "kernel parameters chain way",
    "optimizer/final_state": (
        "parameters cooling kernel pod_costs tangents position search walking descent enumeration safe_program pricing "
        "ascent master bound split_bound start_bound branching_program branch_and_bound bounding stages"
    ),
    "optimizer/column_generation": (
        "parameters dual_feasible device_shares budget structure pricing master primal core_items engine"
    ),
    "stowplan/bench": "row answer totals jobs bench baselines",
    "stowplan/cli": (
        "exit_codes progress groups options log_format bundling cluster_options session live commands app completion "
        "entry"
    ),
}
"""Rooms of each package that has any, from the ground up: a room imports from those before it alone."""

CLOSED_BY_TYPES: set[tuple[str, str]] = set()
"""Imports for the type checker alone that close a circle: who imports, and what."""

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


@cache
def modules() -> dict[str, Path]:
    """Return every file of ours by the name under which it is imported."""
    names = {}
    for package in MAY_IMPORT:
        for file in files_of(package):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            names[name if package == "stowplan" else f"stowplan.{name}"] = file
    return names


@cache
def edges() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the modules of ours that each module imports anywhere in it: at run time, and for types alone."""
    found: tuple[dict[str, set[str]], dict[str, set[str]]] = {}, {}
    for name, file in modules().items():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        guarded = {id(part) for block in ast.walk(tree) if _is_for_types(block) for part in ast.walk(block)}
        for only_types in (False, True):
            imported = {
                module
                for part in ast.walk(tree)
                if isinstance(part, ast.Import | ast.ImportFrom) and (id(part) in guarded) is only_types
                for module in _named(part)
            }
            found[only_types][name] = imported - {name}
    return found


def _is_for_types(part: ast.AST) -> bool:
    return isinstance(part, ast.If) and isinstance(part.test, ast.Name) and part.test.id == "TYPE_CHECKING"


def _named(part: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the modules of ours that a statement imports; a name may be a module of the package it is imported from."""
    if isinstance(part, ast.Import):
        yield from (alias.name for alias in part.names if alias.name in modules())
    else:
        for alias in part.names:
            inner = f"{part.module}.{alias.name}"
            found = inner if inner in modules() else str(part.module)
            yield from (found,) if found in modules() else ()


def room(package: str, module: str) -> str | None:
    """Return the room of a package that a module stands in, if it is of the package and not its ``__init__``."""
    dotted = package.replace("/", ".")
    inside = module.removeprefix(f"{dotted}." if dotted.startswith("stowplan") else f"stowplan.{dotted}.")
    found = inside.partition(".")[0]
    return found if inside != module and (package != "stowplan" or found not in MAY_IMPORT) else None


def test_every_package_with_rooms_of_its_own_has_floors() -> None:
    packages = (file.parent for package in MAY_IMPORT for file in files_of(package) if file.name == "__init__.py")
    inner = {folder.parent for folder in packages if folder.parent.parent != ROOT and folder.parent != ROOT}
    # Plugins are one file or folder each, and know of each other only what they derive from.
    assert {str(folder.relative_to(ROOT)) for folder in inner} - {"plugins_compat/plugins"} == {
        package for package in FLOORS if "/" in package
    }


@pytest.mark.parametrize("package", FLOORS)
def test_every_room_has_a_floor(package: str) -> None:
    rooms = {found for module in modules() if (found := room(package, module))}
    assert rooms == set(FLOORS[package].split())


@pytest.mark.parametrize("package", FLOORS)
def test_inside_a_package_no_import_runs_upwards(package: str) -> None:
    floor = {found: i for i, found in enumerate(FLOORS[package].split())}
    at_run_time, for_types = edges()
    upwards = [
        f"{module} imports {imported}"
        for module in modules()
        for imported in sorted(at_run_time[module] | for_types[module])
        if (here := room(package, module)) and (there := room(package, imported)) and floor[there] > floor[here]
    ]
    assert not upwards


def test_modules_do_not_import_each_other_in_circles() -> None:
    at_run_time, _ = edges()
    try:
        TopologicalSorter(at_run_time).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_circles_that_types_close_are_known() -> None:
    at_run_time, for_types = edges()

    def reached(start: str) -> set[str]:
        seen, left = {start}, [start]
        while left:
            for following in at_run_time[left.pop()] - seen:
                seen.add(following)
                left.append(following)
        return seen

    closed = {(name, other) for name, others in for_types.items() for other in others if name in reached(other)}
    assert closed == CLOSED_BY_TYPES


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
        assert "stowplan.plugins_compat.registry" not in text, file.name


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
