"""Several releases, configurations and objectives in one table: every placement measured by every objective."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stowplan.cli import run
from tests.support.clusters import Manifest, node, pod
from tests.support.malformed import listed

QUICK = ("-q", "-t", "2", "--deterministic")


@pytest.fixture
def dump(tmp_path: Path) -> str:
    pods = [pod(f"web-{i}", f"n{i % 2}", cpu=f"{3 + i}00m", owner=f"ReplicaSet/w{i}") for i in range(6)]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(node("n0"), node("n1"), node("n2"), *pods)))
    return str(path)


def compared(dump: str, capsys: pytest.CaptureFixture[str], *words: str) -> Manifest:
    assert run(["compare", dump, *QUICK, "-o", "json", *words]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_each_answer_is_that_of_its_own_comparison(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Best of each objective in its own rows, and the same values as when it is asked for alone."""
    document = compared(dump, capsys, "-O", "balance", "-O", "pack", "--profile", "1.24", "--profile", "1.36")
    assert document["kind"] == "Comparisons"
    pairs = [(one["scheduler"], one["objective"]) for one in document["comparisons"]]
    assert pairs == [(release, name) for release in ("1.24", "1.36") for name in ("balance", "pack")]
    rows = {row["figure"]: row["values"] for row in document["table"]}
    titles = list(rows["moves"])
    kube = ["kube-scheduler 1.24", "kube-scheduler 1.36"]
    assert titles == ["today", *kube, *(f"stowplan {release} {name}" for release, name in pairs)]
    for release, name in pairs:
        alone = compared(dump, capsys, "-O", name, "--profile", release)
        tiers = alone["placements"]["stowplan"]["tiers"]
        own = [tier["name"] for tier in alone["solution"]["settings"]["objective"]["tiers"]]
        for tier in own:
            values = rows[f"objectives.{name}.{tier}"]
            assert values[f"stowplan {release} {name}"] == pytest.approx(tiers[tier])
            assert values["today"] == pytest.approx(alone["placements"]["today"]["tiers"][tier])
        first = rows[f"objectives.{name}.{own[0]}"]
        others = [value for title, value in first.items() if release in title]
        assert first[f"stowplan {release} {name}"] <= min(others) + 1e-9
        in_the_whole = next(
            one["comparison"]
            for one in document["comparisons"]
            if (one["scheduler"], one["objective"]) == (release, name)
        )
        assert in_the_whole["solution"]["settings"]["release"] == release


def test_configurations_stand_beside_releases(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
    words = ("--profile", "1.36", "--profile", "1.24", "--config", str(config))
    document = compared(dump, capsys, *words)
    releases = [one["comparison"]["solution"]["settings"]["release"] for one in document["comparisons"]]
    assert releases == ["1.36", "1.24", "1.24"]
    rows = {row["figure"]: list(row["values"].values()) for row in document["table"]}
    assert rows["scores.total"][2] == rows["scores.total"][3]  # the configuration is that release's default
    together = compared(dump, capsys, "--profile", "1.24", "--config", str(config))
    assert together["kind"] == "Comparison"


def test_choices_that_differ_are_counted_and_all_nodes_are_drawn(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nodes.svg"
    words = ("--profile", "1.5", "--profile", "1.20", "--svg", str(file))
    rows = {row["figure"]: row["values"] for row in compared(dump, capsys, *words)["table"]}
    assert rows["choices"]["kube-scheduler 1.5"] == 0
    assert 0 < rows["choices"]["today"] <= 6
    assert list(rows["choices"]) == list(rows["moves"])
    assert drawn(file)[1:] == (5, 2 + 2 * 5 * 3)


def drawn(file: Path) -> tuple[list[str], int, int]:
    """Return the texts of a drawing, its panels for a resource, and its dots."""
    picture = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    texts = [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    dots = sum(1 for _ in picture.iter("{http://www.w3.org/2000/svg}circle"))
    return texts, sum(text.startswith("mean ") and "%" in text for text in texts) // 2, dots


def test_nodes_are_drawn_around_their_mean(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One dot for each of three nodes in each panel, beside the two of the legend; the text says what they are."""
    file = tmp_path / "nodes.svg"
    assert run(["compare", dump, *QUICK, "--svg", str(file)]) == 0
    texts, panels, dots = drawn(file)
    assert (panels, dots) == (3, 2 + 2 * 3 * 3)
    # The pods ask for 3.3 of 12 cores: 1.5 and 1.8 of 4 today, and none on the third node.
    assert texts.count("mean 27.5%, deviation 19.69 points") == 1
    assert texts.count("today") == 2


def test_table_and_csv_say_the_same(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", dump, *QUICK, "-O", "balance", "-O", "spread"]
    assert run(words) == 0
    text = capsys.readouterr().out
    assert "default, balance: Move " in text
    assert "balance: imbalance" in text
    assert "spread: spread" in text
    assert run([*words, "-o", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["figure", "unit", "today", "kube-scheduler", "stowplan balance", "stowplan spread"]
    assert len({row[0] for row in rows}) == len(rows)
    assert all(len(row) == len(rows[0]) for row in rows)


def test_many_placements_stand_below_each_other_within_80_columns(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every placement has its row in every block; names are whole, and figures that are alike are said once."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    even, scheduler, load = folder / "evenness.yaml", folder / "load-aware-scheduler.yaml", folder / "load.yaml"
    even.write_text("tiers:\n- {name: unevenness, evenness: {memory: 1}}\n")
    plugins = {"score": {"enabled": [{"name": "TargetLoadPacking"}]}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    scheduler.write_text(json.dumps(head | {"profiles": [{"plugins": plugins}]}))
    load.write_text(json.dumps({"nodes": {"n0": {"cpu": 30}, "n1": {"cpu": 60}}}))
    words = ["--profile", "1.5", "--profile", "1.20", "--profile", "1.36", "--config", str(scheduler)]
    words += ["--metrics", str(load), "-O", "balance", "-O", str(even)]
    assert run(["compare", dump, *QUICK, *words]) == 0
    text = capsys.readouterr().out
    lines = text.partition("The same in all: pods scheduled 6, ")[2].splitlines()[2:]
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("Every placement"))]
    assert max(map(len, table)) <= 80
    names = ["1.5", "1.20", "1.36", "load-aware-scheduler.yaml"]
    groups = ["kube-scheduler", "stowplan balance", "stowplan evenness.yaml"]
    labels = ["today", *(label for group in groups for label in (group, *(f"  {name}" for name in names)))]
    blocks = "\n".join(table).split("\n\n")
    assert len(blocks) > 1
    cells: dict[int, list[str]] = {}
    for block in blocks:
        body = block.splitlines()[-len(labels) :]
        width = max(map(len, labels))
        assert [line[:width].rstrip() for line in body] == labels
        for row, line in enumerate(body):
            cells.setdefault(row, []).extend(line[width:].split())
    assert {len(cells[row]) for row, label in enumerate(labels) if label in groups} == {0}
    assert "note: 1.5, 1.20, 1.36: --metrics is not used: no plugin of the profile reads it" in text
    rows = {row["figure"]: row["values"] for row in compared(dump, capsys, *words)["table"]}
    moves = [f"{value:.0f}" for value in rows["moves"].values()]
    kept = [row for row, label in enumerate(labels) if label not in groups]
    by_objective = [0, *range(1, 5), *range(5, 13, 2), *range(6, 13, 2)]  # the document goes by scheduler
    assert [cells[row][0] for row in kept] == [moves[i] for i in by_objective]


def test_what_cannot_be_combined_gets_one_line(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", dump, "--ideal", "-O", "balance", "-O", "pack"]) == 1
    assert "--ideal: excludes several" in capsys.readouterr().err
    assert run(["compare", dump, "--profile", "1.30", "--profile", "1.36"]) == 1
    assert "--profile: is '1.30'; must be platform, 1.5, 1.20, 1.24 or 1.36; 1.36 is nearest" in capsys.readouterr().err
