"""The scorer by classes and the framework, pod by pod, agree on the score of every final state."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from stowplan.answers.solve import fixed
from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.problem import Placement
from stowplan.models.snapshot import Snapshot
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.compile import Compiled, compile_problem
from stowplan.plugins_compat.final_state.cost import FinalStateCost
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.plugins_compat.scoring import final_scores
from tests.support.brute_force import placements
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import HOSTNAME, ZONE, node, pod, snapshot
from tests.support.random_clusters import Setup, clusters, device_clusters, disk_clusters, setups

TRIED = 8
RULES_OF_PODS = ("InterPodAffinity", "PodTopologySpread")
"""Plugins whose scores depend on which pods are where; they seldom score anything in random clusters."""


def of_framework(compiled: Compiled, placement: Placement) -> tuple[dict[str, int], int]:
    """Return the sums by plugin and the number of pods scored, each pod in a scheduling cycle of its own."""
    where = fixed(compiled) | compiled.assign(placement)
    framework = populated(compiled.snapshot, compiled.profile, where, compiled.signatures)
    found = final_scores(framework, compiled.pods, where, sample=1 << 30)
    unit = compiled.profile.release.score_unit
    return {plugin: round(mean * found.scored * unit) for plugin, mean in found.by_plugin.items()}, found.scored


def of_scorer(compiled: Compiled, placement: Placement) -> tuple[dict[str, int], int]:
    final = compiled.final_state
    assert isinstance(final, FinalStateCost)
    scorer = final.scorer(placement)
    return {plugin: value for plugin, value in scorer.by_plugin().items() if value}, scorer.final_scores.scored


def check(compiled: Compiled, tried: int = TRIED) -> None:
    states = list(placements(compiled.problem))
    random.Random(0).shuffle(states)
    for placement in [compiled.problem.start, *states[:tried]]:
        sums, scored = of_framework(compiled, placement)
        assert of_scorer(compiled, placement) == ({p: s for p, s in sums.items() if s}, scored)
        count("refused", scored < int(placement.count.sum()))
        for plugin in RULES_OF_PODS:
            count(plugin, sums.get(plugin, 0) > 0)


@cases(80, at_least={"refused": 4, "PodTopologySpread": 4}, cluster=clusters(), setup=setups("kube"))
def test_small_clusters_with_every_kind_of_rule(cluster: Snapshot, setup: Setup) -> None:
    check(setup.compile(cluster))


def random_attraction(choices: Choices) -> Snapshot:
    """Return a cluster whose pods would like to be near to some and far from others, by node or by zone."""

    def wish() -> dict[str, Any]:
        selector = {"matchLabels": {"app": choices.one("ab")}}
        term = {"labelSelector": selector, "topologyKey": choices.one((HOSTNAME, ZONE))}
        return {"weight": choices.integer(1, 100), "podAffinityTerm": term}

    def attracted(name: str) -> dict[str, Any]:
        kind = choices.one(("podAffinity", "podAntiAffinity"))
        affinity = {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [wish()]}}
        app, at = choices.one("ab"), f"n{choices.integer(0, 2)}"
        return pod(name, at, owner=f"ReplicaSet/{app}", labels={"app": app}, affinity=affinity)

    nodes = [node(f"n{i}", labels={ZONE: f"z{i // 2}"}) for i in range(3)]
    return snapshot(nodes=nodes, pods=[attracted(f"p{i}") for i in range(4)])


@cases(8, at_least={"InterPodAffinity": 30}, cluster=drawn(random_attraction), setup=setups("kube"))
def test_pods_that_attract_and_repel_each_other(cluster: Snapshot, setup: Setup) -> None:
    check(setup.compile(cluster))


@cases(8, cluster=disk_clusters(), setup=setups("kube"))
def test_disks(cluster: Snapshot, setup: Setup) -> None:
    check(setup.compile(cluster), 4)


@cases(8, cluster=device_clusters(), setup=setups("kube", more=("GpuShare",)))
def test_devices(cluster: Snapshot, setup: Setup) -> None:
    check(setup.compile(cluster), 4)


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
@pytest.mark.parametrize("seed", range(3))
def test_moves_are_followed_and_taken_back(seed: int, release: Release) -> None:
    """After each of a hundred moves, kept or taken back, the sums are those of a scorer that starts there."""
    compiled = compile_problem(synthetic_snapshot(12, 90, seed), default_profile(release), PRESETS["kube"])
    final, rng = compiled.final_state, random.Random(seed)
    assert isinstance(final, FinalStateCost)
    scorer = final.scorer(compiled.problem.start)
    assert of_scorer(compiled, compiled.problem.start) == _nonzero(of_framework(compiled, compiled.problem.start))
    for step in range(100):
        placement = scorer.placement()
        e = rng.randrange(len(placement.cls))
        before = scorer.by_plugin()
        scorer.begin()
        scorer.shift(int(placement.cls[e]), int(placement.node[e]), rng.randrange(12))
        if rng.random() < 0.5:
            scorer.roll_back()
            assert scorer.by_plugin() == before
            assert scorer.placement().same_as(placement)
        else:
            scorer.keep()
        if step % 10 == 9:
            placement = scorer.placement()
            sums = {plugin: value for plugin, value in scorer.by_plugin().items() if value}
            assert (sums, scorer.final_scores.scored) == _nonzero(of_framework(compiled, placement))
    scorer.go_to(compiled.problem.start)
    assert scorer.placement().same_as(compiled.problem.start)
    assert _nonzero((dict(scorer.by_plugin()), scorer.final_scores.scored)) == _nonzero(
        of_framework(compiled, compiled.problem.start)
    )


def _nonzero(found: tuple[dict[str, int], int]) -> tuple[dict[str, int], int]:
    return {plugin: value for plugin, value in found[0].items() if value}, found[1]


def test_a_copy_that_traveled_says_the_same() -> None:
    compiled = compile_problem(synthetic_snapshot(6, 30, 1), default_profile(K36), PRESETS["global"])
    final, start = compiled.final_state, compiled.problem.start
    assert final is not None
    here = final.missed(start, compiled.problem.size)
    assert sum(here.values()) > 0
    assert pickle.loads(pickle.dumps(final)).missed(start, compiled.problem.size) == here
