"""Where machine code is kept, whose files are trusted, and that what is kept is used."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import numba
import pytest

from stowplan.optimizer.compiled import jit, kernel_cache
from stowplan.optimizer.compiled.kernel_cache import Folder, mark_complete, private_folder
from tests.support.clusters import node, pod
from tests.support.malformed import listed

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user, an installation at ``tmp_path / "installation"``, and nothing decided yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(kernel_cache, "INSTALLATION", tmp_path / "installation")
    monkeypatch.setattr(kernel_cache, "folder", kernel_cache.folder.__wrapped__)
    return folder


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """An installation that cannot be written, not even by root."""
    installation = kernel_cache.INSTALLATION
    mkdir, access = Path.mkdir, os.access

    def refused(path: Path, *args: Any, **options: Any) -> None:
        if path.is_relative_to(installation) and not path.exists():
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        mkdir(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr(
        os, "access", lambda path, mode: not Path(path).is_relative_to(installation) and access(path, mode)
    )
    return installation


def test_the_installations_own_folder_comes_first(home: Path) -> None:
    folder = kernel_cache.folder()
    assert folder is not None
    assert folder.path.parent == kernel_cache.INSTALLATION
    assert folder.writable
    assert not folder.complete
    assert not (home / ".cache").exists()


def test_machine_code_of_other_sources_for_this_machine_is_removed(home: Path) -> None:
    folder = kernel_cache.folder()
    assert folder is not None
    machine = folder.path.name.partition("-")[2]
    older, foreign = (kernel_cache.INSTALLATION / name for name in (f"0-{machine}", "0-1"))
    for other in (older, foreign):
        other.mkdir()
    (kernel_cache.INSTALLATION / "module.pyc").touch()
    mark_complete()
    assert folder.complete
    names = {path.name for path in kernel_cache.INSTALLATION.iterdir()}
    assert names == {folder.path.name, foreign.name, "module.pyc"}


def test_an_installation_that_cannot_be_written_is_used_where_it_is_complete(read_only: Path, home: Path) -> None:
    name = kernel_cache._name()
    os.makedirs(read_only / name)
    folder = kernel_cache.folder()
    assert folder == Folder(home / ".cache" / "stowplan" / name, writable=True)
    (read_only / name / "complete").touch()
    folder = kernel_cache.folder()
    assert folder == Folder(read_only / name, writable=False)
    assert folder.complete


def test_the_users_folder_is_closed_to_all_others(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    private = private_folder()
    assert private == home / ".cache" / "stowplan"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert private_folder() == tmp_path / "xdg" / "stowplan"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert private_folder() == private


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o702, 0o1777])
def test_a_folder_that_others_can_enter_is_not_used(read_only: Path, home: Path, mode: int) -> None:
    folder = home / ".cache" / "stowplan"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    assert private_folder() is None
    assert kernel_cache.folder() is None


def test_a_folder_of_somebody_else_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert private_folder() is not None
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert private_folder() is None


def test_a_link_to_a_folder_is_not_used(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (home / ".cache").mkdir()
    (home / ".cache" / "stowplan").symlink_to(tmp_path / "elsewhere")
    assert private_folder() is None


def test_without_a_home_there_is_no_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".cache").write_text("not a folder")
    assert private_folder() is None


def test_machine_code_depends_on_sources_processor_and_compiler(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, _, machine = kernel_cache._name().partition("-")
    monkeypatch.setattr(cast(Any, numba.config), "CPU_NAME", "generic")
    assert kernel_cache._name().partition("-")[0] == sources
    assert kernel_cache._name().partition("-")[2] != machine


def test_what_is_kept_is_used_from_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(folder: Folder) -> Any:
        monkeypatch.setattr(jit, "folder", lambda: folder)
        return jit.compiled(_twice)

    first = compiled(Folder(tmp_path, writable=True))
    assert first(3) == 6
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    second = compiled(Folder(tmp_path, writable=False))
    assert second(4) == 8
    assert sum(second.stats.cache_hits.values()) == 1
    assert second(4.5) == 9  # a signature that is not there is compiled and not kept
    assert sum(second.stats.cache_misses.values()) == 1
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_folder_that_is_full_costs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kernel_cache, "unsaved", [])
    monkeypatch.setattr(jit, "folder", lambda: Folder(tmp_path, writable=True))
    kernel = cast(Any, jit.compiled(_twice))
    monkeypatch.setattr(kernel._cache._cache_file, "save", full)
    assert kernel(3) == 6
    assert kernel_cache.unsaved == [f"{tmp_path}: No space left on device"]


def test_machine_code_is_saved_by_one_process_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jit, "folder", lambda: Folder(tmp_path, writable=True))
    kernel = cast(Any, jit.compiled(_twice))
    saved: list[object] = []
    with (tmp_path / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: saved.append(kernel(3)))
        other.start()
        other.join(2.0)
        assert other.is_alive()
        assert not list(tmp_path.rglob("*.nbi"))
    other.join(60.0)
    assert saved == [6]
    assert list(tmp_path.rglob("*.nbi"))


def test_a_planted_file_in_the_shared_temporary_folder_is_not_read(tmp_path: Path) -> None:
    """A file there can be anybody's, and reading it would run what it says."""
    code = (
        "from stowplan.optimizer.compiled import kernel_cache\n"
        "from pathlib import Path\n"
        "kernel_cache.INSTALLATION = Path('/proc/none')\n"
        "kernel_cache.folder.cache_clear()\n"
        "print(kernel_cache.folder())\n"
    )
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "HOME": "/proc/none", "TMPDIR": str(tmp_path / "tmp")}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
    assert not list((tmp_path / "tmp").iterdir())


def test_without_any_temporary_folder_there_is_an_answer(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(listed(node("n1"), node("n2"), pod("old", "n1"), pod("new"))))
    code = (
        "import sys, tempfile\n"
        "tempfile._candidate_tempdir_list = lambda: ['/proc/none']\n"
        "from stowplan.cli import run\n"
        f"sys.exit(run(['solve', {str(dump)!r}, '-t', '1', '-q', '-o', 'json']))\n"
    )
    environment = {**os.environ, "HOME": "/proc/none", "TMPDIR": "/proc/none"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, check=True)
    assert json.loads(done.stdout)["kind"] == "Solution"


def _twice(x: int) -> int:
    return 2 * x
