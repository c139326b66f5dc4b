"""Reads our own documents: JSON or YAML, plain or gzip, from a file or standard input."""

from __future__ import annotations

import json
from typing import Any

from stowplan.instances.documents import read_documents
from stowplan.models.errors import InputError
from stowplan.models.input_bounds import require_sparse
from stowplan.models.yaml_input import parse_one_yaml


def read_content(path: str) -> Any:
    """Parse one document; ``-`` is standard input.

    Raises
    ------
    InputError
        If it cannot be read, or is neither JSON nor YAML.
    """
    (document, *_) = read_documents([path])
    return parse_content(document.data, path)


def parse_content(data: bytes, path: str) -> Any:
    """Parse the plain bytes of one document; ``path`` is named in errors, which are those of `read_content`."""
    if not data.lstrip().startswith(b"{"):
        return parse_one_yaml(data, path)
    require_sparse(data, path)
    try:
        return json.loads(data.decode("utf-8"))
    except ValueError as error:  # no UTF-8, no JSON, or a number of thousands of digits
        raise InputError(f"is neither JSON nor YAML: {error}".partition("\n")[0], file=path) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=path) from None


def kind_of(content: Any) -> str | None:
    """Return the ``kind`` of a document, if it has one."""
    return content.get("kind") if isinstance(content, dict) else None


def another_kind(path: str, content: Any, wanted: str) -> InputError:
    """Return the error for a document of a wrong kind."""
    kind = kind_of(content)
    found = "is missing" if kind is None else f"is {kind!r}"
    return InputError(f"{found}; must be {wanted}", file=path, field="kind")
