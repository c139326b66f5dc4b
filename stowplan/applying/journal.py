"""The journal: a file to which every step is written before it is taken and after it was answered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from stowplan.applying.records import RECORD, PlanRecord, Record
from stowplan.cluster.append_only_file import GrowingFile, read_lines, whole_lines
from stowplan.models.errors import InputError
from stowplan.models.moments import stamp
from stowplan.models.plan import Plan


def now() -> str:
    """Return this moment as records carry it."""
    return stamp(datetime.now(UTC), "milliseconds")


def plan_hash(plan: Plan) -> str:
    """Return the SHA-256 of a plan's content, whatever form it was read from."""
    return hashlib.sha256(plan.model_dump_json(by_alias=True).encode()).hexdigest()


def read_journal(path: Path) -> list[Record]:
    """Read what a journal holds, without touching it; a last line that was cut off is left out."""
    try:
        data = read_lines(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    return _parse(data, path)[0]


class ApplyJournal:
    """A journal that is being written. Use it as a context manager: no other process can write it meanwhile.

    Every record is on the disk when `append` returns. What a killed process left is read on opening; of a last line
    that it did not finish, nothing was done that the line speaks of, so it is cut off.

    Attributes
    ----------
    records
        What it held when it was opened.

    Raises
    ------
    InputError
        If the file cannot be written, is in use, or holds something else than a journal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = GrowingFile(path)
        except BlockingIOError:
            raise InputError("is in use: another apply is carrying out this plan", str(path)) from None
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
        try:
            self.records, whole = _parse(self._file.read(), path)
            self._file.cut(whole)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> ApplyJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, record: Record) -> None:
        """Write a record, and return when it is on the disk; of one that cannot be written whole, nothing stays."""
        try:
            self._file.append(record.model_dump_json(by_alias=True).encode() + b"\n")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(self.path)) from None


def check_header(records: Sequence[Record], plan: Plan, cluster: str, path: Path) -> None:
    """Check that a journal is about this plan and this cluster.

    Raises
    ------
    InputError
        If it is not.
    """
    if not records:
        return
    head = records[0]
    if not isinstance(head, PlanRecord):
        raise InputError("does not begin with a record of its plan", str(path), "line 1")
    if head.plan_hash != plan_hash(plan):
        of = "another version of this plan" if head.plan == plan.id else f"plan {head.plan}"
        raise InputError(f"is the journal of {of}; give another file with --journal", str(path))
    if head.cluster and cluster and head.cluster != cluster:
        raise InputError("was written for another cluster; check --context, or give another file", str(path))


def _parse(data: bytes, path: Path) -> tuple[list[Record], int]:
    """Return the records, and how many bytes they take."""
    records: list[Record] = []
    whole = whole_lines(data)
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            records.append(RECORD.validate_json(line))
        except ValidationError:
            raise InputError("is not a record of a journal", str(path), f"line {number}") from None
    return records, whole
