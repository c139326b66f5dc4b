"""What is held and what is free, and that a solve that may hold little memory still answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from stowplan.instances.synthetic import synthetic_snapshot
from stowplan.models.objective import PRESETS
from stowplan.models.stop import Stop
from stowplan.optimizer import memory
from stowplan.optimizer.evaluate import Evaluator
from stowplan.optimizer.memory import Memory, available, used
from stowplan.optimizer.portfolio import Options, solve
from stowplan.plugins_compat.compiler.compile import compile_problem
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36

MIB = 2**20


def test_a_limit_that_is_passed_ends_every_stage_with_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "used", lambda: 2**30)
    problem = compile_problem(synthetic_snapshot(20, 150), default_profile(K36), PRESETS["balance"]).problem
    outcome = solve(problem, Options(time_limit=20, memory=2**29))
    assert Evaluator(problem).evaluate(outcome.placement).legal
    assert not outcome.interrupted
    assert any("memory" in note for note in outcome.notes)


def test_the_signal_is_set_when_the_limit_is_passed_or_the_other_one_is_set() -> None:
    outer = Stop()
    with Memory(1).watched(outer) as inner:
        assert inner.wait(5)
        assert not outer.is_set()
    with Memory(None).watched(outer) as inner:
        assert not inner.is_set()
        outer.set()
        assert inner.is_set()


def test_what_is_free_is_more_than_nothing() -> None:
    assert available() > 0
    assert Memory.granted(None).admits(1)
    assert not Memory(used() // 2).admits(1)


def test_what_children_of_children_hold_is_counted() -> None:
    grandchild = (
        "held = bytearray(200 * 2**20); held[::4096] = b'x' * len(held[::4096]); print('held', flush=True); input()"
    )
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    before = used()
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert used() - before > 190 * MIB
        process.communicate(b"\n")


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with 64 MiB free outside of any control group."""
    monkeypatch.setattr(memory, "SELF", tmp_path / "self")
    (tmp_path / "self").mkdir()
    free = psutil.virtual_memory()._replace(available=64 * MIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    return tmp_path


def describe(groups: Path, groups_of_process: str, *mounts: str) -> None:
    (groups / "self" / "cgroup").write_text(groups_of_process)
    lines = [f"31 23 0:28 {mount.format(groups=groups)}\n" for mount in ("/ / rw - ext4 /dev/sda rw", *mounts)]
    (groups / "self" / "mountinfo").write_text("".join(lines))


def limit(folder: Path, files: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(f"{content}\n")


def second(limit: object, current: int, inactive: int = 0) -> dict[str, object]:
    stat = f"anon {current}\ninactive_file {inactive}"
    return {"memory.max": limit, "memory.current": current, "memory.stat": stat}


def first(limit: int, usage: int, inactive: int = 0) -> dict[str, object]:
    stat = f"inactive_file 0\ntotal_inactive_file {inactive}"
    return {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": usage, "memory.stat": stat}


V2 = "/ {groups}/fs rw shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "/ {groups}/fs/memory rw - cgroup cgroup rw,memory"


def test_without_control_groups_the_machine_says_what_is_free(groups: Path) -> None:
    assert available() == 64 * MIB
    describe(groups, "0::/app\n", V2)
    limit(groups / "fs" / "app", second("max", 5))
    assert available() == 64 * MIB


@pytest.mark.parametrize("tight", ["fs/slice/app", "fs/slice", "fs"])
def test_the_tightest_of_nested_groups_counts(groups: Path, tight: str) -> None:
    """Version 2, where the limit of any group around counts."""
    describe(groups, "0::/slice/app\n", V2)
    for folder in ("fs/slice/app", "fs/slice", "fs"):
        limit(groups / folder, second(30 * MIB if folder == tight else 60 * MIB, 10 * MIB))
    assert available() == 20 * MIB


def test_the_first_version_of_control_groups_is_read_too(groups: Path) -> None:
    describe(groups, "3:cpu,cpuacct:/\n4:memory:/pod/app\n0::/\n", V1, "/ {groups}/fs/unified rw - cgroup2 cgroup2 rw")
    limit(groups / "fs" / "memory", first(2**63 - 4096, 90 * MIB))
    limit(groups / "fs" / "memory" / "pod", first(40 * MIB, 10 * MIB))
    assert available() == 30 * MIB
    limit(groups / "fs" / "memory" / "pod" / "app", first(20 * MIB, 15 * MIB))
    assert available() == 5 * MIB


@pytest.mark.parametrize("group", ["/docker/abc", "/../outside"])
def test_in_a_container_the_mounted_root_is_the_containers_own_group(groups: Path, group: str) -> None:
    mount = "/docker/abc {groups}/fs/memory ro - cgroup cgroup rw,memory"
    describe(groups, f"4:memory:{group}\n", mount)
    limit(groups / "fs" / "memory", first(40 * MIB, 10 * MIB))
    assert available() == 30 * MIB


def test_file_cache_that_would_be_given_back_is_free(groups: Path) -> None:
    describe(groups, "0::/app\n", V2)
    limit(groups / "fs" / "app", second(30 * MIB, 30 * MIB, inactive=12 * MIB))
    assert available() == 12 * MIB


def test_a_group_over_its_limit_leaves_nothing(groups: Path) -> None:
    describe(groups, "0::/app\n", V2)
    limit(groups / "fs" / "app", second(30 * MIB, 31 * MIB))
    assert available() == 0
