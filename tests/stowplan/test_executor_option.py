"""``--executor``, ``--may-move`` and ``--equal-moves``: nobody moves who cannot, and reports and documents say why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import strategies as st

from stowplan.answers.solve import solve_snapshot
from stowplan.cli import run
from stowplan.models.settings import Executor, Settings
from stowplan.models.snapshot import Snapshot
from stowplan.optimizer.portfolio import Options
from stowplan.plans.movability.causes import WAIVABLE
from stowplan.plans.movability.movable import immovable
from stowplan.settings.problem import make_problem
from tests.support.cases import cases, count
from tests.support.choices import Choices, drawn
from tests.support.clusters import node, pod, snapshot
from tests.support.malformed import listed

QUICK = ("-q", "-t", "2", "--deterministic")
ON_DISK: dict[str, Any] = {"volumes": [{"name": "cache", "emptyDir": {}}], "owner": "ReplicaSet/web"}


def manifests() -> list[dict[str, Any]]:
    """One node is crowded, and each pod on it has another reason to stay, or none."""
    reasons: list[dict[str, Any]] = [
        ON_DISK,
        {},
        {"owner": "StatefulSet/db", "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        {"owner": "ReplicaSet/web"},
    ]
    pods = [pod(f"p{i}", "n1", cpu="1", **spec) for i, spec in enumerate(reasons)]
    return [node("n1", cpu="4"), node("n2", cpu="4"), *pods]


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(*manifests())))
    return str(path)


def solve(capsys: pytest.CaptureFixture[str], dump: str, *options: str) -> dict[str, Any]:
    assert run(["solve", dump, *QUICK, "-o", "json", *options]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_roll_call_counts_reasons(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", dump, *QUICK, "--executor", "descheduler"]) == 0
    text = capsys.readouterr().out
    assert "2 nodes, 4 pods = 1 placed + 0 pending + 3 fixed + 0 finished" in text
    assert "fixed: local storage (1), no controller (1), do-not-disrupt (1)" in text


def test_each_executor_frees_its_own(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    def free(*options: str) -> set[str]:
        return {p["name"] for p in solve(capsys, dump, *options)["placements"]}

    assert free() == free("--executor", "eviction-api") == {"p3"}
    assert free("--may-move", "local-storage") == {"p0", "p3"}
    assert free("--executor", "descheduler") == {"p3"}
    assert free("--executor", "koordinator") == set()
    assert free("--executor", "descheduler", "--may-move", "local-storage", "--may-move", "do-not-disrupt") == {
        "p0",
        "p2",
        "p3",
    }


def test_the_solution_says_so_and_verify_keeps_to_it(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = solve(capsys, dump, "--executor", "descheduler", "--may-move", "local-storage", "--equal-moves")
    settings = answer["settings"]
    assert (settings["executor"], settings["mayMove"], settings["moveCosts"]) == (
        "descheduler",
        ["local-storage"],
        False,
    )
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(answer))
    assert run(["verify", str(path), dump]) == 0
    settings["mayMove"] = []
    path.write_text(json.dumps(answer))
    assert run(["verify", str(path), dump]) == 1
    assert "Pod default/p0: is not free to be placed" in capsys.readouterr().out


def test_prices_are_in_the_value_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    price = {"controller.kubernetes.io/pod-deletion-cost": "-2147483648"}
    pods = [pod(f"p{i}", "n1", cpu="1", owner="ReplicaSet/web", annotations=price) for i in range(2)]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(node("n1", cpu="1"), node("n2", cpu="1"), *pods)))
    solution = tmp_path / "solution.json"
    for options, value in (((), 0.1), (("--equal-moves",), 1)):
        answer = solve(capsys, str(dump), "--objective", "repair", *options)
        assert answer["tiers"][-1]["value"] == value
        solution.write_text(json.dumps(answer))
        assert run(["verify", str(solution), str(dump)]) == 0
        capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--executor", "kubectl"], "is 'kubectl'; must be one of 'eviction-api', 'descheduler', 'koordinator'"),
        (["--executor", "descheduler", "--may-move", "bare"], "'bare' is not a reason that can be waived; must be "),
        (["--may-move", "owner:"], "must name the kind of a controller, such as owner:CloneSet"),
    ],
)
def test_bad_words_are_refused(dump: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", dump, *QUICK, *options]) == 1
    printed = capsys.readouterr()
    assert said in printed.err
    assert not printed.out


ANNOTATIONS = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "scheduling.koordinator.sh/eviction-cost": "2147483647",
    "descheduler.alpha.kubernetes.io/evict": "",
}


def random_reasons(choices: Choices) -> Snapshot:
    """Build pods with every reason to stay, and every combination, on one crowded node of three."""
    pods = []
    for i in range(choices.integer(4, 12)):
        owner = choices.one(
            ["ReplicaSet/a", "ReplicaSet/a", "ReplicaSet/b", "ReplicaSet/b", "StatefulSet/c", "Job/d", None]
        )
        spec: dict[str, Any] = {"volumes": [{"name": "x", "emptyDir": {}}]} if choices.chance(0.15) else {}
        spec["annotations"] = {key: value for key, value in ANNOTATIONS.items() if choices.chance(0.08)}
        spec["priority"] = choices.one([0, 0, 0, 0, 2_000_000_000])
        spec["schedulerName"] = choices.one(["koord-scheduler", "koord-scheduler", "default-scheduler"])
        pods.append(pod(f"p{i}", "n1", cpu="500m", memory="100Mi", owner=owner, **spec))
    sets = [
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"replicas": 6, "selector": {"matchLabels": {"app": name}}},
        }
        for name in "ab"
    ]
    return snapshot(nodes=[node(f"n{i}", cpu="6") for i in (1, 2, 3)], pods=pods, replica_sets=sets)


@pytest.mark.parametrize("executor", get_args(Executor))
def test_no_pod_moves_that_the_executor_cannot_evict(executor: Executor, tmp_path: Path) -> None:
    """Under a scheduler of the name that koordinator asks for, so that there are pods that it can evict."""
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: koord-scheduler}]\n"
    )

    @cases(
        8,
        at_least={"moves": 3, "immovable": 15},
        cluster=drawn(random_reasons),
        waived=st.sampled_from([[cause.value for cause in sorted(WAIVABLE)[:number]] for number in range(3)]),
    )
    def check(cluster: Snapshot, waived: list[str]) -> None:
        compiled = make_problem(cluster, Settings(executor=executor, may_move=tuple(waived), config=str(config)))
        solution = solve_snapshot(compiled, Options(time_limit=1, deterministic=True))
        stuck = immovable(cluster, executor, waived=[c for c in WAIVABLE if c.value in waived])
        assert not {move.pod.key for move in solution.moves} & set(stuck)
        assert {pod.key for pod in compiled.pods} == {
            pod.key
            for pod in cluster.pods
            if pod.key not in stuck and pod.spec.scheduler_name == compiled.profile.scheduler_name
        }
        count("moves", len(solution.moves))
        count("immovable", len(stuck))

    check()


def test_an_owner_of_no_pod_is_said() -> None:
    cluster = snapshot(nodes=[node("n1")], pods=[pod("web-1", "n1", owner="CloneSet/web")])
    assert make_problem(cluster, Settings(may_move=("owner:CloneSet",))).notes == make_problem(cluster).notes
    notes = make_problem(cluster, Settings(may_move=("owner:CloneSets",))).notes
    assert notes[-1] == "--may-move owner:CloneSets lets no pod go: none is of a CloneSets"
