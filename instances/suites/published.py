"""What has been published about public instances: best values, bounds and proofs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from stowplan.instances.documents import read_file
from stowplan.instances.suites.suite import Reference
from stowplan.models.errors import InputError

FINAL_RUN = "final run"
"""Best value of the 27 teams in the official run of the challenge's final, 300 s on two cores of 2012."""
GREEDY = "greedy"
"""Best value of some 700 greedy heuristics."""

PUBLISHED_PROOFS: Mapping[tuple[int, int, int], tuple[int, int, int, int]] = {
    (100, 4, 1): (94, 8, 0, 0),
    (100, 4, 2): (98, 67, 5, 0),
    (100, 4, 4): (98, 94, 66, 16),
    (100, 8, 1): (0, 0, 0, 0),
    (100, 8, 2): (94, 8, 0, 0),
    (100, 8, 4): (96, 66, 7, 0),
    (105, 4, 1): (72, 1, 0, 0),
    (105, 4, 2): (100, 66, 5, 0),
    (105, 4, 4): (98, 91, 62, 13),
    (105, 8, 1): (70, 0, 0, 0),
    (105, 8, 2): (97, 5, 0, 0),
    (105, 8, 4): (100, 53, 6, 0),
}
"""Percent of clusters proved optimal within 10 s by CP-SAT in Priority-Matters (arXiv 2511.08373, tables of its
repository), for 4, 8, 16 and 32 nodes, by load in percent, pods a node, and priorities. There a second stage also
minimizes moves from a running placement, so the claims are not quite the same."""

OPENB_BOUNDS = {"openb_pod_list_default": 96.58}
"""Percent of GPUs that can be allocated at most when the list is placed once on the nodes with GPUs: a linear program
over patterns of devices, without CPU and memory."""

OPENB_POLICIES: Mapping[str, float] = {
    "Random": 87.47,
    "DotProd": 90.85,
    "GpuClustering": 91.88,
    "GpuPacking": 92.00,
    "BestFit": 93.08,
    "FGD": 95.39,
}
"""Percent of GPUs allocated by published policies (FGD, USENIX ATC 2023; mean of ten seeds) when the default list,
topped up to 130 % of the GPUs, arrives one by one. Another list than the one placed once: not to be compared digit by
digit."""


def published_proofs(nodes: int, pods: int, priorities: int, load: int) -> int | None:
    """Return the published percentage of clusters of a cell that were proved optimal, if there is one."""
    row = PUBLISHED_PROOFS.get((load, pods // nodes, priorities))
    sizes = (4, 8, 16, 32)
    return row[sizes.index(nodes)] if row is not None and nodes in sizes and pods % nodes == 0 else None


def reassignment_references(folders: Iterable[Path]) -> dict[str, Reference]:
    """Read what is known of the challenge's instances from ``results.csv``, in the first folder that has one."""
    table = _first(folders, "results.csv")
    found = {}
    for line, row in _rows(table) if table else ():
        best, bound = (_number(table, line, row, column) for column in ("reference_best", "lower_bound"))
        others = {"initial": _number(table, line, row, "initial"), FINAL_RUN: _number(table, line, row, "final_best")}
        found[plain(row["instance"])] = Reference(
            best,
            row.get("reference_source") or "",
            bound,
            row.get("lb_source") or "",
            {name: value for name, value in others.items() if value is not None},
        )
    return found


def final_run(folders: Iterable[Path]) -> dict[str, dict[str, int]]:
    """Read the final run of the challenge from ``challenge_final_B.csv``: for each team the cost of each instance."""
    table = _first(folders, "challenge_final_B.csv")
    teams: dict[str, dict[str, int]] = {}
    for line, row in _rows(table) if table else ():
        costs = {plain(name.replace("B", "b_")): _number(table, line, row, name) for name in row if name != "team"}
        teams[row["team"]] = {name: cost for name, cost in costs.items() if cost is not None}
    teams.pop("INITIAL", None)
    return teams


def packing_references(folders: Iterable[Path]) -> dict[str, dict[str, Reference]]:
    """Read what is known of packings from every ``<set>_summary_known.csv``: set, name, reference."""
    sets: dict[str, dict[str, Reference]] = {}
    for table in (table for folder in folders for table in sorted(folder.glob("*_summary_known.csv"))):
        found = sets.setdefault(table.name.partition("_")[0], {})
        for line, row in _rows(table):
            optimum = _number(table, line, row, "OPT")
            bound, greedy = (_number(table, line, row, column) for column in ("LB", "best_overall"))
            known = optimum is not None and optimum >= 0
            found[row["instance_name"]] = Reference(
                optimum if known else greedy,
                "optimum" if known else GREEDY,
                optimum if known else bound,
                "optimum" if known else "lower bound",
                {} if greedy is None else {GREEDY: greedy},
            )
    return sets


def plain(name: str) -> str:
    """Return the name of an instance without zeros in front of numbers: ``b_01`` is ``b_1``."""
    return "_".join(str(int(part)) if part.isdigit() else part for part in name.split("_"))


def _first(folders: Iterable[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def _rows(table: Path) -> list[tuple[int, dict[str, str]]]:
    text = read_file(table).decode("utf-8", "replace")
    tab = "\t" in text.partition("\n")[0]
    return list(enumerate(csv.DictReader(io.StringIO(text), delimiter="\t" if tab else ","), 2))


def _number(table: Path | None, line: int, row: Mapping[str, str], column: str) -> int | None:
    text = row.get(column)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{column} is {text!r}; must be an integer", str(table), field=f"line {line}") from None
