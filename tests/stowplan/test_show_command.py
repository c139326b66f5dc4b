"""show: a saved plan on a terminal, as Markdown, as JSON; what is left out, what is not interpreted, and exit codes."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from stowplan.cli import run
from stowplan.models.plan import Plan, PodReference
from tests.support.plans import move, plan

GITHUB = 65_536
"""Characters that a comment on GitHub may have."""


def saved(folder: Path, made: Plan, name: str = "plan.json") -> str:
    data = made.model_dump_json(by_alias=True).encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(["show", *arguments]) == code
    found = capsys.readouterr()
    assert found.err == ""
    return found.out


def many(waves: int, moves: int, **more: Any) -> Plan:
    return plan(*([move(f"web-{w}x{m}", "a", "b", **more) for m in range(moves)] for w in range(waves)))


@pytest.mark.parametrize("name", ["plan.json", "plan.json.gz"])
def test_the_hash_is_the_one_that_apply_expects(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, many(2, 2), name)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert f"for apply --expect-hash: {digest}\n" in shown(capsys, path)
    assert f"`{digest}`" in shown(capsys, path, "-o", "markdown")


def test_json_is_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = many(3, 30)
    assert Plan.model_validate_json(shown(capsys, saved(tmp_path, made), "-o", "json")) == made


def test_a_table_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, many(4, 10))
    text = shown(capsys, path, "--limit", "13")
    assert text.count("→ b") == 13
    assert "  … and 7 more\n" in text
    assert "… and 2 waves more, with 20 moves; -o wide shows all\n" in text
    for whole in (("--limit", "0"), ("-o", "wide")):
        text = shown(capsys, path, *whole)
        assert text.count("→ b") == 40
        assert "more" not in text


def test_markdown_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, many(4, 10).model_copy(update={"notes": tuple(f"note {i}" for i in range(20))}))
    text = shown(capsys, path, "-o", "markdown", "--limit", "13")
    assert len(re.findall(r"^\| \d+ \| `default/web-", text, re.MULTILINE)) == 13
    assert "**27 more moves of waves 2 to 4 left out**; `stowplan show --limit 0` shows all." in text
    assert "- … and 7 more\n" in text
    whole = shown(capsys, path, "-o", "markdown", "--limit", "0")
    assert whole.count("`default/web-") == 40
    assert "left out" not in whole


def test_a_comment_has_room_for_the_longest_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Namespaces have at most 63 characters, pods and nodes 253."""
    pod = PodReference(namespace="n" * 63, name="p" * 253, uid="u")
    moves = [move(f"web-{i}", "a", "b", budgets=("d" * 253,)) for i in range(500)]
    long = [one.model_copy(update={"pod": pod, "source": "s" * 253, "target": "t" * 253}) for one in moves]
    text = shown(capsys, saved(tmp_path, plan(long)), "-o", "markdown")
    assert "460 more moves" in text
    assert 30_000 < len(text) < GITHUB


def test_nothing_of_a_plan_is_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "x` | ](http://evil) <script>@team #12 ![i](u) **b** \x1b[31m\nnext"
    pod = PodReference(namespace="a|b", name=evil, uid="u")
    moved = move("web-1", "a", "b", why=evil).model_copy(update={"pod": pod, "loses": (evil,)})
    made = plan([moved]).model_copy(update={"notes": (evil,), "given_up": (evil,), "gaps": (evil,)})
    text = shown(capsys, saved(tmp_path, made), "-o", "markdown")
    assert "\x1b" not in text
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert set(re.findall(r"<(\w+)", page)) == {
        *("h3", "p", "strong", "code", "ul", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert re.findall("<strong>(.*)</strong>", page)[0].startswith("Incomplete dump: x` | ](http://evil)")
    assert page.count("<strong>") == 1
    *_, row = re.findall("<tr>\n(.*?)</tr>", page, re.DOTALL)
    assert row.count("<td") == 5
    assert "@team" not in text
    assert "#12" not in text


def test_the_exit_code_of_a_saved_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, many(1, 1))
    shown(capsys, path)
    shown(capsys, path, "--detailed-exitcode", code=2)
    empty = saved(tmp_path, many(1, 1).model_copy(update={"waves": (), "tokens": ()}), "empty.json")
    assert "Nothing to do" in shown(capsys, empty, "--detailed-exitcode", "-o", "markdown")


def test_an_expired_plan_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, many(1, 1).model_copy(update={"expires_at": "2020-01-01T00:00:00Z"}))
    assert "The plan expired at 2020-01-01T00:00:00Z" in shown(capsys, path)
    assert "**expired**" in shown(capsys, path, "-o", "markdown")


def test_what_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "no.json"
    path.write_text(json.dumps({"kind": "Solution"}))
    assert run(["show", str(path)]) == 1
    assert capsys.readouterr() == ("", f"stowplan: {path}: kind: is 'Solution'; must be Plan\n")
    assert run(["show", str(path), "-o", "csv"]) == 1
    assert "must be one of 'table', 'wide', 'markdown', 'json'" in capsys.readouterr().err
