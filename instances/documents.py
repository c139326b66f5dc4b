"""From paths to documents: files, directories, standard input; plain or gzip; JSON, YAML or CSV."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stowplan.models.errors import InputError
from stowplan.models.input_bounds import read_bounded, unpack_gzip

STDIN = "-"
GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""
SUFFIXES = (".json", ".yaml", ".yml")
TABLES = (".csv",)
"""Read from a directory that holds nothing else to read."""

GATHERED = frozenset({"cluster-scoped-resources", "namespaces"})
"""Folders of a must-gather."""


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of one file.

    Parameters
    ----------
    name
        The path, for messages.
    chosen
        The user named this very file, so it has to make sense; files met in a directory may be anything.
    """

    name: str
    data: bytes
    chosen: bool = True

    @property
    def is_yaml(self) -> bool:
        """Whether the name says YAML."""
        return self.name.removesuffix(".gz").endswith((".yaml", ".yml"))

    @property
    def is_gathered(self) -> bool:
        """Whether this is of a folder that ``oc adm must-gather`` wrote, which holds some objects twice."""
        return not self.chosen and not GATHERED.isdisjoint(Path(self.name).parts[:-1])

    @property
    def is_met_table(self) -> bool:
        """Whether this is a table that was met in a directory."""
        return not self.chosen and self.name.removesuffix(".gz").endswith(TABLES)


def read_documents(paths: Sequence[str]) -> Iterator[Document]:
    """Read every file that ``paths`` name; directories are walked, ``-`` is standard input.

    Raises
    ------
    InputError
        If a path cannot be read, or a directory holds nothing to read.
    """
    for path in paths:
        if not path:
            raise InputError("a path is empty; must name a file or a directory, or be - for standard input")
        if "\0" in path or path.lstrip().startswith("{"):
            raise InputError(f"{path[:20]!r}… is no path; content is read from an open file, such as io.StringIO(text)")
        if path == STDIN:
            yield Document(
                "standard input", decoded("standard input", read_bounded(sys.stdin.buffer, "standard input"))
            )
        elif Path(path).is_dir():
            yield from _walk(Path(path))
        else:
            yield Document(path, read_file(Path(path)))


def nothing_to_read(folder: str) -> InputError:
    """Return what is said of a directory that holds nothing to read."""
    return InputError("contains no .json or .yaml file (plain or .gz)", file=folder)


def _walk(folder: Path) -> Iterator[Document]:
    files = sorted(_files(folder))
    found = _ending(files, SUFFIXES) or _ending(files, TABLES)
    if not found:
        raise nothing_to_read(str(folder))
    for file in found:
        yield Document(str(file), read_file(file), chosen=False)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, those behind symbolic links too; hidden ones are left out, and repetitions.

    Raises
    ------
    InputError
        If a folder cannot be read, or a symbolic link leads nowhere: what it holds would be missing without a word.
    """
    entered = {folder.resolve()}
    for name, folders, files in os.walk(folder, followlinks=True, onerror=_unreadable):
        here = Path(name)
        folders[:] = sorted(inner for inner in folders if not inner.startswith(".") and _is_new(here / inner, entered))
        for file in sorted(files):
            if not file.startswith(".") and _is_file(here / file) and _is_new(here / file, entered):
                yield here / file


def _unreadable(error: OSError) -> None:
    raise InputError(f"cannot be read: {error.strerror}", file=str(error.filename))


def _is_file(path: Path) -> bool:
    if path.is_symlink() and not path.exists():
        raise InputError("is a symbolic link that leads nowhere; remove it, or restore its target", file=str(path))
    return path.is_file()


def _is_new(path: Path, known: set[Path]) -> bool:
    """Whether what a path leads to has not been met under another name; it has been then."""
    real = path.resolve()
    new = real not in known
    known.add(real)
    return new


def _ending(files: Sequence[Path], suffixes: tuple[str, ...]) -> list[Path]:
    return [file for file in files if file.name.removesuffix(".gz").endswith(suffixes)]


def read_file(file: Path) -> bytes:
    """Return the plain bytes of a file, whatever packing or byte order mark it has.

    Raises
    ------
    InputError
        If it cannot be read, or is packed in a way that is not read.
    """
    return decoded(str(file), stored_bytes(file))


def stored_bytes(file: Path) -> bytes:
    """Return the bytes of a file as they are stored.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        with file.open("rb") as source:
            return read_bounded(source, str(file))
    except FileNotFoundError:
        raise InputError("no such file", file=str(file)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(file)) from None


PACKED = {b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}
"""First bytes of packings that are not read."""


def decoded(name: str, data: bytes) -> bytes:
    """Return plain UTF-8 bytes, whatever packing or byte order mark they came with."""
    for magic, packing in PACKED.items():
        if data.startswith(magic):
            raise InputError(f"is compressed with {packing}; decompress it first, or use gzip", file=name)
    if data.startswith(GZIP):
        data = unpack_gzip(data, name)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # what PowerShell's > writes
        try:
            data = data.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-16 text: {error.reason}", file=name) from None
    return data.removeprefix(b"\xef\xbb\xbf")
