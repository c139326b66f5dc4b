"""Parity with the real kube-scheduler, on decisions recorded from its own plugin code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import FOLDER, cases, differences

FILES = sorted(FOLDER.glob("k*/*.jsonl.gz"))

# Cases where an unbound claim may take one of several existing volumes: VolumeBinding refuses such pods (it does not
# guess), so these recordings are not compared yet.
EXISTING_VOLUMES = "wffc"


def test_recordings_are_there() -> None:
    assert len(FILES) == 28


CHOICE = [path for path in FILES if path.name.startswith(EXISTING_VOLUMES)]
COMPARED = [path for path in FILES if path not in CHOICE]


def _name(path: Path) -> str:
    return f"{path.parent.name}-{path.name.partition('.')[0]}"


@pytest.mark.parametrize("path", COMPARED, ids=_name)
def test_every_recorded_decision_is_ours(path: Path) -> None:
    found = [line for recorded in cases(path) for line in differences(recorded)]
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("path", CHOICE, ids=_name)
def test_where_existing_volumes_are_a_choice_only_volume_binding_differs(path: Path) -> None:
    found = [line for recorded in cases(path) for line in differences(recorded)]
    own = [line for line in found if "VolumeBinding" not in line and "feasible" not in line]
    assert not own, "\n".join(own[:5])
