"""Where the machine code of kernels is kept between runs, and whose files are trusted.

What numba keeps are pickles: whoever may write them runs code as the user who reads them. So machine code is kept in
the installation's own folder, which nobody may write who could not write the sources, or in a folder of the user's that
is closed to everybody else, and nowhere else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from stowplan.models import bin_packing

try:
    import fcntl
except ImportError:  # only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

INSTALLATION = Path(__file__).parent / "__pycache__"
"""The installation's own folder, beside the sources."""

_COMPLETE = "complete"
"""File whose presence says that every kernel is in the folder."""

_LOCK = "lock"

WHY_NOWHERE = (
    f"{INSTALLATION} cannot be written, "
    "and there is no folder below $XDG_CACHE_HOME or ~/.cache that is the user's alone"
)
"""What to say where `folder` finds none."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with the machine code of the sources as they are, for this processor.

    Parameters
    ----------
    writable
        Whether what it lacks can be added.
    """

    path: Path
    writable: bool

    @property
    def complete(self) -> bool:
        """Whether every kernel is there."""
        return (self.path / _COMPLETE).exists()

    @property
    def kernels(self) -> int:
        """The number of kernels that are there, one for each combination of argument types."""
        return sum(1 for _ in self.path.glob("*.nbc"))


def all_kept() -> bool:
    """Whether every kernel was compiled before, so that no call waits for it."""
    kept = folder()
    return kept is not None and kept.complete


@cache
def folder() -> Folder | None:
    """Return the folder to use, or ``None`` if machine code cannot be kept.

    The installation's own folder is taken if machine code can be added, or if it is complete: kernels that were
    compiled into an installation which cannot be written, such as a container image, are used from there. Otherwise, it
    is a folder below ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    name = _name()
    own = Folder(INSTALLATION / name, writable=_writable(INSTALLATION / name))
    if own.writable or own.complete:
        return own
    private = private_folder()
    if private is not None and _writable(private / name):
        return Folder(private / name, writable=True)
    return None


def private_folder() -> Path | None:
    """Return the user's folder for machine code, made if need be; ``None`` if there is none that is theirs alone.

    It must be a folder, not a link to one, which belongs to the user and which nobody else may read or write. Where
    the system does not tell whose a folder is, there is none.
    """
    if not hasattr(os, "geteuid"):
        return None
    said = os.environ.get("XDG_CACHE_HOME", "")
    try:
        # The specification of base directories has relative paths ignored.
        path = (Path(said) if os.path.isabs(said) else Path.home() / ".cache") / "stowplan"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except (OSError, RuntimeError):  # the latter where there is no home
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return path if private else None


def mark_complete() -> None:
    """Take note that every kernel is there, and remove the installation's machine code of earlier sources."""
    kept = folder()
    if kept is None or not kept.writable:
        return
    (kept.path / _COMPLETE).touch()
    if kept.path.parent != INSTALLATION:
        return
    machine = kept.path.name.partition("-")[2]
    for other in INSTALLATION.glob(f"*-{machine}"):
        if other != kept.path:
            shutil.rmtree(other, ignore_errors=True)


class KernelCache(FunctionCache):
    """Keeps one kernel's machine code in a given folder."""

    def __init__(self, function: Any, kept: Folder) -> None:
        self._kept = kept
        self._impl_class = partial(_InFolder, kept=kept)  # type: ignore[assignment]
        super().__init__(function)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: object, target_context: object) -> object:
        """Return the machine code for one signature; ``None`` if it is not there or cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except OSError:
            return None

    def save_overload(self, sig: object, data: object) -> None:
        """Save the machine code for one signature, unless the folder cannot be written or is full.

        One process at a time writes to a folder. Numba reads a kernel's index, writes it, and then the machine code:
        two processes that did so at once for different types would give both the same name, and one would later be run
        as the other.
        """
        if not self._kept.writable:
            return
        try:
            with (self._kept.path / _LOCK).open("wb") as lock:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            unsaved.append(f"{self._kept.path}: {error.strerror}")


unsaved: list[str] = []
"""Why machine code that this process compiled was not kept, a line for each time."""


class _InFolder(CompileResultCacheImpl):
    """Says where numba's files for one kernel are, without trying whether they can be written."""

    def __init__(self, function: Any, kept: Folder) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function, kept)
        self._filename_base = self.get_filename_base(  # type: ignore[no-untyped-call]
            f"{function.__module__}.{function.__qualname__}", getattr(sys, "abiflags", "")
        )


class _Locator:
    """The part of numba's cache locators that its cache asks for."""

    def __init__(self, function: Any, kept: Folder) -> None:
        self._py_file = function.__code__.co_filename  # numba's warnings name it
        self._line = function.__code__.co_firstlineno
        self._kept = kept

    def get_cache_path(self) -> str:
        return str(self._kept.path)

    def get_source_stamp(self) -> str:
        return self._kept.path.name  # the folder is named after all sources

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        self._kept.path.mkdir(parents=True, exist_ok=True)


def _writable(path: Path) -> bool:
    """Whether files can be put into a folder, which is made if need be."""
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.W_OK | os.X_OK)


def _name() -> str:
    """Return the name of the folder: a digest of all sources with kernels, and one of the compiler and the processor.

    What a kernel calls is compiled into it, and numba looks at the file of the kernel alone to see whether its machine
    code is out of date. A folder named after all files never holds a part that is.
    """
    here = Path(__file__).parent
    kernels = {file for file in here.parent.rglob("*.py") if b"optimizer.compiled.jit import" in file.read_bytes()}
    kernels -= {Path(__file__)}
    kernels |= {here / "jit.py", *here.parent.glob("*/kernel/*.py"), Path(bin_packing.__file__)}
    sources = b"".join(sorted(file.name.encode() + file.read_bytes() for file in kernels))
    return f"{_digest(sources)}-{_digest(repr(_machine()).encode())}"


def _machine() -> tuple[str, ...]:
    """Return what machine code depends on besides the sources."""
    config: Any = numba.config
    return (
        sys.implementation.cache_tag or sys.version,
        numba.__version__,
        llvmlite.__version__,
        llvmlite.binding.get_process_triple(),
        config.CPU_NAME or llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten() if config.CPU_FEATURES is None else config.CPU_FEATURES,
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
