"""What a plan's pin left on bound pods does not bind later plans; what owners ask for does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stowplan.instances.load import load
from stowplan.models.kubernetes import Pod
from stowplan.models.settings import Settings
from stowplan.optimizer.portfolio import Options
from stowplan.planning.drain import drain
from stowplan.settings.terms import Terms
from tests.plans.test_replay import owned
from tests.support.clusters import Manifest, node, pod

PIN = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
ELSEWHERE = {**PIN, "operator": "NotIn", "values": ["n2"]}
PREFERRED = [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]


def affinity(*terms: Manifest, **more: Any) -> Manifest:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}} if terms else {}
    return {"nodeAffinity": {**required, **more}}


def read(folder: Path, asked: Manifest | None, at: str | None = "n1", **labels: str) -> Pod:
    spec = {} if asked is None else {"affinity": asked}
    items = [
        {"apiVersion": "v1", "kind": "Node", **node("n1")},
        {"apiVersion": "v1", "kind": "Pod", **pod("web", at, labels={"app": "web", **labels}, **spec)},
    ]
    path = folder / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return load([str(path)]).pods[0]


OURS = {"stowplan.io/token": "plan-7f3a.0"}


@pytest.mark.parametrize(
    ("pinned", "made"),
    [
        (affinity({"matchFields": [PIN]}), None),
        (affinity({"matchExpressions": [ZONE], "matchFields": [PIN]}), affinity({"matchExpressions": [ZONE]})),
        (affinity({"matchFields": [ELSEWHERE, PIN]}), affinity({"matchFields": [ELSEWHERE]})),
        (
            affinity({"matchExpressions": [ZONE], "matchFields": [PIN]}, {"matchFields": [ELSEWHERE, PIN]}),
            affinity({"matchExpressions": [ZONE]}, {"matchFields": [ELSEWHERE]}),
        ),
        (
            affinity({"matchFields": [PIN]}, preferredDuringSchedulingIgnoredDuringExecution=PREFERRED),
            affinity(preferredDuringSchedulingIgnoredDuringExecution=PREFERRED),
        ),
        ({**affinity({"matchFields": [PIN]}), "podAntiAffinity": {}}, {"podAntiAffinity": {}}),
    ],
)
def test_a_pinned_pod_is_read_as_its_controller_made_it(
    pinned: Manifest, made: Manifest | None, tmp_path: Path
) -> None:
    assert read(tmp_path, pinned, **OURS) == read(tmp_path, made)


def test_a_pin_whose_label_was_taken_off_is_known_by_its_annotation(tmp_path: Path) -> None:
    pinned = pod("web", "n1", labels={"app": "web"}, affinity=affinity({"matchFields": [PIN]}))
    pinned["metadata"] = {**pinned["metadata"], "annotations": {"stowplan.io/pinned-by": "plan-7f3a"}}
    items = [{"apiVersion": "v1", "kind": "Node", **node("n1")}, {"apiVersion": "v1", "kind": "Pod", **pinned}]
    path = tmp_path / "pinned.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert load([str(path)]).pods[0] == read(tmp_path, None)


def test_a_pin_without_the_label_is_the_owners_will(tmp_path: Path) -> None:
    assert read(tmp_path, affinity({"matchFields": [PIN]})).spec.affinity is not None


def test_a_pin_of_a_pod_that_waits_counts(tmp_path: Path) -> None:
    found = read(tmp_path, affinity({"matchFields": [PIN]}), None, **OURS)
    assert found.spec.affinity is not None
    assert found.metadata.labels == {"app": "web", **OURS}


def test_terms_that_the_script_did_not_write_stay(tmp_path: Path) -> None:
    """The script pins all terms or none, and to the node that the pod has."""
    for terms in ([{"matchFields": [PIN]}, {"matchExpressions": [ZONE]}], [{"matchFields": [ELSEWHERE]}]):
        assert read(tmp_path, affinity(*terms), **OURS) == read(tmp_path, affinity(*terms))


def test_a_node_with_pinned_pods_can_be_drained(tmp_path: Path) -> None:
    pinned = owned("web-a", "n1", labels=OURS, affinity=affinity({"matchFields": [PIN]}))
    items = [{"apiVersion": "v1", "kind": "Node", **node(name)} for name in ("n1", "n2")]
    items.append({"apiVersion": "v1", "kind": "Pod", **pinned})
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    options = Options(time_limit=1, deterministic=True)
    answer = drain(load([str(path)]), ["n1"], Settings(executor="eviction-api"), options, Terms())
    assert answer.possible
    assert [move.target for move in answer.planned.plan.moves] == ["n2"]
