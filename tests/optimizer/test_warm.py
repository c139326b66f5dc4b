"""Compiling ahead: not twice, and not against the will of whoever wants to stop."""

from __future__ import annotations

import fcntl
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from stowplan.models.stop import Stop
from stowplan.optimizer import warm
from stowplan.optimizer.compiled import jit


def test_nothing_is_compiled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "is_cold", lambda: False)
    monkeypatch.setattr(warm, "multiprocessing", None)
    assert warm.warm_ahead(Stop())


def test_a_stop_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "is_cold", lambda: True)
    monkeypatch.setattr(warm, "PARTS", (_at_once, _forever))
    stop = Stop()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    assert not warm.warm_ahead(stop)
    assert time.monotonic() - began < 30


def test_all_is_compiled_when_every_part_has_ended_well(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[bool] = []
    monkeypatch.setattr(jit, "is_cold", lambda: True)
    monkeypatch.setattr(jit, "is_warm_now", lambda: noted.append(True))
    monkeypatch.setattr(warm, "PARTS", (_at_once, _fails))
    assert not warm.warm_ahead(Stop())
    assert not noted
    monkeypatch.setattr(warm, "PARTS", (_at_once, _at_once))
    assert warm.warm_ahead(Stop())
    assert noted


def _at_once() -> None:
    pass


def _fails() -> None:
    sys.exit(3)


def _forever() -> None:
    time.sleep(600)


def test_machine_code_of_other_states_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jit, "_BESIDE", tmp_path)
    monkeypatch.setattr(jit, "_folder", jit._folder.__wrapped__)
    (tmp_path / "before").mkdir()
    (tmp_path / "module.pyc").touch()
    now = jit._folder()
    assert now is not None
    assert now.parent == tmp_path
    assert jit.is_cold()
    jit.is_warm_now()
    assert not jit.is_cold()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([now.name, "module.pyc"])


def test_machine_code_is_saved_by_one_process_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jit, "_folder", lambda: tmp_path)
    kernel = cast(Any, jit.compiled(_twice))
    saved: list[object] = []
    with (tmp_path / "turn").open("wb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: saved.append(kernel(3)))
        other.start()
        other.join(2.0)
        assert other.is_alive()
        assert not list(tmp_path.rglob("*.nbi"))
    other.join(60.0)
    assert saved == [6]
    assert list(tmp_path.rglob("*.nbi"))


def _twice(x: int) -> int:
    return 2 * x
