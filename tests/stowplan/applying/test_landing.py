"""Which new pod replaces which old one."""

from __future__ import annotations

from typing import Any

from stowplan.applying.journal import now
from stowplan.applying.landing import match
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.observations import (
    ObservedMetadata,
    ObservedObject,
    ObservedOwner,
    ObservedSpec,
    PodIdentity,
    seen_pods,
)
from stowplan.applying.records import AnswerRecord, IntentRecord, LandedRecord, WaveRecord
from stowplan.models.plan import MoveDocument
from tests.support.plans import move, plan


def pod(name: str, node: str = "", owner: str = "web", **meta: Any) -> ObservedObject:
    owners = (ObservedOwner(uid=f"uid-{owner}", controller=True),)
    return ObservedObject(
        ObservedMetadata(name, "default", meta.pop("uid", f"uid-{name}"), owner_references=owners, **meta),
        "Pod",
        ObservedSpec(node),
    )


def matched(
    moves: list[MoveDocument], pods: list[ObservedObject], known: set[str] = frozenset(), *more: Any
) -> dict[str, str]:
    """Return the pod that stands for each move, and its node."""
    ledger = ApplyLedger(plan(moves))
    for m in moves:
        if m.kind != "place":
            ledger.take(IntentRecord(at=now(), move=m.id, namespace="default", name=m.pod.name, uid=m.pod.uid))
            ledger.take(AnswerRecord(at=now(), move=m.id, outcome="evicted"))
    ledger.fold(more)
    found = match(moves, ledger, {"uid-web": frozenset(known)}, pods)
    return {m.move.id: f"{m.pod.metadata.name}@{m.pod.node}" if m.pod else "-" for m in found}


A, B = move("web-a", "n1", "n2", id="a"), move("web-b", "n1", "n3", id="b")


def test_a_pod_on_a_target_counts_for_the_move_that_wants_it() -> None:
    assert matched([A, B], [pod("web-x", "n3"), pod("web-y", "n2")]) == {"a": "web-y@n2", "b": "web-x@n3"}


def test_a_pod_that_waits_comes_before_one_that_is_elsewhere() -> None:
    assert matched([A], [pod("web-x", "n9"), pod("web-y")]) == {"a": "web-y@"}
    assert matched([A], [pod("web-x", "n9")]) == {"a": "web-x@n9"}


def test_old_leaving_finished_and_foreign_pods_do_not_count() -> None:
    leaving = pod("web-l", "n2", deletion_timestamp="2026-01-01T00:00:00Z")
    pods = [pod("web-o", "n2"), leaving, pod("api-x", "n2", owner="api")]
    assert matched([A], pods, {"uid-web-o"}) == {"a": "-"}


def waits(name: str, target: str, **more: Any) -> MoveDocument:
    return move(name, None, target, **more)


def test_pending_pods_of_one_owner_may_exchange_their_nodes() -> None:
    """Three pods wait for three nodes, and the scheduler tries them in another order."""
    moves = [waits(f"web-{c}", n, id=c) for c, n in (("p", "n1"), ("q", "n2"), ("r", "n3"))]
    known = {f"uid-web-{c}" for c in "pqr"}
    pods = [pod("web-p", "n2"), pod("web-q", "n3"), pod("web-r")]
    assert matched(moves, pods, known) == {"p": "web-r@", "q": "web-p@n2", "r": "web-q@n3"}


def test_a_pending_pod_and_a_replacement_may_exchange_their_nodes() -> None:
    moves = [A, waits("web-p", "n3", id="p")]
    found = matched(moves, [pod("web-x", "n3"), pod("web-p", "n2")], {"uid-web-p"})
    assert found == {"a": "web-p@n2", "p": "web-x@n3"}


def test_a_pending_pod_of_a_later_wave_may_come_first() -> None:
    first, second = waits("web-p", "n1", id="p"), waits("web-q", "n2", id="q")
    ledger = ApplyLedger(plan([first], [second]))
    early = [pod("web-p"), pod("web-q", "n1")]
    found = {m.move.id: m.pod and m.pod.metadata.name for m in match([first], ledger, {}, early)}
    assert found == {"p": "web-q"}
    ledger.take(LandedRecord(at=now(), move="p", pod="web-q", uid="uid-web-q", node="n1", planned=True))
    seen = {f"default/{name}": PodIdentity(f"uid-{name}", node) for name, node in (("web-p", ""), ("web-q", "n1"))}
    assert ledger.pending(seen) == {"q": "default/web-p"}
    late = [pod("web-p", "n2"), pod("web-q", "n1")]
    assert [m.pod and m.pod.metadata.name for m in match([second], ledger, {}, late)] == ["web-p"]


def test_of_pods_that_wait_any_may_take_the_only_place() -> None:
    """The plan has room for one of three; the scheduler takes another of them than the plan."""
    record = WaveRecord(at=now(), wave=1, known={"uid-web": ("p", "q")}, waiting=("uid-web-p", "uid-web-q"))
    moves, known = [waits("web-p", "n2", id="p")], {"uid-web-p", "uid-web-q"}
    assert matched(moves, [pod("web-p"), pod("web-q", "n2")], known, record) == {"p": "web-q@n2"}
    assert matched(moves, [pod("web-p"), pod("web-q", "n3")], known, record) == {"p": "web-p@"}
    assert matched([A], [pod("web-q"), pod("web-x", "n3")], {"uid-web-q"}, record) == {"a": "web-x@n3"}


def test_a_pod_counts_once() -> None:
    twin = move("web-c", "n1", "n2", id="c")
    assert matched([A, twin], [pod("web-x", "n2")]) == {"a": "web-x@n2", "c": "-"}
    landed = LandedRecord(at=now(), move="a", pod="web-x", uid="uid-web-x", node="n2", planned=True)
    assert matched([A, twin], [pod("web-x", "n2")], set(), landed) == {"c": "-"}


def test_a_pod_may_take_the_place_of_one_that_is_still_to_leave() -> None:
    """Two places on n2 and one on n3; both pods that have left so far were replaced on n2."""
    moves = [A, B, move("web-c", "n1", "n2", id="c")]
    ledger = ApplyLedger(plan(moves))
    for m in moves[:2]:
        ledger.take(IntentRecord(at=now(), move=m.id, namespace="default", name=m.pod.name, uid=m.pod.uid))
        ledger.take(AnswerRecord(at=now(), move=m.id, outcome="evicted"))
    pods = [pod("web-x", "n2"), pod("web-y", "n2")]
    found = {m.move.id: (m.pod and m.pod.metadata.name, m.planned) for m in match(moves, ledger, {}, pods)}
    assert found == {"a": ("web-x", True), "b": ("web-y", True)}
    pods.append(pod("web-z", "n2"))
    assert sum(m.planned for m in match(moves, ledger, {}, pods)) == 2


def test_parked_pods_that_exchanged_their_places() -> None:
    """What goes on from n3 is the pod that stands on n3, whichever move it was counted for."""
    onward = move("web-b", "n3", "n1", id="b2", follows="b")
    ledger = ApplyLedger(plan([A, B], [onward]))
    ledger.take(LandedRecord(at=now(), move="a", pod="web-x", uid="x", node="n3", planned=True))
    ledger.take(LandedRecord(at=now(), move="b", pod="web-y", uid="y", node="n2", planned=True))
    assert (ledger.name(onward), ledger.uid(onward)) == ("web-x", "x")


def test_a_name_that_is_kept() -> None:
    db = move("db-0", "n1", "n2", id="d", same_name=True)
    assert matched([db], [pod("db-0", "n1", "db")]) == {"d": "-"}
    assert matched([db], [pod("db-0", "n2", "db", uid="new")]) == {"d": "db-0@n2"}


def test_a_pod_that_waits_is_itself() -> None:
    waits = move("new", None, "n2", id="p", owner="")
    assert matched([waits], [pod("new", uid="uid-new")]) == {"p": "new@"}
    assert matched([waits], [pod("new", "n2", uid="another")]) == {"p": "-"}


def test_why_a_pod_is_not_ready() -> None:
    def seen(text: str) -> str:
        return seen_pods(f'{{"items": [{{"metadata": {{"name": "a"}}, "status": {text}}}]}}'.encode())[
            0
        ].unready_because

    pulling = '{"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}'
    assert seen(pulling) == "container main: ImagePullBackOff"
    failing = '{"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}'
    assert seen(failing) == "ContainersNotReady"
    assert seen("{}") == ""
