from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from stowplan.models.kubernetes import LabelSelector, NodeSelector, Taint, Toleration
from stowplan.models.kubernetes.selectors import NodeSelectorRequirement, NodeSelectorTerm
from stowplan.models.kubernetes.taints import tolerated

LABELS = {"app": "web", "tier": "fe", "gen": "3"}


def label_selector(**content: object) -> LabelSelector:
    return TypeAdapter(LabelSelector).validate_python(content)


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("app", "In", ["web", "db"], True),
        ("app", "In", ["db"], False),
        ("none", "In", ["x"], False),
        ("app", "NotIn", ["db"], True),
        ("none", "NotIn", ["x"], True),
        ("app", "Exists", [], True),
        ("none", "Exists", None, False),
        ("none", "DoesNotExist", None, True),
    ],
)
def test_set_based_requirements(key: str, operator: str, values: list[str] | None, matches: bool) -> None:
    selector = label_selector(matchExpressions=[{"key": key, "operator": operator, "values": values}])
    assert selector.matches(LABELS) is matches


def test_an_empty_label_selector_matches_everything() -> None:
    assert label_selector().matches({})
    assert label_selector(matchLabels=None, matchExpressions=None).empty


@pytest.mark.parametrize(
    ("operator", "label", "operand", "matches"),
    [
        ("Gt", "3", "2", True),
        ("Gt", "3", "3", False),
        ("Lt", "3", "4", True),
        ("Gt", "x", "2", False),
        ("Lt", "3", "x", False),
    ],
)
def test_numeric_node_requirements(operator: str, label: str, operand: str, matches: bool) -> None:
    term = NodeSelectorTerm((NodeSelectorRequirement("gen", operator, (operand,)),))  # type: ignore[arg-type]
    assert term.matches("n", {"gen": label}) is matches


def test_an_empty_node_selector_term_matches_nothing() -> None:
    assert not NodeSelectorTerm().matches("n", LABELS)
    assert not NodeSelector().matches("n", LABELS)


def test_terms_are_alternatives_and_fields_name_nodes() -> None:
    by_name = NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", ("n1",)),))
    by_label = NodeSelectorTerm((NodeSelectorRequirement("app", "In", ("web",)),))
    selector = NodeSelector((by_name, by_label))
    assert selector.matches("n1", {})
    assert selector.matches("n2", LABELS)
    assert not selector.matches("n2", {})


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("dedicated", "Equal", "x"), True),
        (Toleration("dedicated", "Equal", "y"), False),
        (Toleration("dedicated", "Exists", effect="NoExecute"), False),
        (Toleration("", "Equal", "x"), True),
        (Toleration("dedicated", "Gt", "x"), False),
        (Toleration("other", "Exists"), False),
    ],
)
def test_tolerations(toleration: Toleration, covers: bool) -> None:
    assert tolerated(Taint("dedicated", "NoSchedule", "x"), [toleration]) is covers
