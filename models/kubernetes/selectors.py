"""Label selectors and node selectors, as the API defines them and the scheduler matches them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from stowplan.models.kubernetes.base import EMPTY, Many, Name, Names, StringMap, kube

LabelOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_INT64 = re.compile(r"[+-]?\d+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
MOST_PREFIX = 253

_BETWEEN = re.compile(r",(?![^(]*\))")
"""The commas between requirements, not those between values."""
_SET_BASED = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUALITY = re.compile(r"^(?P<key>[^\s=!()]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s=!()]*)$")
_EXISTS = re.compile(r"^(?P<not>!?)\s*(?P<key>[^\s=!()]+)$")


def _admits(operator: str, values: Names, value: str | None) -> bool:
    """Whether ``value`` (``None`` when the key is absent) meets a set-based requirement."""
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


@kube
class LabelSelectorRequirement:
    """One ``matchExpressions`` entry of a label selector."""

    key: Name
    operator: LabelOperator
    values: Names = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` meet this requirement; an absent key meets ``NotIn``."""
        return _admits(self.operator, self.values, labels.get(self.key))


@kube
class LabelSelector:
    """An AND of equalities and expressions; the empty selector matches everything.

    A *missing* selector (``None``) matches nothing; the caller handles that.
    """

    match_labels: StringMap = EMPTY
    match_expressions: Many[LabelSelectorRequirement] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    @property
    def empty(self) -> bool:
        """Whether this selector has no requirement at all."""
        return not self.match_labels and not self.match_expressions

    def also(self, *requirements: LabelSelectorRequirement) -> LabelSelector:
        """Return this selector with more requirements."""
        return LabelSelector(self.match_labels, (*self.match_expressions, *requirements))


def parse_selector(text: str) -> LabelSelector:
    """Read a label selector as kubectl's ``-l`` takes it: ``app=db,tier in (a, b),!canary``.

    Raises
    ------
    ValueError
        With the part that is no requirement.
    """
    return LabelSelector(match_expressions=tuple(_requirement(part.strip()) for part in _BETWEEN.split(text)))


def _requirement(part: str) -> LabelSelectorRequirement:
    if match := _SET_BASED.match(part):
        values = tuple(value.strip() for value in match["values"].split(","))
        return LabelSelectorRequirement(match["key"], "In" if match["operator"] == "in" else "NotIn", values)
    if match := _EQUALITY.match(part):
        return LabelSelectorRequirement(match["key"], "NotIn" if match["operator"] == "!=" else "In", (match["value"],))
    if match := _EXISTS.match(part):
        return LabelSelectorRequirement(match["key"], "DoesNotExist" if match["not"] else "Exists")
    raise ValueError(f"{part!r} is not a label selector, such as key=value, key in (a,b), key notin (a,b), !key")


@kube
class NodeSelectorRequirement:
    """One ``matchExpressions`` or ``matchFields`` entry of a node selector term."""

    key: Name
    operator: NodeOperator
    values: Names = ()

    @property
    def valid_expression(self) -> bool:
        """Whether upstream can use this as a label expression; a term with an unusable one matches nothing."""
        if not is_label_key(self.key) or not all(is_label_value(value) for value in self.values):
            return False
        match self.operator:
            case "In" | "NotIn":
                return bool(self.values)
            case "Gt" | "Lt":
                return len(self.values) == 1 and parse_int64(self.values[0]) is not None
            case _:
                return not self.values

    @property
    def valid_field(self) -> bool:
        """Whether upstream can use this as a field: only ``metadata.name``, In or NotIn, one value."""
        return self.key == "metadata.name" and self.operator in ("In", "NotIn") and len(self.values) == 1

    def matches(self, value: str | None) -> bool:
        """Whether a node whose label (or field) has ``value`` meets this requirement."""
        if self.operator in ("Gt", "Lt"):
            have = parse_int64(value) if value is not None else None
            want = parse_int64(self.values[0])
            if have is None or want is None:
                return False
            return have > want if self.operator == "Gt" else have < want
        return _admits(self.operator, self.values, value)


@kube
class NodeSelectorTerm:
    """An AND of requirements on a node's labels and name. A term without any matches nothing."""

    match_expressions: Many[NodeSelectorRequirement] = ()
    match_fields: Many[NodeSelectorRequirement] = ()

    @property
    def empty(self) -> bool:
        """Whether the term says nothing, and so is dropped."""
        return not self.match_expressions and not self.match_fields

    @property
    def valid(self) -> bool:
        """Whether every requirement can be used; upstream silently ignores a required term that is not."""
        return all(r.valid_expression for r in self.match_expressions) and all(r.valid_field for r in self.match_fields)

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node with this name and these labels is selected."""
        return (
            not self.empty
            and self.valid
            and all(r.matches(labels.get(r.key)) for r in self.match_expressions)
            and all(r.matches(name) for r in self.match_fields)
        )


@kube
class NodeSelector:
    """An OR of terms. With no usable term it matches nothing."""

    node_selector_terms: Many[NodeSelectorTerm] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node with this name and these labels is selected by some term."""
        return any(term.matches(name, labels) for term in self.node_selector_terms)


def is_label_key(text: str) -> bool:
    """Whether this is a qualified name: an optional DNS subdomain as prefix, then a name of at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= MOST_PREFIX and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether this may be the value of a label: empty, or like a name."""
    return not text or _NAME.fullmatch(text) is not None


def parse_int64(text: str) -> int | None:
    """Read a base-10 int64 the way Go's ``strconv.ParseInt`` does, or return ``None``."""
    if not _INT64.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None
