"""Before a wave, Jobs of which pods are still to be evicted must survive that, as the cluster is then."""

from __future__ import annotations

import json
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
