"""Before a wave, Jobs of which pods are still to be evicted must survive that, as the cluster is then."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stowplan.applying.jobs import failing_jobs
from stowplan.applying.ledger import ApplyLedger
from stowplan.instances.documents import Document
from stowplan.instances.manifests import read_snapshot
from stowplan.models.plan import Plan
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, namespace, node
from tests.support.api_server.resources import JOBS, PODS
from tests.support.api_server.workloads import TRACKING
from tests.support.applying import UNUSED, scene
from tests.support.kubectl import needs_kubectl
from tests.support.moving import Moving
from tests.support.plans import plan

UID = "uid-of-import"


def at_work(*, failed: int = 0, limit: int = 2, leaving: bool = False) -> list[Object]:
    """Return three nodes, and a Job with three pods on the first of them."""
    job: Object = {
        "kind": "Job",
        "metadata": {"name": "import", "namespace": "shop", "uid": UID},
        "spec": {"backoffLimit": limit, "parallelism": 2},
        "status": {"failed": failed},
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "import", "uid": UID, "controller": True}
    pods = [bare_pod("shop", f"import-{i}", "n1") for i in "abc"]
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [owner]
    if leaving:
        pods[2]["metadata"] |= {"deletionTimestamp": "2126-11-21T10:00:00Z", "finalizers": ["example.com/hold"]}
    return [namespace("kube-system"), namespace("shop"), *(node(f"n{i}") for i in (1, 2, 3)), job, *pods]


def two_moves(objects: list[Object], *waived: str) -> Plan:
    m = Moving(objects)
    made = plan([m.move("shop/import-a", "n2")], [m.move("shop/import-b", "n3")])
    settings = made.settings.model_copy(update={"may_move": ("jobs", *waived)})
    return made.model_copy(update={"settings": settings})


def two_moves_of(objects: list[Object], waived: str) -> Plan:
    return two_moves(objects, waived)


def problems(objects: list[Object], made: Plan) -> list[str]:
    """Return what is said before the first wave."""
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": [versioned(item) for item in objects]}).encode()
    cluster = read_snapshot(iter([Document("cluster", data)]))
    return list(failing_jobs(made, ApplyLedger(made, lambda record: None), cluster))


def versioned(item: Object) -> Object:
    return {"apiVersion": "batch/v1" if item["kind"] == "Job" else "v1", **item}


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({}, ""),
        ({"failed": 1, "limit": 3}, ""),
        ({"failed": 1}, "import has failed 1 of 2 times allowed, and 2 of its pods could go"),
        ({"leaving": True}, "import has failed 0 of 2 times allowed, and 3 of its pods could go"),
        ({"limit": 1}, "import has failed 0 of 1 times allowed, and 2 of its pods could go"),
    ],
)
def test_what_has_failed_leaves_and_is_still_evicted_counts(job: dict[str, Any], said: str) -> None:
    """The third pod does not move, so it counts only if it leaves by itself."""
    objects = at_work(**job)
    expected = [f"pod shop/import-{i}: its Job might not survive the eviction: {said}" for i in "ab"]
    assert problems(objects, two_moves(objects)) == (expected if said else [])


def test_a_job_that_cannot_be_seen_is_not_taken_for_one_that_survives() -> None:
    objects = at_work()
    unseen = [item for item in objects if item["kind"] != "Job"]
    assert all("import is not in the snapshot" in line for line in problems(unseen, two_moves(objects)))
    assert len(problems(unseen, two_moves(objects))) == 2


@pytest.mark.parametrize("waived", ["job-fails", "everything"])
def test_a_plan_that_accepted_the_loss_goes_on(waived: str) -> None:
    objects = at_work(failed=2)
    assert not problems(objects, two_moves(objects, waived))


@needs_kubectl
def test_a_job_that_has_failed_since_stops_the_plan(home: Path) -> None:
    without = [plural for plural in UNUSED if plural != "jobs"]
    with scene(home, at_work(failed=2), two_moves, without=without) as shop:
        stopped = shop.run().stopped
        assert stopped.startswith("the cluster has changed before wave 1: pod shop/import-a: its Job might not survive")
        assert not shop.server.evictions


def controlled(limit: int, **policy: Any) -> list[Object]:
    """Return the same cluster, with a Job that makes its pods again."""
    *rest, job, first, second, third = at_work(limit=limit)
    pods = [first, second, third]
    spec = {key: value for key, value in first["spec"].items() if key != "nodeName"}
    job["spec"] |= {"parallelism": 3, "template": {"spec": spec}, **policy}
    for pod in pods:
        pod["metadata"]["finalizers"] = [TRACKING]
    return [*rest, job, *pods]


IGNORED = {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}


@needs_kubectl
@pytest.mark.parametrize(("limit", "policy", "failed"), [(2, {}, 2), (0, IGNORED, 0)])
def test_a_job_that_survives_makes_its_pods_again_where_they_are_planned(
    home: Path, limit: int, policy: dict[str, Any], failed: int
) -> None:
    without = [plural for plural in UNUSED if plural != "jobs"]
    with scene(home, controlled(limit, **policy), two_moves, without=without) as shop:
        applied = shop.run()
        assert not applied.stopped
        job = shop.server.store.get(JOBS, "shop", "import")
        assert job["status"].get("failed", 0) == failed
        assert "conditions" not in job["status"]
        nodes = sorted(pod["spec"]["nodeName"] for pod in shop.server.store.all(PODS, "shop"))
        assert nodes == ["n1", "n2", "n3"]


@needs_kubectl
def test_a_job_without_retries_is_lost_where_that_was_accepted(home: Path) -> None:
    """What the eviction costs on a real control plane: the Job fails, and the work of all its pods is gone."""
    without = [plural for plural in UNUSED if plural != "jobs"]
    with scene(home, controlled(0), partial(two_moves_of, waived="job-fails"), without=without) as shop:
        shop.run()
        shop.server.cluster.settle()
        job = shop.server.store.get(JOBS, "shop", "import")
        assert [c["reason"] for c in job["status"]["conditions"]] == ["BackoffLimitExceeded"]
        assert not shop.server.store.all(PODS, "shop")
        assert len(shop.server.evictions) == 1
