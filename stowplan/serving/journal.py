"""The ledger on disk: a file of lines that only grows. A line is on the disk before its answer is given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from stowplan.cluster.append_only_file import GrowingFile, whole_lines
from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.serving.ledger import LedgerRecord, TokenLedger

FORMAT = "stowplan/v1 leases"


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """First line: what the lines below are about."""

    format: str
    plan: str
    created_at: str


class LeaseJournal:
    """An open journal, which no other process may have open.

    Writing is done by a thread of its own; a thread that has something to write waits until it is on the disk, and all
    who wait at the same time share one ``fsync``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken: OSError | None = None
        self._file: GrowingFile | None = None
        self._lines: list[bytes] = []
        self._next: asyncio.Future[None] | None = None
        """Done when the lines that are collected now are on the disk."""
        self._under_way: asyncio.Future[None] | None = None
        """Done when those being written are."""
        self._writer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "journal")

    def begin(self, plan: Plan, ledger: TokenLedger) -> int:
        """Open the file, replay what it holds on a ledger, and return how many records that were.

        A last line that is cut short, as when power fails, was never answered for and is cut off.

        Raises
        ------
        InputError
            If the file is in use, of another plan, or damaged.
        """
        try:
            file = self._file = GrowingFile(self.path)
            data = file.read()
        except BlockingIOError:
            raise self._refused("is in use by another server; name another file with --state") from None
        except OSError as error:
            raise self._refused(f"cannot be opened: {error.strerror}") from None
        header = msgspec.json.encode(Header(FORMAT, plan.id, plan.created_at)) + b"\n"
        if header.startswith(data) and data != header:  # new, or begun and cut short
            file.cut(0)
            file.append(header)
            return 0
        whole = whole_lines(data)
        lines = data[:whole].splitlines() or [data]
        self._check_header(lines[0], plan)
        decoder = msgspec.json.Decoder(LedgerRecord)
        for number, line in enumerate(lines[1:], 2):
            try:
                ledger.replay(decoder.decode(line))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise self._refused(f"line {number}: is damaged: {error}") from None
        file.cut(whole)
        return len(lines) - 1

    async def write(self, records: Sequence[LedgerRecord]) -> None:
        """Write records down; come back when they, and all that was written before, are on the disk.

        Raises
        ------
        OSError
            If they cannot be written, now and ever after: what was not written must not be answered.
        """
        if self.broken is not None:
            raise self.broken
        if records:
            self._lines += [msgspec.json.encode(record) + b"\n" for record in records]
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            if self._writer is None:
                self._writer = asyncio.create_task(self._flush())
        wait_for = self._next or self._under_way
        if wait_for is not None:
            await asyncio.shield(wait_for)

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._next is not None:
                lines, self._lines = self._lines, []
                self._under_way, self._next = self._next, None
                await loop.run_in_executor(self._thread, self._write, lines)
                self._under_way.set_result(None)
                self._under_way = None
        except OSError as error:
            self.broken = error
            for waiting in (self._under_way, self._next):
                if waiting is not None:
                    waiting.set_exception(error)
                    waiting.exception()  # heard, even if everybody who waited has gone away
        finally:
            self._writer = None

    def _write(self, lines: Sequence[bytes]) -> None:
        assert self._file is not None, "nothing is written before `begin`"
        self._file.append(b"".join(lines))

    def close(self) -> None:
        """Write what is left, and let others have the file."""
        self._thread.shutdown()
        if self._file is not None:
            if self._lines and self.broken is None:
                self._write(self._lines)
            self._file.close()
            self._file = None

    def _check_header(self, line: bytes, plan: Plan) -> None:
        try:
            header = msgspec.json.decode(line, type=Header)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._refused("contains no leases; give another file with --state") from None
        if header.format != FORMAT:
            raise self._refused(f"is of format {header.format!r}; must be {FORMAT!r}")
        if (header.plan, header.created_at) != (plan.id, plan.created_at):
            raise self._refused(
                f"is of plan {header.plan} of {header.created_at}, not of {plan.id} of {plan.created_at}; name another "
                "file with --state"
            )

    def _refused(self, problem: str) -> InputError:
        self.close()
        return InputError(problem, file=str(self.path))
