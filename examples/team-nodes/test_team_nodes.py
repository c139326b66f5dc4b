"""A node of a team takes pods of that team only, for the filter and for the model."""

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

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "TeamNodes"}]}}}],
}


def labeled(name, team):
    return {"name": name, "labels": {"example.com/team": team} if team else {}}


def node(name, team):
    return {"metadata": labeled(name, team), "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}}


def pod(name, team):
    return {"metadata": labeled(name, team) | {"namespace": "a"}, "spec": {"containers": [{"name": "main"}]}}


def test_pods_are_admitted_to_nodes_of_their_team_and_of_none():
    nodes, pods = [node("red", "red"), node("blue", "blue"), node("any", "")], [pod("p-red", "red"), pod("p-any", "")]
    cluster = Snapshot(
        nodes=TypeAdapter(tuple[Node, ...]).validate_python(nodes),
        pods=TypeAdapter(tuple[Pod, ...]).validate_python(pods),
    )
    profile = next(iter(make_profiles(CONFIG, K36).values()))
    compiled = compile_problem(cluster, profile, PRESETS["repair"])
    evaluator, admitted = Evaluator(compiled.problem), set()
    for p in compiled.pods:
        for target in ("red", "blue", "any"):
            where = Assignment({p.key: target})
            refused = rejections(populated(cluster, profile, where, compiled.signatures), where)
            legal = evaluator.evaluate(compiled.placement(where)).legal
            assert legal == (not refused)
            if legal:
                admitted.add((p.name, target))
    assert admitted == {("p-red", "red"), ("p-red", "any"), ("p-any", "any")}
