"""Settings, options and terms: refused alike in Python and on the command line, and the same in documents."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.cli import run
from stowplan.cli.app import COMMANDS
from stowplan.models.errors import InputError
from stowplan.models.kubernetes import Pod
from stowplan.models.limits import LimitsDocument
from stowplan.models.objective import PRESETS, Preemption
from stowplan.models.options import Options, read_memory
from stowplan.models.settings import EXECUTORS, RELEASES, Concerns, Settings, SettingsDocument, options_of
from stowplan.models.snapshot import Snapshot
from stowplan.planning.plan import planning_problem
from stowplan.plugins_compat import release as built_in
from stowplan.settings.durations import LONGEST, read_duration, write_duration
from stowplan.settings.problem import make_problem, make_profile, same_problem, settings_document
from stowplan.settings.terms import Terms
from tests.support.clusters import node, pod, snapshot
from tests.support.malformed import listed

CLUSTER = snapshot(
    nodes=[node("n1"), node("n2")],
    pods=[
        pod("a", "n1", owner="ReplicaSet/a", labels={"app": "a"}),
        pod("b", "n1", owner="ReplicaSet/b", annotations={"controller.kubernetes.io/pod-deletion-cost": "9"}),
        pod("c", "n1", namespace="tools"),
        pod("d", owner="ReplicaSet/d"),
        pod("e", "n2", owner="ReplicaSet/a", volumes=[{"name": "x", "emptyDir": {}}]),
    ],
)


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "flags", "said"),
    [
        ({"preemption": "byPriority"}, ["--preemption", "byPriority"], "; must be one of"),
        ({"executor": "kubectl"}, ["--executor", "kubectl"], "; must be one of"),
        ({"max_moves": -1}, ["--max-moves", "-1"], "must be 0 or more"),
        ({"max_moves": "many"}, ["--max-moves", "many"], "must be an integer"),
        (
            {"release": "1.30"},
            ["--profile", "1.30"],
            "is '1.30'; must be platform, 1.5, 1.20, 1.24 or 1.36; 1.36 is nearest to 1.30",
        ),
    ],
)
def test_wrong_settings_get_one_line(
    wrong: dict[str, Any], flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (field,) = wrong
    for make in (lambda: Settings(**wrong), lambda: Settings().model_copy(update=wrong)):
        with pytest.raises(InputError) as refused:
            make()
        assert str(refused.value).startswith(f"{field}: ")
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(node("n1"))))
    assert run(["solve", str(dump), *flags]) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert flags[0] in line
    assert said in line


@pytest.mark.parametrize(
    "wrong",
    [
        {"objective": 3},
        {"freeze": "tools"},
        {"freeze_bare": "perhaps"},
        {"drain": "n1"},
        {"move_limit": 3},
        {"metrics": 7},
    ],
)
def test_settings_of_a_wrong_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(wrong))}: "):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"freeze": ["app==a==b"]}, "--freeze: 'app==a==b' is not a label selector"),
        ({"freeze": [""]}, "--freeze: must name a namespace"),
        ({"executor": None, "may_move": ["critical"]}, "--may-move: "),
        ({"executor": "descheduler", "may_move": ["bare"]}, "--may-move: 'bare' is "),
        ({"objective": "tidy"}, "--objective: 'tidy' is neither a preset"),
        ({"scheduler": "mine"}, "--scheduler: 'mine' needs a --config"),
    ],
)
def test_what_only_the_cluster_can_tell_is_refused_with_it(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        make_problem(CLUSTER, Settings(**wrong))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("wrong", "flags"),
    [
        ({"time_limit": 0.05}, ["--time-limit", "0.05"]),
        ({"time_limit": float("nan")}, ["--time-limit", "nan"]),
        ({"gap": 1.0}, ["--gap", "1"]),
        ({"gap": -0.1}, ["--gap", "-0.1"]),
        ({"seed": -1}, ["--seed", "-1"]),
        ({"seed": 2**31}, ["--seed", str(2**31)]),
        ({"workers": 0}, ["--workers", "0"]),
        ({"memory": 255 * 2**20}, ["--memory", "255Mi"]),
    ],
)
def test_wrong_options_are_refused_in_both(
    wrong: dict[str, Any], flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (field,) = wrong
    for make in (lambda: Options(**wrong), lambda: replace(Options(), **wrong)):
        with pytest.raises(InputError, match=f"^{field}: is .+; must be "):
            make()
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(node("n1"))))
    assert run(["solve", str(dump), *flags]) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert flags[0] in line


@pytest.mark.parametrize("wrong", [{"time_limit": "20"}, {"deterministic": 1}, {"workers": 1.5}, {"largest_model": -1}])
def test_options_of_a_wrong_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(wrong))}: "):
        Options(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires_in": "soon"},
        {"expires_in": timedelta()},
        {"wave_timeout": LONGEST + timedelta(seconds=1)},
        {"created_at": datetime(2026, 1, 1)},
        {"rounds": -1},
        {"limits": {"per_owner": "110%"}},
    ],
)
def test_wrong_terms_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(wrong))}"):
        Terms(**wrong)


# -- one table of defaults and words --------------------------------------------------------------------------


def test_defaults_of_python_are_those_of_the_command_line() -> None:
    """What a command gets when nothing is said is what a caller gets who says nothing, but where the help differs."""
    commands = {command.__name__: command for panel in COMMANDS.values() for command in panel}
    plan = inspect.signature(commands["plan"]).parameters
    assert plan["per_owner"].default == Terms().limits.per_owner == "25%"
    assert read_duration(plan["expires_in"].default) == Terms().expires_in == timedelta(hours=2)
    assert read_duration(plan["wave_timeout"].default) == Terms().wave_timeout == timedelta(minutes=10)
    assert plan["time_limit"].default == Options().time_limit == 20.0
    for name, option in options_of(Settings).items():
        if name in plan:
            said = plan[name].default
            value = getattr(Settings(), name)
            assert said == ((not value) if option.negated else value) or (not said and not value)


def test_every_setting_is_an_option_where_it_decides_something() -> None:
    commands = {
        command.__name__: inspect.signature(command).parameters for panel in COMMANDS.values() for command in panel
    }
    for name, option in options_of(Settings).items():
        assert (name in commands["solve"]) == (Concerns.SEARCH in option.concerns)
        assert (name in commands["plan"]) == (Concerns.SEARCH in option.concerns)
        assert (name in commands["simulate"]) == (Concerns.SCHEDULER in option.concerns)
        several = name + "s"  # compare takes several of some, and a table of them
        assert (name in commands["compare"]) != (several in commands["compare"])
    # Arguments of drain and fit; --max-moves takes limits on some pods too.
    assert set(Settings.model_fields) - set(options_of(Settings)) == {"drain", "admit", "max_moves_of"}


def test_releases_are_those_that_are_built_in() -> None:
    assert list(RELEASES) == list(built_in.RELEASES)


def test_words_are_written_as_they_are_read() -> None:
    assert [write_duration(read_duration(word)) for word in ("90s", "30m", "2h", "1d", "1h30m")] == [
        "1m30s", "30m", "2h", "1d", "1h30m",
    ]  # fmt: skip
    assert Terms(expires_in="1h30m").expires_in == timedelta(minutes=90)  # type: ignore[arg-type]
    assert read_memory("2Gi") == 2**31


# -- documents ------------------------------------------------------------------------------------------------

texts = st.text("ab-=/,", min_size=1, max_size=6)
settings = st.builds(
    Settings,
    objective=st.sampled_from([*PRESETS, *PRESETS.values()]),
    release=st.sampled_from(RELEASES),
    scheduler=st.none() | texts,
    config=st.none() | texts,
    metrics=st.none() | texts,
    freeze=st.lists(texts).map(tuple),
    freeze_bare=st.booleans(),
    max_moves=st.none() | st.integers(0, 10**6),
    max_moves_of=st.lists(st.sampled_from(["ns=a:1", "app=b:0", "workload=a/b:12"])).map(tuple),
    preemption=st.none() | st.sampled_from(get_args(Preemption)),
    executor=st.none() | st.sampled_from(EXECUTORS),
    may_move=st.lists(texts).map(tuple),
    move_costs=st.booleans(),
    sample_nodes=st.booleans(),
    drain=st.lists(texts).map(tuple),
    admit=st.lists(texts).map(tuple),
)


@given(settings)
def test_documents_carry_all_that_decides_what_the_problem_is(given_settings: Settings) -> None:
    document = given_settings.resolved(PRESETS["pack"], "1.24", "mine")
    read = SettingsDocument.model_validate_json(document.model_dump_json(by_alias=True))
    assert read == document
    looked_up = {"objective": PRESETS["pack"], "release": "1.24", "scheduler": "mine"}
    folded = {"preemption": None, "metrics": None, "sample_nodes": False}
    expected = given_settings.model_copy(update=looked_up | folded)
    assert {name: getattr(read, name) for name in Settings.model_fields} == dict(expected)
    assert pickle.loads(pickle.dumps(document)) == document


def test_the_form_of_settings_in_documents() -> None:
    """Written down by hand: what is printed today is to be read tomorrow."""
    document = Settings(
        objective="repair",
        freeze=("tools", "app=a"),
        max_moves=3,
        max_moves_of=("ns=a:1",),
        executor="descheduler",
        may_move=("critical",),
    ).resolved(PRESETS["repair"], "1.36", "default-scheduler")
    repair = '"overcommit","host-ports","anti-affinity","affinity","spread","node-affinity","no-execute"'
    assert document.model_dump_json(by_alias=True) == (
        '{"objective":{"name":"repair","preemption":"never","repair":[' + repair + "],"
        '"tiers":[{"name":"moves","variance":{},"evenness":{},"moves":1.0,'
        '"nodes":0.0,"price":0.0,"scores":0.0,"spread":{}}]},"release":"1.36","scheduler":"default-scheduler",'
        '"config":null,"featureGates":null,"prices":null,'
        '"freeze":["tools","app=a"],"freezeBare":false,"maxMoves":3,"maxMovesOf":["ns=a:1"],'
        '"executor":"descheduler","mayMove":["critical"],"moveCosts":true,"drain":[],"admit":[]}'
    )


@pytest.mark.parametrize("unwritten", ["preemption", "metrics", "sampleNodes", "sample_nodes"])
def test_documents_do_not_carry_what_came_to_something_else(unwritten: str) -> None:
    document = Settings().resolved(PRESETS["pack"], "1.36", "mine").model_dump(by_alias=True)
    with pytest.raises(ValueError, match="documents do not have"):
        SettingsDocument.model_validate(document | {unwritten: None})


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(),
        Settings(objective="pack", preemption="by-priority"),
        Settings(freeze=("tools",), max_moves=1),
        Settings(freeze_bare=True, move_costs=False),
        Settings(executor="descheduler", may_move=("local-storage",), drain=("n1",)),
        Settings(admit=("default/d",), release="1.24"),
    ],
    ids=repr,
)
def test_the_problem_of_a_document_is_the_problem_it_was_made_from(chosen: Settings) -> None:
    compiled = make_problem(CLUSTER, chosen)
    document = settings_document(compiled, chosen)
    again = same_problem(CLUSTER, document, make_profile(chosen, CLUSTER))
    assert repr(again.problem.tiers) == repr(compiled.problem.tiers)
    assert repr(again.problem.rules) == repr(compiled.problem.rules)
    assert [pod.key for pod in again.pods] == [pod.key for pod in compiled.pods]
    assert again.participants.reason == compiled.participants.reason


def test_a_plan_to_a_solution_keeps_the_solution_s_settings_but_for_who_evicts() -> None:
    made_with = Settings(
        objective="pack", freeze=("tools",), freeze_bare=True, max_moves=3, move_costs=False, drain=("n1",),
        admit=("default/d",), executor="koordinator", may_move=("critical",), config="old.yaml",
    ).resolved(PRESETS["pack"], "1.24", "mine")  # fmt: skip
    said = Settings(executor="descheduler", may_move=("local-storage",), config="new.yaml", max_moves=9)
    found = said.of_solution(made_with)
    assert dict(found) == dict(made_with) | {
        "executor": "descheduler", "may_move": ("local-storage",), "config": "new.yaml",
    }  # fmt: skip


def test_who_stays_beside_the_settings() -> None:
    def frozen(pod: Pod) -> str | None:
        return "said so" if pod.metadata.name == "a" else None

    compiled = make_problem(CLUSTER, Settings(freeze=("tools",)), frozen)
    stays = {p.metadata.name for p in compiled.participants.fixed()}
    assert stays == {"a", "c", "e"}  # e has data on its node
    planned = planning_problem(CLUSTER, Settings(), Terms(frozen={"default/a": "said so"}))
    assert "default/a" in {p.key for p in planned.participants.fixed()}


def test_settings_are_short_to_read() -> None:
    assert repr(Settings()) == "Settings()"
    assert repr(Settings(objective=PRESETS["pack"], max_moves=3)) == "Settings(objective='pack', max_moves=3)"
    assert "<td>&lt;b&gt;</td>" in Settings(config="<b>")._repr_html_()
    assert Terms(limits=LimitsDocument()).limits.per_owner is None


# -- the release that fits the nodes --------------------------------------------------------------------------


def of_version(*versions: str) -> Snapshot:
    made = [node(f"n{i}") for i, _ in enumerate(versions)]
    for one, version in zip(made, versions, strict=True):
        one["status"]["nodeInfo"] = {"kubeletVersion": version}
    return snapshot(nodes=made, pods=[pod("a", "n0")])


@pytest.mark.parametrize(
    ("versions", "release"),
    [
        (("v1.21.1+38b3ecc", "v1.22.3"), "1.24"),
        (("v1.9.8",), "1.20"),
        (("v1.29.9", "v1.9.8"), "1.24"),
        (("v1.30.4-gke.1",), "1.36"),
        (("v1.9.8", "v1.35.0"), "1.36"),
        (("v1.40.0",), "1.36"),
        (("unknown",), "1.36"),
    ],
)
def test_the_release_nearest_to_the_newest_kubelet_decides(versions: tuple[str, ...], release: str) -> None:
    cluster = of_version(*versions)
    compiled = make_problem(cluster, Settings())
    assert compiled.profile.release.name == release
    assert settings_document(compiled, Settings()).release == release
    newest = max(versions, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
    said = f"decided as kube-scheduler {release}, the nearest to the nodes' kubelets ({newest}); --profile chooses"
    assert said in compiled.notes
    for named in RELEASES[1:]:  # the first is no release of kube-scheduler
        chosen = make_problem(cluster, Settings(release=named))
        assert chosen.profile.release.name == named
        assert not any("kubelets" in note for note in chosen.notes)


def test_a_configuration_that_the_nearest_release_cannot_read_is_named(tmp_path: Path) -> None:
    """1.24 is nearer, but reads no v1: to call 1.36 the nearest would be wrong."""
    config = tmp_path / "mine.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    compiled = make_problem(of_version("v1.23.5"), Settings(config=str(config)))
    assert compiled.profile.release.name == "1.36"
    said = f"1.36, of the releases that read {config} the nearest to the nodes' kubelets (v1.23.5); --profile chooses"
    assert f"decided as kube-scheduler {said}" in compiled.notes


def test_nodes_that_do_not_say_their_version_get_the_latest_release() -> None:
    compiled = make_problem(CLUSTER, Settings())
    assert compiled.profile.release.name == RELEASES[-1]
    assert not any("kubelets" in note for note in compiled.notes)


def test_a_configuration_is_read_by_a_release_that_knows_its_version(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    for version, release in (("v1", "1.36"), ("v1beta3", "1.24")):
        config.write_text(f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n")
        for kubelet in ("v1.22.0", "v1.36.0"):
            profile = make_profile(Settings(config=str(config)), of_version(kubelet))
            assert profile.release.name == release
