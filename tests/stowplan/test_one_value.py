"""A placement is worth the same whichever pods may move, today's and any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

import stowplan
from stowplan.models.assignment import Assignment
from stowplan.models.settings import EXECUTORS, Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.planning.plan import Planned
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import make_ideal, make_problem
from tests.support.cases import cases, count
from tests.support.clusters import ZONE, node, pod, snapshot
from tests.support.random_clusters import clusters

OBJECTIVES = ("balance", "spread", "pack")


def worth(compiled: Compiled, assignment: Assignment) -> dict[str, float]:
    """Return the value of every tier that is not 0, as reports show it."""
    values = Evaluator(compiled.problem).evaluate(compiled.placement(assignment)).values
    return {name: value for name, value in by_name(compiled, values).items() if value}


def elsewhere(compiled: Compiled, where: Sequence[int]) -> Assignment:
    """Put pods that may move on the nodes of those numbers, whatever the rules say; those without a number stay."""
    nodes = compiled.snapshot.nodes
    moved = [(pod.key, nodes[n].name) for pod, n in zip(compiled.pods, where, strict=False) if n < len(nodes)]
    return compiled.snapshot.assignment.moved(moved)


@cases(
    30,
    at_least={"pods that stay violate rules": 5, "pods that may move": 10},
    cluster=clusters(nodes=3, pods=7, broken=True),
    frozen=st.sets(st.sampled_from("abc"), min_size=1, max_size=2),
    name=st.sampled_from(OBJECTIVES),
    where=st.lists(st.integers(0, 3), min_size=7, max_size=7),
)
def test_any_placement_is_worth_the_same(cluster: Snapshot, frozen: set[str], name: str, where: list[int]) -> None:
    some = make_problem(cluster, Settings(objective=name, freeze=tuple(f"app={app}" for app in frozen)))
    everything = make_ideal(cluster, Settings(objective=name))
    assert worth(some, cluster.assignment) == worth(everything, cluster.assignment)
    other = elsewhere(some, where)
    assert worth(some, other) == worth(everything, other)
    count("pods that stay violate rules", any(tier.constant for tier in some.problem.tiers))
    count("pods that may move", other != cluster.assignment)


SCRATCH: dict[str, Any] = {"volumes": [{"name": "cache", "emptyDir": {}}]}
SOON = stowplan.Options(time_limit=2, deterministic=True)
TODAY = {"constraint violations": 3.1, "spread": 9.0, "imbalance": 8675.0}
"""One node is overcommitted by 10 % of its CPU, and three pods are where their selector does not match.

Pairs of pods of one workload: 3 + 1 + 1 in zones, 3 + 1 on nodes. The means with the pending pod are 47.5 % of CPU and
37.5 % of memory: 62.5² + 2·32.5² + 37.5² + 2·25².
"""


def crowded() -> Snapshot:
    """What violates rules is kept by some executor, and one workload is kept as a whole."""
    on_ssd: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}, "owner": "ReplicaSet/db", **SCRATCH}
    return snapshot(
        nodes=[node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}), node("n3", labels={ZONE: "b"})],
        pods=[
            *(pod(f"db-{i}", "n1", cpu="1", memory="1Gi", **on_ssd) for i in range(3)),
            *(pod(f"web-{i}", at, cpu="600m", memory="1Gi", owner="ReplicaSet/web") for i, at in enumerate(WEB)),
            pod("bare", "n1", cpu="200m"),
            pod("new", None, cpu="100m", memory="1Gi"),
        ],
    )


WEB = ("n1", "n1", "n2", "n3")


def today(command: str, settings: Settings) -> Mapping[str, float]:
    """Return what a command says of today's placement, as far as every command says it."""
    cluster = crowded()
    match command:
        case "compare":
            compared = stowplan.compare(cluster, settings, SOON)
            found = by_name(compared.compiled, compared.columns[0].measures.values)
        case "solve":
            solved = stowplan.solve(cluster, settings, SOON)
            found = by_name(solved.compiled, solved.before.values)
        case "frontier":
            drawn = stowplan.frontier(cluster, settings, SOON, limits=[1])
            found = by_name(drawn.compiled, drawn.before)
        case "plan":
            found = before(stowplan.plan(cluster, settings, SOON))
        case "drain":
            found = before(stowplan.drain(cluster, "n3", settings, SOON).planned)
        case _:
            found = before(stowplan.fit(cluster, "default/new", settings, SOON).planned)
    return {name: found[name] for name in TODAY}


def by_name(compiled: Compiled, values: Sequence[int] | None) -> dict[str, float]:
    assert values is not None
    return {tier.name: tier.shown(value) for tier, value in zip(compiled.problem.tiers, values, strict=True)}


def before(planned: Planned) -> dict[str, float]:
    return {tier.name: tier.before for tier in planned.plan.tiers}


@pytest.mark.parametrize("executor", [None, *EXECUTORS])
@pytest.mark.parametrize("command", ["compare", "solve", "frontier", "plan", "drain", "fit"])
def test_today_is_worth_the_same_in_every_command(command: str, executor: Any) -> None:
    settings = Settings(objective="spread", executor=executor)
    assert today(command, settings) == pytest.approx(TODAY)
    assert today(command, settings.model_copy(update={"freeze": ("default",)})) == pytest.approx(TODAY)
