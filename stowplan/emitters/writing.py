"""Where an emission goes: into a folder, or to standard output."""

from __future__ import annotations

from pathlib import Path

from stowplan.emitters.emission import Emission, File
from stowplan.models.errors import InputError

MANIFESTS = (".yaml", ".yml")


def write_folder(emission: Emission, folder: Path, force: bool = False) -> list[Path]:
    """Write the files of an emission, and return where they are.

    Raises
    ------
    InputError
        If a file is there already and ``force`` is off; nothing is written then.
    """
    paths = [folder / file.name for file in emission.files]
    if not force:
        for path in paths:
            if path.exists() or path.is_symlink():
                raise InputError("exists; give another folder with -d, or overwrite it with --force", file=str(path))
    try:
        for file, path in zip(emission.files, paths, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.content, encoding="utf-8")
            if file.executable:
                path.chmod(path.stat().st_mode | 0o111)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(error.filename or folder)) from None
    return paths


def as_text(emission: Emission) -> str:
    """Return an emission as one text: a single file as it is, manifests as one stream.

    Raises
    ------
    InputError
        If there are several files and not all are manifests.
    """
    if len(emission.files) == 1:
        return emission.files[0].content
    if not all(file.name.endswith(MANIFESTS) for file in emission.files):
        raise InputError(f"there are {len(emission.files)} files; give a folder for them", field="-d")
    return "".join(map(_sourced, emission.files))


def _sourced(file: File) -> str:
    return f"---\n# {file.name}\n{file.content.removeprefix('---').lstrip()}"
