"""The operations platform: its file, its filters, its scores, and the greedy and the best placement."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from stowplan.cli import run
from stowplan.instances.load import load
from stowplan.models.errors import InputError
from stowplan.models.objective import Objective, TierSettings
from stowplan.models.settings import Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.evaluate import Evaluator
from stowplan.plugins_compat.admission import populated, rejections
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.framework.scheduler import Scored, examine
from stowplan.plugins_compat.platform_scores import platform_profile
from stowplan.plugins_compat.plugins.platform.global_variance import growth
from stowplan.plugins_compat.plugins.platform.load_risk import risk_points
from stowplan.plugins_compat.plugins.platform.masters_apart import most_masters
from stowplan.plugins_compat.plugins.platform.target_utilization import target_points
from stowplan.plugins_compat.release import PLATFORM
from stowplan.plugins_compat.simulate import simulate
from stowplan.settings.problem import make_problem
from tests.support.brute_force import placements
from tests.support.clusters import node
from tests.support.clusters import snapshot as kubernetes

QUICK = ("plan", "drain", "fit", "frontier")
"""Commands that search."""
EVEN = Objective(tiers=(TierSettings(name="unevenness", evenness={"memory": 1}),))


def machine(
    name: str, cpu: float = 0, memory: float = 0, size: tuple[int, str] = (64, "64Gi"), **more: Any
) -> dict[str, Any]:
    used = {"cpu": cpu, "memory": f"{memory}Gi"}
    return {"name": name, "cpu": size[0], "memory": size[1], "used": used, **more}


def instance(name: str, cpu: Any = 1, memory: str = "1Gi", **more: Any) -> dict[str, Any]:
    return {"name": name, "cluster": "c", "kind": "replica", "cpu": cpu, "memory": memory, **more}


def platform(tmp_path: Path, **content: Any) -> Snapshot:
    path = tmp_path / "platform.yaml"
    path.write_text(
        yaml.safe_dump({"kind": "OperationsPlatform", "apiVersion": "stowplan.dev/v1", "shares": {}, **content})
    )
    return load(str(path))


def scored(cluster: Snapshot, *scores: str, **args: Any) -> Scored:
    """Score the machines for the last instance."""
    profile = platform_profile({"scores": [{"name": name, "args": args} for name in scores]}, PLATFORM)
    return examine(populated(cluster, profile, cluster.assignment), cluster.pods[-1], score_single=True)


def points(cluster: Snapshot, name: str, **args: Any) -> list[float]:
    return [float(value) for value in scored(cluster, name, **args).scores[name]]


THREE = [machine("m1", 50, 10), machine("m2", 30, 30), machine("m3", 10, 50)]


# -- the article's example --------------------------------------------------------------------------------------


def test_both_rounds(tmp_path: Path) -> None:
    first = platform(tmp_path, machines=THREE, instances=[instance("a", 2, "10Gi")])
    assert points(first, "LeastUtilized") == [43.75, 43.75, 43.75]
    assert points(first, "BalancedShares") == [75, 93.75, 62.5]  # the article has 25 for the third
    both = scored(first, "LeastUtilized", "BalancedShares")
    assert both.node == 1
    second = platform(
        tmp_path, machines=THREE, instances=[instance("a", 2, "10Gi", machine="m2"), instance("b", 5, "5Gi")]
    )
    # What m2 is measured to use has the first instance in it, as in the article only after its round.
    moved = [machine("m1", 50, 10), machine("m2", 32, 40), machine("m3", 10, 50)]
    second = platform(
        tmp_path, machines=moved, instances=[instance("a", 2, "10Gi", machine="m2"), instance("b", 5, "5Gi")]
    )
    assert points(second, "LeastUtilized") == [45.3125, 35.9375, 45.3125]
    assert points(second, "BalancedShares") == [68.75, 93.75, 68.75]
    assert scored(second, "LeastUtilized", "BalancedShares").node == 1


def test_one_run_places_both_on_the_second_machine(tmp_path: Path) -> None:
    cluster = platform(tmp_path, machines=THREE, instances=[instance("a", 2, "10Gi"), instance("b", 5, "5Gi")])
    profile = platform_profile({"scores": [{"name": "LeastUtilized"}, {"name": "BalancedShares"}]}, PLATFORM)
    done = simulate(cluster, profile, cluster.pods[-2:], cluster.assignment)
    assert [done.assignment[f"platform/{name}"] for name in "ab"] == ["m2", "m2"]


def test_the_third_machine_could_not_have_taken_the_second_instance(tmp_path: Path) -> None:
    """The article says before round two that the third machine holds the first instance; then it has no room."""
    full = [machine("m1", 50, 10), machine("m2", 30, 30), machine("m3", 12, 60)]
    found = scored(platform(tmp_path, machines=full, instances=[instance("b", 5, "5Gi")]), "LeastUtilized")
    assert found.diagnosis.feasible.tolist() == [0, 1]


def test_target_utilization(tmp_path: Path) -> None:
    machines = [machine(name, used, 0, (4, "64Gi")) for name, used in zip("XYZ", (1, 2, 3), strict=True)]
    cluster = platform(tmp_path, machines=machines, instances=[instance("a", 0)])
    assert points(cluster, "TargetUtilization", metric="cpu") == [75, 100, 25]
    assert points(cluster, "TargetUtilization", metric="cpu", target=40) == [
        (60 * 25 / 40) + 40,
        40 * 50 / 60,
        40 * 25 / 60,
    ]
    assert target_points(np.array([0.0, 100.0, 100.1]), 50.0).tolist() == [50, 0, 0]
    half = platform(tmp_path, machines=[machine("m", 0, 31)], instances=[instance("a", 1, "1Gi")])
    assert points(half, "TargetUtilization") == [100]  # memory, unless another metric is named


def test_risk_takes_mean_request_and_deviation(tmp_path: Path) -> None:
    samples = [
        {"time": t, "machine": "m", "values": {"cpu": cpu, "memory": memory}}
        for t, cpu, memory in ((0, 0.9, 0.9), (3601, 0.1, 0.5), (7000, 0.3, 0.5))  # the first is out of the window
    ]
    # Numbers of our own: those of the article are in figures that are lost.
    machines = [{"name": "m", "cpu": 4, "memory": "8Gi"}, machine("idle", 0, 0, (4, "8Gi"))]
    cluster = platform(tmp_path, machines=machines, instances=[instance("a", "500m", "1Gi")], samples=samples)
    found = points(cluster, "LoadRisk")
    risks = [0.2 + 0.125 + statistics.pstdev([0.1, 0.3]), 0.5 + 0.125 + 0]
    assert found == pytest.approx([100 * (1 - max(risks)), 87.5], abs=1e-9)
    assert risk_points(np.array([[0.2, 0.5], [0.9, 1.7]])).tolist() == pytest.approx([10, 0])


def test_risk_counts_what_is_placed_since_the_machine_was_measured(tmp_path: Path) -> None:
    """Also what was placed before any machine was scored; all shares are of what can be allocated."""
    machines = [{"name": "m", "cpu": 4, "memory": "8Gi"}]
    samples = [{"time": 0, "machine": "m", "values": {"cpu": 0.1, "memory": 0.4}}]
    instances = [instance(name, "500m", "1Gi") for name in "ab"]
    cluster = platform(tmp_path, machines=machines, instances=instances, samples=samples, shares={"memory": 0.8})
    profile = platform_profile({"scores": [{"name": "LoadRisk"}]}, PLATFORM)
    framework = populated(cluster, profile, {**cluster.assignment, "platform/a": "m"})
    found = examine(framework, cluster.pods[-1], score_single=True).scores["LoadRisk"]
    assert found.tolist() == pytest.approx([100 * (1 - (0.4 + 2 / 8) / 0.8)], abs=1e-6)


def test_global_variance_looks_at_all_machines(tmp_path: Path) -> None:
    machines = [machine("m1", 0, 32), machine("m2", 0, 16), machine("m3", 0, 8), machine("tiny", 64, 4)]
    cluster = platform(tmp_path, machines=machines, instances=[instance("a", 1, "16Gi")])
    found = scored(cluster, "GlobalVariance")
    assert found.diagnosis.feasible.tolist() == [0, 1, 2]  # no core is left on the last, which counts all the same
    shares = [0.5, 0.25, 0.125, 0.0625]
    values = [statistics.pvariance([s + 0.25 * (i == n) for i, s in enumerate(shares)]) for n in range(3)]
    expected = [100 * (max(values) - value) / (max(values) - min(values)) for value in values]
    assert found.scores["GlobalVariance"].tolist() == pytest.approx(expected, abs=1e-9)
    assert found.node == 2
    grown = growth(np.array([*shares, np.nan]), np.full(3, 0.25), np.arange(3))  # one machine has nothing of the metric
    assert grown.tolist() == pytest.approx([value - statistics.pvariance(shares) for value in values])


def test_variance_comes_first_and_trimaran_behind_it(tmp_path: Path) -> None:
    machines = [machine("m1", 0, 40), machine("m2", 60, 8), machine("m3", 0, 8)]
    cluster = platform(tmp_path, machines=machines, instances=[instance("a", 1, "8Gi")])
    found = examine(populated(cluster, platform_profile({}, PLATFORM), cluster.assignment), cluster.pods[-1])
    assert found.node == 2  # both leave the same variance, and the risk of m2 is higher
    assert found.scores["GlobalVariance"].tolist() == [0, 100_000, 100_000]


def test_the_old_rule_takes_the_least_memory(tmp_path: Path) -> None:
    cluster = platform(tmp_path, machines=THREE, instances=[instance("a", 20, "1Gi")])
    found = scored(cluster, "LeastMemory")
    assert found.diagnosis.feasible.tolist() == [1, 2]
    assert found.node == 1


# -- filters ----------------------------------------------------------------------------------------------------


def feasible(cluster: Snapshot) -> list[str]:
    return [cluster.nodes[n].name for n in scored(cluster, "LeastUtilized").diagnosis.feasible.tolist()]


def test_thresholds_hold_with_the_instance_in_place_and_may_be_reached(tmp_path: Path) -> None:
    limits = {"usage": {"cpu": 0.5, "network": 0.5}}
    machines = [machine("m1", 30, 0, network="10G"), machine("m2", 31, 0, network="10G")]
    asking = instance("a", 2, "1Gi", network="1G")
    assert feasible(platform(tmp_path, machines=machines, instances=[asking], limits=limits)) == ["m1"]
    asking["network"] = "6G"
    cluster = platform(tmp_path, machines=machines, instances=[asking], limits=limits)
    profile = platform_profile({}, PLATFORM)
    done = simulate(cluster, profile, cluster.pods[-1:], cluster.assignment)
    assert "2 above threshold of platform.stowplan.dev/network" in done.outcomes["platform/a"].message  # reported


def test_memory_can_be_allocated_up_to_a_share(tmp_path: Path) -> None:
    cluster = platform(
        tmp_path,
        shares={"memory": 0.9},
        machines=[machine("m", 0, 0, (64, "10Gi"))],
        instances=[instance("a", 1, "9Gi")],
    )
    assert feasible(cluster) == ["m"]
    assert points(cluster, "LeastUtilized", resources={"memory": 1}) == [0]
    cluster = platform(
        tmp_path,
        shares={"memory": 0.9},
        machines=[machine("m", 0, 0, (64, "10Gi"))],
        instances=[instance("a", 1, "9.1Gi")],
    )
    assert feasible(cluster) == []


def test_the_sum_of_maxmemory_stays_below_its_share(tmp_path: Path) -> None:
    there = instance("a", 1, "1Gi", maxmemory="24Gi", machine="m1")
    for size, expected in (("8Gi", ["m2"]), ("7Gi", ["m1", "m2"])):
        cluster = platform(
            tmp_path,
            machines=[machine("m1"), machine("m2")],
            instances=[there, instance("b", 1, "1Gi", maxmemory=size)],
            limits={"maxmemory": 0.5},
        )
        assert feasible(cluster) == expected


def test_ports_instances_and_peaks(tmp_path: Path) -> None:
    there = instance("a", machine="m1", port=6379)
    ports = platform(
        tmp_path, machines=[machine("m1", 1, 1), machine("m2")], instances=[there, instance("b", port=6379)]
    )
    assert feasible(ports) == ["m2"]
    count = platform(
        tmp_path,
        machines=[machine("m1", 1, 1), machine("m2")],
        instances=[there, instance("b")],
        limits={"instances": 1},
    )
    assert feasible(count) == ["m2"]
    machines = [machine("m1", 0, 0, peak={"cpu": 50}), machine("m2", 0, 0, peak={"cpu": 47})]
    peak = platform(tmp_path, machines=machines, instances=[instance("b", 4)], limits={"peak": {"cpu": 0.8}})
    assert feasible(peak) == ["m2"]  # 47 + 4 of 51.2


def test_thresholds_are_exact_below_a_core_and_at_shares_that_no_float_is(tmp_path: Path) -> None:
    limits = {"peak": {"cpu": 0.9}}
    small = [machine("m", 0, 0, (4, "10Gi"))]
    for cpu, expected in (("3600m", ["m"]), ("3601m", [])):
        cluster = platform(tmp_path, machines=small, instances=[instance("a", cpu)], limits=limits)
        assert feasible(cluster) == expected
    gpus = [machine("m", resources={"gpu": 3})]
    for number, expected in ((1, ["m"]), (2, [])):
        asking = instance("a", resources={"gpu": number})
        cluster = platform(tmp_path, machines=gpus, instances=[asking], limits={"usage": {"gpu": 0.5}})
        assert feasible(cluster) == expected


def test_further_resources(tmp_path: Path) -> None:
    machines = [machine("m1", resources={"gpu": 2}), machine("m2")]
    cluster = platform(tmp_path, machines=machines, instances=[instance("a", resources={"gpu": 2})])
    assert feasible(cluster) == ["m1"]
    assert points(cluster, "LeastUtilized", resources={"platform.stowplan.dev/gpu": 1}) == [0]


@pytest.mark.parametrize(
    ("share", "masters", "most"), [(0.5, 1, 1), (0.5, 3, 1), (0.5, 4, 1), (0.5, 5, 2), (0.3, 10, 2), (1.0, 4, 4)]
)
def test_masters_stay_below_a_share_but_one_may_always_be(share: float, masters: int, most: int) -> None:
    assert most_masters(share, masters) == most


def test_masters_of_one_cluster(tmp_path: Path) -> None:
    masters = [instance(f"a{i}", machine="m1" if i < 2 else None) | {"kind": "master"} for i in range(6)]
    cluster = platform(
        tmp_path, machines=[machine("m1", 2, 2), machine("m2")], instances=masters, limits={"masters": 0.5}
    )
    assert feasible(cluster) == ["m2"]  # two of six, and fewer than half must be on one machine
    other = [*masters, instance("b", kind="master") | {"cluster": "other"}]
    cluster = platform(
        tmp_path, machines=[machine("m1", 2, 2), machine("m2")], instances=other, limits={"masters": 0.5}
    )
    assert feasible(cluster) == ["m1", "m2"]


# -- commands ---------------------------------------------------------------------------------------------------


def test_commands_work_on_machines_and_what_needs_a_cluster_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan in waves, its replay, a frontier, a drain and room for new instances; none of it is for a cluster."""
    machines = [{"name": name, "cpu": 64, "memory": "64Gi"} for name in ("m1", "m2", "m3")]
    instances = [instance(f"a{i}", 2, f"{10 + i}Gi", machine="m1") for i in range(3)] + [instance("new", 1, "5Gi")]
    platform(tmp_path, machines=machines, instances=instances)
    file, plan = str(tmp_path / "platform.yaml"), tmp_path / "plan.json"

    def said(*words: str) -> str:
        assert run([*words, "-q", "-t", "2", "--deterministic"] if words[0] in QUICK else list(words)) == 0, words
        return capsys.readouterr().out

    plan.write_text(said("plan", file, "-o", "json"))
    moves = [move for wave in json.loads(plan.read_text())["waves"] for move in wave["moves"]]
    assert {move["pod"]["name"] for move in moves} >= {"new"}
    assert len(moves) >= 3  # from the one machine that holds all to the two that are empty
    written = json.loads(plan.read_text())
    assert (written["executor"], written["settings"]["executor"]) == ("operations-platform", None)
    page = tmp_path / "plan.html"
    told = said("plan", file, "--report", str(page))
    assert "for the operations platform; valid until" in told
    stays = said("plan", file, "--freeze", "platform")
    assert "the operations platform cannot move 3 pods: frozen namespace platform (3)" in stays
    for text in (told, stays, page.read_text(encoding="utf-8")):
        assert not any(word in text for word in ("evict", "extender", "kube-scheduler"))
    assert "Verified" in said("verify", str(plan), file)
    assert "as planned" in said("replay", str(plan), file, "--runs", "0")
    assert "Drains m1 with" in said("drain", "m1", "--from", file)
    assert "Fits 1 pod" in said("fit", file, "--all-pending")
    assert "GAIN" in said("frontier", file, "--moves", "0", "--moves", "1")
    for words in (["emit", str(plan), "--to", "kubectl"], ["apply", str(plan)], ["serve", str(plan)]):
        assert run(words) == 1
        assert "is of an operations platform without Kubernetes" in capsys.readouterr().err


# -- files ------------------------------------------------------------------------------------------------------


def test_new_instances_are_estimated_and_others_are_measured(tmp_path: Path) -> None:
    new = {"name": "new", "cluster": "c", "kind": "proxy", "maxmemory": "3Gi"}
    there = instance("there", "500m", "2Gi", machine="m", maxmemory="8Gi")
    cluster = platform(tmp_path, machines=[machine("m", 4, 5)], instances=[there, new])
    by_name = {pod.name: dict(pod.spec.containers[0].requests) for pod in cluster.pods}
    gib = 2**30 * 10**9
    assert (by_name["new"]["cpu"], by_name["new"]["memory"]) == (10**9, 3 * gib)
    assert (by_name["machine-m"]["cpu"], by_name["machine-m"]["memory"]) == (3_500_000_000, 3 * gib)


def test_tables_say_the_same_as_yaml(tmp_path: Path) -> None:
    (tmp_path / "machines.csv").write_text(
        "machine,cpu,memory,used.cpu,used.memory\nm1,64,64Gi,50,10Gi\nm2,64,64Gi,,\n"
    )
    (tmp_path / "instances.csv").write_text(
        "instance,cluster,kind,machine,port,cpu,memory,maxmemory\na,c,master,m1,6379,2,1Gi,\nb,c,replica,,,,,10Gi\n"
    )
    (tmp_path / "samples.csv").write_text("time,machine,cpu,memory\n0,m1,0.5,0.25\n60,m2,0.1,0.2\n")
    cluster = load(str(tmp_path))
    assert [node.name for node in cluster.nodes] == ["m1", "m2"]
    assert {pod.name: pod.node_name for pod in cluster.pods} == {
        "machine-m1": "m1", "machine-m2": "m2", "a": "m1", "b": "",
    }  # fmt: skip
    rest = {pod.name: pod.spec.containers[0].requests for pod in cluster.pods}
    assert rest["machine-m2"]["cpu"] == 6_400_000_000  # the mean of the samples, where no measured value is stated
    assert rest["machine-m1"]["cpu"] == 48 * 10**9
    (tmp_path / "platform.yaml").write_text("kind: OperationsPlatform\nlimits: {instances: 1}\n")
    settings = [str(tmp_path / name) for name in ("platform.yaml", "machines.csv", "instances.csv")]
    assert load(settings).nodes[0].capacity["pods"] == 2 * 10**9


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"machines": [{"name": "m", "cpu": 1}]}, "machines[0].memory: is missing"),
        ({"machines": [machine("m"), machine("m")]}, "machine 'm' appears twice"),
        ({"machines": [machine("m")], "instances": [instance("a", machine="x")]}, "instances[0].machine: is 'x'"),
        (
            {"machines": [machine("m")], "instances": [{"name": "a", "cluster": "c", "kind": "proxy"}]},
            "needs memory, or maxmemory",
        ),
        ({"machines": [machine("m", peak={"gpu": 1})]}, "measures gpu, of which it has no total"),
        ({"machines": [machine("m", resources={"gpu": 1.5})]}, "gpu is 1.5, must be a whole number"),
        ({"machines": [machine("m", resources={"disk io": 1})]}, "'disk io' is no name of a resource"),
        ({"machines": [machine("m", resources={"network": 1})]}, "'network' is the name of something else"),
        ({"machines": [machine("m")], "limits": {"usage": {"gpuu": 0.5}}}, "limits.usage: no machine has 'gpuu'"),
        ({"machines": [machine("m")], "limits": {"peak": {"gpu": 0.5}}}, "limits.peak: no machine has 'gpu'"),
        ({"machines": [machine("m")], "shares": {"gpu": 0.5}}, "shares: no machine has 'gpu'"),
        (
            {"machines": [machine("m")], "instances": [instance("a", kind="slave")]},
            "instances[0].kind: is 'slave'; must be one of",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        platform(tmp_path, **content)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"scores": [{"name": "Nonsense"}]}, "scores[0].name: 'Nonsense' is unknown; must be one of BalancedShares"),
        ({"scores": [{"name": "LoadRisk"}, {"name": "LoadRisk"}]}, "scores[1].name: 'LoadRisk' appears twice"),
        ({"scores": [{"name": "LoadRisk", "weight": 0}]}, "scores[0].weight"),
        ({"scores": [{"name": "TargetUtilization", "args": {"target": 100}}]}, "scores[0].args.target"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(content: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        platform_profile(content, PLATFORM)
    assert complaint in str(caught.value)


def test_any_resource_can_be_scored_by_its_own_name(tmp_path: Path) -> None:
    machines = [
        machine("m1", network="10G", resources={"example.com/fpga": 4}) | {"used": {"network": "4G"}},
        machine("m2", network="10G", resources={"example.com/fpga": 4}) | {"used": {"example.com/fpga": 1}},
    ]
    wanted = instance("a", network="1G", resources={"example.com/fpga": 1})
    cluster = platform(tmp_path, machines=machines, instances=[wanted])
    assert points(cluster, "TargetUtilization", metric="network") == [100, 60]
    assert points(cluster, "LeastMemory", metric="example.com/fpga") == [100, 0]
    assert points(cluster, "GlobalVariance", metric="network") == [0, 100]
    assert points(cluster, "LeastUtilized", resources={"network": 1, "example.com/fpga": 3}) == [68.75, 60]
    assert points(cluster, "LoadRisk", resources={"network": 1, "example.com/fpga": 3}) == [50, 50]
    with pytest.raises(InputError, match="LeastMemory scores 'gpu', which no machine has"):
        points(cluster, "LeastMemory", metric="gpu")
    even = Objective(tiers=(TierSettings(name="unevenness", evenness={"network": 1}),))
    problem = make_problem(cluster, Settings(objective=even)).problem
    least = min(Evaluator(problem).evaluate(placement).values[-1] for placement in placements(problem))
    assert problem.tiers[-1].shown(least) == pytest.approx(2 * 15**2)  # 40 and 10 percent


# -- the model --------------------------------------------------------------------------------------------------


def test_a_platform_is_decided_by_its_own_filters(tmp_path: Path) -> None:
    cluster = platform(tmp_path, machines=THREE, instances=[instance("a")])
    assert make_problem(cluster, Settings(objective=EVEN)).profile.release is PLATFORM
    with pytest.raises(InputError, match="platform is for files of an operations platform"):
        make_problem(kubernetes(nodes=[node("n")]), Settings(release="platform"))


def test_rules_admit_what_filters_admit_and_evenness_is_the_variance(tmp_path: Path) -> None:
    machines = [machine("m1", 0, 8, (8, "64Gi")), machine("m2", 0, 16, (8, "64Gi")), machine("m3", 0, 0, (8, "64Gi"))]
    masters = [instance(f"a{i}", 3, f"{4 + 4 * i}Gi", port=6379 + i % 2) | {"kind": "master"} for i in range(4)]
    cluster = platform(tmp_path, machines=machines, instances=masters, limits={"masters": 0.6, "usage": {"cpu": 0.8}})
    profile = platform_profile({}, PLATFORM)
    compiled = compile_problem(cluster, profile, EVEN)
    evaluator = Evaluator(compiled.problem)
    found = []
    for placement in placements(compiled.problem):
        where = compiled.assign(placement)
        evaluation = evaluator.evaluate(placement)
        refused = rejections(populated(cluster, profile, where, compiled.signatures), where)
        assert bool(refused) == bool(evaluation.violations), where
        if len(where) == len(masters):
            memory = {"m1": 8.0, "m2": 16.0, "m3": 0.0}
            for i in range(4):
                memory[where[f"platform/a{i}"]] += 4 + 4 * i
            exact = 3 * statistics.pvariance(100 * used / 64 for used in memory.values())
            found.append((compiled.problem.tiers[-1].shown(evaluation.values[-1]), exact))
    assert found
    for shown, exact in found:
        assert shown == pytest.approx(exact, rel=1e-4, abs=1e-3)
