"""The rights of both accounts are those that the commands use: no request beyond them, and none of them unused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.models.plan import Plan
from tests.support.api_server.errors import Object
from tests.support.api_server.manifests import bare_pod, deployment, namespace, node, stateful_set
from tests.support.api_server.resources import PODS
from tests.support.applying import Scene, scene
from tests.support.kubectl import needs_kubectl
from tests.support.kustomized import all_rendered
from tests.support.moving import Moving
from tests.support.plans import plan
from tests.support.rights import Right, asked, enforce, granted

pytestmark = needs_kubectl
WEB, DB = "shop/web-5d5b-aaaab", "shop/db-0"
OWNED = {"Job": "batch/v1", "ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
"""Kinds of controllers whose pods may be moved."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shop() -> list[Object]:
    return [
        namespace("kube-system"),
        namespace("shop"),
        *(node(name) for name in ("n1", "n2", "n3")),
        *deployment("shop", "web", ["n1", "n2"]),
        *stateful_set("shop", "db", ["n1"]),
    ]


def carried_out(manifests: list[Object]) -> Plan:
    """Return a plan of two waves that cordons a node."""
    m = Moving(manifests)
    return plan([m.move(DB, "n3")], [m.move(WEB, "n3")], cordon=("n1",))


def owned() -> list[Object]:
    """Return a pod of each kind of controller."""
    found = [namespace("kube-system"), namespace("shop"), node("n1"), node("n2")]
    for kind, version in OWNED.items():
        pod = bare_pod("shop", f"pod-of-{kind.lower()}", "n1", cpu="100m")
        owner = {"apiVersion": version, "kind": kind, "name": kind.lower(), "uid": f"uid-{kind}", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        found.append(pod)
    return found


def gone_away(manifests: list[Object]) -> Plan:
    """Return a plan that moves all of them."""
    m = Moving(manifests)
    return plan([m.move(f"shop/pod-of-{kind.lower()}", "n2") for kind in OWNED])


def applied(found: Scene, *more: str) -> int:
    """Run ``apply`` with what it does unless told otherwise, and return its exit code."""
    kubeconfig = ["--kubeconfig", str(found.kubeconfig)]
    return run(["apply", "plan.json", "--yes", "--unsteered", "--poll", "0.1", "-q", *kubeconfig, *more])


@pytest.fixture
def evictor(home: Path) -> set[Right]:
    """Return what is asked for while plans are carried out: one to its end, in two runs; one whose pods are gone."""
    rights = granted(all_rendered(), "stowplan-apply")
    found: set[Right] = set()
    with scene(home, shop(), carried_out, without=()) as whole:
        enforce(whole.server, rights)
        assert applied(whole, "--stop-after-wave", "1") == 0
        assert applied(whole) == 0
        whole.check_done()
        found |= asked(whole.server)
    with scene(home, owned(), gone_away, without=()) as missing:
        enforce(missing.server, rights)
        for kind in OWNED:
            missing.server.store.delete(PODS, "shop", f"pod-of-{kind.lower()}", {"gracePeriodSeconds": 0})
        assert applied(missing, "--journal", "second.journal") == 0
        assert not missing.server.evictions
        found |= asked(missing.server)
    return found


@pytest.fixture
def reader(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Right]]:
    """Yield what was asked for while a snapshot was taken and a plan made."""
    with scene(home, shop(), carried_out, without=()) as found:
        enforce(found.server, granted(all_rendered(), "stowplan-plan"))
        monkeypatch.setenv("KUBECONFIG", str(found.kubeconfig))
        assert run(["snapshot", "-o", "cluster.json.gz"]) == 0
        assert run(["plan", "--live", "-q", "-t", "0.2", "--deterministic", "--no-protection-costs"]) == 0
        yield asked(found.server)


def compare(account: str, used: set[Right]) -> None:
    """Hold requests against the roles of an account, both ways."""
    rights = granted(all_rendered(), account)
    assert len(rights) == len(set(rights)), "a right is granted twice"
    assert not sorted(request for request in used if not any(right.covers(request) for right in rights))
    assert not sorted(right for right in rights if not any(right.covers(request) for request in used))


def test_who_plans_asks_for_what_the_role_grants(reader: set[Right]) -> None:
    compare("stowplan-plan", reader)


def test_who_applies_asks_for_what_the_roles_grant(evictor: set[Right]) -> None:
    assert any(right.resource == "pods/eviction" for right in evictor)
    compare("stowplan-apply", evictor)


def test_a_right_that_is_missing_or_unused_would_be_noticed(reader: set[Right]) -> None:
    with pytest.raises(AssertionError, match="secrets"):
        compare("stowplan-plan", reader | {Right("list", "secrets")})
    with pytest.raises(AssertionError, match="csidrivers"):
        compare("stowplan-plan", {right for right in reader if "csidrivers" not in right.resource})
    with pytest.raises(AssertionError, match="other-lease"):
        compare(
            "stowplan-apply", reader | {Right("update", "leases.coordination.k8s.io", "kube-system", "other-lease")}
        )


def test_a_server_refuses_what_is_not_granted(home: Path) -> None:
    with scene(home, shop(), carried_out, without=()) as found:
        enforce(found.server, granted(all_rendered(), "stowplan-plan"))
        assert applied(found) == 1
        assert not found.server.evictions
        assert found.standing() == found.before


def test_a_server_records_what_it_is_asked_for(home: Path) -> None:
    with scene(home, shop(), carried_out, without=()) as found:
        assert asked(found.server) == set()
        found.kubectl.find("node", "n1")
        assert asked(found.server) == {Right("get", "nodes", "", "n1")}
