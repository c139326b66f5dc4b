"""Profiles: a release's default, and what a KubeSchedulerConfiguration makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.models.errors import InputError
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K24, K36, Release


def made(release: Release = K36, version: str = "v1", **profile: Any) -> Profile:
    content = {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return next(iter(make_profiles(content, release).values()))


def entries(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize("release", [K24, K36], ids=lambda release: release.name)
def test_the_default_scores_weigh_what_upstream_says(release: Release) -> None:
    profile = default_profile(release)
    weights = {name: profile.weight(name) for name in profile.at("score")}
    expected = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert {name: weight for name, weight in weights.items() if name in expected} == expected
    assert profile.at("queue_key") == ["PrioritySort"]
    assert profile.at("bind") == ["DefaultBinder"]


def test_v1beta2_weighs_as_it_did() -> None:
    profile = made(K24, "v1beta2")
    assert profile.weight("PodTopologySpread") == 2
    assert {profile.weight(name) for name in ("TaintToleration", "NodeAffinity", "InterPodAffinity")} == {1}


def test_a_star_disables_all_defaults_of_a_point() -> None:
    off = {"disabled": entries("*"), "enabled": [{"name": "NodeResourcesFit", "weight": 7}]}
    profile = made(plugins={"score": off})
    assert profile.at("score") == ["NodeResourcesFit"]
    assert profile.weight("NodeResourcesFit") == 7
    assert "TaintToleration" in profile.at("filter")


def test_a_weight_of_a_multi_point_holds_where_the_plugin_scores() -> None:
    profile = made(plugins={"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": 9}]}})
    assert profile.weight("ImageLocality") == 9
    assert len(profile.at("score")) == len(default_profile(K36).at("score"))


def test_a_named_plugin_runs_before_the_defaults_that_were_not_named() -> None:
    profile = made(plugins={"filter": {"enabled": entries("NodePorts")}})
    assert profile.at("filter")[0] == "NodePorts"
    assert sorted(profile.at("filter")) == sorted(default_profile(K36).at("filter"))


def test_disabled_at_one_point_runs_at_the_others() -> None:
    profile = made(plugins={"score": {"disabled": entries("NodeResourcesFit")}})
    assert "NodeResourcesFit" not in profile.at("score")
    assert "NodeResourcesFit" in profile.at("filter")


def test_arguments_reach_their_plugin() -> None:
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}}
    profile = made(pluginConfig=[{"name": "NodeResourcesFit", "args": args}])
    fit = next(use.plugin for use in profile.uses if use.plugin.name == "NodeResourcesFit")
    strategy: Any = profile.args(fit)
    assert strategy.scoring_strategy.type == "MostAllocated"
    assert strategy.scoring_strategy.resources[0].weight == 3


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        ({"plugins": {"score": {"enabled": entries("Nothing")}}}, "profiles[0].plugins.score"),
        ({"plugins": {"queueSort": {"disabled": entries("*")}}}, "profiles[0].plugins.queueSort"),
        ({"pluginConfig": [{"name": "Nothing", "args": {}}]}, "profiles[0].pluginConfig[Nothing]"),
    ],
)
def test_what_cannot_run_is_named(profile: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        made(**profile)
    assert caught.value.field == field


def test_two_profiles_of_one_name() -> None:
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}],
    }
    with pytest.raises(InputError, match="'a' appears twice"):
        make_profiles(content, K36)
