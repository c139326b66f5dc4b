"""Dumps of real clusters, if at hand (``STOWPLAN_DATA``): every pod accounted for, every answer admitted."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from stowplan.answers.compare import BEST, TODAY, compare
from stowplan.answers.verify_solution import verify
from stowplan.documents.comparison import comparison_document
from stowplan.instances.load import load
from stowplan.models.result import Status
from stowplan.models.settings import EXECUTORS, Settings
from stowplan.models.snapshot import Participation
from stowplan.models.solution import SolutionDocument
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.portfolio import Options
from stowplan.report.text import show_comparison
from stowplan.settings.problem import make_problem, make_profile

DUMPS: dict[str, dict[str, int]] = {"aws-overallocated": {"1.24": 7, "1.36": 4}, "kurl-longhorn": {}, "ocp-aws": {}}
"""Places, by release, where a rule is exceeded that no placement can mend. Release 1.24 also refuses pods without
requests on an overcommitted node."""


@pytest.mark.parametrize("name", DUMPS)
@pytest.mark.parametrize("release", ["1.24", "1.36"])
def test_a_real_cluster_is_solved_and_verified(name: str, release: str, shared_data: Path) -> None:
    snapshot = load([str(shared_data / "snapshots" / f"{name}.json.gz")])
    settings = Settings(release=release)
    compiled = make_problem(snapshot, settings)
    counts = {one: compiled.participants.count(one) for one in Participation}
    assert sum(counts.values()) == len(snapshot.pods)
    comparison = compare(compiled, Options(time_limit=15))
    today, best = comparison.column(TODAY), comparison.column(BEST)
    assert today is not None
    assert best is not None
    assert comparison.solution.status is Status.OPTIMAL
    assert best.scheduled + best.unscheduled + counts[Participation.FINISHED] == len(snapshot.pods)
    assert best.values <= today.values
    assert len(best.violations) == DUMPS[name].get(release, 0)
    assert {r.pod.key for r in best.refused} <= {r.pod.key for r in today.refused}
    document = json.loads(comparison_document(comparison, settings).model_dump_json(by_alias=True))
    read = SolutionDocument.model_validate(document["solution"])
    assert verify(snapshot, read, make_profile(settings)).holds


@pytest.mark.parametrize(
    ("name", "headline", "moves"),
    [
        ("ocp-aws", "Move 17 pods: imbalance 3,613 → 3,047; proven optimal.", 17),
        ("kurl-longhorn", "Move 2 pods: imbalance 85.19 → 29.41; proven optimal.", 2),
        ("aws-overallocated", "No improvement possible (proven): 7 violated constraints remain", 0),
    ],
)
def test_answers_are_those_of_the_page_on_safety(name: str, headline: str, moves: int, shared_data: Path) -> None:
    snapshot = load([str(shared_data / "snapshots" / f"{name}.json.gz")])
    comparison = compare(make_problem(snapshot, Settings()), Options(time_limit=15))
    file = io.StringIO()
    show_comparison(Console(file=file, width=200, soft_wrap=True), comparison)
    assert headline in file.getvalue()
    assert len(comparison.solution.moves) == moves


@pytest.mark.parametrize("name", DUMPS)
def test_today_is_worth_the_same_for_every_executor(name: str, shared_data: Path) -> None:
    snapshot = load([str(shared_data / "snapshots" / f"{name}.json.gz")])
    values = set()
    for executor in (None, *EXECUTORS):
        problem = make_problem(snapshot, Settings(executor=executor)).problem
        found = Evaluator(problem).evaluate(problem.start).values
        values.add(tuple(tier.shown(value) for tier, value in zip(problem.tiers, found, strict=True)))
    assert len(values) == 1
