"""A placement is worth the same whichever pods may move, today's and any other."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

import stowplan
from stowplan.documents.comparison import comparison_document
from stowplan.documents.solution import solution_document
from stowplan.models.assignment import Assignment
from stowplan.models.settings import EXECUTORS, Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.planning.plan import Planned
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.settings.problem import make_ideal, make_problem
from tests.support.cases import cases, count
from tests.support.clusters import ZONE, Manifest, node, pod, snapshot
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


# -- to the last digit ------------------------------------------------------------------------------------------------


OWNERS = ("ReplicaSet/web", "ReplicaSet/cache", "StatefulSet/db", "Job/once", "InstanceManager/im")


def odd_pods(rng: random.Random, number: int, nodes: Sequence[str]) -> list[Manifest]:
    """Return pods whose requests have no common measure, so that they make many different loads."""
    found = []
    for i in range(number):
        kind = rng.choice(
            ("ReplicaSet/web", "StatefulSet/db", "Job/once", "InstanceManager/im", "ReplicaSet/cache", None)
        )
        asked = {"cpu": f"{rng.choice((10, 25, 107, 211, 350))}m", "memory": f"{rng.randrange(20, 900)}Mi"}
        data = SCRATCH if rng.random() < 0.25 else {}
        labels = {"app": kind.partition("/")[2]} if kind else {}
        found.append(pod(f"p{i}", rng.choice(nodes), **asked, owner=kind, labels=labels, **data))
    return found


def tainted() -> Snapshot:
    """Three masters that take few pods, three workers of two sizes, a static pod on each, host ports."""
    rng = random.Random(1)
    masters, workers = ("m1", "m2", "m3"), ("w1", "w2", "w3")
    noschedule = [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]
    nodes = [node(n, cpu="3500m", memory="14Gi", taints=noschedule, labels={ZONE: n}) for n in masters]
    nodes += [node(n, cpu=f"{3000 + 500 * i}m", memory="15111Mi", labels={ZONE: n}) for i, n in enumerate(workers)]
    pods = odd_pods(rng, 25, workers) + [
        pod(f"etcd-{n}", n, cpu="300m", memory="600Mi", owner="Node/n") for n in (*masters, *workers)
    ]
    pods += [
        pod(f"router-{n}", n, cpu="100m", owner="ReplicaSet/router", ports=[{"hostPort": 80}]) for n in workers[:2]
    ]
    return snapshot(nodes=nodes, pods=pods)


def stored() -> Snapshot:
    """Three nodes of one size; pods of a storage system, and of Jobs."""
    rng = random.Random(2)
    nodes = [node(f"n{i}", cpu="7910m", memory="15733Mi", labels={ZONE: f"z{i}"}) for i in range(3)]
    return snapshot(nodes=nodes, pods=odd_pods(rng, 40, [n["metadata"]["name"] for n in nodes]))


def overcommitted() -> Snapshot:
    """Twelve CPUs are requested on a node of two."""
    rng = random.Random(3)
    nodes = [node(f"n{i}", cpu="2", memory="7500Mi", labels={ZONE: f"z{i}"}) for i in range(3)]
    heavy = [pod(f"heavy-{i}", "n0", cpu="2500m", memory="90Mi", owner="ReplicaSet/heavy") for i in range(5)]
    return snapshot(nodes=nodes, pods=heavy + odd_pods(rng, 12, ["n1", "n2"]))


COUSINS = {cluster.__name__: cluster for cluster in (tainted, stored, overcommitted)}
"""Small clusters like the real ones that answers differed on."""


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", COUSINS)
def test_a_placement_is_worth_the_same_to_the_last_digit(name: str, objective: str) -> None:
    """Whichever executor evicts, whatever is frozen: today's placement, and others that all of them can reach."""
    cluster = COUSINS[name]()
    chosen = [Settings(objective=objective, executor=executor) for executor in (None, *EXECUTORS)]
    chosen += [Settings(objective=objective, freeze=("default",)), Settings(objective=objective, freeze=("app=web",))]
    problems = [make_problem(cluster, settings) for settings in chosen]
    problems.append(make_ideal(cluster, chosen[0]))
    assert len({len(compiled.pods) for compiled in problems}) > 2
    assert len({tuple(worth(compiled, cluster.assignment).items()) for compiled in problems}) == 1
    rng = random.Random(4)
    for compiled in problems:
        wider = [other for other in problems if {p.key for p in compiled.pods} <= {p.key for p in other.pods}]
        for _ in range(5):
            other = elsewhere(compiled, [rng.randrange(len(cluster.nodes)) for _ in compiled.pods])
            assert len({tuple(worth(one, other).items()) for one in wider}) == 1


@pytest.mark.parametrize("name", COUSINS)
def test_documents_say_the_same_of_today(name: str) -> None:
    """The column of ``compare``, and what ``solve`` and ``plan`` have as ``before`` of each tier."""
    cluster, said = COUSINS[name](), set()
    for executor in EXECUTORS:
        settings = Settings(executor=executor)
        compared = comparison_document(stowplan.compare(cluster, settings, SOON), settings)
        solved = solution_document(stowplan.solve(cluster, settings, SOON), settings)
        said.add(tuple(compared.placements["today"]["tiers"].items()))
        said |= {tuple((tier.name, tier.before) for tier in found.tiers) for found in (solved, compared.solution)}
        planned = stowplan.plan(cluster, settings, SOON).plan
        said.add(tuple((tier.name, tier.before) for tier in planned.tiers))
    assert len(said) == 1


@pytest.mark.parametrize("executor", [None, *EXECUTORS])
@pytest.mark.parametrize("command", ["compare", "solve", "frontier", "plan", "drain", "fit"])
def test_today_is_worth_the_same_in_every_command(command: str, executor: Any) -> None:
    settings = Settings(objective="spread", executor=executor)
    assert today(command, settings) == pytest.approx(TODAY)
    assert today(command, settings.model_copy(update={"freeze": ("default",)})) == pytest.approx(TODAY)
