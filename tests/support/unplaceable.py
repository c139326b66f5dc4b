"""Random clusters with a pending pod that no node admits, and checks of what is said about it.

``python -m tests.support.unplaceable 200`` checks so many, and prints what was proposed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from stowplan.explaining.pod import PodExplanation, explain_pod
from stowplan.models.kubernetes import Pod
from stowplan.models.problem import Placement, Problem
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.problem import make_problem, make_profile
from tests.support.choices import Choices, Seeded
from tests.support.clusters import HOSTNAME, ZONE, Manifest, labels, node, pod, snapshot

KEY = "default/new"
APPS = ("web", "db")
DEDICATED = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def unplaceable(choices: Choices) -> Snapshot | None:
    """Return a cluster whose pending pod no node admits, or ``None`` if chance made one that some node admits."""
    names = [f"n{i}" for i in range(choices.integer(2, 6))]
    nodes = [_node(choices, name) for name in names]
    pods = [_bound(choices, f"p{i}", choices.one(names)) for i in range(choices.integer(2, 14))]
    cluster = snapshot(nodes=nodes, pods=[*pods, _new(choices)])
    profile = make_profile(Settings(), cluster)
    framework = populated(cluster, profile, cluster.assignment)
    diagnosis = framework.run_filters(framework.cycle(cluster.pods[-1]))
    admitted = diagnosis.rejected is None and len(diagnosis.feasible)
    return None if admitted else cluster


def _node(choices: Choices, name: str) -> Manifest:
    own = {ZONE: choices.one(["a", "b", "c"])} if choices.chance(0.9) else {}
    own |= {"disk": "ssd"} if choices.chance(0.4) else {}
    own |= {"karpenter.sh/nodepool": choices.one(["small", "large"])} if choices.chance(0.5) else {}
    more: dict[str, Any] = {"unschedulable": True} if choices.chance(0.15) else {}
    more |= {"taints": [DEDICATED]} if choices.chance(0.25) else {}
    return node(name, cpu=choices.one(["2", "4"]), memory=choices.one(["4Gi", "8Gi"]), labels=own, **more)


def _bound(choices: Choices, name: str, at: str) -> Manifest:
    app = choices.one(APPS)
    more: dict[str, Any] = {"affinity": _apart(app, choices)} if choices.chance(0.25) else {}
    more |= {"ports": [{"containerPort": 80, "hostPort": 80}]} if choices.chance(0.2) else {}
    owner = choices.one([f"ReplicaSet/{app}", "DaemonSet/agent"])
    requested = choices.one(["200m", "500m", "1"])
    return pod(name, at, cpu=requested, labels={"app": app}, owner=owner, priority=choices.one([0, 0, 10, 100]), **more)


def _new(choices: Choices) -> Manifest:
    app = choices.one(APPS)
    spec: dict[str, Any] = {"affinity": {}, "priority": choices.one([0, 10, 50])}
    if choices.chance(0.35):
        spec["nodeSelector"] = {"disk": choices.one(["ssd", "ssd", "tape"])}
    if choices.chance(0.4):
        spec["affinity"] |= _apart(choices.one(APPS), choices)
    if choices.chance(0.25):
        spec["affinity"] |= {"podAffinity": _required(choices.one(APPS), choices.one([ZONE, HOSTNAME]))}
    if choices.chance(0.4):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": choices.one([ZONE, HOSTNAME]),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": labels(app=app),
            }
        ]
    if choices.chance(0.3):
        spec["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if choices.chance(0.2):
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    size = {"cpu": choices.one(["500m", "1500m", "3", "16"]), "memory": choices.one(["1Gi", "3Gi"])}
    return pod(KEY.partition("/")[2], labels={"app": app}, owner="ReplicaSet/new", **size, **spec)


def _apart(app: str, choices: Choices) -> Manifest:
    return {"podAntiAffinity": _required(app, choices.one([HOSTNAME, ZONE]))}


def _required(app: str, key: str) -> Manifest:
    terms = [{"topologyKey": key, "labelSelector": labels(app=app)}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def check(cluster: Snapshot) -> PodExplanation:
    """Explain the pod, and check conflict and proposals by other means than those that found them.

    The conflict by the evaluator: with its rules alone no node is legal for the pod, and without any one of them some
    node is. Each proposal by kube-scheduler, played through on the changed cluster: it binds the pod.
    """
    compiled = make_problem(cluster, Settings())
    told = explain_pod(compiled, KEY, None)
    assert told.message
    assert told.conflict is not None
    cls = class_of(compiled)
    if not told.conflict.by_filters:
        indices = [rule.index for rule in told.conflict.rules]
        rules = [compiled.problem.rules[index] for index in indices if index is not None]
        assert len(rules) == len(indices)
        assert not has_legal_node(replace(compiled.problem, rules=tuple(rules)), cls)
        for rule in rules:
            rest = tuple(other for other in rules if other is not rule)
            assert has_legal_node(replace(compiled.problem, rules=rest), cls), rule.origin
    for relaxation in told.relaxations:
        (one,) = (one for one in relaxation.snapshot.pods if one.key == KEY)
        assert scheduled(relaxation.snapshot, one), relaxation.changes
    return told


def class_of(compiled: Compiled) -> int:
    """Return the class of the pod."""
    return next(int(c) for one, c in zip(compiled.pods, compiled.class_of, strict=True) if one.key == KEY)


def has_legal_node(problem: Problem, cls: int) -> bool:
    """Whether one more pod of a class may be on some node while all others stay."""
    evaluator = Evaluator(problem)
    return any(
        evaluator.evaluate(Placement.of([*problem.start.entries(), (cls, n, 1)])).legal
        for n in range(len(problem.nodes))
    )


def scheduled(cluster: Snapshot, one: Pod) -> bool:
    """Whether kube-scheduler binds a pod, without preemption."""
    profile = make_profile(Settings(), cluster)
    return one.key in simulate(cluster, profile, [one], cluster.assignment, preempts=False).assignment


def cases_of(seeds: Iterator[int]) -> Iterator[Snapshot]:
    """Yield clusters with an unplaceable pod."""
    for seed in seeds:
        if (cluster := unplaceable(Seeded(seed))) is not None:
            yield cluster


def main(number: int) -> None:
    """Check so many clusters."""
    rules: Counter[int] = Counter()
    changes: Counter[str] = Counter()
    helped = by_filters = 0
    for _, cluster in zip(range(number), cases_of(count()), strict=False):
        told = check(cluster)
        assert told.conflict is not None
        rules[len(told.conflict.rules)] += 1
        by_filters += told.conflict.by_filters
        helped += bool(told.relaxations)
        changes[f"{max((len(r.changes) for r in told.relaxations), default=0)} changes"] += 1
    sizes = ", ".join(f"{size}: {times}" for size, times in sorted(rules.items()))
    print(f"{number} pods; conflicts by number of rules: {sizes}; {by_filters} of filters as a whole")
    print(f"{helped} pods with proposals, all of which bind the pod; {dict(changes)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
