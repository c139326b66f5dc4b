"""Label selectors as kubectl's ``-l`` takes them."""

from __future__ import annotations

import pytest

from stowplan.models.kubernetes.selectors import parse_selector


@pytest.mark.parametrize(
    ("word", "labels", "selected"),
    [
        ("app=db", {"app": "db"}, True),
        ("app==db", {"app": "db"}, True),
        ("app=db", {}, False),
        ("app!=db", {"app": "web"}, True),
        ("app!=db", {}, True),
        ("app=", {"app": ""}, True),
        ("tier in (a, b)", {"tier": "b"}, True),
        ("tier in (a,b),app=db", {"tier": "b", "app": "web"}, False),
        ("tier notin (a,b)", {"tier": "c"}, True),
        ("app", {"app": "x"}, True),
        ("!canary", {}, True),
        ("! canary", {"canary": "1"}, False),
        ("example.com/app=db , !canary", {"example.com/app": "db"}, True),
    ],
)
def test_what_is_selected(word: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_selector(word).matches(labels) is selected


@pytest.mark.parametrize("word", ["", "app==a==b", "app in a,b", "in (a)", "app=db,", "a b", "app in (a"])
def test_what_is_no_selector(word: str) -> None:
    with pytest.raises(ValueError, match="is not a label selector"):
        parse_selector(word)
