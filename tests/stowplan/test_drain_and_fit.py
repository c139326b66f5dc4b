"""``drain`` and ``fit``: the cheapest plan, held against enumeration, and proofs that there is none."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stowplan.cli import run
from stowplan.models.errors import InputError
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options
from stowplan.planning.drain import Drained, drain
from stowplan.planning.fit import Fitted, admitting, fit
from stowplan.planning.warm_start import make_room
from stowplan.plans.cordons import cordon
from stowplan.report.drain_and_fit import drain_headline
from stowplan.settings.problem import make_problem
from stowplan.settings.terms import Terms
from tests.plans.test_replay import owned
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.malformed import listed

QUICK = Options(time_limit=1, deterministic=True)
SETTINGS = Settings(executor="eviction-api")


def drained(cluster: Snapshot, *nodes: str, settings: Settings = SETTINGS) -> Drained:
    return drain(cluster, nodes, settings, QUICK, Terms())


def fitted(cluster: Snapshot, *keys: str, settings: Settings = SETTINGS) -> Fitted:
    return fit(cluster, admitting(settings, cluster, keys), QUICK, Terms())


def moved(answer: Drained | Fitted) -> set[str]:
    return {move.pod.name for move in answer.planned.plan.moves if move.kind == "evict"}


def random_tiny(choices: Choices, *, wanted: int = 0) -> Snapshot:
    """Build three nodes with up to five pods where there is room, and so many more that wait."""
    nodes = [node(f"n{i}", cpu=choices.one(["2", "3"])) for i in range(3)]
    room = {n["metadata"]["name"]: int(n["status"]["allocatable"]["cpu"]) * 1000 for n in nodes}
    pods = []
    for i in range(choices.integer(1, 5)):
        cpu = choices.one([500, 1000, 1500])
        if fits := [name for name, left in room.items() if left >= cpu]:
            at = choices.one(fits)
            room[at] -= cpu
            pods.append(owned(f"{choices.one('ab')}{i}-x", at, cpu=f"{cpu}m", memory="1Mi"))
    pods += [owned(f"new{i}-x", cpu=choices.one(["1", "1500m", "2500m"]), memory="1Mi") for i in range(wanted)]
    return snapshot(nodes=nodes, pods=pods)


# -- drain ----------------------------------------------------------------------------------------------------


def test_everything_leaves_and_nobody_else_moves() -> None:
    pods = [owned("web-a", "n1"), owned("web-b", "n1"), owned("db-a", "n2", cpu="3"), owned("db-b", "n3", cpu="500m")]
    answer = drained(snapshot(nodes=[node(f"n{i}") for i in (1, 2, 3)], pods=pods), "n1")
    assert answer.possible
    assert moved(answer) == {"web-a", "web-b"}
    assert all(move.target in {"n2", "n3"} for move in answer.planned.plan.moves)
    assert answer.planned.plan.cordon == ("n1",)
    assert [tier.name for tier in answer.planned.plan.tiers][:2] == ["movable pods left to drain", "moves needed"]


def test_others_move_only_to_make_room() -> None:
    pods = [owned("big-a", "n1", cpu="3"), owned("web-a", "n2", cpu="2"), owned("web-b", "n3", cpu="2")]
    answer = drained(snapshot(nodes=[node(f"n{i}") for i in (1, 2, 3)], pods=pods), "n1")
    assert answer.possible
    assert len(moved(answer)) == 2
    assert "big-a" in moved(answer)


def test_pods_that_tolerate_the_cordon_leave_too() -> None:
    everything = [{"operator": "Exists"}]
    pods = [owned("web-a", "n1", tolerations=everything), owned("web-b", "n2", tolerations=everything)]
    answer = drained(snapshot(nodes=[node("n1"), node("n2")], pods=pods), "n1")
    assert answer.possible
    assert moved(answer) == {"web-a"}


def test_what_cannot_leave_is_listed() -> None:
    pods = [
        owned("web-a", "n1"),
        pod("bare", "n1"),
        owned("agent-x", "n1", "DaemonSet"),
        owned("slow-a", "n1", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
    ]
    answer = drained(snapshot(nodes=[node("n1"), node("n2")], pods=pods), "n1")
    assert not answer.possible
    assert {s.pod.name: s.reason for s in answer.stays} == {"bare": "no controller", "slow-a": "safe-to-evict: false"}
    assert all(s.by_rule for s in answer.stays)
    assert answer.ignored == {"DaemonSet": 1}
    assert answer.proof == "2 pods cannot be moved"
    assert moved(answer) == {"web-a"}


def test_no_room_is_proven() -> None:
    pods = [owned("web-a", "n1", cpu="3"), owned("web-b", "n1", cpu="1"), owned("db-a", "n2", cpu="2")]
    answer = drained(snapshot(nodes=[node("n1"), node("n2")], pods=pods), "n1")
    assert not answer.possible
    assert [s.pod.name for s in answer.stays] == ["web-a"]
    assert "Insufficient cpu" in answer.stays[0].reason
    assert answer.proof.startswith("at least 1 pods, by ")
    assert moved(answer) == {"web-b"}


def test_several_nodes_at_once() -> None:
    pods = [owned(f"web-{c}", f"n{i}") for i, c in enumerate("abcd", 1)]
    answer = drained(snapshot(nodes=[node(f"n{i}") for i in range(1, 5)], pods=pods), "n1", "n2", "n3")
    assert answer.possible
    assert moved(answer) == {"web-a", "web-b", "web-c"}
    assert {move.target for move in answer.planned.plan.moves} == {"n4"}


def test_a_pod_that_waits_is_placed_if_a_budget_asks_for_it() -> None:
    """The cheapest way leaves web-b waiting, and then web-a, the only one that is healthy, may not go."""
    waiting = owned("web-b", cpu="3")
    waiting["status"].pop("conditions")
    pods = [owned("web-a", "n1"), waiting, owned("db-a", "n2", cpu="2"), owned("db-b", "n3", cpu="2")]
    budget = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    nodes = [node(f"n{i}") for i in (1, 2, 3)]
    answer = drained(snapshot(nodes=nodes, pods=pods, pod_disruption_budgets=[budget]), "n1")
    assert answer.possible
    assert "web-a" in moved(answer)
    assert len(moved(answer)) == 2
    assert answer.planned.assignment["default/web-b"] in {"n2", "n3"}
    without = drained(snapshot(nodes=nodes, pods=pods), "n1")
    assert moved(without) == {"web-a"}


@cases(10, at_least={"drained": 4}, cluster=drawn(random_tiny))
def test_no_drain_is_cheaper(cluster: Snapshot) -> None:
    """Held against every placement of a tiny cluster: none leaves fewer pods there, or as many with fewer moves."""
    answer = drained(cluster, "n0")
    closed = cordon(cluster, ["n0"])
    best = min(
        (sum(where[p.key] == "n0" for p in cluster.pods), sum(where[p.key] != p.node_name for p in cluster.pods))
        for where in placements(closed)
    )
    tiers = answer.planned.plan.tiers
    assert (tiers[0].after, tiers[1].after) == best
    assert (len(answer.stays), len(moved(answer))) == best
    assert answer.possible == (best[0] == 0)
    assert answer.possible or answer.proof
    count("drained", answer.possible and best[1] > 0)


# -- fit ------------------------------------------------------------------------------------------------------


def fragmented(**spec: Any) -> Snapshot:
    """Three nodes with room for the pod in all, and in none."""
    pods = [owned(f"web-{c}", f"n{i}", cpu="1500m") for i, c in enumerate("abc", 1)]
    return snapshot(nodes=[node(f"n{i}") for i in (1, 2, 3)], pods=[*pods, owned("gpu-a", cpu="4", **spec)])


def test_the_fewest_moves_make_room() -> None:
    answer = fitted(fragmented(), "default/gpu-a")
    assert answer.possible
    assert len(moved(answer)) == 1
    waves = answer.planned.plan.waves
    assert [move.kind for wave in waves for move in wave.moves] == ["evict", "place"]
    assert len(waves) == 2


def test_the_cheapest_moves_make_room() -> None:
    pods = [
        owned(f"web-{c}", f"n{i}", cpu="1500m", annotations={"controller.kubernetes.io/pod-deletion-cost": cost})
        for i, (c, cost) in enumerate(zip("abc", ("1000", "-5", "1000"), strict=True), 1)
    ]
    cluster = snapshot(nodes=[node(f"n{i}") for i in (1, 2, 3)], pods=[*pods, owned("gpu-a", cpu="4")])
    assert moved(fitted(cluster, "default/gpu-a")) == {"web-b"}


def test_a_pod_that_fits_nowhere_is_proven_not_to() -> None:
    cluster = snapshot(nodes=[node("n1"), node("n2")], pods=[owned("web-a", "n1"), owned("huge-a", cpu="5")])
    answer = fitted(cluster, "default/huge-a")
    assert not answer.possible
    assert answer.proof.startswith("at least 1 pods, by ")
    assert "Insufficient cpu" in answer.unscheduled[0].reason
    assert not answer.planned.plan.waves


def test_together_they_do_not_fit() -> None:
    pods = [owned("web-a", "n1", cpu="2"), owned("gpu-a", cpu="4"), owned("gpu-b", cpu="4")]
    answer = fitted(snapshot(nodes=[node("n1"), node("n2")], pods=pods), "default/gpu-a", "default/gpu-b")
    assert len(answer.unscheduled) == 1
    assert answer.proof.startswith("at least 1 pods, by ")


def test_other_pods_that_wait_do_not_count() -> None:
    """A pod that has waited for long looks just like the wanted one, and gets no room at its cost."""
    old, new = owned("gpu-a", cpu="4"), owned("gpu-b", cpu="4")
    cluster = snapshot(nodes=[node("n1"), node("n2", cpu="1")], pods=[owned("web-a", "n1", cpu="500m"), old, new])
    answer = fitted(cluster, "default/gpu-b")
    assert answer.possible
    assert answer.planned.assignment["default/gpu-b"] == "n1"
    assert "default/gpu-a" not in answer.planned.assignment


def test_a_pod_that_is_gated_is_told() -> None:
    answer = fitted(fragmented(schedulingGates=[{"name": "wait"}]), "default/gpu-a")
    assert not answer.possible
    assert "wait" in answer.unscheduled[0].reason or "gate" in answer.unscheduled[0].reason
    assert not answer.planned.plan.waves


@pytest.mark.parametrize("key", ["default/nobody", "default/web-a"])
def test_only_pods_that_wait_can_be_fitted_in(key: str) -> None:
    with pytest.raises(InputError):
        fitted(fragmented(), key)


@cases(6, at_least={"moves make room": 1, "as cheap as enumeration": 4}, cluster=drawn(random_tiny, wanted=2))
def test_no_fit_is_cheaper(cluster: Snapshot) -> None:
    wanted = [p.key for p in cluster.pods if not p.node_name]
    answer = fitted(cluster, *wanted)
    best = min(
        (
            sum(not where[key] for key in wanted),
            sum(where[p.key] != p.node_name for p in cluster.pods if p.node_name),
        )
        for where in placements(cluster)
    )
    tiers = answer.planned.plan.tiers
    assert (tiers[0].bound, tiers[0].after) == (best[0], best[0]) or answer.planned.plan.given_up
    assert (len(answer.unscheduled), len(moved(answer))) == best or answer.planned.plan.given_up
    count("moves make room", best[1] > 0)
    count("as cheap as enumeration", (len(answer.unscheduled), len(moved(answer))) == best)


@cases(20, at_least={"room was made": 1}, cluster=drawn(random_tiny, wanted=2))
def test_the_first_guess_is_a_placement(cluster: Snapshot) -> None:
    """Whatever it finds, the filters admit everybody, nobody has lost a node, and what was tried is undone."""
    compiled = make_problem(cluster, Settings(admit=[p.key for p in cluster.pods if not p.node_name]))
    guess = make_room(compiled, [p for p in cluster.pods if not p.node_name])
    assert guess in [{key: at for key, at in where.items() if at} for where in placements(cluster)]
    count("room was made", any(guess[p.key] != p.node_name for p in cluster.pods if p.node_name))


def test_the_first_guess_clears_the_cheapest_node() -> None:
    pods = [owned("a-x", "n1", cpu="1"), owned("b-x", "n1", cpu="1"), owned("c-x", "n2", cpu="1500m")]
    cluster = snapshot(
        nodes=[node(f"n{i}") for i in (1, 2, 3)], pods=[*pods, owned("d-x", "n3"), owned("gpu-x", cpu="4")]
    )
    compiled = make_problem(cluster, Settings(admit=["default/gpu-x"]))
    guess = make_room(compiled, [cluster.pods[-1]])
    assert guess["default/gpu-x"] in {"n2", "n3"}
    assert sum(guess[p.key] != p.node_name for p in cluster.pods) == 2


def placements(cluster: Snapshot) -> Iterator[Mapping[str, str]]:
    """Yield every placement in which CPU suffices, everyone keeps a node, and nobody comes to a cordoned one."""
    cpu = {p.key: p.spec.containers[0].requests["cpu"] for p in cluster.pods}
    choices = [
        [n.name for n in cluster.nodes if not n.unschedulable or n.name == p.node_name] + ([] if p.node_name else [""])
        for p in cluster.pods
    ]
    for chosen in itertools.product(*choices):
        where = {p.key: at for p, at in zip(cluster.pods, chosen, strict=True)}
        used: Counter[str] = Counter()
        for key, at in where.items():
            used[at] += cpu[key]
        if all(used[n.name] <= n.allocatable["cpu"] for n in cluster.nodes):
            yield where


# -- the commands ---------------------------------------------------------------------------------------------


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    pods = [owned("web-a", "n1"), owned("web-b", "n2", cpu="3"), pod("bare", "n2", cpu="500m")]
    path.write_text(json.dumps(listed(node("n1"), node("n2"), node("n3"), *pods)))
    return str(path)


def out(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run([*arguments, "-q", "-t", "2", "--deterministic"]) == code
    return capsys.readouterr().out


def test_drain_command(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert out(capsys, "drain", "n1", "--from", dump).startswith("Drains n1 with 1 move.")
    text = out(capsys, "drain", "n2", "--from", dump, code=3)
    assert text.startswith("Cannot drain n2: 1 of 2 pods cannot leave (proven: 1 pod cannot be moved).")
    assert "  default/bare on n2: no controller" in text.splitlines()
    document = json.loads(out(capsys, "drain", "n2", "--from", dump, "-o", "json", code=3))
    assert (document["kind"], document["possible"]) == ("Drain", False)
    assert document["plan"]["cordon"] == ["n2"]
    path = tmp_path / "drain.json"
    path.write_text(json.dumps(document))
    assert run(["replay", str(path), dump]) == 0
    assert "1 of 1 pod lands as planned" in capsys.readouterr().out.splitlines()[0]


def test_fit_command(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pending.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod("new", cpu="4")}))
    assert out(capsys, "fit", "-f", str(file), dump).startswith("Fits 1 pod with 0 moves of others.")
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod("new", cpu="5")}))
    assert "(proven: no rearrangement of movable pods makes room)" in out(capsys, "fit", "-f", str(file), dump, code=3)
    document = json.loads(out(capsys, "fit", "-f", str(file), dump, "-o", "json", code=3))
    assert (document["kind"], document["possible"], len(document["unscheduled"])) == ("Fit", False, 1)


def test_fit_takes_pods_of_the_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(node("n1"), owned("web-a", "n1"), pod("new", cpu="2", namespace="shop"))))
    assert out(capsys, "fit", str(path), "--pod", "shop/new").startswith("Fits 1 pod with 0 moves of others.")
    assert run(["fit", str(path), "--pod", "shop/old"]) == 1
    assert "Pod shop/old: is not in the snapshot" in capsys.readouterr().err
    assert run(["fit", str(path)]) == 1
    assert "no pod to fit" in capsys.readouterr().err


def test_what_cannot_be_asked(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["drain", "n9", "--from", dump]) == 1
    assert "node 'n9' is not in the snapshot" in capsys.readouterr().err
    file = tmp_path / "pending.json"
    file.write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}))
    assert run(["fit", "-f", str(file), dump]) == 1
    assert "Deployment default/web: spec.template: has no pod template" in capsys.readouterr().err


def test_a_node_named_twice_is_drained_once() -> None:
    pods = [owned("web-a", "n1")]
    answer = drained(snapshot(nodes=[node("n1"), node("n2")], pods=pods), "n1", "n1")
    assert tuple(answer.nodes) == answer.planned.plan.cordon == ("n1",)
    assert drain_headline(answer) == "Drains n1 with 1 move."


def test_one_pod_that_cannot_be_moved_is_one() -> None:
    answer = drained(snapshot(nodes=[node("n1"), node("n2")], pods=[pod("bare", "n1")]), "n1")
    assert answer.proof == "1 pod cannot be moved"


def test_files_of_pods_are_all_fitted_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def written(name: str, *items: Any) -> str:
        path = tmp_path / name
        path.write_text(json.dumps(listed(*items)), encoding="utf-8")
        return str(path)

    dump = written("dump.json", node("n1"), owned("web-a", "n1", cpu="1"))
    first, second = (written(f"{name}.json", owned(f"{name}-x", cpu="1")) for name in ("one", "two"))
    assert run(["fit", dump, "-f", first, "-f", second, "-q", "-t", "1", "--deterministic", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [pod["name"] for pod in found["wanted"]] == ["one-x", "two-x"]
    again = written("again.json", owned("one-x", cpu="2"))
    assert run(["fit", dump, "-f", first, "-f", again, "-q", "-t", "1", "--deterministic"]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert "one-x" in said.err


def test_a_drain_that_pods_forbid_does_not_say_that_nothing_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tier counts pods that may move, and is called so: 0 of those are left while a bare pod stays."""
    path = tmp_path / "dump.json"
    pods = [owned("web-a", "n1"), pod("bare", "n1", cpu="500m")]
    path.write_text(json.dumps(listed(node("n1"), node("n2"), *pods)))
    lines = out(capsys, "drain", "n1", "--from", str(path), code=3).splitlines()
    assert lines[0] == "Cannot drain n1: 1 of 2 pods cannot leave (proven: 1 pod cannot be moved)."
    plan = next(line for line in lines if line.startswith("Plan: "))
    assert "movable pods left to drain 1 → 0" in plan
