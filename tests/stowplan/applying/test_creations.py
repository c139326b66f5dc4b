"""Pods that are still to be created when their plan is made: it says what to create and when, and apply waits."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowplan.documents.plan import read_plan
from stowplan.models.plan import OwnerDocument
from stowplan.plans.creations import makes_pod_of, manifest_of
from tests.support.api_server import ApiServer, ByTokens, Cluster
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import BY_KIND
from tests.support.api_server.scheduling import Scheduler, first_fit
from tests.support.applying import FAST, Scene
from tests.support.kubectl import needs_kubectl
from tests.support.plans import move, plan

SEARCH = ("-t", "0.5", "--deterministic", "--partial", "-q")


def of(kind: str, name: str) -> Any:
    owner = OwnerDocument(api_version="", kind=kind, name=name, uid="")
    return move("x-0", None, "n1", owner="").model_copy(update={"owner": owner})


@pytest.mark.parametrize(
    ("kind", "name", "said", "maker", "others"),
    [
        ("ReplicaSet", "big-fit", "the Deployment or ReplicaSet default/big", "big-5d5b", ("big", "big-fit")),
        ("StatefulSet", "db", "StatefulSet default/db", "db", ()),
        ("Job", "once", "Job default/once", "once", ()),
    ],
)
def test_who_makes_the_pods(kind: str, name: str, said: str, maker: str, others: tuple[str, ...]) -> None:
    made = of(kind, name)
    assert manifest_of(made) == said
    assert all(makes_pod_of(made, kind, one) for one in (maker, *others))
    assert not makes_pod_of(made, kind, f"{maker}-5d5b")
    assert not makes_pod_of(made, "DaemonSet", maker)


def large(kind: str) -> list[Object]:
    """Return objects whose pod fits on no node as it is, the pod and what its controller makes included."""
    if kind == "Pod":
        return [bare_pod("shop", "big", None, cpu="3")]
    if kind == "StatefulSet":
        return stateful_set("shop", "big", [""], "3")
    return deployment("shop", "big", [""], "3")


@needs_kubectl
@pytest.mark.parametrize("kind", ["Pod", "StatefulSet", "Deployment"])
def test_fit_says_what_to_create_and_apply_waits_for_it(home: Path, kind: str) -> None:
    manifests = [
        *(namespace(name) for name in ("kube-system", "shop")),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n2", "n3"], "2"),
    ]
    objects = large(kind)
    (given,) = (found for found in objects if found["kind"] == kind)
    del given["metadata"]["uid"]
    (home / "big.yaml").write_text(yaml.safe_dump(given))
    steering: list[Scheduler] = [first_fit]
    with ApiServer(Cluster(manifests, scheduler=lambda store, pod: steering[0](store, pod))) as server:
        shop = Scene(server, plan(), home)
        assert shop.command("snapshot", "-o", "dump.json.gz").returncode == 0
        made = shop.command("fit", "-f", "big.yaml", "dump.json.gz", *SEARCH, "-o", "json")
        assert made.returncode == 0, made.stderr
        (home / "fit.json").write_text(made.stdout)
        shop.plan = read_plan(str(home / "fit.json"))
        steering[0] = ByTokens(shop.plan.tokens)
        name = "the Deployment or ReplicaSet shop/big" if kind == "Deployment" else f"{kind} shop/big"
        assert shop.plan.notes[0] == (
            f"create {name} when wave 2 begins, not before wave 1 is over; apply says when, and waits for its pods"
        )

        def create() -> None:
            while not any(f"create {name} now" in line for line in shop.lines):
                time.sleep(0.05)
            for found in objects:
                if kind == "Pod" or found["kind"] != "Pod":  # else its controller makes it
                    server.store.create(BY_KIND[found["kind"]], found)

        creator = threading.Thread(target=create, daemon=True)
        creator.start()
        result = shop.run(FAST)
        assert result.stopped == ""
        assert [progress.stage for progress in result.ledger.progress.values()] == ["landed", "landed"]
        said = [line for line in shop.lines if line.startswith("wave 2 places ")]
        assert said == [f"wave 2 places {shop.plan.waves[1].moves[0].pod.key}: create {name} now"]


@needs_kubectl
def test_without_it_the_wave_ends_with_what_is_missing(home: Path) -> None:
    manifests = [namespace("kube-system"), namespace("shop"), node("n1")]
    with ApiServer(Cluster(manifests)) as server:
        shop = Scene(server, plan([move("shop/new", None, "n1", owner="", uid="")]), home)
        assert shop.run(timeout=2, pending=1).stopped == (
            "wave 1 is not over after 2 s: shop/new is not ready on n1 (create Pod shop/new now)"
        )
