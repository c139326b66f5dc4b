"""The bundle file: a zip archive with the snapshot, the files that settings name, and a document about both."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from stowplan.bundles.answer import Answer
from stowplan.models.document import API_VERSION, Document
from stowplan.models.errors import InputError
from stowplan.models.input_bounds import read_bounded, require_ratio
from stowplan.models.validation import refusal

Command = Literal["solve", "compare", "plan", "what-if", "survive"]

DOCUMENT, SNAPSHOT, CHANGED = "bundle.json", "snapshot.json", "changed.json"
FILES = "files/"
"""Folder of the files that settings name."""

MOMENT = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the archive, so that equal bundles are equal bytes."""


class BundleDocument(Document):
    """What a bundle says of itself.

    Parameters
    ----------
    command
        What made the answer.
    anonymized
        Whether all names are others than in the cluster.
    stowplan, python, platform
        Versions, and the operating system, that made it.
    settings, options, terms
        Fields of `Settings`, `Options`, and for a plan `Terms`, by name. A setting that names a file names one of the
        bundle.
    changed_settings
        The settings with the scenario of ``what-if``.
    topology
        What ``survive`` loses one after the other: the values of a label, or every ``node``.
    annotations
        Keys of the annotations that the snapshot was read with.
    gaps, fatal_gaps, notes
        What the snapshot lacked, and what else was to be known of it.
    fingerprint
        Of the snapshot in the bundle.
    """

    api_version: Literal["stowplan/v1"] = API_VERSION
    kind: Literal["Bundle"] = "Bundle"
    command: Command
    anonymized: bool = False
    stowplan: str
    python: str
    platform: str
    settings: dict[str, Any]
    options: dict[str, Any]
    terms: dict[str, Any] | None = None
    changed_settings: dict[str, Any] | None = None
    topology: str | None = None
    annotations: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    fatal_gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fingerprint: str
    answer: Answer


@dataclass(frozen=True)
class Bundle:
    """A bundle in memory.

    Parameters
    ----------
    snapshot
        A ``List`` of objects, as JSON.
    files
        Contents of the files that settings name, by name.
    changed
        The cluster with the scenario of ``what-if``, as the snapshot.
    """

    document: BundleDocument
    snapshot: bytes
    files: Mapping[str, bytes] = field(default_factory=dict)
    changed: bytes | None = None


def write_bundle(bundle: Bundle, file: str) -> None:
    """Write a bundle.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    made = io.BytesIO()
    parts = {DOCUMENT: bundle.document.model_dump_json(by_alias=True, indent=2).encode(), SNAPSHOT: bundle.snapshot}
    if bundle.changed is not None:
        parts[CHANGED] = bundle.changed
    parts |= {f"{FILES}{name}": content for name, content in bundle.files.items()}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, MOMENT), content, zipfile.ZIP_DEFLATED)
    try:
        Path(file).write_bytes(made.getvalue())
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=file) from None


def read_bundle(file: str) -> Bundle:
    """Read a bundle. Nothing is unpacked to the disk, and each part is bounded as input is.

    Raises
    ------
    InputError
        If it cannot be read, or is no bundle.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if DOCUMENT not in names or SNAPSHOT not in names:
                raise InputError(f"is no bundle; must hold {DOCUMENT} and {SNAPSHOT}, as --bundle writes it", file=file)
            document = _document(_part(archive, DOCUMENT, file), f"{file}: {DOCUMENT}")
            snapshot = _part(archive, SNAPSHOT, file)
            changed = _part(archive, CHANGED, file) if CHANGED in names else None
            named = [name for name in names if name.startswith(FILES)]
            files = {name.removeprefix(FILES): _part(archive, name, file) for name in named}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=file) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"is no bundle: {error}", file=file) from None
    if (changed is None) is (document.command == "what-if"):
        raise InputError(f"is no bundle of {document.command}; {CHANGED} belongs to what-if", file=file)
    return Bundle(document, snapshot, files, changed)


def _part(archive: zipfile.ZipFile, name: str, file: str) -> bytes:
    said = archive.getinfo(name)  # nothing beyond the size that it says is unpacked
    require_ratio(said.file_size, said.compress_size, f"{file}: {name}")
    with archive.open(name) as part:
        return read_bounded(part, f"{file}: {name}")


def _document(data: bytes, name: str) -> BundleDocument:
    try:
        return BundleDocument.model_validate_json(data)
    except ValidationError as error:
        raise refusal(error).in_file(name) from None
