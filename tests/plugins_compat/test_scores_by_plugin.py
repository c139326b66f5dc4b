"""An objective that names single score plugins counts those, at its own weights, and refuses others."""

from __future__ import annotations

import pytest

from stowplan.models.errors import InputError
from stowplan.models.objective import Objective, TierSettings
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K36
from tests.support.choices import Seeded
from tests.support.random_clusters import random_cluster

SCORES = ("NodeResourcesBalancedAllocation", "PodTopologySpread", "InterPodAffinity", "ImageLocality", "NodeAffinity")


def objective(scores: float | dict[str, float]) -> Objective:
    return Objective(tiers=(TierSettings(name="missed", scores=scores),))


def profile(**weights: int) -> Profile:
    """Return a profile in which these plugins score and no others; all filters run."""
    enabled = [{"name": name, "weight": weight} for name, weight in weights.items()]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": enabled}}}],
    }
    return next(iter(make_profiles(config, K36, "first").values()))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SCORES)
def test_a_named_plugin_counts_as_if_it_were_the_only_one(seed: int, name: str) -> None:
    """Whatever the profile weighs it and others by, its points cost what the objective says."""
    cluster = random_cluster(Seeded(seed), nodes=4, pods=8, broken=True)

    def start(compiled: Compiled) -> tuple[int, ...]:
        return Evaluator(compiled.problem).evaluate(compiled.problem.start).values

    named = compile_problem(cluster, profile(**dict.fromkeys(SCORES, 7)), objective({name: 3.0}))
    alone = compile_problem(cluster, profile(**{name: 1}), objective(3.0))
    assert start(named) == start(alone)
    assert named.problem.tiers[-1].unit == alone.problem.tiers[-1].unit


def test_a_plugin_that_does_not_score_is_refused() -> None:
    cluster = random_cluster(Seeded(0))
    with pytest.raises(InputError, match="objective: scores: 'NodeName' does not score in this profile; must be one"):
        compile_problem(cluster, profile(ImageLocality=1), objective({"NodeName": 1.0}))
    with pytest.raises(InputError, match=r"must be one of ImageLocality$"):
        compile_problem(cluster, profile(ImageLocality=1), objective({"PodTopologySpread": 1.0}))


def test_weights_of_0_are_no_objective() -> None:
    with pytest.raises(ValueError, match="has no positive weight"):
        TierSettings(name="nothing", scores={"ImageLocality": 0})
    mixed = TierSettings(name="some", scores={"ImageLocality": 0, "NodeAffinity": 2})
    assert mixed.point == 2
