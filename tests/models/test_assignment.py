"""Node names by pod key: immutable, and a pod without a node is not in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.models.assignment import Assignment

NODES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["", "n1", "n2", "n3"]))


def test_a_pod_without_a_node_is_not_in_it() -> None:
    found = Assignment({"a": "n1", "b": ""})
    assert dict(found) == {"a": "n1"}
    assert "b" not in found
    assert (len(found), found.get("b"), found.get("b", "")) == (1, None, "")


def test_it_does_not_change_with_what_it_was_made_of() -> None:
    nodes = {"a": "n1"}
    found = Assignment(nodes)
    nodes["a"] = "n2"
    assert found["a"] == "n1"
    with pytest.raises(TypeError):
        found["a"] = "n2"  # type: ignore[index]


def test_it_equals_any_mapping_that_says_the_same() -> None:
    assert Assignment({"a": "n1"}) == {"a": "n1"} == Assignment([("a", "n1")])
    assert Assignment({"a": "n1"}) != Assignment({"a": "n2"})


def test_moves_are_made_in_order_and_may_end_nowhere() -> None:
    start = Assignment({"a": "n1", "b": "n2"})
    assert start.moved([("a", "n3"), ("a", "n2"), ("b", None), ("c", "n1")]) == {"a": "n2", "c": "n1"}
    assert start == {"a": "n1", "b": "n2"}


def test_a_pod_that_moves_is_named_with_both_ends() -> None:
    before = Assignment({"a": "n1", "b": "n2", "c": "n3"})
    after = Assignment({"a": "n1", "b": "n3", "d": "n1"})
    assert after.moved_from(before) == {"b": ("n2", "n3"), "c": ("n3", ""), "d": ("", "n1")}


def test_pods_are_counted_by_node() -> None:
    found = Assignment({"a": "n1", "b": "n1", "c": "n2"})
    assert found.count() == {"n1": 2, "n2": 1}
    assert found.count(lambda key: key != "a") == {"n1": 1, "n2": 1}


@given(NODES, NODES)
def test_what_moved_from_one_to_the_other_leads_back_there(before: dict[str, str], after: dict[str, str]) -> None:
    one, other = Assignment(before), Assignment(after)
    changes = other.moved_from(one)
    assert one.moved({key: target for key, (_, target) in changes.items()}) == other
    assert one.without(changes.keys()) == other.without(changes.keys())
    assert set(one | other) == set(one) | set(other)
