"""The journal: on disk before anything is done, readable after anything has happened."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from stowplan.applying.journal import ApplyJournal, check_header, now, plan_hash, read_journal
from stowplan.applying.ledger import ApplyLedger
from stowplan.applying.records import (
    AcceptedRecord,
    AnswerRecord,
    DoneRecord,
    IntentRecord,
    LandedRecord,
    PlanRecord,
    Record,
    StartRecord,
    StopRecord,
    WaveEndRecord,
    WaveRecord,
)
from stowplan.models.errors import InputError
from tests.support.applying import ROOT
from tests.support.plans import shop

PLAN = shop()


def story() -> list[Record]:
    """Return a record of every kind, in an order that can happen."""
    at = now()
    return [
        PlanRecord(at=at, plan=PLAN.id, plan_hash=plan_hash(PLAN), cluster="c1"),
        StartRecord(at=at, process=1),
        WaveRecord(at=at, wave=1, known={"uid-web": ("uid-web-a",)}),
        IntentRecord(at=at, move="m0001", namespace="shop", name="web-a", uid="uid-web-a"),
        AnswerRecord(at=at, move="m0001", outcome="evicted"),
        LandedRecord(at=at, move="m0001", pod="web-c", uid="u", node="n2", planned=True),
        AcceptedRecord(at=at, move="m0001", node="n2"),
        WaveEndRecord(at=at, wave=1),
        StopRecord(at=at, why="a reason"),
        DoneRecord(at=at),
    ]


def write(path: Path, records: list[Record]) -> None:
    with ApplyJournal(path) as journal:
        for record in records:
            journal.append(record)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    records = story()
    write(tmp_path / "j", records)
    assert read_journal(tmp_path / "j") == records
    with ApplyJournal(tmp_path / "j") as journal:
        assert journal.records == records


def test_every_prefix_of_a_journal_is_a_journal(tmp_path: Path) -> None:
    """Wherever a write was cut off, the whole lines before it are read, and writing goes on after them."""
    path = tmp_path / "j"
    write(path, story())
    whole = path.read_bytes()
    for end in random.Random(1).sample(range(len(whole)), 60):
        path.write_bytes(whole[:end])
        lines = whole[:end].count(b"\n")
        assert len(read_journal(path)) == lines
        write(path, [StartRecord(at=now(), process=2)])
        assert [r.event for r in read_journal(path)] == [r.event for r in story()[:lines]] + ["start"]


def test_a_line_that_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, story())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"event":"intent"}\n', *lines[3:]]))
    before = path.read_bytes()
    with pytest.raises(InputError, match="line 4: is not a record of a journal"):
        ApplyJournal(path)
    assert path.read_bytes() == before


def test_two_cannot_write_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with ApplyJournal(path), pytest.raises(InputError, match="is in use: another apply is carrying out this plan"):
        ApplyJournal(path)
    code = "from pathlib import Path\nfrom stowplan.applying.journal import ApplyJournal as J\nJ(Path(sys.argv[1]))"
    with ApplyJournal(path):
        done = subprocess.run(
            [sys.executable, "-c", f"import sys\n{code}", str(path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert "is in use" in done.stderr
    ApplyJournal(path).__exit__(None, None, None)


def test_it_is_on_the_disk_when_it_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(os.fstat(handle).st_size)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with ApplyJournal(tmp_path / "j") as journal:
        synced.clear()
        for number, record in enumerate(story(), 1):
            journal.append(record)
            assert len(synced) == number
            assert synced[-1] == (tmp_path / "j").stat().st_size


@pytest.mark.parametrize(
    ("change", "cluster", "said"),
    [
        ({"plan_hash": "0", "plan": "other"}, "c1", "is the journal of plan other"),
        ({"plan_hash": "0"}, "c1", "another version of this plan"),
        ({}, "c2", "was written for another cluster"),
    ],
)
def test_a_journal_of_something_else(tmp_path: Path, change: dict[str, str], cluster: str, said: str) -> None:
    head = story()[0].model_copy(update=change)
    with pytest.raises(InputError, match=said):
        check_header([head], PLAN, cluster, tmp_path / "j")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        ApplyJournal(tmp_path / "nowhere" / "j")


def test_a_ledger_is_its_records(tmp_path: Path) -> None:
    ledger = ApplyLedger(PLAN)
    stages = []
    for record in story():
        ledger.take(record)
        stages.append(ledger.progress["m0001"].stage)
    assert stages == ["waiting"] * 3 + ["asked", "leaving"] + ["landed"] * 5
    assert (ledger.ended, ledger.done, ledger.known) == ({1}, True, {1: {"uid-web": frozenset({"uid-web-a"})}})


def test_a_parked_pod_is_known_when_it_has_landed() -> None:
    """The move that takes a parked pod on is about the pod that came up, whose uid only the journal knows."""
    ledger = ApplyLedger(PLAN)
    onward = next(move for move in PLAN.moves if move.id == "m0006")
    assert (ledger.name(onward), ledger.uid(onward)) == ("web-b", "")
    ledger.take(LandedRecord(at=now(), move="m0002", pod="web-z", uid="u-z", node="n3", planned=True))
    assert (ledger.name(onward), ledger.uid(onward)) == ("web-z", "u-z")
