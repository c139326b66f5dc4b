"""``survive``: pods that are pending after each loss, and the fewest moves, held against enumeration."""

from __future__ import annotations

import csv
import io
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

import stowplan
from stowplan.cli import run
from stowplan.models.snapshot import Snapshot
from stowplan.report.survival import show_survival
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import ZONE, labels, node, pod, snapshot
from tests.support.malformed import listed

QUICK = stowplan.Options(time_limit=1, deterministic=True)
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": labels(app="db")}
        ]
    }
}


@dataclass(frozen=True)
class Small:
    """A cluster of few pods that take CPU, avoid each other, and may need a disk, in plain words."""

    room: Mapping[str, int]
    zone: Mapping[str, str]
    ssd: frozenset[str]
    cpu: Mapping[str, int]
    apart: frozenset[str]
    needs_ssd: frozenset[str]
    at: Mapping[str, str]

    def snapshot(self) -> Snapshot:
        """Return the cluster as stowplan reads it."""
        nodes = [
            node(name, cpu=f"{cpu}m", labels={ZONE: self.zone[name], **({"disk": "ssd"} if name in self.ssd else {})})
            for name, cpu in self.room.items()
        ]
        pods = [
            pod(
                name,
                at,
                cpu=f"{self.cpu[name]}m",
                memory="1Mi",
                owner=f"ReplicaSet/{name}",
                labels={"app": "db" if name in self.apart else "web"},
                **({"affinity": APART} if name in self.apart else {}),
                **({"nodeSelector": {"disk": "ssd"}} if name in self.needs_ssd else {}),
            )
            for name, at in self.at.items()
        ]
        return snapshot(nodes=nodes, pods=pods)

    def is_legal(self, at: Mapping[str, str]) -> bool:
        """Whether all pods fit where they are, by arithmetic of its own."""
        for name, room in self.room.items():
            here = [key for key, where in at.items() if where == name]
            if sum(self.cpu[key] for key in here) > room or len(self.apart & set(here)) > 1:
                return False
            if name not in self.ssd and self.needs_ssd & set(here):
                return False
        return True

    def pending_after(self, at: Mapping[str, str], zone: str) -> int:
        """Return how many pods are without a node at least when a zone is lost and no other pod moves."""
        left = [name for name in self.room if self.zone[name] != zone]
        stay = {key: where for key, where in at.items() if where in left}
        gone = [key for key in at if key not in stay]
        fewest = len(gone)
        for choice in itertools.product([None, *left], repeat=len(gone)):
            new = {key: where for key, where in zip(gone, choice, strict=True) if where is not None}
            if len(gone) - len(new) < fewest and self.is_legal(stay | new):
                fewest = len(gone) - len(new)
        return fewest

    def fewest_moves(self) -> int | None:
        """Return how few moves lead to a placement from which every zone can be lost; ``None`` if there is none."""
        found = None
        for choice in itertools.product(self.room, repeat=len(self.at)):
            at = dict(zip(self.at, choice, strict=True))
            moves = sum(self.at[key] != where for key, where in at.items())
            if (found is None or moves < found) and self.is_legal(at) and self.survives(at):
                found = moves
        return found

    def survives(self, at: Mapping[str, str]) -> bool:
        """Whether no pod is pending, whichever zone is lost."""
        return not any(self.pending_after(at, zone) for zone in sorted(set(self.zone.values())))


def small(choices: Choices) -> Small:
    """Draw four nodes in three or four zones, and four or five pods that are where they may be."""
    nodes = [f"n{i}" for i in range(4)]
    room = dict.fromkeys(nodes, 2000)
    zone = dict(zip(nodes, choices.one(["abcd", "abcd", "abca"]), strict=True))
    ssd = frozenset(name for name in nodes if choices.one([True, True, False]))
    wanted = [f"p{i}" for i in range(choices.integer(4, 5))]
    cpu = {name: choices.one([500, 1000, 1500, 2000]) for name in wanted}
    apart = frozenset(name for name in wanted if choices.one([True, False, False]))
    needs = frozenset(name for name in wanted if choices.one([True, False, False, False]))
    whole = Small(room, zone, ssd, cpu, apart, needs, {})
    at: dict[str, str] = {}
    for name in wanted:
        fitting = [where for where in nodes if whole.is_legal(at | {name: where})]
        if fitting:
            at[name] = choices.one(fitting)
    return Small(room, zone, ssd, cpu, apart, needs, at)


@cases(24, at_least={"survives": 2, "moves": 3, "proven fewest": 2, "impossible": 3}, cluster=drawn(small))
def test_losses_and_moves_are_those_of_enumeration(cluster: Small) -> None:
    found = stowplan.survive(cluster.snapshot(), options=QUICK)
    for loss in found.losses:
        fewest = cluster.pending_after(cluster.at, loss.domain.name)
        assert (len(loss.pending), loss.at_least, loss.proven) == (fewest, fewest, True)
        assert loss.left >= fewest
        assert found.impossible.get(loss.domain.name, 0) <= fewest
    assert found.survives == cluster.survives(cluster.at)
    fewest_moves = cluster.fewest_moves()
    if found.impossible:
        count("impossible")
        assert fewest_moves is None
    if found.survivor is None:
        return
    moves = found.survivor.moves
    at = dict(cluster.at) | {move.pod.name: move.target for move in moves}
    assert cluster.is_legal(at)
    for loss in found.losses:
        if loss.domain.name not in found.impossible:
            assert not cluster.pending_after(at, loss.domain.name)
    if not found.impossible:
        assert fewest_moves is not None
        assert found.survivor.least <= fewest_moves <= len(moves)
        count("moves" if moves else "survives")
        if moves and found.survivor.proven:
            count("proven fewest")


def test_the_time_limit_is_for_all_domains_together_and_what_it_does_not_suffice_for_is_named() -> None:
    crowded = stowplan.synthetic_snapshot(nodes=60, pods=600, fill=0.95)
    names = [one.name for one in crowded.nodes]
    began = time.monotonic()
    found = stowplan.survive(crowded, "node", options=stowplan.Options(time_limit=2))
    assert time.monotonic() - began < 20  # a second for each of the domains would be a minute
    assert [loss.domain.name for loss in found.losses] + [one.name for one in found.untried] == names
    assert not any(loss.proven for loss in found.losses if loss.pending and loss.at_least == 0)
    assert found.survivor is None
    stop = stowplan.Stop()
    stop.set()
    stopped = stowplan.survive(crowded, "node", options=QUICK, stop=stop)
    assert not stopped.losses
    assert not stopped.survives
    console = Console(width=100, record=True, file=io.StringIO())
    show_survival(console, stopped)
    printed = console.export_text()
    assert "It is not known which pods would be pending." in printed
    assert "Not looked at before the end of the time: 60 domains (" in printed


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Three zones, of which each has room for what another one holds."""
    nodes = [node(f"n{i}", cpu="343"[i], labels={ZONE: "abc"[i]}) for i in range(3)]
    pods = [
        pod("large", "n0", cpu="3", memory="1Mi", owner="ReplicaSet/large"),
        pod("small", "n2", cpu="1", memory="1Mi", owner="ReplicaSet/small"),
        pod("agent", "n0", cpu="0", memory="1Mi", owner="DaemonSet/agent"),
        pod("waiting", cpu="9", memory="1Mi", owner="ReplicaSet/waiting"),
        pod("other", "n1", cpu="1", memory="1Mi", owner="ReplicaSet/other"),
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*nodes, *pods)))
    return str(path)


WORDS = ("-q", "-t", "2", "--deterministic")


def test_a_cluster_that_survives_says_so(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The large pod fits beside the one on n1, and all three others together fit on n1 or n0."""
    assert run(["survive", dump, *WORDS]) == 0
    text = capsys.readouterr().out
    assert "No pod is pending, whichever of 3 domains is lost." in text
    assert run(["survive", dump, *WORDS, "--topology", "kubernetes.io/hostname", "--freeze", "pod-x=y"]) == 0


def test_documents_and_rows_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = [
        *(node(f"n{i}", cpu="2", labels={ZONE: "abc"[i]}) for i in range(3)),
        pod("big", "n0", cpu="2", memory="1Mi", owner="ReplicaSet/big"),
        pod("one", "n1", cpu="1", memory="1Mi", owner="ReplicaSet/one"),
        pod("two", "n2", cpu="1", memory="1Mi", owner="ReplicaSet/two"),
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*cluster)))
    assert run(["survive", str(path), *WORDS, "-o", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "Survival"
    assert (document["key"], document["survives"]) == (ZONE, False)
    by_name = {loss["domain"]: loss for loss in document["losses"]}
    # Two full nodes of one pod each leave no room for the big one; with both small ones on one node there is.
    assert [one["pod"]["name"] for one in by_name["a"]["pending"]] == ["big"]
    assert (by_name["a"]["atLeast"], by_name["a"]["proven"], by_name["a"]["impossible"]) == (1, True, 0)
    assert not by_name["b"]["pending"]
    # When the node of both is lost, they need a node of their own, which is there: the one that they left.
    survivor = document["survivor"]
    assert (len(survivor["moves"]), survivor["leastMoves"], survivor["proven"]) == (1, 1, True)
    assert run(["survive", str(path), *WORDS]) == 3
    text = capsys.readouterr().out
    assert "1 of 3 domains leaves pods pending when lost (proven)." in text
    assert "After 1 move (proven fewest), no pod is pending whichever is lost." in text
    assert "a: default/big: 0/2 nodes are available: 2 Insufficient cpu." in text
    assert run(["survive", str(path), *WORDS, "-o", "csv"]) == 3
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["domain", "nodes", "displaced", "pending", "at least", "kube-scheduler", "with moves at least"]
    assert rows[1] == ["a", "1", "1", "1", "1", "1", "0"]
    assert run(["survive", str(path), *WORDS, "--nodes", "--freeze", "default"]) == 3
    assert "No moves are enough to survive the loss of n0 (proven)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--zones", "--nodes"), "--zones, --nodes, --topology: exclude each other; give one"),
        (("--topology", "rack"), "no node of the snapshot has the label rack"),
        (("--topology", "region"), "topology.kubernetes.io/region"),
    ],
)
def test_what_cannot_be_asked_gets_one_line(
    words: tuple[str, ...], told: str, dump: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["survive", dump, *WORDS, *words]) == 1
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1
