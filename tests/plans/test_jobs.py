"""Jobs and controllers that nobody knows: their pods stay unless told otherwise, and Jobs must survive it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from stowplan.models.kubernetes import Job
from stowplan.models.settings import Executor
from stowplan.models.snapshot import Snapshot
from stowplan.plans.movability.causes import Cause
from stowplan.plans.movability.movable import Movability, immovable
from tests.support.clusters import node, pod, snapshot

EVERYBODY: tuple[Executor | None, ...] = ("eviction-api", "descheduler", "koordinator", None)
IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAIL_BY_CODE = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
COUNT_BY_CODE = {**FAIL_BY_CODE, "action": "Count"}


def at_work(pods: int = 1, *, failed: int = 0, annotations: dict[str, str] | None = None, **spec: Any) -> Snapshot:
    """Return a cluster with pods of a Job whose spec is given."""
    from dataclasses import replace

    manifests = [pod(f"import-{i}", "n1", owner="Job/import", annotations=annotations or {}) for i in range(pods)]
    job = {"metadata": {"name": "import", "namespace": "default"}, "spec": spec, "status": {"failed": failed}}
    jobs = TypeAdapter(tuple[Job, ...]).validate_python([job])
    return replace(snapshot(nodes=[node("n1")], pods=manifests), jobs=jobs)


def stays(cluster: Snapshot) -> str:
    """Return why the first pod stays although Jobs may move; empty if it may."""
    blocker = Movability(cluster, "eviction-api", waived=[Cause.JOBS]).blocker(cluster.pods[0])
    return blocker.detail if blocker else ""


@pytest.mark.parametrize("executor", EVERYBODY)
def test_pods_of_jobs_stay(executor: Executor | None) -> None:
    blocker = Movability(at_work(), executor).blocker(at_work().pods[0])
    assert blocker is not None
    assert blocker.cause is Cause.JOBS


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (at_work(backoffLimit=0), "import has failed 0 of 0 times allowed, and 1 of its pods could go"),
        (at_work(backoffLimit=1), ""),
        (at_work(), ""),
        (at_work(failed=6), "import has failed 6 of 6 times allowed, and 1 of its pods could go"),
        (at_work(3, backoffLimit=2), "import has failed 0 of 2 times allowed, and 3 of its pods could go"),
        (at_work(3, backoffLimit=3), ""),
        (at_work(backoffLimit=0, podFailurePolicy={"rules": [IGNORE]}), ""),
        (at_work(backoffLimit=0, podFailurePolicy={"rules": [COUNT_BY_CODE, IGNORE]}), ""),
        (
            at_work(backoffLimit=9, podFailurePolicy={"rules": [FAIL_BY_CODE, IGNORE]}),
            "podFailurePolicy of import may answer with FailJob",
        ),
        (
            at_work(backoffLimit=9, podFailurePolicy={"rules": [{**IGNORE, "action": "FailJob"}]}),
            "podFailurePolicy of import may answer with FailJob",
        ),
        (at_work(backoffLimit=9, podFailurePolicy={"rules": []}), ""),
        (
            at_work(backoffLimitPerIndex=0),
            "import has no retries left for this index (backoffLimitPerIndex 0)",
        ),
        (at_work(backoffLimitPerIndex=1), ""),
        (
            at_work(backoffLimitPerIndex=1, annotations={"batch.kubernetes.io/job-index-failure-count": "1"}),
            "import has no retries left for this index (backoffLimitPerIndex 1)",
        ),
    ],
)
def test_a_job_moves_if_it_survives(cluster: Snapshot, why: str) -> None:
    assert stays(cluster) == why


def test_a_job_that_was_not_dumped_might_fail() -> None:
    cluster = snapshot(nodes=[node("n1")], pods=[pod("import-0", "n1", owner="Job/import")])
    assert stays(cluster) == "import is not in the snapshot"


def test_the_running_time_is_what_is_lost() -> None:
    manifest = pod("import-0", "n1", owner="Job/import")
    manifest["status"]["startTime"] = "2026-06-01T10:00:00Z"
    later = pod("web", "n1", owner="ReplicaSet/web")
    later["status"]["startTime"] = "2026-06-01T12:05:30Z"
    cluster = snapshot(nodes=[node("n1")], pods=[manifest, later])
    assert Movability(cluster, "eviction-api").losses(cluster.pods[0]) == ("2 h 5 min of Job import",)
    assert Movability(cluster, "eviction-api").losses(cluster.pods[1]) == ()
    del manifest["status"]["startTime"]
    cluster = snapshot(nodes=[node("n1")], pods=[manifest])
    assert Movability(cluster, "eviction-api").losses(cluster.pods[0]) == ("unknown running time of Job import",)


@pytest.mark.parametrize(
    ("owner", "version", "moves"),
    [
        ("ReplicaSet", "apps/v1", True),
        ("ReplicaSet", "", True),
        ("StatefulSet", "apps/v1", True),
        ("ReplicationController", "v1", True),
        ("StatefulSet", "apps.kruise.io/v1beta1", False),
        ("InstanceManager", "longhorn.io/v1beta2", False),
    ],
)
def test_only_controllers_that_replace_pods_let_them_go(owner: str, version: str, moves: bool) -> None:
    manifest = pod("web", "n1", owner=f"{owner}/web")
    manifest["metadata"]["ownerReferences"][0]["apiVersion"] = version
    cluster = snapshot(nodes=[node("n1")], pods=[manifest])
    assert (not immovable(cluster, "eviction-api")) == moves
    assert (not immovable(cluster, None)) == moves
    assert not immovable(cluster, "eviction-api", owners=[owner])
    assert bool(immovable(cluster, "eviction-api", owners=["Another"])) != moves
