"""Bundles: asked again, the question has the same answer, with the names of the cluster and with others."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from stowplan.bundles.answer import MOST_NAMED, Answer, MoveAnswer, TierAnswer, differences
from stowplan.bundles.bundle import read_bundle
from stowplan.bundles.making import INCOMPLETE
from stowplan.cli import run
from stowplan.models.errors import InputError
from tests.support.clusters import ZONE, Manifest, labels, node, pod
from tests.support.malformed import listed

QUICK = ("-q", "-t", "1", "--deterministic")


def cluster() -> Manifest:
    """Build a dump: eight pods of a workload and four of another on one of three nodes."""
    nodes = [node(f"acme-{i}", labels={ZONE: f"acme-zone-{i % 2}"}) for i in range(3)]
    web = {"app": "acme-web", "pod-template-hash": "h1"}
    pods = [pod(f"acme-web-{i}", "acme-0", cpu="400m", labels=web, owner="ReplicaSet/acme-web") for i in range(8)]
    pods += [
        pod(
            f"acme-db-{i}",
            "acme-0",
            cpu="100m",
            namespace="acme-data",
            labels={"app": "acme-db"},
            owner="ReplicaSet/db",
        )
        for i in range(4)
    ]
    budget = {"metadata": {"name": "acme-pdb", "namespace": "default"}}
    spec = {"selector": labels(app="acme-web"), "maxUnavailable": 2}
    return listed(*nodes, *pods, {"kind": "PodDisruptionBudget", **budget, "spec": spec})


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(cluster()), encoding="utf-8")
    return str(path)


def kept(tmp_path: Path, command: str, dump: str, *words: str) -> Path:
    file = tmp_path / "answer.zip"
    assert run([command, dump, *QUICK, *words, "--bundle", str(file)]) == 0
    return file


def parts(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(file: Path, **changed: bytes) -> str:
    """Write a bundle with other parts; their names lack the suffix ``.json``."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in {**parts(file), **{f"{name}.json": new for name, new in changed.items()}}.items():
            archive.writestr(name, content)
    other = file.with_name(f"other-{len(list(file.parent.iterdir()))}.zip")
    other.write_bytes(made.getvalue())
    return str(other)


@pytest.mark.parametrize("names", [(), ("--anonymize",)], ids=["own names", "other names"])
@pytest.mark.parametrize("command", ["solve", "compare", "plan"])
def test_the_same_question_has_the_same_answer(
    command: str, names: tuple[str, ...], dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objective = tmp_path / "objective.yaml"
    tiers = [{"name": "even", "variance": {"cpu": 1}, "spread": {ZONE: 1}, "moves": 0.1}]
    objective.write_text(json.dumps({"name": "mine", "tiers": tiers}), encoding="utf-8")
    config = tmp_path / "config.yaml"
    profiles = [{"schedulerName": "default-scheduler"}]
    content = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**content, "profiles": profiles}), encoding="utf-8")
    prices = tmp_path / "prices.yaml"
    prices.write_text(json.dumps({"prices": [{"price": 0.5}]}), encoding="utf-8")
    words = ["--objective", str(objective), "--config", str(config), "--prices", str(prices)]
    words += ["--freeze", "acme-data", "--max-moves", "6", "--max-moves", "app=acme-web:5"]
    words += ["--no-protection-costs", "--max-per-wave", "3"] if command == "plan" else []
    file = kept(tmp_path, command, dump, *words, *names)
    for path in (objective, config, prices, Path(dump)):
        path.unlink()  # the bundle needs none of them
    capsys.readouterr()
    assert run(["rerun", str(file), "-q", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["differences"], found["remarks"]) == (True, [], [])
    assert found["then"] == found["now"]
    answer = found["now"]
    moved = [move for wave in answer["waves"] for move in wave]
    assert len(moved) == 5 if command == "plan" else len(answer["nodes"]) == 8
    text = b"".join(parts(file).values()).lower()
    assert (b"acme" in text) is (not names)


@pytest.mark.parametrize("names", [(), ("--anonymize",)], ids=["own names", "other names"])
def test_a_scenario_is_asked_again_without_its_files(
    names: tuple[str, ...], dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        json.dumps(
            {
                "apiVersion": "stowplan/v1",
                "kind": "Scenario",
                "name": "acme grows",
                "addNodes": [{"like": "acme-1", "labels": {"zone": "acme-zone-9"}}],
                "removeNodes": ["acme-2"],
                "pin": [{"pods": "ns=acme-data", "nodes": "zone=acme-zone-9"}],
                "headroom": [{"workload": "acme-data/db", "count": 2, "each": "zone"}],
                "weights": {"imbalance.moves": 5},
            }
        ),
        encoding="utf-8",
    )
    file = kept(tmp_path, "what-if", dump, "--scenario", str(scenario), *names)
    for path in (scenario, Path(dump)):
        path.unlink()
    capsys.readouterr()
    assert run(["rerun", str(file), "-q", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["then"]) == (True, found["now"])
    before, after = found["now"], found["now"]["scenario"]
    assert len(after["nodes"]) > len(before["nodes"]) == 12  # with what keeps room
    assert len({*after["nodes"].values()} - {*before["nodes"].values(), None}) == 1  # the node that is added
    text = b"".join(parts(file).values()).lower()
    assert (b"acme" in text) is (not names)
    with pytest.raises(InputError, match=r"changed\.json belongs to what-if"):
        read_bundle(rewritten(file, bundle=parts(file)["bundle.json"].replace(b'"what-if"', b'"solve"')))


@pytest.mark.parametrize("names", [(), ("--anonymize",)], ids=["own names", "other names"])
@pytest.mark.parametrize("which", ["--zones", "--nodes"])
def test_losses_are_asked_for_again(
    which: str, names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [node(f"acme-{i}", cpu="2", labels={ZONE: f"acme-zone-{i}"}) for i in range(3)]
    pods = [pod(f"acme-{i}", f"acme-{i}", cpu="211"[i], memory="1Mi", owner=f"ReplicaSet/acme-{i}") for i in range(3)]
    dump, file = tmp_path / "dump.json", tmp_path / "answer.zip"
    dump.write_text(json.dumps(listed(*nodes, *pods)), encoding="utf-8")
    assert run(["survive", str(dump), which, *QUICK, "--bundle", str(file), *names]) == 3
    dump.unlink()
    capsys.readouterr()
    assert run(["rerun", str(file), "-q", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["then"]) == (True, found["now"])
    answer = found["now"]
    assert [len(loss["pending"]) for loss in answer["losses"]] == [1, 0, 0]
    assert [len(wave) for wave in answer["waves"]] == [1]
    assert (b"acme" in b"".join(parts(file).values()).lower()) is (not names)
    document = json.loads(parts(file)["bundle.json"])
    document["answer"]["losses"][1]["leftByScheduler"] += 1
    assert run(["rerun", rewritten(file, bundle=json.dumps(document).encode()), "-q"]) == 1
    other = answer["losses"][1]["domain"]
    assert f"1 domain with another answer when lost: {other}" in capsys.readouterr().out


def test_another_answer_is_told(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = kept(tmp_path, "solve", dump)
    document = json.loads(parts(file)["bundle.json"])
    answer = document["answer"]
    first = next(iter(answer["nodes"]))
    now, answer["nodes"][first] = answer["nodes"][first], None
    answer["tiers"][-1]["value"] += 1
    other = rewritten(file, bundle=json.dumps(document).encode())
    capsys.readouterr()
    assert run(["rerun", other, "-q"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Another answer: 2 differences.\n")
    assert f"1 pod on another node: {first}: none then, {now} now" in out
    assert "value of imbalance: " in out


def test_differences_are_counted_and_the_first_are_named() -> None:
    tiers = (TierAnswer(name="a", value=3, bound=2),)
    then = Answer(status="FEASIBLE", tiers=tiers, nodes={f"p{i}": "n" for i in range(9)})
    now = Answer(status="OPTIMAL", tiers=(TierAnswer(name="b", value=3, bound=2),), nodes={})
    found = differences(then, now)
    assert found[:3] == [
        "status: FEASIBLE then, OPTIMAL now",
        "a: a tier of one answer alone",
        "b: a tier of one answer alone",
    ]
    assert found[3].startswith("9 pods on another node: p0: n then, none now; ")
    assert found[3].endswith(f"and {9 - MOST_NAMED} more")
    wave = (MoveAnswer(pod="p", source="a", target="b"),)
    first, second = (Answer(status="OPTIMAL", tiers=(), nodes={}, waves=waves) for waves in ((wave,), (wave, wave)))
    assert differences(first, second) == ["1 wave with other moves: 2"]
    assert differences(then, then) == []


def test_a_bundle_says_when_the_time_decides(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answer.zip"
    assert run(["solve", dump, "-q", "-t", "1", "--bundle", str(file)]) == 0
    capsys.readouterr()
    run(["rerun", str(file), "-q"])
    assert "note: the search was not deterministic" in capsys.readouterr().out


def test_what_the_dump_lacks_is_said_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "part.json"
    dump.write_text(json.dumps({**cluster(), "metadata": {"remainingItemCount": 3}}), encoding="utf-8")
    for names in ((), ("--anonymize",)):
        file = kept(tmp_path, "solve", str(dump), *names)
        said = capsys.readouterr().err
        assert said.startswith("stowplan: warning: ")
        assert run(["rerun", str(file), "-q"]) == 0
        again = capsys.readouterr().err
        assert again == said if not names else again.startswith(f"stowplan: warning: {INCOMPLETE}")


def test_equal_bundles_are_equal_bytes(dump: str, tmp_path: Path) -> None:
    first = kept(tmp_path, "solve", dump).read_bytes()
    assert kept(tmp_path, "solve", dump).read_bytes() == first


def test_what_is_no_bundle_gets_one_line(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = kept(tmp_path, "solve", dump)
    document = json.loads(parts(file)["bundle.json"])
    strange = {**document, "settings": {**document["settings"], "speed": 3}}
    lost = {**document, "settings": {**document["settings"], "config": "config"}}
    cut = tmp_path / "cut.zip"
    cut.write_bytes(file.read_bytes()[:-30])
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w"):
        pass
    for path, wanted in (
        (str(tmp_path / "none.zip"), "cannot be read: No such file or directory"),
        (dump, "is no bundle: File is not a zip file"),
        (str(cut), "is no bundle: "),
        (str(empty), "is no bundle; must hold bundle.json and snapshot.json"),
        (rewritten(file, bundle=b'{"kind": "Plan"}'), "kind"),
        (rewritten(file, bundle=json.dumps(strange).encode()), "has 'speed', which this version does not know"),
        (rewritten(file, bundle=json.dumps(lost).encode()), "names 'config', which the bundle does not hold"),
        (rewritten(file, snapshot=b"{"), "snapshot.json"),
    ):
        capsys.readouterr()
        assert run(["rerun", path, "-q"]) == 1, wanted
        (line,) = capsys.readouterr().err.splitlines()
        assert wanted in line
    assert run(["--max-input", "1k", "rerun", str(file), "-q"]) == 1
    assert "has more than 1,000 bytes" in capsys.readouterr().err


def test_options_that_do_not_fit_are_refused(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "b.zip")
    for words, wanted in (
        (["solve", dump, "--anonymize"], "--anonymize: needs --bundle"),
        (["solve", dump, "--bundle", str(tmp_path / "no" / "b.zip")], "cannot be written"),
        (["compare", dump, "-O", "pack", "-O", "spread", "--bundle", file], "--bundle: excludes several profiles"),
        (["plan", dump, "--steer", "none", "--bundle", file], "--bundle: excludes --solution and --steer none"),
    ):
        assert run([*words, *QUICK]) == 1
        assert wanted in capsys.readouterr().err
        assert not Path(file).exists()


def test_anonymize_writes_a_cluster_that_is_solved_alike(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json.gz"
    assert run(["anonymize", dump, "-o", str(other)]) == 0
    values = []
    for path in (dump, str(other)):
        capsys.readouterr()
        assert run(["solve", path, *QUICK, "-o", "json"]) == 0
        solution = json.loads(capsys.readouterr().out)
        values.append([(tier["name"], tier["value"], tier["bound"]) for tier in solution["tiers"]])
    assert values[0] == values[1]
    assert run(["anonymize", dump]) == 0
    printed = capsys.readouterr().out
    assert "acme" not in printed
    assert len(json.loads(printed)["items"]) >= 16
