"""The curve costs a point for each percent of requested CPU above 70, and a pod's score loses as many."""

import numpy as np
import pytest
from cool_nodes import CoolNodes
from pydantic import TypeAdapter

from stowplan.models.assignment import Assignment
from stowplan.models.kubernetes import Node, Pod
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from stowplan.plugins_compat.scoring import final_scores

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "CoolNodes"}]}}}],
}
SCORES = Objective(tiers=(TierSettings(name="missed score", scores=1),))


@pytest.mark.parametrize(("pods", "above"), [(3, 0), (7, 0), (8, 10), (10, 30)])
def test_a_node_costs_a_point_for_each_percent_above_70(pods, above):
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "10", "memory": "8Gi", "pods": "20"}}}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    pod = [{"metadata": {"name": f"p{i}", "namespace": "a"}, "spec": {"containers": [container]}} for i in range(pods)]
    cluster = Snapshot(
        nodes=TypeAdapter(tuple[Node, ...]).validate_python([node]),
        pods=TypeAdapter(tuple[Pod, ...]).validate_python(pod),
    )
    profile = next(iter(make_profiles(CONFIG, K36).values()))
    compiled = compile_problem(cluster, profile, SCORES)
    where = Assignment({p.key: "n" for p in compiled.pods})
    tier = compiled.problem.tiers[-1]
    assert tier.shown(Evaluator(compiled.problem.steered).evaluate(compiled.placement(where)).values[-1]) == above
    scores = final_scores(populated(cluster, profile, where, compiled.signatures), compiled.pods, where)
    assert scores.by_plugin[CoolNodes.name] == np.clip(100 - above, 0, 100)
