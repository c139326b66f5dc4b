"""How kernels are compiled, and where the machine code is kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from stowplan.models import bin_packing

try:
    import fcntl
except ImportError:  # only where there is no POSIX
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., object])

_BESIDE = Path(__file__).parent / "__pycache__"
_WARM = "complete"
_TURN = "turn"


def compiled(function: F) -> F:
    """Compile a function on first call, keep the machine code on disk, and let other threads run meanwhile.

    References to arrays are not counted: whoever calls from Python holds the arrays. Counting takes most of the time
    where a step passes dozens of arrays through dozens of functions, and most of the time to compile.
    """
    return _kept(function)


def inlined(function: F) -> F:
    """Like `compiled`, for small functions that are worth a copy at each place that calls them."""
    return _kept(function, forceinline=True)


def merged(function: F) -> F:
    """Like `compiled`, for functions that become part of whoever calls them before anything is compiled.

    Each compiled function is optimised together with all that it calls, and again as part of whoever calls it. Where a
    large function is called through several others, all but the first and the last had better be merged.
    """
    return _kept(function, inline="always")


def allocating(function: F) -> F:
    """Like `compiled`, for functions that make arrays: these alone count references."""
    return _kept(function, _nrt=True)


def _kept(function: F, **options: bool | str) -> F:
    folder = _folder()
    settings: dict[str, bool | str] = {"cache": folder is not None, "nogil": True, "_nrt": False}
    config = cast(Any, numba.config)
    before = config.CACHE_DIR
    config.CACHE_DIR = "" if folder is None else str(folder)
    try:
        kernel = cast(Any, numba.njit)(**settings | options)(function)
    finally:
        config.CACHE_DIR = before
    if folder is not None:
        _save_in_turn(kernel, folder)
    return cast(F, kernel)


def _save_in_turn(kernel: Any, folder: Path) -> None:
    """Let one process at a time write to a folder.

    Numba reads a kernel's index, writes it, and then the machine code. Two processes that do so at once for different
    types give both the same name, and one of them is later run as the other.
    """
    save = kernel._cache.save_overload

    def alone(signature: object, result: object) -> None:
        with (folder / _TURN).open("wb") as turn:
            if fcntl is not None:
                fcntl.flock(turn, fcntl.LOCK_EX)
            save(signature, result)

    kernel._cache.save_overload = alone


def is_cold() -> bool:
    """Whether compiling ahead would help: not all has been compiled from the sources as they are, and can be kept."""
    folder = _folder()
    return folder is not None and not (folder / _WARM).exists()


def is_warm_now() -> None:
    """Take note that everything has been compiled, and remove machine code of earlier states of these sources."""
    now = _folder()
    if now is None:
        return
    (now / _WARM).touch()
    for folder in _BESIDE.iterdir() if _BESIDE.is_dir() else ():
        if folder.is_dir() and folder != now:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _folder() -> Path | None:
    """Return a folder for the machine code of these very sources, or ``None`` if none can be written.

    Numba looks at the file of a function alone, and at its time, to see whether its machine code is out of date. But
    what a kernel calls is compiled into it, and a copy of a file has a time of its own: so that there is never a folder
    of which a part is out of date, it is named after all files with kernels and their times.
    """
    here = Path(__file__).parent
    sources = {*here.glob("*.py"), *here.with_name("annealing").glob("kernel/*.py"), Path(bin_packing.__file__)}
    sources |= {file for file in here.parent.rglob("*.py") if b"compiled.jit import" in file.read_bytes()}
    digest = hashlib.sha256()
    for file in sorted(sources):
        digest.update(file.read_bytes() + str(file.stat().st_mtime_ns).encode())
    for base in (_BESIDE, Path.home() / ".cache" / "stowplan", Path(tempfile.gettempdir()) / "stowplan"):
        folder = base / digest.hexdigest()[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None
