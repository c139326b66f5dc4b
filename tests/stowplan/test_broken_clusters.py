"""A running cluster that violates rules is mended where that is possible, never made worse, and the report says so."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable

import pytest
from rich.console import Console

from stowplan.answers.compare import BEST, TODAY, Comparison, compare
from stowplan.models.result import TRIVIAL
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.report.text import show_comparison
from stowplan.report.words import known
from stowplan.settings.problem import make_problem
from tests.support.clusters import HOSTNAME, ZONE, labels, node, pod, snapshot

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": labels(app="db"), "topologyKey": HOSTNAME}]
    }
}
EVEN = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": labels(app="web"),
}


def overcommitted(spare_nodes: int) -> Snapshot:
    nodes = [node("n0", cpu="2")] + [node(f"n{i + 1}", cpu="2") for i in range(spare_nodes)]
    return snapshot(nodes=nodes, pods=[pod(f"p{i}", "n0", cpu="1") for i in range(4)])


def anti_affine(nodes: int) -> Snapshot:
    pods = [pod(f"db-{i}", "n0", cpu="100m", labels={"app": "db"}, affinity=APART) for i in range(3)]
    return snapshot(nodes=[node(f"n{i}") for i in range(nodes)], pods=pods)


def skewed(zones: int, *, cordoned: bool = False) -> Snapshot:
    nodes = [node("n0", labels={ZONE: "z0"})]
    nodes += [node(f"n{i}", labels={ZONE: f"z{i}"}, unschedulable=cordoned) for i in range(1, zones)]
    web = [pod(f"w{i}", "n0", cpu="100m", labels={"app": "web"}, topologySpreadConstraints=[EVEN]) for i in range(4)]
    return snapshot(nodes=nodes, pods=web)


def solved(cluster: Snapshot) -> Comparison:
    settings = Settings(objective="repair", executor=None)
    return compare(make_problem(cluster, settings), Options(time_limit=10, deterministic=True))


def text(comparison: Comparison) -> str:
    out = io.StringIO()
    show_comparison(Console(file=out, width=200, soft_wrap=True), comparison)
    return out.getvalue()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: overcommitted(1), "NodeResourcesFit (cpu)"),
        (lambda: anti_affine(3), "InterPodAffinity"),
        (lambda: skewed(2), "PodTopologySpread"),
    ],
    ids=["overcommitted", "anti-affine", "skewed"],
)
def test_what_can_be_mended_is_mended(make: Callable[[], Snapshot], rule: str) -> None:
    cluster = make()
    comparison = solved(cluster)
    today, best = comparison.column(TODAY), comparison.column(BEST)
    assert today is not None
    assert best is not None
    assert any(str(violation.origin).startswith(rule) for violation in today.violations)
    assert today.refused
    assert not best.violations
    assert not best.refused
    assert "0 remaining, none worse" in text(comparison)
    where = comparison.solution.assignment
    assert rejections(populated(cluster, comparison.compiled.profile, where), where) == []


def test_an_overcommitted_node_without_room_elsewhere_is_left_and_named() -> None:
    comparison = solved(overcommitted(0))
    assert not comparison.solution.moves
    assert ": 1 violated constraint remains." in text(comparison)
    assert "NodeResourcesFit (cpu) on n0: 2 CPU over the limit, as today" in text(comparison)


def test_too_few_nodes_for_anti_affine_pods_mends_a_part() -> None:
    """Three pods that want to be alone, on two nodes: one may leave, the other two stay together as before."""
    comparison = solved(anti_affine(2))
    assert sorted(Counter(comparison.solution.assignment.values()).values()) == [1, 2]
    assert "none worse" in text(comparison)
    assert comparison.solution.outcome.tiers[0].value > 0
    assert comparison.solution.outcome.tiers[0].bound == comparison.solution.outcome.tiers[0].value


def test_a_skew_that_no_free_node_can_mend_stays_as_it_is() -> None:
    comparison = solved(skewed(2, cordoned=True))
    assert not comparison.solution.moves
    assert "as today" in text(comparison)


def test_a_broken_place_takes_nobody_new() -> None:
    """The overcommitted node is the only one that a waiting pod may use: it waits on."""
    cluster = snapshot(
        nodes=[node("n0", cpu="2", labels={"disk": "ssd"})],
        pods=[*[pod(f"p{i}", "n0", cpu="1") for i in range(3)], pod("new", cpu="0", nodeSelector={"disk": "ssd"})],
    )
    comparison = solved(cluster)
    before = {pod.key for pod in cluster.pods if pod.node_name}
    assert before <= set(comparison.solution.assignment)
    refused = {r.pod.key for r in comparison.solution.refused}
    assert refused <= before


def test_violations_of_pods_that_cannot_be_moved_are_in_the_headline() -> None:
    """Bare pods on a node that is too small: nothing can be done, which is not the same as nothing to do."""
    compiled = make_problem(overcommitted(1), Settings(objective="repair"))
    comparison = compare(compiled, Options(time_limit=10, deterministic=True))
    assert "No improvement possible (proven): 4 pods that cannot be moved violate a filter." in text(comparison)


def test_what_is_of_pods_that_stay_is_not_said_to_be_bounded_by_0() -> None:
    assert known(6, 6, TRIVIAL) == "optimal (pods that stay have 6)"
    assert known(8, 6, TRIVIAL) == "at least 6 (pods that stay have 6)"
    assert known(0, 0, TRIVIAL) == "optimal (trivial bound 0)"
