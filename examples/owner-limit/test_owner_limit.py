"""The rule and the filter are two readings of one predicate: they admit the same final states."""

import itertools

from pydantic import TypeAdapter

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36

NODES = ("n0", "n1")


def node(name):
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}}


def pod(name, owner, at=None):
    owners = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    meta = {"name": name, "namespace": "a", "ownerReferences": owners}
    return {"metadata": meta, "spec": {"containers": [{"name": "main"}], **({"nodeName": at} if at else {})}}


def profile(most):
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "OwnerLimit"}]}},
                "pluginConfig": [{"name": "OwnerLimit", "args": {"maxPods": most}}],
            }
        ],
    }
    return next(iter(make_profiles(config, K36).values()))


def test_a_final_state_is_legal_exactly_when_the_filters_admit_every_pod():
    pods = [*(pod(f"web-{i}", "web") for i in range(3)), pod("db-0", "db"), pod("web-9", "web", "n0")]
    cluster = Snapshot(
        nodes=TypeAdapter(tuple[Node, ...]).validate_python([node(name) for name in NODES]),
        pods=TypeAdapter(tuple[Pod, ...]).validate_python(pods),
    )
    compiled = compile_problem(
        cluster, profile(2), PRESETS["repair"], freeze=lambda p: "stays" if p.name == "web-9" else None
    )
    evaluator, seen = Evaluator(compiled.problem), set()
    for choice in itertools.product((*NODES, ""), repeat=len(compiled.pods)):
        where = Assignment({p.key: at for p, at in zip(compiled.pods, choice, strict=True)})
        everyone = where | {p.key: p.node_name for p in compiled.participants.fixed()}
        refused = rejections(populated(cluster, compiled.profile, everyone, compiled.signatures), everyone)
        violations = evaluator.evaluate(compiled.placement(where)).violations
        assert bool(refused) == bool(violations), (where, refused, violations)
        seen.add(bool(refused))
    assert seen == {True, False}
