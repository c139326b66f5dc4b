"""Facts about volumes: which volume a claim takes, what is promised to whom, and how many disks a node attaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowplan.models.kubernetes import NodeSelector, PersistentVolume
from stowplan.models.kubernetes.base import EMPTY
from stowplan.models.kubernetes.pod import AzureDisk
from stowplan.models.snapshot import Participation, Snapshot
from stowplan.plugins_compat.admission import populated
from stowplan.plugins_compat.compiler.participants import classify
from stowplan.plugins_compat.framework.cycle_state import CycleState
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.status import Code, Status
from stowplan.plugins_compat.plugins.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    GCE_PD,
    driver_affinity,
    plugin_of,
    split_zones,
)
from stowplan.plugins_compat.plugins.node_volume_limits import limit_key
from stowplan.plugins_compat.plugins.volume_binding import NONE, NOTHING_TO_BIND, VolumeBinding
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.plugins_compat.simulate import simulate
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import (
    ZONE,
    Manifest,
    claim,
    csi_node,
    node,
    pod,
    snapshot,
    storage_class,
    using,
    volume,
)

LOCAL = storage_class("local", "kubernetes.io/no-provisioner")
DYNAMIC = storage_class("dynamic")
NODES = [node("n0"), node("n1")]
RELEASES = pytest.mark.parametrize("release", [K24, K36], ids=lambda release: release.name)


def cluster(*pods: Manifest, **objects: list[Manifest]) -> Snapshot:
    objects.setdefault("nodes", NODES)
    objects.setdefault("storage_classes", [LOCAL, DYNAMIC])
    return snapshot(pods=list(pods), **objects)


def framework_on(state: Snapshot, release: Release = K36) -> Framework:
    return populated(state, default_profile(release), {p.key: p.node_name for p in state.pods if p.node_name})


def cycle_of(framework: Framework, name: str) -> CycleState:
    return framework.cycle(next(p for p in framework.state.snapshot.pods if p.name == name))


def diagnosis(state: Snapshot, release: Release = K36, name: str = "p") -> Status | dict[str, tuple[str, ...]]:
    """Return the PreFilter status, or the reasons of every node that failed."""
    framework = framework_on(state, release)
    found = framework.run_filters(cycle_of(framework, name))
    if found.rejected:
        return found.rejected
    failed = np.flatnonzero(found.codes != Code.SUCCESS).tolist()
    return {state.nodes[found.nodes[i]].name: tuple(found.why(i).reasons) for i in failed}


def taken(state: Snapshot, name: str = "p", release: Release = K36) -> dict[str, list[str | None]]:
    """Return the volume that each claim of the pod would take on each node."""
    framework = framework_on(state, release)
    plugin = framework.plugins["VolumeBinding"]
    assert isinstance(plugin, VolumeBinding)
    found = plugin._find(cycle_of(framework, name).signature)
    names = [v.metadata.name for v in state.persistent_volumes]
    return {
        key.partition("/")[2]: [None if v == NONE else names[v] for v in volumes.tolist()]
        for key, volumes in found.taken
    }


# -- which volume a claim takes -------------------------------------------------------------------------------


def test_a_claim_takes_the_smallest_volume_that_holds_it() -> None:
    volumes = [volume("big", "9Gi"), volume("tiny", "1Gi"), volume("fits", "3Gi"), volume("fits-too", "3Gi")]
    state = cluster(
        pod("p", volumes=using("c")), persistent_volume_claims=[claim("c", "2Gi")], persistent_volumes=volumes
    )
    assert taken(state) == {"c": ["fits", "fits"]}


def test_each_node_offers_the_volumes_it_reaches() -> None:
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c")],
        persistent_volumes=[volume("a", "2Gi", at=("n0",)), volume("b", "5Gi")],
    )
    assert taken(state) == {"c": ["a", "b"]}


@pytest.mark.parametrize(
    "other",
    [
        {"cls": "another"},
        {"volumeMode": "Block"},
        {"phase": "Released"},
        {"phase": "Pending"},
        {"accessModes": ["ReadOnlyMany"]},
        {"meta": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"claimRef": {"namespace": "default", "name": "somebody"}},
        {"claimRef": {"namespace": "default", "name": "c", "uid": "uid-of-a-claim-before"}},
        {"size": "1Mi"},
        {"meta": {"labels": {"disk": "hdd"}}},
    ],
    ids=str,
)
def test_what_a_volume_has_to_be(other: dict[str, Any]) -> None:
    wanted = claim("c", selector={"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]})
    state = cluster(
        pod("p", volumes=using("c")), persistent_volume_claims=[wanted], persistent_volumes=[volume("v", **other)]
    )
    assert taken(state) == {"c": [None, None]}
    assert diagnosis(state) == {"n0": (NOTHING_TO_BIND,), "n1": (NOTHING_TO_BIND,)}


def test_the_class_annotation_of_old_goes_before_the_field_even_if_empty() -> None:
    old = {"annotations": {"volume.beta.kubernetes.io/storage-class": "local"}}
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c", cls="dynamic", meta=old)],
        persistent_volumes=[volume("v", cls="else", meta=old)],
    )
    assert taken(state) == {"c": ["v", "v"]}
    empty = {"annotations": {"volume.beta.kubernetes.io/storage-class": ""}}
    state = cluster(pod("p", volumes=using("c")), persistent_volume_claims=[claim("c", cls="dynamic", meta=empty)])
    assert isinstance(diagnosis(state), Status)  # no class at all, so it should have been bound


@RELEASES
def test_a_volume_attributes_class_counts_where_the_release_knows_it(release: Release) -> None:
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c")],
        persistent_volumes=[volume("v", volumeAttributesClassName="gold")],
    )
    assert taken(state, release=release) == {"c": [None, None] if release is K36 else ["v", "v"]}


def test_a_reserved_volume_goes_before_smaller_ones_and_binds_the_claim_to_its_nodes() -> None:
    reserved = volume("mine", "9Gi", at=("n0",), phase="Pending", claimRef={"namespace": "default", "name": "c"})
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c")],
        persistent_volumes=[volume("small"), reserved],
    )
    assert taken(state) == {"c": ["mine", None]}


def test_a_reserved_volume_that_is_too_small_is_passed_over() -> None:
    reserved = volume("mine", "1Gi", claimRef={"namespace": "default", "name": "c"})
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c", "2Gi")],
        persistent_volumes=[reserved, volume("other", "2Gi")],
    )
    assert taken(state) == {"c": ["other", "other"]}


def test_claims_of_a_pod_choose_by_size_and_share_nothing() -> None:
    claims = [claim("large", "4Gi"), claim("small", "1Gi")]
    volumes = [volume("five", "5Gi"), volume("six", "6Gi", at=("n1",))]
    state = cluster(
        pod("p", volumes=using("large", "small")), persistent_volume_claims=claims, persistent_volumes=volumes
    )
    assert taken(state) == {"small": ["five", "five"], "large": [None, "six"]}
    assert diagnosis(state) == {"n0": (NOTHING_TO_BIND,)}


def test_a_claim_that_a_pod_mounts_twice_needs_two_volumes() -> None:
    state = cluster(
        pod("p", volumes=using("c", "c")), persistent_volume_claims=[claim("c")], persistent_volumes=[volume("v")]
    )
    assert diagnosis(state) == {"n0": (NOTHING_TO_BIND,), "n1": (NOTHING_TO_BIND,)}


def node_by_node(state: Snapshot, names: list[str], index: int, promised: dict[str, str]) -> dict[str, str | None]:
    """Bind the claims of a pod on one node, volume by volume: the same rules read a second time."""
    host = state.nodes[index]
    claims = sorted((state.claims[f"default/{name}"] for name in names), key=lambda c: c.size or 0)
    chosen: dict[str, str | None] = {}
    for wanted in claims:
        best: PersistentVolume | None = None
        for v in state.persistent_volumes:
            name, reference = v.metadata.name, v.spec.claim_ref
            holder = promised.get(name) or (reference.name if reference else None)
            reached = v.spec.node_affinity is None or (
                v.spec.node_affinity.required is not None
                and v.spec.node_affinity.required.matches(host.name, host.labels)
            )
            if name in chosen.values() or holder not in (None, wanted.metadata.name):
                continue
            if v.class_name != wanted.class_name or v.capacity < (wanted.size or 0):
                continue
            if holder is not None:
                best = v if reached else None
                break
            if reached and v.available and (best is None or v.capacity < best.capacity):
                best = v
        chosen[wanted.metadata.name] = best.metadata.name if best else None
    return chosen


HOSTS = [f"n{i}" for i in range(4)]


def random_claims(choices: Choices) -> Snapshot:
    """Build pods with three claims each, some of them shared, and volumes that some of the nodes reach."""
    owners = [f"c{i}" for i in range(6)]
    volumes = []
    for i in range(choices.integer(1, 9)):
        promise = {"claimRef": {"namespace": "default", "name": choices.one(owners)}} if choices.chance(0.2) else {}
        cls, phase = choices.one(["local", "local", "other"]), choices.one(["Available", "Available", "Released"])
        at = tuple(choices.some(HOSTS, choices.integer(0, 3)))
        volumes.append(volume(f"v{i}", f"{choices.integer(1, 4)}Gi", cls, at=at, phase=phase, **promise))
    pods = [pod(f"p{i}", volumes=using(*choices.some(owners, 3))) for i in range(3)]
    return cluster(
        *pods,
        nodes=[node(name) for name in HOSTS],
        persistent_volumes=volumes,
        persistent_volume_claims=[claim(name, f"{choices.integer(1, 4)}Gi") for name in owners],
    )


@cases(40, at_least={"claims bound": 120, "claims left": 120}, state=drawn(random_claims))
def test_all_nodes_at_once_bind_as_one_by_one(state: Snapshot) -> None:
    framework = framework_on(state)
    plugin = framework.plugins["VolumeBinding"]
    assert isinstance(plugin, VolumeBinding)
    promised: dict[str, str] = {}
    for asking in state.pods:
        cycle = framework.cycle(asking)
        names = [key.partition("/")[2] for key in cycle.signature.claims]
        expected = [node_by_node(state, names, n, promised) for n in range(len(HOSTS))]
        bound = {key: volumes.tolist() for key, volumes in plugin._find(cycle.signature).taken}
        ours = [
            {
                key.partition("/")[2]: None if row[n] == NONE else state.persistent_volumes[row[n]].metadata.name
                for key, row in bound.items()
            }
            for n in range(len(HOSTS))
        ]
        assert ours == expected
        found = [name for node in expected for name in node.values()]
        count("claims bound", sum(name is not None for name in found))
        count("claims left", sum(name is None for name in found))
        codes = framework.run_filters(cycle).codes.tolist()
        assert [code != Code.SUCCESS for code in codes] == [None in taken.values() for taken in expected]
        free = [n for n in range(len(HOSTS)) if codes[n] == Code.SUCCESS]
        if free:
            assert framework.place(cycle, free[0]) is None
            promised |= {v: name for name, v in expected[free[0]].items() if v}


# -- volumes to be made ---------------------------------------------------------------------------------------


def test_topologies_are_alternatives_of_conditions_and_an_empty_one_admits_nothing() -> None:
    def allowed(*terms: dict[str, list[str]]) -> Any:
        made = [{"matchLabelExpressions": [{"key": k, "values": v} for k, v in t.items()]} for t in terms]
        state = cluster(
            pod("p", volumes=using("c")),
            nodes=[node("n0", labels={ZONE: "a", "rack": "1"}), node("n1", labels={ZONE: "b", "rack": "1"})],
            persistent_volume_claims=[claim("c", cls="dynamic")],
            storage_classes=[storage_class("dynamic", allowedTopologies=made)],
        )
        return set(diagnosis(state))  # type: ignore[arg-type]

    assert allowed() == set()
    assert allowed({ZONE: ["a"]}) == {"n1"}
    assert allowed({ZONE: ["a"]}, {ZONE: ["b", "c"]}) == set()
    assert allowed({ZONE: ["a", "b"], "rack": ["2"]}) == {"n0", "n1"}
    assert allowed({}) == {"n0", "n1"}


def test_an_existing_volume_goes_before_making_one_and_the_rest_is_made() -> None:
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c", cls="dynamic")],
        persistent_volumes=[volume("v", cls="dynamic", at=("n1",))],
    )
    assert taken(state) == {"c": [None, "v"]}
    assert diagnosis(state) == {}


def test_a_chosen_node_stays_chosen_and_no_existing_volume_is_looked_for() -> None:
    chosen = {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}
    state = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c", cls="dynamic", meta=chosen)],
        persistent_volumes=[volume("v", cls="dynamic")],
    )
    assert taken(state) == {}
    assert diagnosis(state) == {"n0": (NOTHING_TO_BIND,)}


def test_a_driver_that_tells_its_capacity_is_believed_claim_by_claim() -> None:
    def pool(name: str, node_name: str, **amounts: str) -> Manifest:
        topology = {"matchLabels": {"kubernetes.io/hostname": node_name}}
        return {"metadata": {"name": name}, "storageClassName": "dynamic", "nodeTopology": topology, **amounts}

    driver = {"metadata": {"name": "csi.x"}, "spec": {"storageCapacity": True}}
    state = cluster(
        pod("p", volumes=using("c", "d")),
        nodes=[*NODES, node("n2"), node("n3")],
        persistent_volume_claims=[claim("c", "3Gi", cls="dynamic"), claim("d", "3Gi", cls="dynamic")],
        csi_drivers=[driver],
        csi_storage_capacities=[
            pool("a", "n0", capacity="3Gi"),
            pool("b", "n1", capacity="9Gi", maximumVolumeSize="2Gi"),
            pool("c", "n2"),
        ],
    )
    short = ("node(s) did not have enough free storage",)
    assert diagnosis(state) == {"n1": short, "n2": short, "n3": short}


# -- bound claims ---------------------------------------------------------------------------------------------


@RELEASES
def test_a_bound_claim_ties_the_pod_to_its_volume_and_other_claims_are_looked_at_all_the_same(
    release: Release,
) -> None:
    state = cluster(
        pod("p", volumes=using("bound", "c")),
        persistent_volume_claims=[claim("bound", volume="v"), claim("c")],
        persistent_volumes=[volume("v", at=("n1",), phase="Bound")],
    )
    assert diagnosis(state, release) == {
        "n0": (release.volume_reason, NOTHING_TO_BIND),
        "n1": (NOTHING_TO_BIND,),
    }


def test_a_volume_that_is_gone() -> None:
    state = cluster(pod("p", volumes=using("c")), persistent_volume_claims=[claim("c", volume="gone")])
    lost = ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",)
    assert diagnosis(state, K24) == {"n0": lost, "n1": lost}
    assert diagnosis(state, K36) == Status(Code.UNRESOLVABLE, ('persistentvolume "gone" not found',), "VolumeZone")


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        (
            [claim("c", phase="Lost", volume="v")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        ([claim("c", meta={"deletionTimestamp": "2026"})], 'persistentvolumeclaim "c" is being deleted'),
        ([claim("c", cls="none")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim("c", volumeName="v")], "pod has unbound immediate PersistentVolumeClaims"),
    ],
    ids=["missing", "lost", "deleted", "immediate", "prebound"],
)
def test_claims_that_keep_a_pod_from_every_node(wanted: list[Manifest], reason: str) -> None:
    state = cluster(pod("p", volumes=using("c")), persistent_volume_claims=wanted)
    assert diagnosis(state, K24) == Status(Code.UNRESOLVABLE, (reason,), "VolumeBinding")
    first = "VolumeRestrictions" if not wanted else "VolumeBinding"
    assert diagnosis(state, K36) == Status(Code.UNRESOLVABLE, (reason,), first)


def test_an_ephemeral_volume_waits_for_its_own_claim() -> None:
    asking = pod("p", volumes=[{"name": "v", "ephemeral": {}}])
    asking["metadata"]["uid"] = "u1"
    none = diagnosis(cluster(asking))
    assert isinstance(none, Status)
    assert none.reasons == ('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"',)
    alien = diagnosis(cluster(asking, persistent_volume_claims=[claim("p-v", cls="dynamic")]))
    assert isinstance(alien, Status)
    assert alien.reasons == ("PVC default/p-v was not created for pod default/p (pod is not owner)",)
    owner = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u1", "controller": True}]}
    assert diagnosis(cluster(asking, persistent_volume_claims=[claim("p-v", cls="dynamic", meta=owner)])) == {}


# -- promises -------------------------------------------------------------------------------------------------


def place(framework: Framework, name: str, on: int) -> CycleState:
    cycle = cycle_of(framework, name)
    assert framework.run_filters(cycle).codes[on] == Code.SUCCESS
    assert framework.place(cycle, on) is None
    return cycle


def failed(framework: Framework, name: str) -> list[bool]:
    found = framework.run_filters(cycle_of(framework, name))
    return [bool(code) for code in found.codes.tolist()]


def test_a_volume_promised_to_one_pod_is_not_offered_to_the_next() -> None:
    state = cluster(
        pod("p", volumes=using("c")),
        pod("q", volumes=using("d")),
        persistent_volume_claims=[claim("c"), claim("d")],
        persistent_volumes=[volume("a", at=("n0",)), volume("b", at=("n1",))],
    )
    framework = framework_on(state)
    cycle = place(framework, "p", 0)
    assert failed(framework, "q") == [True, False]
    framework.plugins["VolumeBinding"].unreserve(cycle, 0)
    assert failed(framework, "q") == [False, False]


def test_pods_that_share_a_claim_follow_the_first() -> None:
    state = cluster(
        pod("p", volumes=using("c", "m")),
        pod("q", volumes=using("c")),
        pod("r", volumes=using("m")),
        persistent_volume_claims=[claim("c"), claim("m", cls="dynamic")],
        persistent_volumes=[volume("a", at=("n0",)), volume("b", at=("n1",))],
    )
    framework = framework_on(state)
    assert failed(framework, "q") == [False, False]
    place(framework, "p", 1)
    assert failed(framework, "q") == [True, False]  # the volume is promised to the claim
    assert failed(framework, "r") == [True, False]  # the volume is to be made for the node


def test_the_simulation_fills_local_volumes_one_by_one() -> None:
    claims = [claim(f"c{i}") for i in range(3)]
    pods = [pod(f"p{i}", volumes=using(f"c{i}")) for i in range(3)]
    state = cluster(
        *pods,
        persistent_volume_claims=claims,
        persistent_volumes=[volume("a", at=("n0",)), volume("b", at=("n1",))],
    )
    result = simulate(state, default_profile(K36, "first"), state.pods, {})
    assert sorted(result.assignment.values()) == ["n0", "n1"]
    assert result.decisions[2].message.startswith(f"0/2 nodes are available: 2 {NOTHING_TO_BIND}. ")


# -- what the optimizer leaves alone --------------------------------------------------------------------------


def participation(state: Snapshot, name: str = "p") -> tuple[Participation, str]:
    participants = classify(state, framework_on(state))
    index = [p.name for p in state.pods].index(name)
    return participants.participation[index], participants.reason[index]


def test_a_pod_whose_claim_leaves_a_choice_stays_where_it_is() -> None:
    choice = cluster(
        pod("p", volumes=using("c")), persistent_volume_claims=[claim("c")], persistent_volumes=[volume("v")]
    )
    assert participation(choice) == (
        Participation.PENDING,
        "unbound PersistentVolumeClaim that could take an existing volume, which is not modeled: default/c",
    )
    no_choice = cluster(
        pod("p", volumes=using("c")),
        persistent_volume_claims=[claim("c", "5Gi")],
        persistent_volumes=[volume("v", "1Gi")],
    )
    assert participation(no_choice) == (Participation.PENDING, "")


def test_pods_that_share_an_unbound_claim_stay_where_they_are() -> None:
    state = cluster(
        pod("p", volumes=using("c")),
        pod("q", volumes=using("c")),
        persistent_volume_claims=[claim("c", cls="dynamic")],
    )
    assert "shared" in participation(state)[1]
    assert "shared" in participation(state, "q")[1]


def test_a_pod_whose_claim_is_being_deleted_stays_where_it_is() -> None:
    going = claim("c", volume="v", meta={"deletionTimestamp": "2026"})
    state = cluster(
        pod("p", "n0", volumes=using("c")), persistent_volume_claims=[going], persistent_volumes=[volume("v")]
    )
    assert participation(state) == (Participation.FIXED, 'persistentvolumeclaim "c" is being deleted')


# -- disks of clouds ------------------------------------------------------------------------------------------

TOO_MANY = ("node(s) exceed max volume count",)


def disks(kind: str, field: str, count: int, start: int = 0) -> list[Manifest]:
    return [{"name": f"d{i}", kind: {field: f"disk-{i}", "readOnly": True}} for i in range(start, start + count)]


@pytest.mark.parametrize(
    ("kind", "field", "labels", "most"),
    [
        ("awsElasticBlockStore", "volumeID", {}, 39),
        ("awsElasticBlockStore", "volumeID", {"node.kubernetes.io/instance-type": "m5.large"}, 25),
        ("awsElasticBlockStore", "volumeID", {"beta.kubernetes.io/instance-type": "t3.nano"}, 25),
        ("awsElasticBlockStore", "volumeID", {"node.kubernetes.io/instance-type": "x.z1d"}, 25),
        ("awsElasticBlockStore", "volumeID", {"node.kubernetes.io/instance-type": "am5.large"}, 39),
        ("gcePersistentDisk", "pdName", {}, 16),
        ("azureDisk", "diskName", {}, 16),
    ],
)
def test_what_a_machine_attaches_if_nobody_says(kind: str, field: str, labels: dict[str, str], most: int) -> None:
    nodes = [node("n0", labels=labels)]
    fits = cluster(pod("p", volumes=disks(kind, field, most)), nodes=nodes)
    assert diagnosis(fits, K24) == {}
    over = cluster(pod("p", volumes=disks(kind, field, most + 1)), nodes=nodes)
    assert diagnosis(over, K24) == {"n0": TOO_MANY}
    assert diagnosis(over, K36) == {}  # the release has no such limits, and the node no CSINode


def test_a_node_says_what_it_attaches_and_equal_disks_count_once() -> None:
    nodes = [node("n0", extended={"attachable-volumes-gce-pd": "3"}), node("n1")]
    held = pod("held", "n0", volumes=disks("gcePersistentDisk", "pdName", 2))
    fits = cluster(held, pod("p", volumes=disks("gcePersistentDisk", "pdName", 2, start=1)), nodes=nodes)
    assert diagnosis(fits, K24) == {}
    over = cluster(held, pod("p", volumes=disks("gcePersistentDisk", "pdName", 3, start=1)), nodes=nodes)
    assert diagnosis(over, K24) == {"n0": TOO_MANY}


def test_a_node_beyond_its_limit_refuses_even_disks_that_it_has() -> None:
    nodes = [node("n0", extended={"attachable-volumes-gce-pd": "1"})]
    held = pod("held", "n0", volumes=disks("gcePersistentDisk", "pdName", 2))
    again = cluster(held, pod("p", volumes=disks("gcePersistentDisk", "pdName", 1)), nodes=nodes)
    assert diagnosis(again, K24) == {"n0": TOO_MANY}


def test_disks_behind_claims_count_by_disk_and_unbound_ones_by_claim() -> None:
    nodes = [node("n0", extended={"attachable-volumes-aws-ebs": "2"})]
    in_tree = storage_class("ebs", "kubernetes.io/aws-ebs")
    bound = volume("v", phase="Bound", awsElasticBlockStore={"volumeID": "disk-0"})
    claims = [claim("b", volume="v"), claim("new", cls="ebs"), claim("other", cls="dynamic")]

    def limited(*names: str) -> Any:
        asking = pod("p", volumes=using(*names))
        held = pod("held", "n0", volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "disk-9"}}])
        return diagnosis(
            cluster(
                held,
                asking,
                nodes=nodes,
                storage_classes=[in_tree, DYNAMIC],
                persistent_volumes=[bound],
                persistent_volume_claims=claims,
            ),
            K24,
        )

    assert limited("b") == limited("new") == limited("b", "other") == {}
    assert limited("b", "new") == {"n0": TOO_MANY}


def test_where_a_driver_took_over_its_own_limit_counts() -> None:
    nodes = [node("n0", extended={"attachable-volumes-aws-ebs": "0"})]
    asking = pod("p", volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}])
    held = pod("held", "n0", volumes=using("c"))
    same = volume("v", phase="Bound", csi={"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"})
    other = volume("v", phase="Bound", awsElasticBlockStore={"volumeID": "aws://us-east-1a/vol-2"})

    def judged(migrated: str, volume_there: Manifest, release: Release) -> Any:
        return diagnosis(
            cluster(
                held,
                asking,
                nodes=nodes,
                csi_nodes=[csi_node("n0", migrated, ebs_csi_aws_com=1)],
                persistent_volumes=[volume_there],
                persistent_volume_claims=[claim("c", volume="v")],
            ),
            release,
        )

    assert judged("", same, K24) == {"n0": TOO_MANY}  # by the limit of old
    assert judged("kubernetes.io/aws-ebs", same, K24) == {}  # one disk, whoever names it
    assert judged("kubernetes.io/aws-ebs", other, K24) == {}  # 1.24 counts the volumes of claims only
    assert judged("", same, K36) == {}
    assert judged("", other, K36) == {"n0": TOO_MANY}  # 1.36 knows in-tree disks as the driver's only


def test_what_was_left_attached_counts_in_releases_that_look() -> None:
    def attached(volume_name: str, to: str) -> Manifest:
        source = {"persistentVolumeName": volume_name}
        return {
            "metadata": {"name": f"{volume_name}-{to}"},
            "spec": {"attacher": "csi.x", "nodeName": to, "source": source},
        }

    handles = {name: {"driver": "csi.x", "volumeHandle": name} for name in ("used", "left", "wanted")}
    state = cluster(
        pod("held", "n0", volumes=using("used")),
        pod("p", volumes=using("wanted")),
        csi_nodes=[csi_node("n0", csi_x=2), csi_node("n1", csi_x=2)],
        persistent_volumes=[volume(name, phase="Bound", csi=csi) for name, csi in handles.items()],
        persistent_volume_claims=[claim("used", volume="used"), claim("wanted", volume="wanted")],
        volume_attachments=[
            attached("used", "n0"),
            attached("left", "n0"),
            attached("left", "n1"),
            attached("gone", "n1"),
            attached("left", "gone"),
        ],
    )
    assert diagnosis(state, K24) == {}
    assert diagnosis(state, K36) == {"n0": TOO_MANY}


def test_a_claim_without_a_snapshot_of_it_is_an_error_of_old() -> None:
    profile_without = {"VolumeBinding", "VolumeRestrictions", "VolumeZone"}
    for release, code in ((K24, Code.ERROR), (K36, Code.UNRESOLVABLE)):
        framework = framework_on(cluster(pod("p", volumes=using("c"))), release)
        framework.pre_filters = [p for p in framework.pre_filters if p.name not in profile_without]
        framework.filters = [framework.plugins["NodeVolumeLimits"]]
        found = framework.run_filters(cycle_of(framework, "p"))
        assert set(found.codes.tolist()) == {code}
        (reason,) = found.why(0).reasons
        assert reason.removeprefix('running "NodeVolumeLimits" filter plugin: ') == (
            'looking up PVC default/c: persistentvolumeclaim "c" not found'
        )
        assert reason.startswith("running") is (code is Code.ERROR)


def test_the_default_profile_has_the_limits_in_upstreams_order() -> None:
    old = default_profile(K24).at("filter")
    limits = old[old.index("VolumeRestrictions") : old.index("VolumeZone") + 1]
    assert limits == [
        "VolumeRestrictions",
        "EBSLimits",
        "GCEPDLimits",
        "NodeVolumeLimits",
        "AzureDiskLimits",
        "VolumeBinding",
        "VolumeZone",
    ]
    new = default_profile(K36).at("filter")
    assert not {"EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"} & set(new)


def test_the_limit_of_a_driver_with_a_long_name_is_found_under_its_hash() -> None:
    assert limit_key("csi.x") == "attachable-volumes-csi-csi.x"
    long = limit_key("a-driver-with-a-name-that-is.far.too.long.for-a-resource.example.com")
    assert long.startswith("attachable-volumes-csi-a-driver-with-a-name-th")
    assert len(long) == len("attachable-volumes-csi-") + 39


# -- what a driver sees of an in-tree disk --------------------------------------------------------------------


def in_tree(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    made = volume("v", **spec)
    made["metadata"]["labels"] = labels or {}
    return snapshot(persistent_volumes=[made]).persistent_volumes[0]


@pytest.mark.parametrize(
    ("written", "handle"),
    [
        ("vol-1", "vol-1"),
        ("anything", "anything"),
        ("aws://us-east-1a/vol-1", "vol-1"),
        ("aws:///vol-1", "vol-1"),
        ("aws://us-east-1a/disk", None),
    ],
)
def test_handles_of_ebs_volumes(written: str, handle: str | None) -> None:
    found = plugin_of(in_tree(awsElasticBlockStore={"volumeID": written}).spec)
    assert found is not None
    assert found[0] is AWS_EBS
    assert AWS_EBS.handle(found[1], EMPTY) == handle


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({ZONE: "us-1a"}, "zones/us-1a"),
        ({ZONE: "us-east1-a__us-east1-b"}, "regions/us-east1"),
        ({ZONE: "us-east1-a__eu-west1-b"}, None),
        ({ZONE: "us-a__us-b"}, None),
    ],
)
def test_handles_of_gce_disks(labels: dict[str, str], place: str | None) -> None:
    disk = in_tree(labels, gcePersistentDisk={"pdName": "d"})
    found = plugin_of(disk.spec)
    assert found is not None
    expected = f"projects/UNSPECIFIED/{place}/disks/d" if place else None
    assert GCE_PD.handle(found[1], disk.metadata.labels) == expected


def test_handles_of_azure_disks() -> None:
    assert AZURE_DISK.handle(AzureDisk("name", "/subscriptions/x"), EMPTY) == "/subscriptions/x"
    assert AZURE_DISK.handle(AzureDisk("name"), EMPTY) is None


def terms(selector: NodeSelector | None) -> list[list[tuple[str, tuple[str, ...]]]]:
    assert selector is not None
    return [[(r.key, r.values) for r in term.match_expressions] for term in selector.node_selector_terms]


def test_a_driver_reads_the_zone_of_an_in_tree_disk_as_its_own() -> None:
    beta = "failure-domain.beta.kubernetes.io/"

    def affinity(**values: str) -> dict[str, Any]:
        keys = {"zone": ZONE, "beta_zone": beta + "zone", "beta_region": beta + "region", "rack": "rack"}
        expressions = [{"key": keys[k], "operator": "In", "values": [v]} for k, v in values.items()]
        return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}

    own = "driver/zone"
    assert terms(driver_affinity(in_tree(**affinity(zone="a", rack="1")), own)) == [[(own, ("a",)), ("rack", ("1",))]]
    renamed = driver_affinity(in_tree(**affinity(beta_zone="a", beta_region="r")), own)
    assert terms(renamed) == [[(own, ("a",)), ("topology.kubernetes.io/region", ("r",))]]
    assert terms(driver_affinity(in_tree({ZONE: "b__a"}), own)) == [[(own, ("a", "b"))]]
    labeled = driver_affinity(in_tree({beta + "zone": "a"}, **affinity(rack="1")), own)
    assert terms(labeled) == [[("rack", ("1",)), (own, ("a",))]]
    assert driver_affinity(in_tree(), own) is None


def test_zone_labels_that_cannot_be_read_are_ignored() -> None:
    assert split_zones("a__ b") == {"a", "b"}
    assert split_zones("a__") is None
    assert split_zones("") is None


@RELEASES
def test_a_zone_label_that_cannot_be_read_keeps_no_node_out(release: Release) -> None:
    state = cluster(
        pod("p", volumes=using("c")),
        nodes=[node("n0", labels={ZONE: "b"}), node("n1")],
        persistent_volume_claims=[claim("c", volume="v")],
        persistent_volumes=[volume("v", phase="Bound", meta={"labels": {ZONE: "a__"}})],
    )
    assert diagnosis(state, release) == {}
    zoned = cluster(
        pod("p", volumes=using("c")),
        nodes=[node("n0", labels={ZONE: "b"}), node("n1")],
        persistent_volume_claims=[claim("c", volume="v")],
        persistent_volumes=[volume("v", phase="Bound", meta={"labels": {ZONE: "a"}})],
    )
    assert diagnosis(zoned, release) == {"n0": ("node(s) had no available volume zone",)}
