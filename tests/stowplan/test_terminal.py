"""What a terminal shows: progress, the map of nodes, completions, and no colors where none are wanted."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from stowplan.answers.measures import NodeUsage
from stowplan.cli import progress, run
from stowplan.cli.completion import completions
from stowplan.cli.completion import main as complete
from stowplan.cli.progress import LiveTable
from stowplan.models.problem import Tier
from stowplan.optimizer.run import Step
from stowplan.report.node_map import MOST_NODES, show_node_map
from stowplan.report.tables import say
from tests.support.clusters import node, pod
from tests.support.malformed import listed

TIERS = [Tier("violations", ()), Tier("imbalance [x]", (), unit="pp²")]


def drawn(shown: Any, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, record=True, force_terminal=False)
    console.print(shown)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_progress_shows_value_bound_gap_and_the_time_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(monotonic=lambda: clock[0])
    clock = [100.0]
    monkeypatch.setattr(progress, "time", now)
    table = LiveTable(TIERS, 20.0)
    assert drawn(table) == [""]  # nothing was reported yet
    table.report(Step(4.0, "annealing", (0, 1000), (0, 880)))
    clock[0] = 106.0
    lines = drawn(table)
    assert lines[0] == "last improvement by annealing"
    assert lines[2].split() == ["violations", "0", "0", "proven"]
    assert lines[3].split() == ["imbalance", "[x]", "1,000", "880", "12.0%"]
    assert lines[4].startswith("10 of 20 s ██████████ ")  # time goes on between two steps
    assert max(map(len, lines)) <= 80
    unlimited = LiveTable(TIERS, None)
    unlimited.report(Step(4.0, "annealing", (0, 1000), (0, 880)))
    assert drawn(unlimited)[4].startswith("4 s; ")


def usages(*shares: tuple[int, int | None]) -> Any:
    nodes = [
        NodeUsage(f"node-{i:03}", 1, {"cpu": cpu, "memory": memory or 0}, {"cpu": 100, "memory": 100 if memory else 0})
        for i, (cpu, memory) in enumerate(shares)
    ]
    return SimpleNamespace(nodes=nodes, usage=[SimpleNamespace(resource=name) for name in ("cpu", "memory")])


def mapped(then: Any, now: Any, width: int = 80, *, wide: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width, record=True)
    show_node_map(console, then, now, "stowplan", wide=wide)
    return [line.rstrip() for line in console.export_text().splitlines() if line.strip()]


def test_every_node_has_a_bar_today_and_in_the_answer() -> None:
    head, *lines = mapped(usages((50, 100), (150, None)), usages((100, 25), (0, None)))
    assert head.split() == ["node", "cpu,", "today", "→", "stowplan", "memory,", "today", "→", "stowplan"]
    assert [re.findall(r"\S+", line) for line in lines] == [
        ["node-000", "█" * 5 + "▌", "50%", "█" * 11, "100%", "█" * 11, "100%", "██▊", "25%"],
        ["node-001", "█" * 11, "150%", "0%", "-", "-"],
    ]
    assert max(map(len, (head, *lines))) <= 80
    narrow = mapped(usages((50, 100)), usages((100, 25)), 30)
    assert "memory" not in narrow[0]
    assert max(map(len, narrow)) <= 30


def test_a_large_map_has_the_nodes_that_change_most_in_their_order() -> None:
    number = MOST_NODES + 10
    then, now = usages(*[(50, 50)] * number), usages(*[(50 + i, 50) for i in range(number)])
    lines = mapped(then, now)[1:]
    assert [line.split()[0] for line in lines[:-1]] == [f"node-{i:03}" for i in range(10, number)]
    assert lines[-1] == "… and 10 nodes that change less; -o wide shows all"
    assert len(mapped(then, now, wide=True)) == 1 + number


def test_compare_prints_a_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.json"
    pods = [pod(f"p{i}", "n0", cpu="500m", owner="ReplicaSet/p") for i in range(4)]
    dump.write_text(json.dumps(listed(node("n0"), node("n1"), *pods)), encoding="utf-8")
    assert run(["compare", str(dump), "-q", "-t", "1", "--deterministic", "--map"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"n0 +█+ +50% █+▏? +25% .*", next(line for line in lines if re.match(r"n0 +█", line)))
    assert run(["compare", str(dump), "-O", "pack", "-O", "spread", "--map"]) == 1
    assert "--map: excludes several profiles" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["comp"], ["compare"]),
        (["compare", "--max-m"], ["--max-moves"]),
        (["compare", "-O", "sp"], ["spread"]),
        (["solve", "--objective", "pa"], ["pack"]),
        (["solve", "--profile", ""], ["platform", "1.5", "1.20", "1.24", "1.36"]),
        (["solve", "dump.js"], []),
        (["solve", "it's $HOME"], []),
    ],
)
def test_words_are_completed(words: list[str], wanted: list[str]) -> None:
    assert completions(words) == wanted


def test_kubectl_is_told_whether_files_may_come_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, wanted in ((["sol"], "solve\n:4\n"), (["solve", "du"], ":0\n")):
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-stowplan", *words])
        complete()
        assert capsys.readouterr().out == wanted
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-stowplan"])
    complete()
    assert {"compare", "solve", ":4"} <= set(capsys.readouterr().out.split())


def test_no_color_means_none() -> None:
    code = (
        "from rich.console import Console; from stowplan.report.tables import say\n"
        "console = Console(force_terminal=True); say(console, 'word', style='bold red')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"NO_COLOR": "1", "TERM": "xterm"}
    )
    assert "\x1b[1mword" in done.stdout
    assert "31" not in done.stdout


def test_lines_wrap_at_spaces_and_names_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a-name-that-is-wider-than-the-terminal"
    line = f"  {name}/pod: on a node that it shares with others"
    say(Console(width=24, force_terminal=True, color_system=None), line)
    told = capsys.readouterr().out.splitlines()
    assert [part.rstrip() for part in told] == [f"  {name}/pod:", "  on a node that it", "  shares with others"]
    say(Console(width=24, soft_wrap=True), line)
    assert capsys.readouterr().out == f"{line}\n"
