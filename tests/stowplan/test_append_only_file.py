"""The file that journals are written to: one owner, nothing half written, a name that lasts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from stowplan.cluster.append_only_file import GrowingFile, whole_lines


def test_it_grows_and_nobody_else_has_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\n")
    file = GrowingFile(path)
    with pytest.raises(BlockingIOError):
        GrowingFile(path)
    file.append(b"two\n")
    assert file.read() == path.read_bytes() == b"one\ntwo\n"
    file.close()
    GrowingFile(path).close()


def test_of_what_cannot_be_written_whole_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = GrowingFile(tmp_path / "f")
    file.append(b"one\n")
    real, room = os.write, [3, 2]

    def write(handle: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data[: room.pop()])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space left"):
            file.append(b"two, three\n")
    assert file.read() == b"one\n"
    file.append(b"four\n")
    assert file.read() == b"one\nfour\n"
    file.close()


def test_a_part_written_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, real = GrowingFile(tmp_path / "f"), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:2]))
    file.append(b"one, two\n")
    assert file.read() == b"one, two\n"
    file.close()


def test_what_is_cut_is_gone(tmp_path: Path) -> None:
    file = GrowingFile(tmp_path / "f")
    file.append(b"one\ntw")
    file.cut(99)
    assert file.read() == b"one\ntw"
    file.cut(whole_lines(file.read()))
    assert file.read() == b"one\n"
    assert whole_lines(b"tw") == 0
    file.close()


@pytest.mark.parametrize(("content", "times"), [(None, 1), (b"", 1), (b"one\n", 0)])
def test_the_name_of_a_new_file_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, times: int
) -> None:
    """In the folder where the file really is; a process may also have been killed before it came to that."""
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "f"
    if content is not None:
        target.write_bytes(content)
    (tmp_path / "f").symlink_to(target)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    GrowingFile(tmp_path / "f").close()
    assert synced == [target.parent.stat().st_ino] * times
