"""The scheduler's cache keeps one size an image name: what the node that was added first says."""

from __future__ import annotations

from pathlib import Path

from stowplan.instances.load import load
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K24, K36
from stowplan.plugins_compat.simulate import simulate

CASE = Path(__file__).parent.parent / "golden" / "cases" / "G-image-size-snapshot.json"


def test_the_first_node_says_how_large_an_image_is() -> None:
    cluster = load(CASE)
    for release in (K24, K36):
        outcome = simulate(cluster, default_profile(release, "first"), cluster.pods, {})
        assert outcome.assignment["default/a"] == "n1"
