"""Pages of answers: what they say is what the other outputs say, and names stay names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

import stowplan
from stowplan.answers.measures import NodeUsage
from stowplan.answers.spread import by_zone, workload_spread
from stowplan.cli import run
from stowplan.html_report.page import MOST_ROWS, Cell, Heading, Page, Section, Table, long_table
from stowplan.html_report.render import render
from stowplan.models.assignment import Assignment
from tests.support.clusters import ZONE, Manifest, node, pod, snapshot
from tests.support.malformed import listed

QUICK = ("-q", "-t", "2", "--deterministic")
EVIL = '<script>window.injected = 1</script><img src="x" onerror="window.injected = 2">'


def deployed(name: str, at: str | None, **more: object) -> Manifest:
    """Build a pod of the Deployment ``web``."""
    return pod(name, at, owner="ReplicaSet/web-7f", labels={"app": "web", "pod-template-hash": "7f"}, **more)


def cluster(label: str = "") -> Manifest:
    """Build a dump: three nodes in two zones, a Deployment on one of them, and two pods that stay."""
    taint = {"key": f"dedicated{label}", "effect": "PreferNoSchedule", "value": label}
    nodes = [
        node("n0", labels={ZONE: "a", "x": label}),
        node("n1", labels={ZONE: "a"}, taints=[taint], unschedulable=True),
        node("n2", labels={ZONE: "b"}),
    ]
    pods = [deployed(f"web-{i}", "n0", cpu="800m") for i in range(4)]
    stay = [pod("agent", "n1", cpu="100m", owner="DaemonSet/agent"), pod("bare", "n2", cpu="100m")]
    return listed(*nodes, *pods, *stay)


@dataclass
class Reader(HTMLParser):
    """Reads what a page consists of."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    headline: str = ""
    section: str = ""
    text: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "section":
            self.section = dict(attrs)["id"] or ""
        if tag == "tr":
            self.tables.setdefault(self.section, []).append([])
        if tag in ("td", "th"):
            self.tables[self.section][-1].append("")
        if tag not in ("meta", "link", "br", "img", "input"):
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.path.pop() == tag, (tag, self.path)

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.path[-1:] == ["h1"]:
            self.headline += data
        if self.path[-1:] in (["td"], ["th"]):
            self.tables[self.section][-1][-1] += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.path == []
    return reader


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(cluster()), encoding="utf-8")
    return str(path)


def page(tmp_path: Path, *words: str) -> Reader:
    file = tmp_path / "report.html"
    assert run([*words, "--report", str(file)]) == 0
    return read(file.read_text(encoding="utf-8"))


def test_a_scenario_says_what_its_json_says(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--remove-nodes", "n2", "--add-nodes", "n0", "--drop-rule", "taints"]
    found = page(tmp_path, "what-if", dump, *words, *QUICK, "-o", "json")
    document = json.loads(capsys.readouterr().out)
    by_title = {row[0]: row[1:] for row in found.tables["figures"][1:]}
    figures = {one["figure"]: one for one in document["figures"]}
    moves = figures["moves"]
    assert by_title["moves"][:2] == [f"{moves['unchanged']:.0f}", f"{moves['whatIf']:.0f}"]
    nodes = {row[0]: row for row in found.tables["nodes"][1:]}
    assert {name: row[-1] for name, row in nodes.items()} == {"n0": "", "n1": "", "n2": "removed", "n0-new-1": "added"}
    assert nodes["n2"][2].endswith(" → 0")
    pods = {row[0]: tuple(row[1:]) for row in found.tables["pods"][1:]}
    assert pods.keys() == {one["pod"] for one in document["relocations"]}
    for one in document["relocations"]:
        told = zip(pods[one["pod"]], (one["unchanged"], one["whatIf"]), strict=True)
        assert all(shown == (node or shown) for shown, node in told)
        assert {*pods[one["pod"]]} & {"(pending)", "(no such pod)"} or (one["unchanged"] and one["whatIf"])
    assert '"removeNodes": ["n2"]' in found.tables["settings"][-1][1]
    assert "What if " in "".join(found.text)


def test_losses_say_what_their_json_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node(f"n{i}", cpu="2", labels={ZONE: "abc"[i]}) for i in range(3)]
    pods = [pod(f"p{i}", f"n{i}", cpu="211"[i], memory="1Mi", owner=f"ReplicaSet/r{i}") for i in range(3)]
    dump, file = tmp_path / "dump.json", tmp_path / "report.html"
    dump.write_text(json.dumps(listed(*nodes, *pods)), encoding="utf-8")
    assert run(["survive", str(dump), *QUICK, "-o", "json", "--report", str(file)]) == 3
    document = json.loads(capsys.readouterr().out)
    found = read(file.read_text(encoding="utf-8"))
    assert found.headline == "1 of 3 domains leaves pods pending when lost (proven)."
    rows = {row[0]: row[1:] for row in found.tables["losses"][1:]}
    assert {name: row[2] for name, row in rows.items()} == {
        loss["domain"]: str(len(loss["pending"])) for loss in document["losses"]
    }
    assert [row[:2] for row in found.tables["pending"][1:]] == [["a", "default/p0"]]
    (move,) = document["survivor"]["moves"]
    assert found.tables["moves"][1:] == [[f"default/{move['pod']['name']}", move["source"], move["target"]]]
    written = tmp_path / "again.html"
    stowplan.write_report(stowplan.survive(stowplan.load(str(dump)), options=stowplan.Options(time_limit=1)), written)
    assert read(written.read_text(encoding="utf-8")).headline == found.headline


def test_a_comparison_says_what_its_json_says(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = page(tmp_path, "compare", dump, *QUICK, "-o", "json")
    document = json.loads(capsys.readouterr().out)
    assert found.headline.startswith(f"Move {document['solution']['moves']} pods: imbalance")
    head, *rows = found.tables["figures"]
    names = head[1:-2]
    assert names == list(document["placements"])
    by_title = {row[0]: row[1:] for row in rows}
    for i, name in enumerate(names):
        placement = document["placements"][name]
        assert by_title["moves"][i] == str(placement["moves"])
        assert by_title["nodes in use"][i] == str(placement["nodesInUse"])
        assert by_title["imbalance"][i].replace(",", "") == f"{placement['tiers']['imbalance']:.0f}"
    after = document["placements"]["stowplan"]["nodes"]
    nodes = {row[0]: row for row in found.tables["nodes"][1:]}
    assert set(nodes) == {"n0", "n1", "n2"}
    for name, row in nodes.items():
        share = f"{after[name]['requested']['cpu'] / 4000:.0%}"
        assert row[3].endswith(share)
    assert nodes["n0"][1:4] == [
        "a",
        f"4 → {after['n0']['pods']}",
        f"80% → {after['n0']['requested']['cpu'] / 4000:.0%}",
    ]
    assert nodes["n1"][-1] == "cordoned"
    moved = [row[:1] + row[2:4] for row in found.tables["moves"][1:]]
    assert moved == [[f"default/{m['name']}", m["source"], m["target"]] for m in document["moves"]]
    assert ["default/agent", "n1", "DaemonSet"] in found.tables["fixed"]


def test_solve_plan_and_replay_have_a_page_each(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solved = page(tmp_path, "solve", dump, *QUICK)
    assert solved.headline.startswith("Move ")
    assert [row[0] for row in solved.tables["moves"][1:]]
    capsys.readouterr()
    planned = page(tmp_path, "plan", dump, *QUICK, "--max-per-owner", "1", "-o", "json")
    plan = json.loads(capsys.readouterr().out)
    assert planned.headline.startswith("Plan: ")
    assert [row[0] for row in planned.tables["waves"][1:]] == [str(wave["number"]) for wave in plan["waves"]]
    moves = [(str(wave["number"]), move["target"]) for wave in plan["waves"] for move in wave["moves"]]
    assert [(row[1], row[4]) for row in planned.tables["moves"][1:]] == moves
    assert planned.tags.count("rect") >= len(moves)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    replayed = page(tmp_path, "replay", str(path), dump, "--runs", "2", "-o", "json")
    landings = json.loads(capsys.readouterr().out)["landings"]
    assert len(replayed.tables["landings"]) == 1 + len(landings)
    assert "In 2 runs with chance" in " ".join(replayed.text)


def test_bench_has_a_page(tmp_path: Path) -> None:
    found = page(tmp_path, "bench", "triplets:15_3", "--count", "2", *QUICK)
    assert found.headline.endswith("2 instances, 2 answers accepted, 2 proved optimal.")
    head, *rows = found.tables["instances"]
    assert [row[head.index("checker")] for row in rows] == ["accepted", "accepted"]


@pytest.mark.parametrize("command", ["compare", "solve", "plan"])
def test_names_cannot_become_markup(command: str, tmp_path: Path) -> None:
    """Names that Kubernetes would refuse too: a dump may come from anywhere."""
    text = json.dumps(cluster(EVIL)).replace("n0", json.dumps(f"n0{EVIL}")[1:-1]).replace("web", f"web{EVIL[:8]}")
    path = tmp_path / "dump.json"
    path.write_text(text, encoding="utf-8")
    found = page(tmp_path, command, str(path), *QUICK)
    assert any(EVIL in words for words in found.text)
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on")]


def test_a_page_asks_for_nothing_and_runs_no_script_but_its_own(dump: str, tmp_path: Path) -> None:
    found = page(tmp_path, "compare", dump, *QUICK)
    links = [value for name, value in found.attributes if name in ("href", "src", "action", "srcset")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= {value for name, value in found.attributes if name == "id"}
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"<\s]+", text)) == {"http://www.w3.org/2000/svg"}
    policy = next(value for name, value in found.attributes if name == "content" and "default-src" in value)
    script = re.search(r"<script>(.*)</script>", text, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_a_file_that_cannot_be_written_is_refused_before_the_search(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "no" / "report.html"
    assert run(["compare", dump, "-t", "60", "--report", str(file)]) == 1
    assert capsys.readouterr().err == f"stowplan: {file}: cannot be written: No such file or directory\n"


def test_several_objectives_have_no_page(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", dump, *QUICK, "-O", "pack", "-O", "balance", "--report", "x.html"]) == 1
    assert "--report: excludes several profiles" in capsys.readouterr().err


def test_long_tables_say_what_they_leave_out() -> None:
    rows = [[Cell(f"n{i}"), Cell(str(i), i)] for i in range(MOST_ROWS + 5)]
    table = long_table("nodes", [Heading("node"), Heading("pods", numeric=True)], rows, "-o csv has them all")
    found = read(render(Page("t", "h", [Section("nodes", "Nodes", [table]), Section("none", "None", [])])))
    assert len(found.tables["nodes"]) == 1 + MOST_ROWS
    assert "… and 5 more rows: -o csv has them all" in found.text
    assert "None" not in found.text  # a section without blocks is left out
    short = long_table("nodes", table.headings, rows[:3], "")
    assert (short.left_out, len(short.rows)) == (0, 3)
    assert isinstance(short, Table)


def test_zones_add_up_their_nodes_and_workloads_count_theirs() -> None:
    nodes = [node("n0", labels={ZONE: "a"}), node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}), node("n3")]
    pods = [deployed("w0", "n0"), deployed("w1", "n0"), deployed("w2", None), pod("db-0", "n3", owner="StatefulSet/db")]
    pods += [pod("agent", "n1", owner="DaemonSet/agent"), pod("bare", "n1"), deployed("over", "n1", phase="Succeeded")]
    made = snapshot(nodes=nodes, pods=pods)
    usages = [NodeUsage(f"n{i}", i, {"cpu": 10 * i}, {"cpu": 100}) for i in range(4)]
    zones = [(usage.name, number, usage.pods, usage.requested["cpu"]) for usage, number in by_zone(made, usages)]
    assert zones == [("(no zone)", 1, 3, 30), ("a", 2, 1, 10), ("b", 1, 2, 20)]
    then = made.assignment
    now = Assignment({**dict(then.items()), "default/w1": "n2", "default/w2": "n3"})
    web, db = workload_spread(made, then, now)
    assert (web.kind, web.name, web.pods, web.moves) == ("Deployment", "web", 3, 2)
    assert (db.kind, db.name, db.moves) == ("StatefulSet", "db", 0)
    assert (web.before.nodes, web.before.most, web.before.unscheduled) == (1, 2, 1)
    assert web.before.zones == {"a": 2}
    assert (web.after.nodes, web.after.most, web.after.unscheduled) == (3, 1, 0)
    assert web.after.zones == {"a": 1, "b": 1, "(no zone)": 1}
    assert by_zone(snapshot(nodes=[node("n0")]), usages[:1]) == []
