"""Where every node is feasible, a tier of scores is what the scheduler's own score misses, to the point."""

import itertools

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

PRICES = {"n0": "40", "n1": "10", "n2": "25"}
WEIGHT = 3
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "CheapNodes", "weight": WEIGHT}]},
            }
        }
    ],
}
SCORES = Objective(tiers=(TierSettings(name="missed score", scores=1),))


def node(name, price):
    meta = {"name": name, "labels": {"example.com/cents-per-hour": price}}
    return {"metadata": meta, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}}


def pod(name):
    return {"metadata": {"name": name, "namespace": "a"}, "spec": {"containers": [{"name": "main"}]}}


def test_the_term_costs_what_the_score_misses():
    cluster = Snapshot(
        nodes=TypeAdapter(tuple[Node, ...]).validate_python([node(*item) for item in PRICES.items()]),
        pods=TypeAdapter(tuple[Pod, ...]).validate_python([pod("p0"), pod("p1")]),
    )
    compiled = compile_problem(cluster, next(iter(make_profiles(CONFIG, K36).values())), SCORES)
    evaluator, tier = Evaluator(compiled.problem), compiled.problem.tiers[-1]
    for choice in itertools.product(PRICES, repeat=2):
        where = Assignment({p.key: at for p, at in zip(compiled.pods, choice, strict=True)})
        framework = populated(cluster, compiled.profile, where, compiled.signatures)
        scores = final_scores(framework, compiled.pods, where)
        missed = (100 * WEIGHT - scores.total) * scores.scored
        assert tier.shown(evaluator.evaluate(compiled.placement(where)).values[-1]) == missed
