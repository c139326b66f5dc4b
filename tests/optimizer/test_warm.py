"""Compiling ahead: not twice, not against the will of whoever wants to stop, and with a word where nothing is kept."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from stowplan.models.stop import Stop
from stowplan.optimizer import warm
from stowplan.optimizer.compiled import kernel_cache
from stowplan.optimizer.compiled.kernel_cache import Folder


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder without kernels."""
    folder = Folder(tmp_path, writable=True)
    monkeypatch.setattr(kernel_cache, "folder", lambda: folder)
    return folder


def test_nothing_is_compiled_twice(kept: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "PARTS", (_at_once,))
    assert not warm.warm_ahead(Stop())
    assert kept.complete
    monkeypatch.setattr(warm, "PARTS", (_fails,))
    assert not warm.warm_ahead(Stop())
    assert warm.main() == 0


def test_a_stop_ends_it(kept: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "PARTS", (_at_once, _forever))
    stop = Stop()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    assert warm.warm_ahead(stop) == ["compiling was stopped"]
    assert time.monotonic() - began < 30
    assert not kept.complete


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ("_fails", "compiling failed: no such kernel"),
        ("_dies", "compiling failed: a worker process died"),
        ("_keeps_nothing", "/cache: No space left on device"),
    ],
)
def test_what_was_not_compiled_or_not_kept_is_said_and_ends_with_exit_code_1(
    kept: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], part: str, problem: str
) -> None:
    monkeypatch.setattr(warm, "PARTS", (_at_once, globals()[part]))
    assert warm.main() == 1
    assert capsys.readouterr().err == f"stowplan: {problem}\n"
    assert not kept.complete


def test_where_nothing_can_be_kept_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_cache, "folder", lambda: None)
    monkeypatch.setattr(warm, "PARTS", (_forever,))
    assert warm.main() == 1
    error = capsys.readouterr().err
    assert error.startswith("stowplan: machine code cannot be kept: ")
    assert error.count("\n") == 1


def _at_once(stop: Stop) -> Sequence[str]:
    return []


def _fails(stop: Stop) -> Sequence[str]:
    raise LookupError("no such kernel")


def _dies(stop: Stop) -> Sequence[str]:
    sys.exit(3)


def _keeps_nothing(stop: Stop) -> Sequence[str]:
    return ["/cache: No space left on device"] * 2


def _forever(stop: Stop) -> Sequence[str]:
    time.sleep(600)
    return []
