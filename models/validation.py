"""One line for each validation error: what is wrong, and what would be right."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from stowplan.models.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def explain(error: ValidationError, kind: str, content: bytes | dict[str, Any]) -> InputError:
    """Describe the first thing wrong with an API object, and count the rest.

    Parameters
    ----------
    content
        The object as it was read, to find its name.
    """
    details = error.errors(include_url=False)
    first = details[0]
    more = f" (and {len(details) - 1} more in this object)" if len(details) > 1 else ""
    if first["type"] == "json_invalid":
        return InputError(f"is not JSON: {first['ctx']['error']}{more}", obj=kind)
    return InputError(say(first) + more, obj=_name(kind, content), field=field_path(first["loc"]))


def refusal(error: ValidationError, file: str | None = None, under: tuple[int | str, ...] = ()) -> InputError:
    """Describe the first thing wrong with a document.

    Parameters
    ----------
    under
        Place of the document inside the file.
    """
    first = error.errors(include_url=False)[0]
    return InputError(say(first), file=file, field=field_path((*under, *first["loc"])) or None)


def check_fields(instance: DataclassInstance) -> None:
    """Refuse a dataclass whose fields do not have the types and limits that they are annotated with.

    Raises
    ------
    InputError
        With the first field that cannot be used.
    """
    for name, adapter in _adapters(type(instance)).items():
        try:
            adapter.validate_python(getattr(instance, name), strict=True)
        except ValidationError as error:
            raise refusal(error, under=(name,)) from None


@cache
def _adapters(cls: type[DataclassInstance]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: TypeAdapter(hints[field.name]) for field in fields(cls)}


def say(detail: ErrorDetails) -> str:
    """Return what is wrong with a value and what would be right."""
    value, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return "is missing"
        case "json_invalid":
            return f"is not JSON: {context['error']}"
        case "value_error":
            return str(context["error"])
        case "extra_forbidden":
            return "is an unknown field"
        case "literal_error":
            return f"is {_shown(value)}; must be one of {context['expected']}"
    if isinstance(value, float) and not isfinite(value):
        return f"is {_shown(value)}; must be a number"
    return f"is {_shown(value)}; {in_plain_words(detail['msg'])}"


_IN_PLAIN_WORDS = (
    (r".*Input should ", "must "),
    (r", .*", ""),
    (r"greater than or equal to (\S+)", r"\1 or more"),
    (r"less than or equal to (\S+)", r"at most \1"),
    (r"greater than (\S+)", r"more than \1"),
    (r"a (?:finite|valid) number", "a number"),
    (r"a valid integer", "an integer"),
    (r"a valid string", "a string"),
    (r"a valid boolean", "true or false"),
    (r"a valid (?:list|tuple|set|array|frozenset)", "a list"),
    (r"(?:a valid dictionary|a valid mapping|an object)(?: or .*)?", "an object"),
    (r"(?:a dictionary|a valid dictionary) or .*", "an object"),
)
"""What a message of pydantic becomes, step by step: patterns, and what replaces them."""


def in_plain_words(message: str) -> str:
    """Return what would be right by a message of pydantic, such as ``must be 0 or more``."""
    for pattern, plain in _IN_PLAIN_WORDS:
        message = re.sub(pattern, plain, message)
    return message


_INNER = ("function-", "constrained-", "literal[")
"""Beginnings of the names that pydantic gives to the members of a union."""


def field_path(loc: tuple[int | str, ...]) -> str:
    """Write a location the way kubectl does: ``spec.containers[0].image``."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]" and not part.startswith(_INNER):
            path += f".{part}" if path else part
    return path


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def _name(kind: str, content: bytes | dict[str, Any]) -> str:
    loaded = json.loads(content) if isinstance(content, bytes) else content
    meta = loaded.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name"):
        return kind
    namespace = meta.get("namespace") or ("default" if kind in ("Pod", "PersistentVolumeClaim") else "")
    return f"{kind} {namespace}/{meta['name']}" if namespace else f"{kind} {meta['name']}"


def without_nulls(data: Any) -> Any:
    """Return a mapping without the fields that are ``null``, which Go reads as absent; anything else as it is."""
    return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data
