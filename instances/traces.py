"""Recorded scheduler decisions, one case a line: ``.jsonl`` or ``.jsonl.gz``."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any, get_args

import msgspec
from pydantic import TypeAdapter, ValidationError

from stowplan.instances.documents import GZIP
from stowplan.instances.load_aware_traces import is_load_aware, spelled_out
from stowplan.instances.metrics.load_watcher import parse_load_watcher
from stowplan.models.errors import InputError
from stowplan.models.input_bounds import bounded_lines
from stowplan.models.interning import interning
from stowplan.models.kubernetes import Pod
from stowplan.models.snapshot import Snapshot
from stowplan.models.trace import OBJECTS, Case, Expectation, Mode, Trace
from stowplan.models.validation import explain, refusal

SUFFIXES = (".jsonl", ".jsonl.gz")

_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {model: TypeAdapter(model) for _, model in OBJECTS.values()}
_EXPECT = TypeAdapter(tuple[Expectation, ...])


def trace_files(paths: Sequence[str]) -> list[Path]:
    """Return the trace files that paths, folders (walked) and patterns name, in order and without repetition.

    Raises
    ------
    InputError
        If something names no trace.
    """
    found: dict[Path, None] = {}
    for path in paths:
        place = Path(path)
        if place.is_dir():
            files = sorted(f for f in place.rglob("*") if f.name.endswith(SUFFIXES))
        elif place.is_file():
            files = [place]
        else:
            files = sorted(Path(match) for match in glob(path, recursive=True) if match.endswith(SUFFIXES))
        if not files:
            raise InputError(
                f"matches no trace; must be a file, a folder, or a pattern of {' or '.join(SUFFIXES)}", file=path
            )
        found |= dict.fromkeys(files)
    return list(found)


def read_traces(file: Path) -> Iterator[Trace]:
    """Read the cases of one file.

    Raises
    ------
    InputError
        With the line, object and field that cannot be used.
    """
    try:
        with file.open("rb") as start:
            packed = start.read(len(GZIP)) == GZIP
        with gzip.open(file, "rb") if packed else file.open("rb") as lines:
            for number, line in enumerate(bounded_lines(lines, str(file)), 1):
                if line.strip():
                    yield _trace(line, f"{file}:{number}")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {error}", file=str(file)) from None


def _trace(line: bytes, source: str) -> Trace:
    try:
        content = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", file=source) from None
    if not isinstance(content, dict) or not isinstance(content.get("case"), dict):
        raise InputError("has no case; must be a recorded case", file=source, field="case")
    if is_load_aware(content):
        content = spelled_out(content)
    case = content["case"]
    metrics = case.get("metrics")
    objects = {key: case[key] or [] for key in (*OBJECTS, "pending") if key in case}
    mode = case.get("mode", "independent")
    if mode not in get_args(Mode):
        raise InputError(f"is {mode!r}; must be one of {', '.join(get_args(Mode))}", file=source, field="case.mode")
    with interning():
        read: dict[str, Any] = {
            field: _objects(model, objects.get(key, []), f"case.{key}", source)
            for key, (field, model) in OBJECTS.items()
        }
        pending: tuple[Pod, ...] = _objects(Pod, objects.get("pending", []), "case.pending", source)
    try:
        expect = _EXPECT.validate_python(content.get("expect"))
    except ValidationError as error:
        raise refusal(error, source, ("expect",)) from None
    if len(expect) > len(pending):
        raise InputError(f"contains {len(expect)} decisions about {len(pending)} pods", file=source, field="expect")
    for pod, decision in zip(pending, expect, strict=False):
        if decision.pod != pod.key:
            raise InputError(f"decides about {decision.pod!r} where {pod.key} waits", file=source, field="expect")
    snapshot = Snapshot(**read, metrics=parse_load_watcher(metrics, source) if metrics is not None else None)
    try:
        snapshot.check_names()
    except InputError as error:
        raise error.in_file(source) from None
    return Trace(
        release=str(content.get("kubernetes", "")),
        case=Case(str(case.get("id", "")), mode, snapshot, pending, case.get("config"), objects, metrics),
        expect=expect,
        source=source,
    )


def _objects(model: type[Any], items: Any, field: str, source: str) -> tuple[Any, ...]:
    if not isinstance(items, list):
        raise InputError("must be a list", file=source, field=field)
    made = []
    for item in items:
        if not isinstance(item, dict):
            raise InputError(f"contains {item!r}; must contain objects", file=source, field=field)
        try:
            made.append(_ADAPTERS[model].validate_python(item))
        except ValidationError as error:
            raise explain(error, model.__name__, item).in_file(source) from None
    return tuple(made)


class TraceWriter:
    """Writes cases to a trace file; nothing is written over until `close` puts the whole file in place."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines: list[bytes] = []

    def write(self, release: str, case: Case, expect: Sequence[Expectation]) -> None:
        """Append a case."""
        head: dict[str, Any] = {"id": case.id, "mode": case.mode}
        head |= {"config": case.config} if case.config else {}
        head |= {"metrics": case.metrics} if case.metrics else {}
        line = {
            "kubernetes": release,
            "case": head | case.objects,
            "expect": [e.model_dump(by_alias=True, exclude_none=True) for e in expect],
        }
        self._lines.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Write the file.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        data = b"".join(self._lines)
        part = self.file.with_name(self.file.name + ".part")
        try:
            # No time in the header: equal decisions make equal files.
            part.write_bytes(gzip.compress(data, mtime=0) if _packed(self.file) else data)
            part.replace(self.file)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=str(self.file)) from None


def _packed(file: Path) -> bool:
    return file.name.endswith(".gz")
