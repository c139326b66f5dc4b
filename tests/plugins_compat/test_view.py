"""What plugins read when they are compiled cannot be changed by reading it, nor does it depend on who reads first."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from stowplan.models.problem import Allow, Origin, Prefer
from stowplan.plugins_compat.compiler.compile import loads_today
from stowplan.plugins_compat.framework.framework import Framework
from stowplan.plugins_compat.framework.state import ClusterState
from stowplan.plugins_compat.framework.view import View
from stowplan.plugins_compat.profiles import default_profile
from stowplan.plugins_compat.release import K36
from tests.support.choices import Seeded
from tests.support.random_clusters import random_cluster


def view_and_framework(seed: int) -> tuple[View, Framework]:
    """Return every pod of a random cluster as one to place."""
    snapshot = random_cluster(Seeded(seed))
    profile = default_profile(K36)
    state = ClusterState(snapshot, K36)
    signatures = state.signatures.all
    pods = [pod for pod in snapshot.pods if not pod.finished]
    counts = np.bincount([state.signatures.of(pod).index for pod in pods], minlength=len(signatures))
    view = View(state, signatures, counts, np.zeros_like(counts), loads_today(state, pods))
    return view, Framework(profile, state)


@pytest.mark.parametrize("seed", range(3))
def test_rules_and_terms_do_not_depend_on_who_is_asked_first(seed: int) -> None:
    view, framework = view_and_framework(seed)
    plugins = list(framework.plugins.values())
    told = {}
    for order in (plugins, plugins[::-1]):
        rules = {plugin.name: list(plugin.rules(view)) for plugin in order}
        scoring = view.scoring(itertools.chain(*rules.values()), point=7)
        terms = {plugin.name: list(plugin.terms(scoring)) for plugin in order}
        told[order is plugins] = {plugin.name: (rules[plugin.name], terms[plugin.name]) for plugin in plugins}
    assert any(rules for rules, _ in told[True].values())
    assert any(terms for _, terms in told[True].values())
    assert plain(told[True]) == plain(told[False])
    # Asked again, with the rules long known, and of a view made anew.
    again = {plugin.name: list(plugin.terms(scoring)) for plugin in plugins}
    assert plain(again) == plain({name: terms for name, (_, terms) in told[True].items()})


def test_scores_are_normalized_over_the_nodes_that_the_rules_of_all_plugins_leave() -> None:
    view, _ = view_and_framework(0)
    nodes = view.state.size
    raw = np.arange(nodes, dtype=np.int64)
    mask = np.ones((1, nodes), dtype=np.bool_)
    mask[0, -1] = False
    rule = Allow(Origin("some plugin"), np.zeros(len(view.signatures), dtype=np.int64), mask)

    def table(rules: list[Allow]) -> Any:
        (weighted,) = view.scoring(rules).prefer_score(
            "another", lambda signature: raw, lambda scores: scores * 100 // scores.max()
        )
        assert isinstance(weighted.term, Prefer)
        return weighted.term.table[0]

    assert table([])[-1] == 0
    assert table([rule])[-2] == 0
    assert table([rule])[-1] == 0  # no pod can be there, so nothing is missed
    assert table([])[-2] > 0


def test_views_cannot_be_changed() -> None:
    view, _ = view_and_framework(0)
    scoring = view.scoring(())
    with pytest.raises(FrozenInstanceError):
        scoring.point = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        scoring.allowed[0, 0] = False


def plain(value: Any) -> Any:
    """Return arrays, and what holds them, as something that compares by value."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
