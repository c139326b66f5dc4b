"""``explain``: what it says of pods and nodes of a small cluster, held against values that are worked out by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import stowplan
from stowplan.cli import run
from stowplan.explaining.node import NodeExplanation
from stowplan.explaining.pending import PendingExplanation
from stowplan.explaining.pod import PodExplanation
from stowplan.models.errors import InputError
from tests.support.clusters import ZONE, Manifest, labels, node, pod
from tests.support.malformed import listed

QUICK = ("-q", "--deterministic", "-t", "1")
OPTIONS = stowplan.Options(time_limit=1, deterministic=True)
SKEW = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels(app="web")}


def web(name: str, at: str | None = None, **more: Any) -> Manifest:
    return pod(name, at, cpu="500m", labels={"app": "web"}, owner="ReplicaSet/web", **more)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Return a cluster of three nodes in two zones, one of them cordoned; ``b`` has the only node that is free."""
    nodes = [
        node("n0", labels={ZONE: "a", "karpenter.sh/nodepool": "b"}),
        node("n1", labels={ZONE: "b"}, unschedulable=True),
        node("n2", labels={ZONE: "a"}),
    ]
    bound = [
        web("web-0", "n0"),
        pod("large-0", "n0", cpu="3", owner="ReplicaSet/large", priority=0),
        pod("large-1", "n2", cpu="2", owner="ReplicaSet/large", priority=100),
        pod("lone", "n1", cpu="100m"),
        pod("agent", "n1", cpu="100m", owner="DaemonSet/agent"),
    ]
    pending = [
        web("skewed", topologySpreadConstraints=[SKEW]),
        pod("huge", cpu="3", owner="ReplicaSet/huge", priority=50, nodeSelector={"karpenter.sh/nodepool": "b"}),
        pod("gated", owner="ReplicaSet/x", schedulingGates=[{"name": "wait"}]),
        pod("fits", cpu="100m", owner="ReplicaSet/y"),
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*nodes, *bound, *pending)))
    return str(path)


def explained(dump: str, key: str, **more: Any) -> PodExplanation:
    told = stowplan.explain(stowplan.load(dump), key, options=OPTIONS, **more)
    assert isinstance(told, PodExplanation)
    return told


def test_a_pod_that_a_spread_constraint_keeps_off(dump: str) -> None:
    told = explained(dump, "default/skewed", search=False)
    results = {one.node: one for one in told.results}
    assert results["n1"].plugin == "NodeUnschedulable"
    assert results["n0"].plugin == results["n2"].plugin == "PodTopologySpread"
    assert results["n0"].reasons == ("node(s) didn't match pod topology spread constraints",)
    assert told.conflict is not None
    # Zone b has no pod of web and only a cordoned node, zone a has one: both rules are needed to leave no node.
    plugins = {rule.origin.plugin for rule in told.conflict.rules}
    assert len(told.conflict.rules) == 2
    assert "PodTopologySpread" in plugins
    changes = [one.changes for one in told.relaxations]
    assert (f"maxSkew 2 over {ZONE}",) in changes
    assert ("uncordon n1",) in changes
    assert all("evict" not in words for (words,) in changes if "n2" in words)


def test_a_pod_for_which_there_is_no_room(dump: str) -> None:
    told = explained(dump, "default/huge")
    assert told.conflict is not None
    rules = {rule.origin.plugin: rule for rule in told.conflict.rules}
    assert set(rules) == {"NodeAffinity", "NodeResourcesFit"}
    # large-0 and web-0 leave half a core of four on n0; n1 has more, but is not of the pool.
    assert rules["NodeResourcesFit"].asked == 3000
    words = [one.changes for one in told.relaxations]
    assert ("1 more node of pool b",) in words
    assert ("request 500m cpu instead of 3",) in words
    (evicting,) = (one for one in told.relaxations if one.victims)
    assert evicting.changes == ("evict 1 pod of priority 0 from n0",)
    assert evicting.victims == ("default/large-0",)
    assert told.solution is not None
    # With others moved it gets in: large-0 fits nowhere beside large-1, so either it waits or huge does.
    assert told.single is None


def test_a_pod_that_has_a_node(dump: str) -> None:
    told = explained(dump, "default/web-0")
    results = {one.node: one for one in told.results}
    assert told.pod.node_name == "n0"
    assert results["n0"].admitted
    assert results["n2"].admitted
    totals = {name: sum((results[name].scores or {}).values()) for name in ("n0", "n2")}
    assert totals == {name: results[name].total for name in totals}
    assert told.greedy == max(totals, key=totals.__getitem__) == "n2"
    assert told.single is not None
    assert told.single.node == "n2"
    (imbalance,) = (one for one in told.single.differences if one.tier.name == "imbalance")
    assert sum(part.change for part in imbalance.parts) == imbalance.after - imbalance.before
    assert told.single.better == (imbalance.after < imbalance.before)


def test_the_best_placement_is_explained_by_what_differs(dump: str) -> None:
    told = explained(dump, "default/fits")
    assert told.placed is not None
    assert told.conflict is None
    if told.instead is not None and not told.instead.broken:
        first = told.instead.differences[0]
        assert first.after < first.before


def test_a_node_that_cannot_be_emptied(dump: str) -> None:
    told = stowplan.explain(stowplan.load(dump), "node/n0", options=OPTIONS)
    assert isinstance(told, NodeExplanation)
    large = next(one for one in told.occupants if one.pod.name == "large-0")
    assert large.admitting == 0
    assert large.target is None
    assert "Insufficient cpu" in large.reason
    small = next(one for one in told.occupants if one.pod.name == "web-0")
    assert (small.admitting, small.target) == (1, "n2")


def test_pending_pods_are_counted(dump: str) -> None:
    told = stowplan.explain(stowplan.load(dump))
    assert isinstance(told, PendingExplanation)
    assert [pod.name for pod in told.admitted] == ["fits"]
    assert len(told.pending) == 4
    found = {(one.plugin, one.pods, one.nodes) for one in told.broken}
    assert ("not queued", 1, 3) in found
    assert ("PodTopologySpread", 1, 2) in found
    assert sum(one.pods for one in told.broken if one.plugin == "NodeResourcesFit") == 1


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["default/skewed"], "PodExplanation"),
        (["pod/default/web-0", "--no-search"], "PodExplanation"),
        (["node/n0"], "NodeExplanation"),
        (["--all"], "PendingExplanation"),
    ],
)
def test_every_form(dump: str, words: list[str], kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = {}
    for form in ("table", "wide", "json", "csv"):
        assert run(["explain", *words, "--from", dump, "-o", form, *QUICK]) == 0
        printed[form] = capsys.readouterr().out
    assert json.loads(printed["json"])["kind"] == kind
    assert len(list(csv.reader(io.StringIO(printed["csv"])))) > 1
    assert printed["table"]


def test_the_answer_comes_first(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "default/huge", "--from", dump, *QUICK]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("default/huge is pending; kube-scheduler finds no node for it; ")
    assert "2 rules in conflict; without any one of them, the others leave it a node:" in printed
    assert "asks for 3 CPU" in printed
    assert "1 more node of pool b → n0-new-1" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["default/none"], "Pod default/none: is not in the snapshot"),
        (["node/none"], "node 'none' is not in the snapshot"),
        (["n0"], "POD|NODE: is 'n0'; must be a pod as NAMESPACE/NAME, or a node as node/NAME"),
        ([], "name one pod or one node, or give --all"),
        (["node/n0", "--all"], "name one pod or one node, or give --all"),
    ],
)
def test_what_cannot_be_explained(
    dump: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *words, "--from", dump]) == 1
    assert message in capsys.readouterr().err


def test_a_finished_pod_has_no_explanation(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(node("n0"), pod("done", "n0", phase="Succeeded"))))
    with pytest.raises(InputError, match="is finished; must be a pod that has a node or waits for one"):
        explained(str(path), "default/done")
