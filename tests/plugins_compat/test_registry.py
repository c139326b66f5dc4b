"""Plugins of other packages: one that cannot be imported is said, and breaks nothing that does not name it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from stowplan.models.errors import InputError
from stowplan.models.settings import Settings
from stowplan.plugins_compat import registry as module
from stowplan.plugins_compat.profiles import read_profiles
from stowplan.plugins_compat.registry import broken_packages, registry
from stowplan.plugins_compat.release import K36
from stowplan.settings.problem import make_problem
from tests.support.clusters import node, pod, snapshot

BROKEN = EntryPoint("TeamNodes", "no_such_package.team:TeamNodes", module.ENTRY_POINTS)
WHY = "no_such_package.team:TeamNodes cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "entry_points", lambda group: [BROKEN])
    registry.cache_clear()
    yield
    monkeypatch.undo()
    registry.cache_clear()
    registry()


@pytest.mark.usefixtures("broken")
def test_a_package_that_cannot_be_imported_is_a_note() -> None:
    assert broken_packages() == {"TeamNodes": WHY}
    compiled = make_problem(snapshot(nodes=[node("n1")], pods=[pod("a", "n1")]), Settings())
    assert f"entry point TeamNodes: {WHY}; it takes no part" in compiled.notes


@pytest.mark.usefixtures("broken")
def test_a_profile_that_names_its_plugin_is_refused_with_the_reason(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: TeamNodes}]}}}]\n"
    )
    with pytest.raises(InputError, match=r"'TeamNodes' is unknown.*No module named 'no_such_package'"):
        read_profiles(str(config), K36)


def test_nothing_is_broken_by_itself() -> None:
    assert broken_packages() == {}
