"""Simple methods and one-line bounds: legal, right, and told apart from the product where they are ahead."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from stowplan.bench.baselines import comparison
from stowplan.bench.baselines.clusters import (
    CLUSTERS,
    LIMITS,
    OBJECTIVES,
    ClusterSpec,
    clusters_of,
    limits_of,
    objectives_of,
)
from stowplan.bench.baselines.comparison import BaselineRow, Question, run_baselines
from stowplan.bench.baselines.marginal_costs import marginal_costs
from stowplan.bench.baselines.one_line_bounds import one_line_bounds
from stowplan.bench.baselines.simple_methods import METHODS, run_method
from stowplan.cli import run as command
from stowplan.documents.baselines import BaselinesDocument
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.errors import InputError
from stowplan.models.options import Options
from stowplan.models.problem import MovePeak, Pair, Placement, Problem, Tier, Unplaced, Violation
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.deadline import Deadline
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.evaluate.cost import cost
from stowplan.settings.problem import make_problem
from tests.support.brute_force import legal_values
from tests.support.cases import cases, count
from tests.support.choices import Seeded
from tests.support.problems import random_problem
from tests.support.random_clusters import Setup, clusters, random_cluster, setups

FOREVER = Deadline(1e6)
SMALL = ClusterSpec(8, 40, 3)


@cases(15, at_least={"improved": 1, "bounds above nothing": 1}, cluster=clusters(), setup=setups(*OBJECTIVES))
def test_no_method_is_better_and_no_bound_higher_than_the_optimum(cluster: Snapshot, setup: Setup) -> None:
    problem = setup.compile(cluster).problem.steered
    evaluator, legal = Evaluator(problem), legal_values(problem)
    start = evaluator.evaluate(problem.start).values
    for name in METHODS:
        placement = run_method(name, evaluator, FOREVER)
        if placement is not None:
            evaluation = evaluator.evaluate(placement)
            assert evaluation.legal
            assert evaluation.values in legal
            assert evaluation.values <= start
            count("improved", evaluation.values < start)
    for t, (bound, _) in one_line_bounds(problem).items():
        assert bound <= min(values[t] for values in legal)
        count("bounds above nothing")


def readable(tier: Tier) -> Tier:
    """Return a tier without the terms that the tables leave out."""
    left_out = Violation | Unplaced | Pair | MovePeak
    return replace(tier, terms=tuple(w for w in tier.terms if not isinstance(w.term, left_out)))


def value(problem: Problem, tier: Tier, y: np.ndarray) -> int:
    placement = Placement.from_table(y)
    return sum(w.weight * cost(w.term, problem, placement, 0) for w in tier.terms)


@pytest.mark.parametrize("seed", range(20))
def test_tables_say_what_the_evaluator_says(seed: int) -> None:
    choices = Seeded(seed)
    cluster = Setup(choices.one(OBJECTIVES)).compile(random_cluster(choices, broken=None)).problem
    for problem in (cluster, random_problem(choices)):
        classes, nodes = (np.arange(size) for size in problem.shape)
        y = problem.start.table(*problem.shape)
        for tier in map(readable, problem.tiers):
            before = value(problem, tier, y)
            tables = {pods: marginal_costs(problem, tier, y, classes, nodes, pods) for pods in (1, -1)}
            for _ in range(10):
                c, n = choices.integer(0, len(classes) - 1), choices.integer(0, len(nodes) - 1)
                for pods, table in tables.items():
                    if y[c, n] + pods >= 0:
                        changed = y.copy()
                        changed[c, n] += pods
                        assert table[c, n] == value(problem, tier, changed) - before


def test_methods_improve_a_cluster_and_keep_the_limit() -> None:
    snapshot = synthetic_snapshot(12, 80, 1)
    for objective, method, tier in (("balance", "descent", "imbalance"), ("pack", "emptying", "nodes in use")):
        problem = make_problem(snapshot, Settings(objective=objective, max_moves=5)).problem
        evaluator = Evaluator(problem)
        placement = run_method(method, evaluator, FOREVER)
        assert placement is not None
        t = [each.name for each in problem.tiers].index(tier)
        assert evaluator.evaluate(placement).values[t] < evaluator.evaluate(problem.start).values[t]
        assert evaluator.evaluate(placement).moves <= 5


def row(**changes: object) -> BaselineRow:
    tiers = (Tier("pending", ()), Tier("nodes", ()))
    question = Question(SMALL, "pack", 5)
    made = BaselineRow(question, tiers, (1, 9), (0, 7), (0, 6), 1.0, {"emptying": ((0, 7), 0.1)}, {1: (6, "capacity")})
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"methods": {"emptying": ((0, 6), 0.1)}}, ["emptying reaches nodes 6, the answer nodes 7"]),
        ({"methods": {"emptying": ((1, 2), 0.1)}}, []),
        ({"floors": {1: (7, "capacity")}}, ["the bound by capacity, nodes 7, is above nodes 6"]),
        ({"bounds": (0, 7), "methods": {"emptying": ((0, 6), 0.1)}}, ["the answer nodes 7", "nodes 7 is wrong"]),
    ],
)
def test_a_row_names_what_is_ahead(changes: dict[str, object], words: Sequence[str]) -> None:
    found = comparison._judged(row(**changes), legal=True).findings
    assert len(found) == len(words)
    for finding, part in zip(found, words, strict=True):
        assert part in finding


def test_an_illegal_answer_is_found() -> None:
    assert comparison._judged(row(), legal=False).findings == ("the answer breaks a rule",)


def test_a_question_is_answered_and_judged() -> None:
    told: list[tuple[int, int]] = []
    options = Options(time_limit=4, deterministic=True)
    found = run_baselines((SMALL,), ("pack",), (2, None), options, progress=lambda i, of, _: told.append((i, of)))
    assert told == [(1, 2), (2, 2)]
    assert found.complete
    assert not found.behind
    for each in found.rows:
        assert each.best is not None
        assert each.best[1] >= each.values


def test_every_form_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bench", "baselines", "--cluster", SMALL.name, "--preset", "pack", "--moves", "1", "-q", "-t", "4"]
    assert command([*asked, "--deterministic", "-o", "json"]) == 0
    document = BaselinesDocument.model_validate_json(capsys.readouterr().out)
    (question,) = document.questions
    assert (question.cluster, question.objective, question.limit) == (SMALL.name, "pack", 1)
    assert not question.findings
    assert command([*asked, "--deterministic", "-o", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(each["value"]) for each in rows] == [tier.value for tier in question.tiers]
    assert command([*asked, "--deterministic"]) == 0
    assert "simple methods or bounds ahead in 0" in capsys.readouterr().out


def test_the_exit_code_says_that_a_simple_method_is_ahead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "one_line_bounds", lambda problem: {len(problem.tiers) - 2: (99, "magic")})
    asked = ["bench", "baselines", "--cluster", SMALL.name, "--preset", "pack", "--moves", "1", "-q", "-t", "2"]
    assert command([*asked, "--deterministic"]) == 1
    assert "the bound by magic, nodes in use 99" in capsys.readouterr().out


def test_words_of_the_command_line() -> None:
    assert clusters_of(()) == CLUSTERS
    assert clusters_of(["7x30", "7x30:seed2:fill0.9"]) == (ClusterSpec(7, 30), ClusterSpec(7, 30, 2, 0.9))
    assert clusters_of([CLUSTERS[2].name]) == (CLUSTERS[2],)
    assert limits_of(()) == LIMITS
    assert limits_of(["3", "any"]) == (3, None)
    assert objectives_of(["pack"]) == ("pack",)


@pytest.mark.parametrize(
    ("read", "word"),
    [(clusters_of, "7"), (clusters_of, "0x5"), (clusters_of, "7x30:fill9"), (limits_of, "-1"), (objectives_of, "best")],
)
def test_what_is_asked_wrongly_is_said(read: object, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read([word])  # type: ignore[operator]


@pytest.mark.parametrize(
    "wrong", [["baselines", "--first", "3"], ["triplets", "--moves", "3"], ["triplets", "--cluster", "7x30"]]
)
def test_options_of_other_suites_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["bench", *wrong]) == 1
    assert "is an option of" in capsys.readouterr().err
