"""A scenario does to a snapshot what a careful editor does to its dump, and refuses what it cannot do."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest
import typer

import stowplan
from stowplan.cli.groups import grouped
from stowplan.models.errors import InputError
from stowplan.scenarios.apply import apply_scenario
from stowplan.scenarios.reading import joined, read_scenario
from stowplan.scenarios.scenario import Scenario
from tests.support.clusters import Manifest
from tests.support.edits import CASES, cluster, write_files
from tests.support.malformed import listed

NOT_COMPARED = {"notes", "gaps", "fatal_gaps", "namespaces"}
"""What reading a dump adds."""


def loaded(folder: Path, items: Sequence[Manifest], name: str = "dump.json") -> stowplan.Snapshot:
    (folder / name).write_text(json.dumps(listed() | {"items": list(items)}))
    return stowplan.load(folder / name)


def given(words: str) -> Scenario:
    """Return the scenario that options say."""
    found: list[Scenario] = []
    app = typer.Typer()

    @app.command()
    @grouped
    def take(*, scenario: Scenario) -> None:
        found.append(scenario)

    typer.main.get_command(app)(shlex.split(words), standalone_mode=False)
    return found[0]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_a_scenario_equals_the_dump_edited_by_hand(case: str, tmp_path: Path) -> None:
    words, edit = CASES[case]
    before = loaded(tmp_path, cluster())
    untouched = loaded(tmp_path, cluster())
    changed = apply_scenario(given(words), before)
    by_hand = loaded(tmp_path, edit(cluster()), "edited.json")
    assert before == untouched
    assert by_hand != before
    for field in fields(stowplan.Snapshot):
        if field.name not in NOT_COMPARED:
            assert getattr(changed.snapshot, field.name) == getattr(by_hand, field.name), field.name
    assert changed.effects


def test_scenario_files_say_the_same_as_options(tmp_path: Path) -> None:
    words = (
        "--add-nodes n2:2,zone=c --remove-nodes n1 --resize-nodes n0:cpu=8 --uncordon n4 --drop-rule spread:app=web "
        f"--max-skew 3 --requests {tmp_path}/krr.json --pin app=db@zone=b --forbid ns=default@n3 "
        "--headroom default/web:1@zone --headroom-from /buffers.json --weight imbalance.moves=5"
    )
    (tmp_path / "scenario.yaml").write_text(
        """
        apiVersion: stowplan/v1
        kind: Scenario
        addNodes: [{like: n2, count: 2, labels: {zone: c}}]
        removeNodes: [n1]
        resizeNodes: [{nodes: n0, allocatable: {cpu: "8"}}]
        uncordon: [n4]
        dropRules: [{rule: spread, pods: app=web}]
        maxSkew: [{maxSkew: 3}]
        requests: [krr.json]
        pin: [{pods: app=db, nodes: zone=b}]
        forbid: [{pods: ns=default, nodes: n3}]
        headroom: [{workload: default/web, count: 1, each: zone}]
        headroomFrom: [/buffers.json]
        weights: {imbalance.moves: 5}
        """
    )
    read = read_scenario(str(tmp_path / "scenario.yaml"))
    assert read == given(words)
    assert joined(Scenario(remove_nodes=("n1",)), Scenario(remove_nodes=("n2",))).remove_nodes == ("n1", "n2")


def test_weights_change_the_objective_alone(tmp_path: Path) -> None:
    before = loaded(tmp_path, cluster())
    changed = apply_scenario(given("--weight imbalance.moves=5 --weight imbalance.variance.memory=0"), before)
    assert changed.snapshot is before
    objective = changed.settings.objective
    assert isinstance(objective, stowplan.Objective)
    assert (objective.tiers[0].moves, objective.tiers[0].variance) == (5, {"cpu": 1, "memory": 0})
    assert stowplan.PRESETS["balance"].tiers[0].moves == 10


def test_added_nodes_cost_what_their_model_costs(tmp_path: Path) -> None:
    before = loaded(tmp_path, cluster())
    settings = stowplan.Settings(prices={f"n{i}": float(i) for i in range(5)})
    changed = apply_scenario(given("--add-nodes n2 --remove-nodes n1"), before, settings)
    assert changed.settings.prices == {"n0": 0, "n2": 2, "n3": 3, "n4": 4, "n2-new-1": 2}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--add-nodes n9", "add_nodes: 'n9' is no node of the snapshot, and no label selector that matches one"),
        ("--remove-nodes zone=z", "remove_nodes: 'zone=z' is no node of the snapshot"),
        ("--remove-nodes disk --remove-nodes !disk", "remove_nodes: leaves no node"),
        ("--uncordon n0", "uncordon: 'n0' is not cordoned"),
        ("--drop-rule spread:app=db", "drop_rules: changes nothing: none of the pods has a rule spread"),
        ("--drop-rule spread:app=x", "drop_rules: 'app=x' names no pod of the snapshot"),
        ("--max-skew 1", "max_skew: changes nothing: none of the pods has a hard spread constraint with another"),
        ("--headroom default/none:1", "default/none: headroom: has no pod in the snapshot that another one would be"),
        ("--headroom default/web:1@rack", "headroom: no node of the snapshot has the label rack"),
        ("--weight cost.moves=1", "objective balance: weights: has no tier of 'cost.moves'; it has imbalance"),
        ("--weight imbalance.speed=1", "weights: has 'imbalance.speed', whose term is none of variance"),
        ("--requests absent.json", "absent.json: no such file"),
        ("--requests dump.json", "dump.json: recommends no requests"),
        ("--headroom-from krr.json", "krr.json: contains no CapacityBuffer and no HorizontalPodAutoscaler"),
    ],
)
def test_what_cannot_be_done_gets_one_line(words: str, told: str, tmp_path: Path) -> None:
    before = loaded(tmp_path, cluster())
    with pytest.raises(InputError) as caught:
        apply_scenario(given(words), before)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--add-nodes n2:0", "--add-nodes: is 'n2:0'; must be NODE, NODE:N"),
        ("--add-nodes n2:1,zone", "--add-nodes: is 'n2:1,zone'; must be NODE"),
        ("--resize-nodes n2", "--resize-nodes: is 'n2'; must be NODES:RESOURCE=AMOUNT"),
        ("--resize-nodes n2:cpu=much", "--resize-nodes: is 'n2:cpu=much'; 'much' is not a quantity"),
        ("--drop-rule gravity", "--drop-rule: is 'gravity'; must be RULE or RULE:PODS"),
        ("--max-skew app=web:none", "--max-skew: is 'app=web:none'; must be N or PODS:N"),
        ("--pin app=web", "--pin: is 'app=web'; must be PODS@NODES"),
        ("--pin 'a b@n1'", "--pin: is 'a b@n1'; 'a b' is not a label selector"),
        ("--headroom web:1", "--headroom: is 'web:1'; must be NAMESPACE/NAME:N"),
        ("--weight imbalance.moves", "--weight: is 'imbalance.moves'; must be TIER.TERM=WEIGHT"),
        ("--weight imbalance.moves=-1", "must be 0 or more"),
    ],
)
def test_options_that_say_nothing_get_one_line(words: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        given(words)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]", "must be an object with kind: Scenario"),
        ("{kind: Plan}", "has no kind: Scenario, so it is no scenario"),
        ("{kind: Scenario}", "changes nothing; must have at least one change"),
        ("{kind: Scenario, removeNode: [a]}", "removeNode: is an unknown field"),
        ("{kind: Scenario, removeNodes: a}", "removeNodes: is 'a'; must be a list"),
        ("{kind: Scenario, maxSkew: [{maxSkew: 0}]}", "maxSkew[0].maxSkew: is 0; must be 1 or more"),
        ("{kind: Scenario, dropRules: [{rule: x}]}", "dropRules[0].rule: is 'x'; must be one of 'spread'"),
        ("{kind: Scenario, headroom: [{workload: a/b, count: x}]}", "headroom[0].count: is 'x'; must be an integer"),
        ("kind: [", "not YAML"),
    ],
)
def test_files_that_cannot_be_used_get_one_line(content: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_scenario(str(path))
    assert str(caught.value).startswith(str(path))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
