"""Pods that no node admits: the conflict is minimal, and what is proposed admits them."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import count, islice

import numpy as np
import pytest
from rich.console import Console

from stowplan.documents.explanation import pod_document
from stowplan.explaining.check import Check
from stowplan.explaining.conflict import conflict_of, minimal_core
from stowplan.explaining.loosening import loosenings
from stowplan.explaining.making_room import evictions, more_nodes
from stowplan.explaining.pod import PodExplanation, explain_pod
from stowplan.explaining.relaxations import relaxations
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.models.stop import Stop
from stowplan.optimizer.deadline import Deadline
from stowplan.plugins_compat.admission import populated
from stowplan.report.explained_pod import show_pod
from stowplan.settings.problem import make_problem
from tests.support.cases import WANTED
from tests.support.clusters import node, pod, snapshot
from tests.support.unplaceable import DEDICATED, KEY, cases_of, check, class_of, has_legal_node, scheduled

NUMBER = max(25, WANTED)


def test_conflicts_are_minimal_and_proposals_admit() -> None:
    told = [check(cluster) for cluster in islice(cases_of(count()), NUMBER)]
    conflicts = [one.conflict for one in told if one.conflict is not None]
    assert len(conflicts) == NUMBER
    assert any(len(conflict.rules) > 1 for conflict in conflicts)
    assert all(one.relaxations for one in told)
    assert any(len(relaxation.changes) > 1 for one in told for relaxation in one.relaxations)


def test_a_stop_and_the_end_of_the_time_end_proposals_and_name_what_is_left() -> None:
    told = next(one for one in map(check, islice(cases_of(count()), NUMBER)) if one.relaxations)
    compiled, stop = told.compiled, Stop()
    framework = populated(compiled.snapshot, compiled.profile, compiled.snapshot.assignment)
    everything = relaxations(compiled.snapshot, framework, told.pod)
    assert everything.found
    assert not everything.untried
    late = relaxations(compiled.snapshot, framework, told.pod, seconds=0)
    assert (list(late.found), late.interrupted) == ([], False)
    assert {"evictions", "combinations"} <= set(late.untried)
    stop.set()
    stopped = relaxations(compiled.snapshot, framework, told.pod, stop=stop)
    assert (list(stopped.found), list(stopped.untried), stopped.interrupted) == ([], list(late.untried), True)


def test_a_stop_ends_the_search_for_a_conflict_with_what_is_known() -> None:
    ended = 0
    for cluster in islice(cases_of(count()), NUMBER):
        compiled = make_problem(cluster, Settings())
        cls = class_of(compiled)
        framework = populated(cluster, compiled.profile, cluster.assignment)
        diagnosis = framework.run_filters(framework.cycle(cluster.pods[-1]))
        asked = len(compiled.problem.rules)
        for calls in (0, 1, asked // 2, asked + 1, asked + 2):
            left = iter(range(calls))
            found = conflict_of(compiled.problem, cls, framework, diagnosis, lambda left=left: next(left, None) is None)
            assert found is not None
            assert np.any([rule.blocks for rule in found.rules], axis=0).all()
            assert found.minimal <= all(len(found.alone(rule)) for rule in found.rules)
            if not found.by_filters:
                rules = tuple(compiled.problem.rules[rule.index] for rule in found.rules if rule.index is not None)
                assert not has_legal_node(replace(compiled.problem, rules=rules), cls)
            ended += not found.minimal
    assert ended


def test_a_stop_before_everything_is_told_with_what_the_filters_say() -> None:
    stop = Stop()
    stop.set()
    cluster = next(cluster for cluster in cases_of(count()) if len(explained(cluster).conflict.rules) > 1)
    told = explained(cluster, stop)
    assert told.conflict is not None
    assert not told.conflict.minimal
    console = Console(width=100, record=True, file=io.StringIO())
    show_pod(console, told)
    printed = console.export_text()
    assert "keep it off every node; interrupted, so perhaps not all are needed:" in printed
    assert pod_document(told).conflict.minimal is False


def test_what_no_change_admits_is_told_with_what_refuses_it() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]
    told = explained(snapshot(nodes=[node("n0")], pods=[pod("new", volumes=volumes)]))
    assert not told.relaxations
    assert told.refusing == ('VolumeRestrictions: persistentvolumeclaim "none" not found',)


def test_a_pod_of_two_containers_larger_than_any_node_is_admitted_by_a_larger_one() -> None:
    large = {"name": "main", "resources": {"requests": {"cpu": "9", "example.com/fpga": "1"}}}
    small = {"name": "side", "resources": {"requests": {"cpu": "500m"}}}
    nodes = [node("n0", cpu="4", taints=[DEDICATED])]
    daemon = pod("agent", "n0", cpu="250m", owner="DaemonSet/agent", tolerations=[{"operator": "Exists"}])
    told = explained(snapshot(nodes=nodes, pods=[daemon, pod("new", containers=[large, small])]))
    (one,) = told.relaxations
    larger = "1 more node like n0, but with 9750m cpu and 1 example.com/fpga"
    assert one.changes == ("tolerations of dedicated=gpu:NoSchedule", larger)
    assert scheduled(one.snapshot, next(each for each in one.snapshot.pods if each.key == KEY))


def test_variants_are_counted_as_clusters_of_their_own() -> None:
    """What is carried over from one variant to the next must not show."""
    asked = 0
    for cluster in islice(cases_of(count()), NUMBER):
        profile = make_problem(cluster, Settings()).profile
        framework = populated(cluster, profile, cluster.assignment)
        check = Check(framework, KEY, Deadline(60))
        one = cluster.pods[-1]
        loose = [each.apply(cluster) for each in loosenings(cluster, one)]
        rooms = [room.snapshot for each in (cluster, *loose) for room in more_nodes(each)]
        emptied = [room.snapshot for room in evictions(cluster, one, check.framework(cluster), check.go_on)]
        for variant in (*loose, *rooms, *emptied, cluster):
            fresh = populated(variant, profile, variant.assignment)
            wanted = fresh.run_filters(fresh.cycle(check.pod(variant)))
            found = check.diagnosis(variant)
            assert found.rejected == wanted.rejected
            assert np.array_equal(found.codes, wanted.codes)
            asked += 1
        check.restore()
        assert np.array_equal(
            framework.state.requested, populated(cluster, profile, cluster.assignment).state.requested
        )
    assert asked > 4 * NUMBER


def explained(cluster: Snapshot, stop: Stop | None = None) -> PodExplanation:
    return explain_pod(make_problem(cluster, Settings()), KEY, None, stop=stop)


def table(*rows: str) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return [np.array([mark == "x" for mark in row]) for row in rows]


@pytest.mark.parametrize(
    ("rows", "core"),
    [
        (["xx", "x."], [0]),  # the second adds nothing to the first
        (["x.", ".x"], [0, 1]),
        (["xx.", ".xx", "x.x"], [1, 2]),  # any two of them; the first is dropped
        (["x.", "x."], []),  # a node is left
        ([], []),
    ],
)
def test_a_core_covers_all_nodes_and_needs_each_of_its_rules(rows: list[str], core: list[int]) -> None:
    found, minimal = minimal_core(table(*rows), len(rows[0]) if rows else 2)
    assert minimal
    assert len(found) == len(core)
    chosen = [rows[i] for i in found]
    covered = ["x" in column for column in zip(*chosen, strict=True)]
    assert all(covered)
    for left_out in range(len(chosen)):
        rest = chosen[:left_out] + chosen[left_out + 1 :]
        assert not rest or not all("x" in column for column in zip(*rest, strict=True))
