"""The Python interface: names, sources of snapshots, who computes, what a session shows."""

from __future__ import annotations

import ast
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import stowplan
from stowplan.optimizer.cpsat.task import Task, TaskResult
from stowplan.optimizer.deadline import Deadline
from tests.support.clusters import node, pod
from tests.support.malformed import listed

QUICK = stowplan.Options(time_limit=1, deterministic=True)
CONTENT = json.dumps(
    listed(
        node("n1"), node("n2"), *(pod(f"p{i}", "n1", cpu="500m", owner="ReplicaSet/p") for i in range(5)), pod("new")
    )
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    path.write_text(CONTENT)
    return path


# -- names ----------------------------------------------------------------------------------------------------


def imported_for_types() -> dict[str, str]:
    """Return the module of each name that the package imports for type checkers."""
    tree = ast.parse(Path(stowplan.__file__).read_text(encoding="utf-8"))
    (block,) = (part for part in tree.body if isinstance(part, ast.If))
    return {
        alias.name: part.module or "" for part in block.body if isinstance(part, ast.ImportFrom) for alias in part.names
    }


def test_names_are_said_alike_to_readers_loaders_and_type_checkers() -> None:
    assert sorted(stowplan.__all__) == sorted(set(stowplan.__all__)) == sorted(imported_for_types())
    assert imported_for_types() == stowplan._HOME_OF


@pytest.mark.parametrize("name", stowplan.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(stowplan, name) is getattr(import_module(stowplan._HOME_OF[name]), name)
    assert name in dir(stowplan)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = stowplan.nothing_of_the_kind


# -- sources --------------------------------------------------------------------------------------------------


def test_a_snapshot_is_loaded_from_whatever_names_it(dump: Path) -> None:
    packed = dump.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(CONTENT.encode()))
    expected = stowplan.load(str(dump)).fingerprint
    with dump.open("rb") as binary, dump.open(encoding="utf-8") as text, packed.open("rb") as zipped:
        for source in (dump, [dump], (str(dump),), iter([dump]), binary, text, zipped, io.StringIO(CONTENT), [packed]):
            assert stowplan.load(source).fingerprint == expected  # type: ignore[arg-type]


def test_several_sources_are_one_snapshot(dump: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps(listed(pod("other", "n1"))))
    for sources in ([dump, more], [[dump, str(more)]], [dump, io.StringIO(more.read_text())]):
        assert {p.metadata.name for p in stowplan.load(*sources).pods} >= {"p0", "new", "other"}  # type: ignore[arg-type]


def test_a_string_is_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one path a letter: the first of these is a folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(stowplan.InputError, match=r"^/no-such-file\.json: no such file$"):
        stowplan.load("/no-such-file.json")


@pytest.mark.parametrize("source", [3, None, [3], [["dump.json"]], b"dump.json", {"kind": "List"}])
def test_what_names_nothing_is_refused(source: Any) -> None:
    with pytest.raises(stowplan.InputError, match=r"is neither a path nor an open file$"):
        stowplan.load(source)


@pytest.mark.parametrize("source", ["", ["dump.json", ""]])
def test_an_empty_path_is_not_the_working_directory(source: Any, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump.parent)
    with pytest.raises(stowplan.InputError, match="a path is empty; must name a file or a directory"):
        stowplan.load(source)


def test_the_content_of_a_dump_is_no_path() -> None:
    with pytest.raises(stowplan.InputError, match="is no path; content is read from an open file"):
        stowplan.load(CONTENT)


def test_a_closed_file_is_refused_by_name(dump: Path) -> None:
    file = dump.open()
    file.close()
    with pytest.raises(stowplan.InputError, match=rf"^{dump}: cannot be read: I/O operation on closed file"):
        stowplan.load(file)


def test_an_open_file_is_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"kind": "Node", "apiVersion": "v1", "metadata": {}}')
    with path.open() as file, pytest.raises(stowplan.InputError) as refused:
        stowplan.load(file)
    assert str(refused.value).startswith(f"{path}: ")


# -- wrong arguments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: stowplan.solve("dump.json"), "snapshot: is of type str; must be a Snapshot, as load returns"),
        (lambda s: stowplan.solve(s, {"max_moves": 3}), "settings: is of type dict; must be a Settings"),
        (lambda s: stowplan.compare(s, stowplan.Options()), "settings: is of type Options; must be a Settings"),
        (lambda s: stowplan.plan(s, options=3), "options: is of type int; must be an Options"),
        (lambda s: stowplan.solve(s, backend="threads"), "backend: is of type str; must be a Backend"),
        (lambda s: stowplan.solve(s, candidates={"a": "b"}), "candidates: is of type dict; must be a list of assign"),
        (lambda s: stowplan.solve(s, candidates=[{"x/y": "n1"}]), "candidates[0]: has pod 'x/y', which is not in the"),
        (lambda s: stowplan.solve(s, candidates=["n1"]), "candidates[0]: is of type str; must be an Assignment"),
        (lambda s: stowplan.frontier(s, stowplan.Settings(max_moves=1)), "max_moves: is 1; must be None: give limits"),
        (lambda s: stowplan.solve(s, stowplan.Settings(admit=("nope",))), "Pod nope: admit: is not in the snapshot"),
        (lambda s: stowplan.drain(s, "nowhere"), "node 'nowhere' is not in the snapshot"),
        (lambda s: stowplan.drain(s, 3), "nodes: is of type int; must be a name, or a list of names"),
        (lambda s: stowplan.fit(s, "default/nobody"), "Pod default/nobody: is not in the snapshot"),
        (lambda s: stowplan.Settings(max_moves=True), "max_moves: is true"),
        (lambda s: stowplan.Settings(max_moves="5"), "max_moves: is '5'"),
        (lambda s: stowplan.Options(time_limit=float("inf")), "time_limit: is"),
    ],
)
def test_a_wrong_argument_gets_one_line(dump: Path, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(stowplan.InputError) as refused:
        call(stowplan.load(dump))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_name_will_do(dump: Path) -> None:
    snapshot = stowplan.load(dump)
    assert stowplan.drain(snapshot, "n1", options=QUICK).nodes == ("n1",)


def test_an_incomplete_dump_is_planned_on_demand_only() -> None:
    snapshot = replace(stowplan.load(io.StringIO(CONTENT)), fatal_gaps=("pods are missing",))
    for call in (stowplan.plan, partial(stowplan.drain, nodes="n1"), partial(stowplan.fit, pods="default/new")):
        with pytest.raises(stowplan.InputError, match="the dump is incomplete: pods are missing; partial=True plans"):
            call(snapshot, options=QUICK)  # type: ignore[operator]
    assert stowplan.plan(snapshot, options=QUICK, partial=True).plan.status


# -- who computes ---------------------------------------------------------------------------------------------


class Counting(stowplan.SerialBackend):
    """Works here, and says how often it was asked."""

    def __init__(self) -> None:
        super().__init__(stowplan.Stop())
        self.asked = 0

    def stream(
        self, tasks: Iterable[Task], deadline: Deadline | None = None, *, ordered: bool = True
    ) -> Iterator[tuple[int, TaskResult]]:
        self.asked += 1
        return super().stream(tasks, deadline, ordered=ordered)


def test_a_backend_of_one_s_own_works_on_sub_problems() -> None:
    crowd = stowplan.synthetic_snapshot(30, 300, seed=1)
    backend = Counting()
    stowplan.solve(crowd, options=replace(QUICK, time_limit=0.3), backend=backend)
    assert backend.asked


def test_every_search_hands_the_backend_on(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each solve of each of them, first and later ones, gets the backend that the caller gave."""
    from stowplan.answers import solve as answers
    from stowplan.optimizer import move_limits

    got: list[object] = []

    def solve(*arguments: Any, backend: object = None, **options: Any) -> stowplan.Outcome:
        got.append(backend)
        return original(*arguments, backend=backend, **options)  # type: ignore[arg-type]

    original = answers.solve
    monkeypatch.setattr(answers, "solve", solve)
    monkeypatch.setattr(move_limits, "solve", solve)
    snapshot, backend = stowplan.load(dump), Counting()
    stowplan.solve(snapshot, options=QUICK, backend=backend)
    stowplan.compare(snapshot, options=QUICK, backend=backend, scores=False)
    stowplan.frontier(snapshot, options=QUICK, limits=[0], backend=backend)
    stowplan.plan(snapshot, options=QUICK, backend=backend)
    stowplan.drain(snapshot, ["n1"], options=QUICK, backend=backend)
    stowplan.fit(snapshot, ["default/new"], options=QUICK, backend=backend)
    assert len(got) >= 6
    assert set(map(id, got)) == {id(backend)}


def test_functions_do_what_commands_do(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stowplan.cli import run

    snapshot = stowplan.load(dump)
    settings = stowplan.Settings(objective="pack", max_moves=2)
    assert run(["solve", str(dump), "-O", "pack", "--max-moves", "2", "-t", "1", "--deterministic", "-o", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    document = stowplan.solution_document(stowplan.solve(snapshot, settings, QUICK), settings)
    found = json.loads(document.model_dump_json(by_alias=True))
    assert {**printed, "seconds": 0} == {**found, "seconds": 0}
    assert run(["plan", str(dump), "-O", "pack", "--max-moves", "2", "-t", "1", "--deterministic", "-o", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    made = json.loads(stowplan.plan(snapshot, settings, QUICK).plan.model_dump_json(by_alias=True))
    assert printed["waves"]
    assert {key: value for key, value in printed.items() if key not in ("id", "createdAt", "expiresAt", "tokens")} == {
        key: value for key, value in made.items() if key not in ("id", "createdAt", "expiresAt", "tokens")
    }


# -- what a session shows -------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """Reads tables; raises for a tag that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def test_results_are_short_to_read_and_are_tables_in_notebooks(dump: Path) -> None:
    snapshot = stowplan.load(dump)
    settings = stowplan.Settings(max_moves=3)
    comparison = stowplan.compare(snapshot, settings, QUICK)
    planned = stowplan.plan(snapshot, settings, QUICK)
    shown: list[tuple[Any, list[str]]] = [
        (snapshot, ["nodes", "2", "pods", "6"]),
        (settings, ["max_moves", "3"]),
        (comparison.solution, ["tier", "bound", "imbalance", "OPTIMAL"]),
        (comparison, ["today", "stowplan", "moves", "imbalance"]),
        (planned, ["tier", "plan", "wave 1"]),
        (planned.plan, ["wave", "pod", "from"]),
        (stowplan.frontier(snapshot, options=QUICK), ["at most", "any", "imbalance"]),
        (stowplan.drain(snapshot, "n1", options=QUICK), ["tier", "plan"]),
        (comparison.solution.assignment, ["pod", "node", "n1"]),
    ]
    for value in (comparison.compiled, comparison.solution.outcome):
        assert len(repr(value)) < 200
    assert repr(snapshot) == "<Snapshot: 2 nodes, 6 pods>"
    for value, words in shown:
        assert len(repr(value)) < 200
        assert "\n" not in repr(value)
        assert set(words) <= set(Cells(value._repr_html_()).cells)


def test_everything_in_a_table_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "objective.yaml"
    path.write_text("name: '<b>&'\ntiers:\n- {name: '<script>alert(1)</script>', variance: {cpu: 1}}\n")
    dump = tmp_path / "dump.json"
    dump.write_text(CONTENT)
    snapshot, settings = stowplan.load(dump), stowplan.Settings(objective=str(path))
    comparison = stowplan.compare(snapshot, settings, QUICK)
    for value in (comparison, comparison.solution, stowplan.plan(snapshot, settings, QUICK)):
        html = value._repr_html_()  # type: ignore[attr-defined]
        assert "<script>" not in html
        assert "<script>alert(1)</script>" in Cells(html).cells


# -- frames, reports, replays -----------------------------------------------------------------------------------


def test_frames_hold_what_csv_prints(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas

    from stowplan.cli import run

    snapshot = stowplan.load(dump)
    common = ["-q", "-t", "1", "--deterministic", "-o", "csv"]
    answers: dict[str, Any] = {
        "solve": stowplan.solve(snapshot, options=QUICK),
        "compare": stowplan.compare(snapshot, options=QUICK),
        "plan": stowplan.plan(snapshot, options=QUICK),
        "frontier": stowplan.frontier(snapshot, options=QUICK),
    }
    for command, answer in answers.items():
        assert run([command, str(dump), *common]) == 0
        printed = pandas.read_csv(io.StringIO(capsys.readouterr().out), dtype=str, keep_default_na=False)
        made = stowplan.frame(answer)
        assert list(made.columns) == list(printed.columns)
        assert made.astype(str).to_numpy().tolist() == printed.to_numpy().tolist(), command
    assert stowplan.frame(answers["plan"].plan).equals(stowplan.frame(answers["plan"]))


def test_a_frame_of_measures_has_a_row_for_each_node(dump: Path) -> None:
    comparison = stowplan.compare(stowplan.load(dump), options=QUICK)
    nodes = stowplan.frame(comparison.columns[0].measures).set_index("node")
    assert list(nodes.index) == ["n1", "n2"]
    assert nodes.loc["n1", ["pods", "cpu requested", "cpu allocatable", "cpu share"]].tolist() == [5, 2500, 4000, 0.625]
    with pytest.raises(stowplan.InputError, match="is of type int; must be an answer"):
        stowplan.frame(3)  # type: ignore[arg-type]


def test_a_plan_is_replayed_and_everything_has_a_page(dump: Path, tmp_path: Path) -> None:
    snapshot, steps = stowplan.load(dump), []
    planned = stowplan.plan(snapshot, options=QUICK, progress=steps.append)
    steered = stowplan.replay(planned, snapshot, steered=True, runs=2)
    assert steered.kept == 1
    assert steered.distribution is not None
    assert steered.distribution.runs == 2
    assert stowplan.replay(planned.plan, snapshot, steered=True, runs=0).outcome.landings == steered.outcome.landings
    with pytest.raises(stowplan.InputError, match="plan: is of type int"):
        stowplan.replay(3, snapshot)  # type: ignore[arg-type]
    solution = stowplan.solve(snapshot, options=QUICK)
    for answer in (planned, steered, solution, stowplan.compare(snapshot, options=QUICK)):
        file = tmp_path / "report.html"
        stowplan.write_report(answer, file, options=QUICK, steps=steps)
        assert file.read_text(encoding="utf-8").count("</section>") >= 5
    with pytest.raises(
        stowplan.InputError, match="must be what compare, solve, plan, replay, what_if, or survive returns"
    ):
        stowplan.write_report(3, tmp_path / "x.html")  # type: ignore[arg-type]


def test_traces_are_validated_and_clusters_anonymized(dump: Path, tmp_path: Path) -> None:
    from stowplan.cli import run

    trace = tmp_path / "trace.jsonl"
    assert run(["simulate", str(dump), "--record", str(trace)]) == 0
    found = stowplan.validate(str(trace))
    assert found.holds
    assert found.pods == 1
    assert list(stowplan.frame(found).columns)[:2] == ["source", "case"]
    other = stowplan.anonymize(stowplan.load(dump))
    assert [node.name for node in other.nodes] == ["node-0", "node-1"]
    assert len(other.pods) == 6
