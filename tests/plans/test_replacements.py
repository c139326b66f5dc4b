"""Which pods stand in for one another, by the one rule that all parts share."""

from __future__ import annotations

import pytest

from stowplan.models.plan import MoveDocument
from stowplan.plans.drift import examine
from stowplan.plans.replacements import group_of_move, group_of_pod, group_of_token, pods_of_pending
from stowplan.plans.tokens import tokens
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.plans.test_drift import owned
from tests.support.clusters import node, snapshot
from tests.support.plans import move, plan


def waits(name: str, target: str) -> MoveDocument:
    return move(name, None, target, id=name)


@pytest.mark.parametrize("name", ["web-a", "new"])
@pytest.mark.parametrize("source", [None, "n1"])
@pytest.mark.parametrize("same_name", [False, True])
def test_a_move_and_its_token_speak_of_the_same_pods(name: str, source: str | None, same_name: bool) -> None:
    made = move(name, source, "n2", same_name=same_name)
    (token,) = tokens(plan([made]).waves)
    assert group_of_token(token) == group_of_move(made)


def test_pods_of_a_replica_set_stand_in_for_each_other_and_those_of_a_stateful_set_do_not() -> None:
    pods = snapshot(
        nodes=[node("a")],
        pods=[owned("web-0", "a"), owned("web-1", "a"), owned("db-0", "a", "StatefulSet"), owned("db-1", "a")],
    ).pods
    web_0, web_1, db_0, other = (group_of_pod(pod) for pod in pods)
    assert web_0 == web_1 != other
    assert (db_0.pod, web_0.pod) == ("db-0", "")
    assert web_0.admits("default", "web-9", "uid-web", ("h1",))
    assert not web_0.admits("default", "web-9", "uid-web", ("h2",))
    assert not web_0.admits("pay", "web-9", "uid-web", ("h1",))


def test_pending_pods_are_told_by_where_they_are() -> None:
    moves = [waits("web-a", "n1"), waits("web-b", "n2"), waits("web-c", "n3"), waits("api-a", "n1")]
    where = {"default/web-a": "n2", "default/web-b": "", "default/web-c": "n9", "default/api-a": ""}
    assert pods_of_pending(moves, where) == {
        "web-a": "default/web-b",
        "web-b": "default/web-a",
        "web-c": "default/web-c",
        "api-a": "default/api-a",
    }


def test_verify_lets_pending_pods_of_one_owner_exchange_their_nodes() -> None:
    def cluster(first: str, second: str) -> list[str]:
        found = snapshot(nodes=[node("a"), node("b"), node("c")], pods=[owned("web-0", first), owned("web-1", second)])
        made = plan([move("web-0", None, "a", id="m1")], [move("web-1", None, "b", id="m2")])
        made = made.model_copy(update={"snapshot": made.snapshot.model_copy(update={"nodes": 3, "pods": 2})})
        drift = examine(made, found, default_profile(K36))
        return drift.done

    assert cluster("a", "b") == cluster("b", "a") == ["m1", "m2"]
    assert cluster("b", "c") == ["m2"]
