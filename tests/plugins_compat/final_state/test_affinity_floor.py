"""What pods miss of InterPodAffinity wherever they are: no placement has more points, and many have just these."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from stowplan.models.arrays import Floats
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Placement
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.final_state.cost import FinalStateCost, PricedFinalState
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.brute_force import placements
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import HOSTNAME, ZONE, node, pod, snapshot
from tests.support.random_clusters import Setup, clusters, setups

AFFINITY = "InterPodAffinity"
TRIED = 60


def preferred(kind: str, key: str = HOSTNAME, app: str = "a", weight: int = 10) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {
        kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]},
    }


def even(key: str, max_skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "a"}}
    return {
        "topologyKey": key,
        "maxSkew": max_skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


def said(compiled: Compiled) -> Floats:
    """``[c, n]`` points of the plugin that pods miss at least."""
    final = compiled.problem.tiers[-1].final
    assert isinstance(final, PricedFinalState)
    part = next(part for part in final.relaxation(compiled.problem.start) if part.name == AFFINITY)
    found: Floats = part.table / max(1, final.points[AFFINITY]) * final.final_state.unit
    return found


def compiled_of(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> Compiled:
    return compile_problem(snapshot(nodes=nodes, pods=pods), default_profile(K36), PRESETS["kube"])


def replicas(number: int, **spec: Any) -> list[dict[str, Any]]:
    return [pod(f"a{i}", f"n{i % 4}", owner="ReplicaSet/a", labels={"app": "a"}, **spec) for i in range(number)]


NODES = [node(f"n{i}", labels={ZONE: f"z{i // 2}"}) for i in range(4)]


@pytest.mark.parametrize(
    ("number", "spec", "missed"),
    [
        pytest.param(3, {"spread": [even(HOSTNAME)]}, 100, id="each on a node of its own, fewer than nodes"),
        pytest.param(4, {"spread": [even(HOSTNAME)]}, 100, id="each on a node of its own, one for every node"),
        pytest.param(5, {"spread": [even(HOSTNAME)]}, 100, id="one is second, on nodes that are alike again"),
        pytest.param(3, {}, 0, id="nothing keeps replicas from a node that has one"),
        pytest.param(1, {}, 100, id="alone"),
        pytest.param(2, {"spread": [even(ZONE)]}, 100, id="each in a zone of its own, whose nodes are alike"),
        pytest.param(3, {"spread": [even(ZONE)]}, 100 / 3, id="the one that has a zone for itself"),
    ],
)
def test_replicas_that_would_rather_not_meet(number: int, spec: dict[str, Any], missed: float) -> None:
    wish = preferred("podAntiAffinity")
    constraints = {"topologySpreadConstraints": spec["spread"]} if spec else {}
    compiled = compiled_of(NODES, replicas(number, affinity=wish, **constraints))
    table = said(compiled)
    assert table.shape[0] == 1
    assert np.allclose(table[0], missed)
    met = [check(compiled, table, placement) for placement in ways(compiled)]
    assert any(met)


def test_what_other_pods_are_worth_is_not_known() -> None:
    wish = preferred("podAffinity", app="b")
    pods = [*replicas(2, affinity=wish), pod("b", "n0", owner="ReplicaSet/b", labels={"app": "b"})]
    assert not said(compiled_of(NODES, pods)).any()


def test_replicas_over_more_racks_than_are_tried() -> None:
    """Nothing is said, and at once."""
    nodes = [node(f"n{i}", labels={"rack": f"r{i // 2}"}) for i in range(2400)]
    wish = preferred("podAntiAffinity", key="rack")
    compiled = compiled_of(nodes, replicas(3, affinity=wish))
    assert not said(compiled).any()


def test_pods_that_stay_make_nodes_differ() -> None:
    """One node is worth most; on each of the others, that one being full or not, a pod has nothing."""
    wish = preferred("podAffinity", app="d")
    daemon = pod("d", "n2", owner="DaemonSet/d", labels={"app": "d"})
    table = said(compiled_of(NODES, [*replicas(2, affinity=wish), daemon]))
    assert table.tolist() == [[100, 100, 0, 100]]


def ways(compiled: Compiled) -> Iterator[Placement]:
    """Yield all legal placements."""
    evaluator = Evaluator(compiled.problem.steered)
    return (placement for placement in placements(compiled.problem) if evaluator.evaluate(placement).legal)


def check(compiled: Compiled, table: Floats, placement: Placement) -> bool:
    """Compare with the points that are missed; return whether no more are missed than was said."""
    final = compiled.final_state
    assert isinstance(final, FinalStateCost)
    scorer = final.scorer(placement)
    pods, most = placement.table(*compiled.problem.shape), final.all_points[AFFINITY]
    missed = int((most * pods.sum(axis=1)).sum()) - scorer.points[AFFINITY]
    least = float((table * pods).sum())
    assert missed >= least - 1e-9
    return missed <= least + 1e-9


def check_some(compiled: Compiled) -> None:
    """Compare at some of all legal placements."""
    table = said(compiled)
    count("said", bool(table.any()))
    every = list(ways(compiled))
    random.Random(0).shuffle(every)
    for placement in every[:TRIED]:
        met = check(compiled, table, placement)
        count("met", met and bool((table * placement.table(*table.shape)).any()))


def random_workload(choices: Choices) -> Snapshot:
    """Return replicas with wishes and constraints about one another, others that fill nodes, and pods that stay."""
    wishes = [
        preferred(
            choices.one(("podAntiAffinity", "podAntiAffinity", "podAffinity")),
            choices.one((HOSTNAME, ZONE)),
            weight=choices.integer(1, 3),
        )
        for _ in range(choices.integer(1, 2))
    ]
    affinity: dict[str, Any] = {}
    for wish in wishes:
        for kind, terms in wish.items():
            mine = affinity.setdefault(kind, {"preferredDuringSchedulingIgnoredDuringExecution": []})
            mine["preferredDuringSchedulingIgnoredDuringExecution"] += terms[
                "preferredDuringSchedulingIgnoredDuringExecution"
            ]
    if choices.chance(0.2):
        term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": choices.one((HOSTNAME, ZONE))}
        affinity.setdefault("podAntiAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = [term]
    spec: dict[str, Any] = {"affinity": affinity}
    if choices.chance(0.7):
        more = {"minDomains": 3} if choices.chance(0.2) else {}
        spec["topologySpreadConstraints"] = [even(choices.one((HOSTNAME, ZONE)), choices.integer(1, 2), **more)]
    if choices.chance(0.2):
        spec["nodeSelector"] = {"disk": "fast"}
    nodes = [
        node(f"n{i}", cpu="2", labels={ZONE: f"z{i // 2}", **({"disk": "fast"} if i else {})})
        for i in range(choices.integer(2, 4))
    ]
    last = len(nodes) - 1
    pods = [
        pod(f"a{i}", f"n{choices.integer(0, last)}", cpu="200m", owner="ReplicaSet/a", labels={"app": "a"}, **spec)
        for i in range(choices.integer(1, 4))
    ]
    pods.append(pod("b", f"n{choices.integer(0, last)}", cpu="1900m", owner="ReplicaSet/b"))
    if choices.chance(0.3):
        pods.append(pod("d", f"n{choices.integer(0, last)}", owner="DaemonSet/d", labels={"app": "a"}))
    return snapshot(nodes=nodes, pods=pods)


@cases(40, at_least={"met": 60, "said": 12}, cluster=drawn(random_workload), setup=setups("kube"))
def test_workloads_beside_pods_that_fill_nodes(cluster: Snapshot, setup: Setup) -> None:
    check_some(setup.compile(cluster))


@cases(80, at_least={"said": 3}, cluster=clusters(), setup=setups("kube"))
def test_every_kind_of_rule(cluster: Snapshot, setup: Setup) -> None:
    check_some(setup.compile(cluster))
