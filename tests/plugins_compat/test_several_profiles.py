"""Several profiles of one configuration run at once: each pod is scheduled by the one that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Participation, Snapshot
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.registry import registry
from stowplan.plugins_compat.release import K36
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot


def config(*profiles: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
    }


PACKING = {
    "schedulerName": "packing",
    "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
    "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 1}]}},
}
CARELESS = {"schedulerName": "careless", "plugins": {"filter": {"disabled": [{"name": "NodeUnschedulable"}]}}}
PLAIN = {"schedulerName": "default-scheduler"}


def cluster() -> Snapshot:
    return snapshot(
        nodes=[node("used"), node("empty"), node("cordoned", unschedulable=True)],
        pods=[
            pod("there", "used", cpu="1"),
            pod("spread"),
            pod("packed", schedulerName="packing"),
            pod("bold", schedulerName="careless", nodeSelector={"kubernetes.io/hostname": "cordoned"}),
            pod("foreign", schedulerName="somebody-else"),
        ],
    )


def test_each_pod_is_scheduled_by_the_profile_that_it_names() -> None:
    profiles = make_profiles(config(PLAIN, PACKING, CARELESS), K36, "first")
    taken = simulate(
        cluster(), profiles["default-scheduler"], cluster().pods[1:4], {"default/there": "used"}
    ).assignment
    assert dict(taken) == {
        "default/there": "used", "default/spread": "empty", "default/packed": "used", "default/bold": "cordoned",
    }  # fmt: skip


def test_who_is_scheduled_and_who_is_in_the_model() -> None:
    bound = [pod(p.name, "used", schedulerName=p.spec.scheduler_name) for p in cluster().pods]
    for waiting in (True, False):
        found = cluster() if waiting else snapshot(nodes=[node("used")], pods=bound)
        fit = {"plugins": {"score": {"disabled": [{"name": "*"}]}}, "schedulerName": "packing"}
        profile = make_profiles(config(PLAIN, fit, CARELESS), K36)["default-scheduler"]
        compiled = compile_problem(found, profile, PRESETS["kube"])
        reasons = dict(zip((p.name for p in found.pods), compiled.participants.reason, strict=True))
        assert reasons == {
            "there": "", "spread": "", "packed": "",
            "bold": "profile careless, which filters otherwise than default-scheduler",
            "foreign": "scheduler somebody-else",
        }  # fmt: skip
        assert "pods of packing are scored as those of default-scheduler" in compiled.notes
        assert [p.name for p in compiled.participants.only_refused()] == (["bold"] if waiting else [])
    assert compiled.participants.participation[-1] is Participation.FIXED


def test_a_named_profile_leads_and_the_others_run_too(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config(PLAIN, PACKING)))
    compiled = make_problem(cluster(), Settings(config=str(path), scheduler="packing", sample_nodes=True))
    assert compiled.profile.scheduler_name == "packing"
    assert compiled.profile.names == {"packing", "default-scheduler"}
    assert all(other.samples for other in compiled.profile.siblings)


def test_profiles_must_sort_the_queue_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    from stowplan.plugins_compat.framework.plugin import Args, Plugin
    from stowplan.plugins_compat.plugins.priority_sort import PrioritySort

    class SortArgs(Args):
        by: str = ""

    class OtherSort(PrioritySort):
        name = "OtherSort"
        Args = SortArgs

    known: dict[str, type[Plugin]] = {**registry(), "OtherSort": OtherSort}
    monkeypatch.setattr("stowplan.plugins_compat.registry.registry", lambda: known)
    other = {"enabled": [{"name": "OtherSort"}], "disabled": [{"name": "*"}]}
    second = {"schedulerName": "second", "plugins": {"queueSort": other}}
    with pytest.raises(
        InputError, match=r"profiles\[1\].plugins.queueSort: is OtherSort, but PrioritySort in the first"
    ):
        make_profiles(config(PLAIN, second), K36)

    def sorted_by(name: str, by: str) -> dict[str, Any]:
        args = [{"name": "OtherSort", "args": {"by": by}}]
        return {"schedulerName": name, "plugins": {"queueSort": other}, "pluginConfig": args}

    assert len(make_profiles(config(sorted_by("a", "x"), sorted_by("b", "x")), K36)) == 2
    with pytest.raises(InputError, match="OtherSort has other arguments than in the first profile"):
        make_profiles(config(sorted_by("a", "x"), sorted_by("b", "y")), K36)
