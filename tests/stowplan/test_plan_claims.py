"""What ``verify`` makes of plans that are wrong about their tokens, moves, cordons, numbers, or the cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stowplan.answers.verify_plan import verify_plan
from stowplan.cli import run
from stowplan.models.kubernetes.node import NodeCondition
from stowplan.models.plan import MoveDocument, Plan
from stowplan.models.snapshot import Snapshot
from stowplan.plans.cordons import cordon
from stowplan.plans.dry_run import DryRun
from tests.plans.test_drift import PROFILE, SINCE, SOON, cluster, edited, moved, owned, plan
from tests.support.clusters import node
from tests.support.malformed import listed

__all__ = ["cluster", "plan"]


def problems(plan: Plan, snapshot: Snapshot) -> list[str]:
    return verify_plan(snapshot, plan, PROFILE, now=SOON).drift.problems


def with_move(plan: Plan, wave: int, **changes: Any) -> Plan:
    """Return the plan with the first move of a wave changed."""
    old = plan.waves[wave - 1]
    made = old.model_copy(update={"moves": (old.moves[0].model_copy(update=changes), *old.moves[1:])})
    return plan.model_copy(update={"waves": (*plan.waves[: wave - 1], made, *plan.waves[wave:])})


def test_the_plan_holds(plan: Plan, cluster: Snapshot) -> None:
    assert problems(plan, cluster) == []


@pytest.mark.parametrize(
    ("change", "who"),
    [
        ({"owner_uid": "wrong"}, "owner wrong, template h1"),
        ({"template_hash": "wrong"}, "template wrong"),
        ({"pod": "wrong"}, "pod wrong"),
    ],
)
def test_a_token_that_steers_nobody_is_found(plan: Plan, cluster: Snapshot, change: dict[str, str], who: str) -> None:
    wrong = plan.model_copy(update={"tokens": tuple(token.model_copy(update=change) for token in plan.tokens)})
    assert any(who in line and "0 moves go there" in line for line in problems(wrong, cluster))


def test_a_target_that_is_not_in_the_snapshot_is_a_problem(plan: Plan, cluster: Snapshot) -> None:
    assert "node nope is gone" in problems(with_move(plan, 1, target="nope"), cluster)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"executor": "koordinator"}, "the plan is for koordinator, and was made with the settings of eviction-api"),
        ({"least_waves": 9}, "leastWaves is 9, and the plan has 4"),
        ({"cordon": ("nope",)}, "node nope, to be cordoned, is gone"),
        ({"cordon": ("c",)}, "wave 1, m0001, default/db-0: goes to c, which the plan cordons"),
    ],
)
def test_contradictions_are_found(plan: Plan, cluster: Snapshot, change: dict[str, Any], problem: str) -> None:
    assert problem in problems(plan.model_copy(update=change), cluster)


def test_cordons_of_a_wave_are_checked_while_it_lasts(plan: Plan, cluster: Snapshot) -> None:
    def closing(*names: str) -> Plan:
        wave = plan.waves[2].model_copy(update={"cordon": names})
        return plan.model_copy(update={"waves": (*plan.waves[:2], wave, plan.waves[3])})

    assert problems(closing("b", "c"), cluster) == []
    assert "wave 3, m0003, default/api-0: goes to a, which the plan cordons" in problems(closing("a"), cluster)
    assert "node nope, to be cordoned in wave 3, is gone" in problems(closing("nope"), cluster)


def test_cordons_are_rehearsed(cluster: Snapshot) -> None:
    rehearsal = DryRun(cluster, PROFILE)
    rehearsal.evict("default/db-0")
    rehearsal.vanish("default/db-0")
    rehearsal.cordon(["c"])
    refused = rehearsal.refusal("default/db-0", "c")
    assert refused is not None
    assert refused.plugin == "NodeUnschedulable"
    rehearsal.cordon([])
    assert rehearsal.refusal("default/db-0", "c") is None


def test_a_move_follows_one_of_its_own_pod(plan: Plan, cluster: Snapshot) -> None:
    astray = with_move(plan, 4, pod=plan.moves[2].pod)
    assert "m0004, default/api-0: follows m0002, which moves default/web-0" in problems(astray, cluster)
    parted = with_move(plan, 4, source="a")
    assert "m0004, default/web-0: leaves a, and m0002 takes it to c" in problems(parted, cluster)


def test_what_is_drained_is_cordoned(plan: Plan, cluster: Snapshot) -> None:
    settings = plan.settings.model_copy(update={"drain": ("b", "nope")})
    found = problems(plan.model_copy(update={"settings": settings}), cluster)
    assert "node b is to be drained, and the plan does not cordon it" in found
    assert "node nope, to be drained, is gone" in found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"same_name": False}, "m0001, default/db-0: its replacement has its name"),
        ({"requests": {"cpu": "9"}}, "m0001, default/db-0: requests cpu 1"),
        ({"budgets": ("pdb",)}, "m0001, default/db-0: draws on no PodDisruptionBudget, not on PodDisruptionBudget pdb"),
    ],
)
def test_what_is_wrong_about_a_pod_is_found(
    plan: Plan, cluster: Snapshot, change: dict[str, Any], problem: str
) -> None:
    assert any(line.startswith(problem) for line in problems(with_move(plan, 1, **change), cluster))


def test_a_move_to_where_the_pod_stands_is_no_move(plan: Plan) -> None:
    content = plan.moves[0].model_dump(by_alias=True)
    with pytest.raises(ValidationError, match="is the pod's own node"):
        MoveDocument.model_validate({**content, "target": content["source"]})


def test_a_node_that_is_not_ready_is_a_problem(plan: Plan, cluster: Snapshot) -> None:
    def with_ready(status: str) -> Snapshot:
        def said(n: Any) -> Any:
            return replace(n, status=replace(n.status, conditions=(NodeCondition("Ready", status),)))

        return replace(cluster, nodes=tuple(said(n) if n.name == "c" else n for n in cluster.nodes))

    assert problems(plan, with_ready("True")) == []
    for status in ("False", "Unknown"):
        assert problems(plan, with_ready(status)) == ["node c is not ready"]


def test_the_condition_of_a_node_is_read_from_a_dump(tmp_path: Path) -> None:
    from stowplan.instances.load import load

    made = node("a")
    made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "lastHeartbeatTime": SINCE}]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed({"kind": "Node", **made})), encoding="utf-8")
    assert load([str(path)]).nodes[0].not_ready


def test_values_are_claimed_of_no_other_snapshot(plan: Plan, cluster: Snapshot) -> None:
    """A cordon or a pod that terminates changes values: that is the cluster's doing, not a false claim."""
    lying = plan.model_copy(update={"tiers": tuple(tier.model_copy(update={"before": 1e6}) for tier in plan.tiers)})
    assert any("the plan claims" in line for line in problems(lying, cluster))
    for other in (cordon(cluster, ["b"]), edited(cluster, "web-1", deletion_timestamp=SINCE)):
        assert other.fingerprint != cluster.fingerprint
        assert not any("the plan claims" in line for line in problems(lying, other))
    assert not any("the plan claims" in line for line in problems(with_move(lying, 1, target="nope"), cluster))


def test_another_owner_or_pod_of_the_same_name_is_told(plan: Plan, cluster: Snapshot) -> None:
    twin = edited(cluster, "api-0", uid="uid-other", creation_timestamp="2025-01-01T00:00:00Z")
    assert any(
        "another pod of the same name (uid uid-other, planned with uid-api-0)" in p for p in problems(plan, twin)
    )
    (api,) = (p for p in cluster.pods if p.name == "api-0")
    other = replace(api.metadata.owner_references[0], uid="uid-again")
    found = problems(plan, edited(cluster, "api-0", owner_references=(other,)))
    assert any("owned by another ReplicaSet api (uid uid-again, planned with uid-api)" in p for p in found)
    assert problems(plan, moved(cluster, "db-0", "c", "db-0")) == []


def dump_of(path: Path, *items: dict[str, Any]) -> str:
    path.write_text(json.dumps(listed(*items)), encoding="utf-8")
    return str(path)


def cluster_items() -> list[dict[str, Any]]:
    pods = [owned(f"web-{i}", "a", cpu="1500m") for i in range(2)] + [owned("api-0", "b", cpu="1500m")]
    made = [{"kind": "Node", **node(name)} for name in "abc"]
    return made + [{"kind": "Pod", "apiVersion": "v1", **pod} for pod in pods]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_drain_and_a_fit_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    dump, answer = dump_of(tmp_path / "dump.json", *cluster_items()), tmp_path / "answer"
    quick = ("-q", "-t", "1", "--deterministic", "-o", form)
    assert run(["drain", "a", "--from", dump, *quick]) == 0
    answer.write_text(capsys.readouterr().out, encoding="utf-8")
    assert run(["verify", str(answer), dump]) == 0
    said = capsys.readouterr().out
    assert "Verified: 0 of 2 moves done" in said
    assert "the snapshot is not the one" not in said

    waiting = {"kind": "Pod", "apiVersion": "v1", **owned("big-0", "", cpu="3")}
    del waiting["metadata"]["creationTimestamp"]
    pending = dump_of(tmp_path / "pending.json", waiting)
    assert run(["fit", dump, "-f", pending, *quick]) == 0
    answer.write_text(capsys.readouterr().out, encoding="utf-8")
    assert run(["verify", str(answer), dump, pending]) == 0
    assert "Verified" in capsys.readouterr().out
    assert run(["verify", str(answer), dump]) == 1
    assert "default/big-0: is gone" in capsys.readouterr().out
