"""The file that journals are written to: one owner, nothing half written, a name that lasts."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from stowplan.cli import run
from stowplan.cluster.append_only_file import GrowingFile, read_lines, whole_lines
from tests.support.plans import move, plan


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
    """In the folder that its name leads to; a process may also have been killed before it came to that."""
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "f"
    if content is not None:
        target.write_bytes(content)
    (tmp_path / "linked").symlink_to(tmp_path / "there")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    GrowingFile(tmp_path / "linked" / "f").close()
    assert synced == [target.parent.stat().st_ino] * times


# -- files that somebody else may have written ----------------------------------------------------------------


Reader = Callable[[Path], object]
READERS: dict[str, Reader] = {"written": GrowingFile, "read": read_lines}


@pytest.mark.parametrize("reader", READERS)
def test_a_link_is_not_followed(tmp_path: Path, reader: str) -> None:
    """A state file in a folder of all users would be written wherever the link leads."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "state").symlink_to(tmp_path / "victim")
    with pytest.raises(PermissionError, match="it is a symbolic link, so what it says is not to be trusted"):
        READERS[reader](tmp_path / "state")
    (tmp_path / "dangling").symlink_to(tmp_path / "made-by-the-link")
    with pytest.raises(PermissionError, match="it is a symbolic link"):
        READERS[reader](tmp_path / "dangling")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "made-by-the-link").exists()


@pytest.mark.parametrize("reader", READERS)
def test_a_file_of_another_user_is_not_believed(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    path.write_text("forged\n")
    path.chmod(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PermissionError, match="it belongs to another user"):
        READERS[reader](path)
    assert path.read_text() == "forged\n"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("mode", [0o602, 0o622, 0o666, 0o777])
def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path, reader: str, mode: int) -> None:
    path = tmp_path / "state"
    path.write_text("forged\n")
    path.chmod(mode)
    with pytest.raises(PermissionError, match="it can be written by other users"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_the_group_may_write_it_if_it_is_ours(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes gives the files of a volume to the group of its pod."""
    path = tmp_path / "state"
    path.write_text("one\n")
    path.chmod(0o660)
    found = READERS[reader](path)
    if isinstance(found, GrowingFile):
        found.close()
    monkeypatch.setattr(os, "getegid", lambda: 12345)
    monkeypatch.setattr(os, "getgroups", list)
    with pytest.raises(PermissionError, match="it can be written by other users"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_no_state_and_is_not_waited_for(tmp_path: Path, reader: str) -> None:
    os.mkfifo(tmp_path / "state", 0o600)
    with pytest.raises(PermissionError, match="it is no regular file"):
        READERS[reader](tmp_path / "state")


def test_what_is_read_is_the_file_that_was_looked_at(tmp_path: Path) -> None:
    """Another file under the same name, put there a moment later, is not read."""
    path = tmp_path / "state"
    file = GrowingFile(path)
    file.append(b"ours\n")
    (tmp_path / "forged").write_bytes(b"forged\n")
    (tmp_path / "forged").replace(path)
    assert file.read() == b"ours\n"
    file.close()


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    GrowingFile(tmp_path / "state").close()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600


def test_serve_and_apply_say_why_they_do_not_believe_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan([move("shop/web-a", "n1", "n2")]).model_dump_json(by_alias=True))
    (tmp_path / "forged").write_text("x")
    (tmp_path / "state").symlink_to(tmp_path / "forged")
    said = "state: cannot be {}: it is a symbolic link, so what it says is not to be trusted"
    assert run(["serve", str(path), "--bind", "127.0.0.1:0", "--state", str(tmp_path / "state")]) == 1
    assert said.format("opened") in capsys.readouterr().err
    assert (tmp_path / "forged").read_text() == "x"
