"""Label and field selectors as requests and objects carry them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.support.api_server.errors import ApiError, Object


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Say whether a ``LabelSelector`` selects; none selects nothing, an empty one everything (``policy/v1``)."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(expression, labels) for expression in selector.get("matchExpressions") or ())


def _meets(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    raise ApiError(400, "BadRequest", f"unknown operator {expression['operator']!r}")


def label_query(query: str, labels: Mapping[str, str]) -> bool:
    """Say whether labels meet a ``labelSelector`` of a request: ``a=b,c!=d,e,!f,g in (h,i)``."""
    return all(_label_term(term.strip(), labels) for term in re.split(r",(?![^(]*\))", query) if term.strip())


def _label_term(term: str, labels: Mapping[str, str]) -> bool:
    if found := re.fullmatch(r"(\S+)\s+(in|notin)\s+\((.*)\)", term):
        key, word, values = found[1], found[2], {value.strip() for value in found[3].split(",")}
        return (labels.get(key) in values) == (word == "in")
    if found := re.fullmatch(r"([^=!\s]+)\s*(!=|==?)\s*(\S*)", term):
        return (labels.get(found[1]) == found[3]) == (found[2] != "!=")
    return term[1:] not in labels if term.startswith("!") else term in labels


def field_query(query: str, found: Object) -> bool:
    """Say whether an object meets a ``fieldSelector``: ``metadata.name=x,spec.nodeName!=y``."""
    for term in filter(None, query.split(",")):
        parts = re.fullmatch(r"([^=!]+)(!=|==?)(.*)", term)
        if parts is None:
            raise ApiError(400, "BadRequest", f"invalid selector: {query!r}")
        value: object = found
        for step in parts[1].split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if ((value or "") == parts[3]) != (parts[2] != "!="):
            return False
    return True
