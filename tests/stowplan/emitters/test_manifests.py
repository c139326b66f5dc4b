"""Every manifest against the schemas of several releases, and policies against strict models of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic import ValidationError

from stowplan.emitters.descheduler import emit_descheduler
from stowplan.emitters.descheduler_policy import DeschedulerPolicy
from stowplan.emitters.emission import PLAN_LABEL, WAVE_LABEL, Emission, EmitOptions
from stowplan.emitters.extender import emit_extender
from stowplan.emitters.koordinator import emit_koordinator
from stowplan.emitters.koordinator_objects import PodMigrationJob, Reservation, check_pair
from stowplan.emitters.pin import emit_pin
from stowplan.emitters.registry import EMITTERS
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.plugins_compat.profiles import make_profiles
from stowplan.plugins_compat.release import K24, K36
from tests.support.clusters import node, pod, snapshot
from tests.support.plans import move, plan, shop

RELEASES = ("1.25", "1.29", "1.33", "1.36", "1.37")

Manifest = dict[str, Any]


def manifests(emission: Emission, name: str = "") -> list[Manifest]:
    """Return the manifests of an emission, or of one file."""
    chosen = [f for f in emission.files if f.name.endswith(".yaml") and name in ("", f.name)]
    return [content for file in chosen for content in yaml.safe_load_all(file.content)]


def simple(**more: Any) -> Plan:
    """Return a plan in which nothing is parked."""
    return plan(
        [move("shop/web-a", "n1", "n2", id="m0001"), move("pay/db-0", "n2", "n3", id="m0002", same_name=True)],
        [move("shop/web-b", "n1", "n3", id="m0003"), move("shop/old-x", "n2", None, id="m0004")],
        [move("new", None, "n1", id="m0005", owner="")],
        **more,
    )


def whole_pods() -> EmitOptions:
    """Return a snapshot with a pod of the plan that has more than requests."""
    tolerations = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    scratch = [{"name": "scratch", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "x"}}]
    more = {"namespace": "shop", "labels": {"app": "web"}, "owner": "ReplicaSet/web"}
    web = pod("web-a", "n1", "1500m", tolerations=tolerations, volumes=scratch, **more)
    return EmitOptions(snapshot=snapshot(nodes=[node("n1")], pods=[web]))


# -- schemas --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_manifests_are_what_the_api_takes(release: str) -> None:
    made = [*manifests(emit_descheduler(simple(), whole_pods()))]
    assert {m["kind"] for m in made} == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Job"}
    for manifest in made:
        kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_the_admission_policy_is_what_the_api_takes(release: str) -> None:
    made = manifests(emit_pin(simple(), EmitOptions()))
    assert [m["kind"] for m in made] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    for manifest in made:
        kubernetes_validate.validate(manifest, release, strict=True)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("choices", [EmitOptions(), whole_pods()], ids=["requests", "whole pods"])
def test_templates_of_reservations_are_pod_specs(release: str, choices: EmitOptions) -> None:
    for manifest in manifests(emit_koordinator(simple(), choices)):
        if manifest["kind"] == "Reservation":
            template = manifest["spec"]["template"]
            as_pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **template["metadata"]}}
            kubernetes_validate.validate({**as_pod, "spec": template["spec"]}, release, strict=True)


def test_the_schema_check_would_notice() -> None:
    (job,) = (m for m in manifests(emit_descheduler(simple(), EmitOptions()), "wave-1.yaml") if m["kind"] == "Job")
    job["spec"]["backOffLimit"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.36", strict=True)


# -- descheduler ----------------------------------------------------------------------------------------------


def policies(emission: Emission) -> list[Manifest]:
    """Return the policies as the Jobs read them."""
    return [yaml.safe_load(m["data"]["policy.yaml"]) for m in manifests(emission) if m["kind"] == "ConfigMap"]


def test_a_policy_evicts_exactly_the_pods_of_its_wave() -> None:
    first, second = policies(emit_descheduler(simple(), EmitOptions()))  # the third wave evicts nobody
    assert [first["maxNoOfPodsToEvictTotal"], second["maxNoOfPodsToEvictTotal"]] == [2, 2]
    (profile,) = first["profiles"]
    assert profile["pluginConfig"] == [
        {
            "name": "DefaultEvictor",
            "args": {"nodeFit": False, "labelSelector": {"matchLabels": {PLAN_LABEL: "plan-7f3a"}}},
        },
        {
            "name": "PodLifeTime",
            "args": {
                "maxPodLifeTimeSeconds": 0,
                "states": ["Running"],
                "namespaces": {"include": ["pay", "shop"]},
                "labelSelector": {"matchLabels": {PLAN_LABEL: "plan-7f3a", WAVE_LABEL: "1"}},
            },
        },
    ]
    assert profile["plugins"] == {"deschedule": {"enabled": ["PodLifeTime"]}}
    for policy in (first, second):
        DeschedulerPolicy.model_validate(policy)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("maxNoOfPodsToEvict", 3),  # silently ignored by the descheduler
        ("profiles/0/plugins/preEvictionFilter", {"enabled": []}),  # so is this
        ("profiles/0/plugins/deschedule/enabled", [{"name": "PodLifeTime"}]),
        ("profiles/0/plugins/balance", {"enabled": ["RemoveDuplicates"]}),  # enabled, not configured
        ("profiles/0/pluginConfig/1/args/podStatusPhases", ["Running"]),
        ("profiles/0/pluginConfig/1/args/maxPodLifeTimeSeconds", -1),
        ("profiles/0/pluginConfig/1/args/maxPodLifeTimeSeconds", "0"),
        ("profiles/0/pluginConfig/1/args/namespaces/exclude", ["kube-system"]),
        ("apiVersion", "descheduler/v1alpha1"),
    ],
)
def test_a_policy_that_would_be_misread_is_refused(path: str, value: Any) -> None:
    policy, *_ = policies(emit_descheduler(simple(), EmitOptions()))
    place: Any = policy
    *way, last = path.split("/")
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    with pytest.raises(ValidationError):
        DeschedulerPolicy.model_validate(policy)


def test_the_job_cannot_evict_itself() -> None:
    (job,) = (m for m in manifests(emit_descheduler(simple(), EmitOptions()), "wave-1.yaml") if m["kind"] == "Job")
    assert PLAN_LABEL not in job["spec"]["template"]["metadata"]["labels"]


def test_protected_pods_are_annotated_where_the_snapshot_shows_them() -> None:
    with_snapshot = emit_descheduler(simple(), whole_pods())
    assert "PROTECTED=m0001\n" in with_snapshot.files[0].content
    without = emit_descheduler(simple(), EmitOptions())
    assert "PROTECTED=''\n" in without.files[0].content
    assert any("--snapshot" in note for note in without.notes)
    assert not any("--snapshot" in note for note in with_snapshot.notes)


@pytest.mark.parametrize("target", sorted(EMITTERS))
def test_manifests_have_no_anchors(target: str) -> None:
    plain = plan([move("shop/web-a", "n1", "n2", id="m0001"), move("shop/db-0", "n2", None, id="m0002")])
    for file in EMITTERS[target](plain, EmitOptions()).files:
        if file.name.endswith(".yaml"):
            assert not [event for event in yaml.parse(file.content) if getattr(event, "anchor", None)], file.name


def test_image_and_namespace_are_chosen() -> None:
    made = manifests(emit_descheduler(simple(), EmitOptions(image="mirror/descheduler:v0.33.0", namespace="tools")))
    job = next(m for m in made if m["kind"] == "Job")
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/descheduler:v0.33.0"
    assert {m["metadata"].get("namespace") for m in made} == {"tools", None}


# -- koordinator ----------------------------------------------------------------------------------------------


def test_room_is_reserved_before_anybody_is_evicted() -> None:
    made = manifests(emit_koordinator(simple(), whole_pods()), "wave-1.yaml")
    assert [m["kind"] for m in made] == ["Reservation", "PodMigrationJob"] * 2
    for reservation, job in zip(made[::2], made[1::2], strict=True):
        check_pair(Reservation.model_validate(reservation), PodMigrationJob.model_validate(job))
    reservation, job = made[:2]
    assert reservation["spec"]["template"]["spec"]["nodeName"] == "n2"
    assert reservation["spec"]["owners"] == [
        {
            "controller": {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "uid-web",
                "controller": True,
                "namespace": "shop",
            }
        }
    ]
    assert job["spec"]["podRef"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-a"}
    assert job["spec"]["deleteOptions"] == {"preconditions": {"uid": "uid-web-a"}}


def test_a_whole_pod_comes_from_the_snapshot() -> None:
    with_snapshot, without = (
        manifests(emit_koordinator(simple(), choices))[0]["spec"]["template"]
        for choices in (whole_pods(), EmitOptions())
    )
    assert with_snapshot["metadata"]["labels"] == {"app": "web"}
    assert with_snapshot["spec"]["tolerations"][0]["key"] == "gpu"
    assert with_snapshot["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1500m"
    assert without["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert any("--snapshot" in note for note in emit_koordinator(simple(), EmitOptions()).notes)


def test_who_goes_for_good_and_who_waits() -> None:
    emission = emit_koordinator(simple(), EmitOptions())
    *_, removed = manifests(emission, "wave-2.yaml")
    assert (removed["kind"], removed["spec"]["mode"]) == ("PodMigrationJob", "EvictDirectly")
    (waits,) = manifests(emission, "wave-3.yaml")
    assert waits["kind"] == "Reservation"
    assert waits["spec"]["owners"][0]["object"]["name"] == "new"


def test_parked_pods_have_no_name_yet() -> None:
    with pytest.raises(InputError) as caught:
        emit_koordinator(shop(), EmitOptions())
    assert "move m0005: follows: moves the pod that m0003 parks" in str(caught.value)


def test_a_pod_that_excludes_its_replacement_cannot_have_its_room_reserved() -> None:
    with pytest.raises(InputError, match="move m0001: waits: excludes its own replacement"):
        emit_koordinator(plan([move("shop/web-a", "n1", "n2", id="m0001", waits=True)]), EmitOptions())


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        (Reservation, "spec/expires", "2026-01-01T00:00:00Z"),
        (Reservation, "spec/template/spec/nodeName", ""),
        (Reservation, "spec/owners/0/object", {"apiVersion": "v1", "kind": "Pod", "name": "x"}),
        (Reservation, "spec/ttl", "soon"),
        (Reservation, "metadata/namespace", "shop"),
        (PodMigrationJob, "spec/mode", "EvictDirectly"),
        (PodMigrationJob, "spec/podref", {}),
    ],
)
def test_an_object_that_would_be_misread_is_refused(kind: type[Any], path: str, value: Any) -> None:
    made = next(m for m in manifests(emit_koordinator(simple(), EmitOptions())) if m["kind"] == kind.__name__)
    place: Any = made
    *way, last = path.split("/")
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    with pytest.raises(ValidationError):
        kind.model_validate(made)


def test_a_reservation_outlives_its_job() -> None:
    reservation, job = manifests(emit_koordinator(simple(), EmitOptions()))[:2]
    reservation["spec"]["ttl"] = job["spec"]["ttl"]
    with pytest.raises(ValueError, match="must be more than"):
        check_pair(Reservation.model_validate(reservation), PodMigrationJob.model_validate(job))


# -- extender -------------------------------------------------------------------------------------------------


def configuration(made: Plan, **chosen: Any) -> Manifest:
    """Return the configuration."""
    (file,) = emit_extender(made, EmitOptions(**chosen)).files
    content: Manifest = yaml.safe_load(file.content)
    return content


def test_our_own_scheduler_reads_the_configuration() -> None:
    content = configuration(simple())
    (profile,) = make_profiles(content, K36).values()
    (extender,) = profile.extenders
    assert extender.url_prefix == "http://127.0.0.1:8888/v1"
    assert extender.weight * 100 > sum(100 * profile.weight(name) for name in profile.at("score"))
    assert extender.weight >= 13
    assert extender.node_cache_capable
    assert extender.ignorable
    assert profile.percentage_of_nodes_to_score == 100


CONFIGURATION_V1 = {
    "apiVersion", "kind", "parallelism", "leaderElection", "clientConnection", "enableProfiling",
    "enableContentionProfiling", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    "profiles", "extenders", "delayCacheUntilActive",
}  # fmt: skip
"""Fields of ``kubescheduler.config.k8s.io/v1``: unknown ones keep kube-scheduler from starting."""
CONNECTION = {"kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"}
EXTENDER_V1 = {
    "urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS", "tlsConfig",
    "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable",
}  # fmt: skip


@pytest.mark.parametrize("url", ["http://127.0.0.1:8888/v1", "https://10.0.0.5:8888/v1"])
def test_kube_scheduler_starts_with_the_configuration(url: str) -> None:
    """It refuses unknown fields, and a configuration without a kubeconfig outside of pods."""
    content = configuration(simple(), url=url)
    assert content.keys() <= CONFIGURATION_V1
    assert content["clientConnection"].keys() <= CONNECTION
    assert content["clientConnection"]["kubeconfig"] == "/etc/kubernetes/scheduler.conf"
    (extender,) = content["extenders"]
    assert extender.keys() <= EXTENDER_V1
    assert extender["httpTimeout"] == "200ms"


def test_the_kubeconfig_is_marked_where_it_is_assumed_and_is_the_users_where_it_is_given(tmp_path: Path) -> None:
    assumed = emit_extender(simple(), EmitOptions())
    assert "scheduler.conf  # kubeadm's path; put the one of your scheduler here\n" in assumed.files[0].content
    assert any("--kubeconfig names another" in note for note in assumed.notes)
    given = emit_extender(simple(), EmitOptions(kubeconfig="/var/lib/scheduler/kubeconfig"))
    assert "#" not in given.files[0].content
    assert yaml.safe_load(given.files[0].content)["clientConnection"] == {"kubeconfig": "/var/lib/scheduler/kubeconfig"}
    path = tmp_path / "scheduler.yaml"
    version = "kubescheduler.config.k8s.io/v1"
    own = {"apiVersion": version, "kind": "KubeSchedulerConfiguration", "clientConnection": {"qps": 50}}
    path.write_text(yaml.safe_dump(own))
    assert configuration(simple(), config=str(path))["clientConnection"] == {"qps": 50}
    both = configuration(simple(), config=str(path), kubeconfig="/k")["clientConnection"]
    assert both == {"qps": 50, "kubeconfig": "/k"}


def test_an_old_release_has_its_own_version() -> None:
    made = simple()
    old = made.model_copy(update={"settings": made.settings.model_copy(update={"release": "1.24"})})
    content = configuration(old)
    assert content["apiVersion"] == "kubescheduler.config.k8s.io/v1beta3"
    make_profiles(content, K24)
    with pytest.raises(InputError, match=r"settings\.release: release 1\.24 has no scheduling gates"):
        emit_pin(old, EmitOptions())


def test_a_configuration_of_ones_own_keeps_what_it_says(tmp_path: Path) -> None:
    own = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": True},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "percentageOfNodesToScore": 30,
                "plugins": {
                    "score": {
                        "disabled": [{"name": "NodeResourcesFit"}],
                        "enabled": [{"name": "NodeResourcesFit", "weight": 50}],
                    }
                },
            }
        ],
        "extenders": [{"urlPrefix": "http://other", "prioritizeVerb": "p", "weight": 7}],
    }
    path = tmp_path / "scheduler.yaml"
    path.write_text(yaml.safe_dump(own))
    content = configuration(simple(), config=str(path))
    assert content["profiles"] == [{**own["profiles"][0], "percentageOfNodesToScore": 100}]
    assert content["percentageOfNodesToScore"] == 100
    assert content["leaderElection"] == {"leaderElect": True}
    assert [e["urlPrefix"] for e in content["extenders"]] == ["http://other", "http://127.0.0.1:8888/v1"]
    assert content["extenders"][1]["weight"] > 50 + 7
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(InputError, match=r"extenders\[1\]\.urlPrefix: is .* already"):
        configuration(simple(), config=str(path))


def test_a_plan_made_with_a_configuration_wants_it_again() -> None:
    made = simple()
    made = made.model_copy(update={"settings": made.settings.model_copy(update={"config": "mine.yaml"})})
    with pytest.raises(InputError, match=r"was made with mine\.yaml; give it with --config"):
        configuration(made)


def test_https_has_somebody_to_trust() -> None:
    content = configuration(simple(), url="https://stowplan.kube-system.svc/v1")
    assert content["extenders"][0]["tlsConfig"]["caFile"]
    assert content["extenders"][0]["enableHTTPS"]
