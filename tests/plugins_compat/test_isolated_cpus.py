"""Isolated CPUs: who takes cores of the pool, what is charged, and what is given back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.isolated_cpus import qos_class, rows
from stowplan.cli import run
from stowplan.instances.load import load
from stowplan.models.errors import InputError
from stowplan.models.objective import PRESETS
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.framework.cache import CacheError, SchedulerCache
from stowplan.plugins_compat.framework.profile import Profile
from stowplan.plugins_compat.framework.scheduler import examine
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.isolation import POOL, Isolation
from stowplan.plugins_compat.profiles import default_profile, make_profiles
from stowplan.plugins_compat.release import K24, K36, Release
from stowplan.plugins_compat.simulate import simulate
from tests.docs.blocks import ROOT
from tests.support.brute_force import placements
from tests.support.clusters import Manifest, node, pod, snapshot
from tests.support.malformed import listed

USE, CPUS = Isolation().pod_annotation, Isolation().node_annotation


def profile(release: Release = K36, **args: Any) -> Profile:
    content = {
        "apiVersion": f"kubescheduler.config.k8s.io/{release.config_versions[-1]}",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"filter": {"enabled": [{"name": "IsolatedCPUs"}]}},
                "pluginConfig": [{"name": "IsolatedCPUs", "args": args}],
            }
        ],
    }
    return make_profiles(content, release, "first")["default-scheduler"]


def isolated(name: str, at: str | None = None, cpu: str = "4", **more: Any) -> Manifest:
    return pod(name, at, cpu=cpu, annotations={USE: "true"}, **more)


def machine(name: str = "n", cpu: str = "16", cpus: str = "16-23", **more: Any) -> Manifest:
    return node(name, cpu=cpu, memory="64Gi", annotations={CPUS: cpus}, **more)


def charged(cluster: Snapshot, made: Profile) -> dict[str, int]:
    """Return what the pods on the first node are charged, and what they count for in scores."""
    state = ClusterState(cluster, made.release)
    state.fill(p for p in cluster.pods if p.node_name)
    amounts = {name: int(state.requested[row, 0]) for name, row in state.resources.items()}
    return amounts | {"nonzero cpu": int(state.nonzero[0, 0])}


# -- the article's example --------------------------------------------------------------------------------------


def test_two_pods_fill_the_pool_and_take_no_ordinary_cpu() -> None:
    cluster = snapshot(nodes=[machine()], pods=[isolated("a", "n"), isolated("b", "n")])
    with_it, without = charged(cluster, profile()), charged(cluster, default_profile(K36))
    assert (with_it[POOL], with_it["cpu"], with_it["nonzero cpu"]) == (8, 0, 0)
    assert (with_it["pods"], with_it["memory"]) == (without["pods"], without["memory"]) == (2, 2 * 2**30)
    assert without["cpu"] == without["nonzero cpu"] == 8000  # unchanged accounting: 8 of 16 ordinary cores are wasted
    third = snapshot(nodes=[machine()], pods=[*(isolated(n, "n") for n in "ab"), pod("c", cpu="16"), isolated("d")])
    done = simulate(third, profile(), third.pods[2:], {"default/a": "n", "default/b": "n"})
    assert dict(done.assignment)["default/c"] == "n"
    assert done.outcomes["default/d"].message.startswith("0/1 nodes are available: 1 Insufficient isolated CPUs.")


@pytest.mark.parametrize("release", [K24, K36], ids=lambda r: r.name)
def test_a_pod_is_not_refused_for_want_of_ordinary_cpu(release: Release) -> None:
    busy = snapshot(nodes=[machine(cpu="4")], pods=[pod("o", "n", cpu="5"), isolated("a")])  # overcommitted even
    scored = examine(populated(busy, profile(release), busy.assignment), busy.pods[-1])
    assert scored.node == 0
    refused = examine(populated(busy, default_profile(release, "first"), busy.assignment), busy.pods[-1])
    assert refused.node is None


def test_scores_leave_its_cpu_out() -> None:
    nodes = [machine("n"), machine("m")]
    cluster = snapshot(nodes=nodes, pods=[isolated("there", "n"), isolated("new")])
    scored = examine(populated(cluster, profile(), cluster.assignment), cluster.pods[-1])
    plain = snapshot(nodes=nodes, pods=[pod("there", "n", cpu="0"), pod("new", cpu="0")])
    same = examine(populated(plain, default_profile(K36, "first"), plain.assignment), plain.pods[-1])
    for name in ("NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        assert scored.scores[name].tolist() == same.scores[name].tolist()


@pytest.mark.parametrize(("cpu", "cores"), [("1", 1), ("1500m", 2), ("1m", 1), ("0", 0)])
def test_a_fraction_takes_a_whole_core(cpu: str, cores: int) -> None:
    cluster = snapshot(nodes=[machine()], pods=[isolated("a", "n", cpu=cpu)])
    found = charged(cluster, profile())
    assert (found[POOL], found["cpu"]) == (cores, 0)


@pytest.mark.parametrize(
    ("word", "marked"), [("true", True), ("yes", True), ("4", True), ("false", False), ("0", False), ("", False)]
)
def test_what_marks_a_pod(word: str, marked: bool) -> None:
    cluster = snapshot(nodes=[machine()], pods=[pod("a", "n", cpu="4", annotations={USE: word})])
    assert (charged(cluster, profile())["cpu"] == 0) is marked


@pytest.mark.parametrize(
    ("text", "cores"), [("16-23", 8), ("4", 1), ("1,3,5-7", 5), ("1-3,2-4", 4), ("count:6", 6), ("", 0)]
)
def test_pools_are_lists_of_cpus_or_numbers(text: str, cores: int) -> None:
    state = ClusterState(snapshot(nodes=[machine(cpus=text)]), profile().release)
    assert state.allocatable[state.resources[POOL], 0] == cores
    assert state.allocatable[state.resources["cpu"], 0] == 16_000  # allocatable does not contain the pool
    state = ClusterState(snapshot(nodes=[machine(cpus=text)]), profile(allocatableContainsPool=True).release)
    assert state.allocatable[state.resources["cpu"], 0] == 16_000 - 1000 * cores
    state = ClusterState(snapshot(nodes=[machine(cpu="2", cpus="0-7")]), profile(allocatableContainsPool=True).release)
    assert state.allocatable[state.resources["cpu"], 0] == 0  # there is no less than nothing


@pytest.mark.parametrize("text", ["x", "5-3", "1,,2", "count:x", "number:3", "-1"])
def test_a_pool_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no list of CPUs such as 4-11,14, nor a number such as count:8"):
        ClusterState(snapshot(nodes=[machine(cpus=text)]), profile().release)


def test_annotations_can_be_any_that_the_snapshot_was_read_with(tmp_path: Path) -> None:
    keys = {"podAnnotation": "example.com/exclusive", "nodeAnnotation": "example.com/pool"}
    made = node("n", annotations={"example.com/pool": "count:2", "example.com/else": "x"})
    asking = pod("a", "n", cpu="2", annotations={"example.com/exclusive": "yes"})
    plain = pod("b", "n", cpu="2", annotations={"example.com/exclusive": "false"})
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(made, asking, plain)))
    cluster = load(str(path), annotations=keys.values())
    found = charged(cluster, profile(**keys))
    assert (found[POOL], found["cpu"]) == (2, 2000)
    assert "example.com/else" not in cluster.nodes[0].metadata.annotations
    # Read without them, nobody knows which pods are marked: that is said, and not taken for none.
    with pytest.raises(InputError, match=r"was read without annotations 'example\.com/exclusive'"):
        charged(load(str(path)), profile(**keys))
    config = tmp_path / "config.yaml"
    enabled = {"filter": {"enabled": [{"name": "IsolatedCPUs"}]}}
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": enabled, "pluginConfig": [{"name": "IsolatedCPUs", "args": keys}]}],
    }
    config.write_text(json.dumps(content))
    assert run(["simulate", str(path), "--config", str(config)]) == 0  # asks for what the configuration names


def test_annotations_of_isolation_are_always_kept() -> None:
    keys = {"podAnnotation": "example.com/wants-isolated", "nodeAnnotation": "example.com/isolated-pool"}
    made = node("n", annotations={"example.com/isolated-pool": "count:2"})
    asking = pod("a", "n", cpu="2", annotations={"example.com/wants-isolated": "yes", USE: "false"})
    found = charged(snapshot(nodes=[made], pods=[asking]), profile(**keys))
    assert (found[POOL], found["cpu"]) == (2, 0)


def test_profiles_must_account_alike() -> None:
    plugins = {"filter": {"enabled": [{"name": "IsolatedCPUs"}]}}
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{}, {"schedulerName": "second", "plugins": plugins}],
    }
    with pytest.raises(InputError, match="IsolatedCPUs is not as in the first profile"):
        make_profiles(content, K36)


def test_the_pool_is_a_rule_of_the_model() -> None:
    pods = [isolated("a", cpu="2"), isolated("b", cpu="2"), pod("c", cpu="2"), pod("d", cpu="1")]
    cluster = snapshot(nodes=[machine("n", cpu="2", cpus="0-2"), machine("m", cpu="2", cpus="0-1")], pods=pods)
    made = profile()
    compiled = compile_problem(cluster, made, PRESETS["repair"])
    assert any(rule.origin.what == POOL for rule in compiled.problem.rules)
    evaluator = Evaluator(compiled.problem)
    for placement in placements(compiled.problem):
        where = compiled.assign(placement)
        refused = rejections(populated(cluster, made, where, compiled.signatures), where)
        assert bool(refused) == bool(evaluator.evaluate(placement).violations), where


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}, "limits": {"memory": "0"}}], "BestEffort"),
        ([{"requests": {"example.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),  # requests are what limits say
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
    ],
)
def test_qos_classes(resources: list[Manifest], expected: str) -> None:
    containers = [{"name": f"c{i}", "resources": one} for i, one in enumerate(resources)]
    assert qos_class(snapshot(pods=[pod("p", containers=containers)]).pods[0]) == expected


def test_the_three_plans_are_as_the_page_has_them() -> None:
    page = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    found = rows()
    assert len(found) == 4
    for row in found:
        assert f"| {' | '.join(row.cells)} |\n" in page


# -- what is given back -----------------------------------------------------------------------------------------


def test_what_is_given_back_is_what_was_charged() -> None:
    made = profile()
    cluster = snapshot(nodes=[machine()], pods=[isolated("a", "n"), pod("b", "n", cpu="3")])
    unmarked, marked = (
        replace(p, metadata=replace(p.metadata, annotations=q.metadata.annotations))
        for p, q in (cluster.pods, cluster.pods[::-1])
    )
    state = ClusterState(cluster, made.release)
    state.fill(cluster.pods)
    for changed in (unmarked, marked):
        state.take(changed, 0)
    assert not state.requested.any()
    assert not state.nonzero.any()
    cache = SchedulerCache(made.release)
    for one in cluster.pods:
        cache.add(one, "n")
    assert cache.nodes["n"].requested == {"pods": 2, "memory": 2 * 2**30, POOL: 4, "cpu": 3000}
    assert cache.nodes["n"].nonzero == {"cpu": 3000, "memory": 2 * 2**30}
    cache.remove(unmarked)
    assert +cache.nodes["n"].requested == {"pods": 1, "memory": 2**30, "cpu": 3000}
    cache.remove(marked)
    assert "n" not in cache.nodes


# -- the cache's life cycle -------------------------------------------------------------------------------------


def cache_and_pod(lifetime: float | None = 30.0) -> tuple[SchedulerCache, Any, Snapshot]:
    cluster = snapshot(nodes=[node("n"), node("m")], pods=[pod("p", cpu="2")])
    cache = SchedulerCache(K24, lifetime)
    for one in cluster.nodes:
        cache.add_node(one)
    return cache, cluster.pods[0], cluster


def cpu(cache: SchedulerCache, name: str) -> int:
    return cache.nodes[name].requested["cpu"]


def test_to_assume_or_to_add_twice_is_an_error() -> None:
    cache, one, _ = cache_and_pod()
    cache.assume(one, "n")
    with pytest.raises(CacheError, match="is in the cache, so can't be assumed"):
        cache.assume(one, "m")
    cache.add(one, "n")
    assert not cache.is_assumed(one)
    with pytest.raises(CacheError, match="was already in added state"):
        cache.add(one, "n")
    assert cpu(cache, "n") == 2000


def test_assumed_here_and_added_elsewhere_moves() -> None:
    cache, one, _ = cache_and_pod()
    cache.assume(one, "n")
    cache.add(one, "m")
    assert (cpu(cache, "n"), cpu(cache, "m")) == (0, 2000)
    assert cache.node_of(one) == "m"


def test_to_forget_frees_and_needs_an_assumed_pod() -> None:
    cache, one, _ = cache_and_pod()
    with pytest.raises(CacheError, match="wasn't assumed so cannot be forgotten"):
        cache.forget(one, "n")
    cache.assume(one, "n")
    with pytest.raises(CacheError, match="was assumed on m but assigned to n"):
        cache.forget(one, "m")
    cache.forget(one, "n")
    assert cpu(cache, "n") == 0
    cache.add(one, "n")
    with pytest.raises(CacheError, match="wasn't assumed"):
        cache.forget(one, "n")


def test_expiry_needs_the_end_of_binding_and_comes_strictly_after_the_deadline() -> None:
    cache, one, _ = cache_and_pod()
    cache.assume(one, "n")
    assert cache.expire(10**9) == []
    cache.finish_binding(one, 100.0)
    assert cache.expire(130.0) == []
    assert cache.expire(130.5) == ["default/p"]
    assert cpu(cache, "n") == 0
    cache.add(one, "m")  # the report comes late
    assert cpu(cache, "m") == 2000
    assert cache.expire(10**9) == []
    never, other, _ = cache_and_pod(None)
    never.assume(other, "n")
    never.finish_binding(other, 0.0)
    assert never.expire(10**9) == []


def test_simulate_shows_what_each_event_of_a_script_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, script, config = (tmp_path / name for name in ("dump.json", "events.yaml", "config.json"))
    dump.write_text(json.dumps(listed(machine("n"), machine("m"), isolated("p"), pod("q", "n", cpu="1"))))
    plugins = {"filter": {"enabled": [{"name": "IsolatedCPUs"}]}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps(head | {"profiles": [{"plugins": plugins}]}))
    p = {"pod": "default/p"}
    events: list[dict[str, Any]] = [
        {"event": "assume", **p, "node": "n"},
        {"event": "assume", **p, "node": "n"},  # twice
        {"event": "forget", **p, "node": "n"},
        {"event": "assume", **p, "node": "n"},
        {"event": "expire", "at": 1000},  # its binding has not finished
        {"event": "finishBinding", **p, "at": 1000},
        {"event": "expire", "at": 1030},  # not yet after the deadline
        {"event": "expire", "at": 1031},
        {"event": "add", **p, "node": "m"},  # the report comes late
        {"event": "add", **p, "node": "m"},  # twice
        {"event": "removeNode", "node": "m"},
        {"event": "addNode", "node": "m"},
        {"event": "update", **p, "annotations": {USE: "false"}},
        {"event": "remove", **p, "annotations": {USE: "true"}},
        {"event": "removeNode", "node": "m"},
        {"event": "removeNode", "node": "m"},  # twice
    ]
    script.write_text(json.dumps({"lifetime": 30, "events": events}))
    words = ["simulate", str(dump), "--config", str(config), "--cache-events", str(script)]
    assert run([*words, "-o", "json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assumed, pool = ["default/p (assumed)", "default/q"], {"cpu": 1000, "memory": 2 * 2**30, "pods": 2, POOL: 4}
    assert (steps[0]["pods"]["n"], steps[0]["requested"]["n"], steps[0]["error"]) == (assumed, pool, False)
    assert steps[1]["error"]
    assert "can't be assumed" in steps[1]["said"]
    assert steps[2]["requested"]["n"] == {"cpu": 1000, "memory": 2**30, "pods": 1}
    assert [step["said"] for step in steps[4:8]] == [
        "nothing expired", "", "nothing expired", "expired: default/p",
    ]  # fmt: skip
    assert steps[6]["pods"]["n"] == assumed
    assert steps[7]["pods"]["n"] == ["default/q"]
    assert steps[8]["pods"]["m"] == ["default/p"]
    assert steps[9]["error"]
    assert "already in added state" in steps[9]["said"]
    assert steps[10]["pods"]["m (no node)"] == steps[11]["pods"]["m"] == ["default/p"]
    assert steps[11]["requested"]["m"] == {"memory": 2**30, "pods": 1, POOL: 4}
    assert steps[12]["requested"]["m"] == {"cpu": 4000, "memory": 2**30, "pods": 1}
    assert steps[13]["requested"]["m"] == {}  # what was charged is given back, not what it would be charged now
    assert [step["said"] for step in steps[14:]] == ["", "node m is not found"]
    assert run(words) == 0
    assert "error: pod default/p was already in added state" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        ({"event": "assume", "pod": "default/p"}, "events[0]: assume needs a node"),
        ({"event": "expire", "pod": "default/p"}, "events[0]: expire takes no pod"),
        ({"event": "add", "pod": "default/x", "node": "n"}, "events[0]: names pod 'default/x', which the snapshot"),
        ({"event": "vanish"}, "events[0].event: "),
        ({"event": "expire", "annotations": {"a": "b"}}, "events[0]: expire takes no annotations"),
    ],
)
def test_events_that_cannot_be_run_get_one_line(
    event: dict[str, str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, script = tmp_path / "dump.json", tmp_path / "events.yaml"
    dump.write_text(json.dumps(listed(machine(), isolated("p"))))
    script.write_text(json.dumps({"events": [event]}))
    assert run(["simulate", str(dump), "--cache-events", str(script)]) == 1
    assert complaint in capsys.readouterr().err


def test_pods_that_come_before_their_node_are_kept_for_it() -> None:
    cache, one, cluster = cache_and_pod()
    cache.remove_node("n")
    assert "n" not in cache.nodes
    cache.add(one, "n")
    assert cache.nodes["n"].node is None
    cache.add_node(cluster.nodes[0])
    assert cpu(cache, "n") == 2000
    cache.remove_node("n")
    assert cpu(cache, "n") == 2000  # the pods of a node that has gone are removed one by one
    cache.remove(one)
    assert "n" not in cache.nodes
    with pytest.raises(CacheError, match="is not found in scheduler cache"):
        cache.remove(one)
