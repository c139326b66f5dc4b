"""Reads plans from files."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stowplan.documents.reading import another_kind, kind_of, parse_content, read_content
from stowplan.instances.documents import STDIN, decoded, stored_bytes
from stowplan.models.document import API_VERSION
from stowplan.models.errors import InputError
from stowplan.models.input_bounds import read_bounded
from stowplan.models.moments import require_time
from stowplan.models.plan import Plan
from stowplan.models.validation import refusal

WITH_PLAN = ("Drain", "Fit")
"""Kinds of documents that hold a plan."""


def read_plan(path: str) -> Plan:
    """Read a plan, or the plan inside a drain or a fit, from JSON or YAML, plain or gzip; ``-`` is standard input.

    Raises
    ------
    InputError
        With the field that cannot be used: another kind or version, a field that is unknown or missing, moves and
        tokens that do not belong together.
    """
    return _plan_inside(read_content(path), path)


def _plan_inside(content: Any, path: str) -> Plan:
    return parse_plan(content.get("plan") if kind_of(content) in WITH_PLAN else content, path)


def read_reviewed_plan(path: str, expected: str) -> Plan:
    """Read a plan as `read_plan` does, if its file has exactly the bytes that were reviewed.

    The file is read once, so that the bytes that are checked are the bytes that are parsed.

    Parameters
    ----------
    path
        The file, or ``-`` for standard input.
    expected
        SHA-256 of the file as it is stored, packed or not: 64 hexadecimal digits, as ``sha256sum`` prints.

    Raises
    ------
    InputError
        If ``expected`` is no SHA-256, the file has another one, or `read_plan` refuses it.
    """
    if re.fullmatch("[0-9a-fA-F]{64}", expected) is None:
        raise InputError(f"is {expected!r}; must be 64 hexadecimal digits", field="--expect-hash")
    data, found = _stored(path)
    if found != expected.lower():
        raise InputError(f"has the SHA-256 {found}; --expect-hash says {expected.lower()}", file=path)
    return _plan_inside(parse_content(decoded(path, data), path), path)


def read_plan_and_hash(path: str) -> tuple[Plan, str]:
    """Read a plan as `read_plan` does, and return it with the SHA-256 that `read_reviewed_plan` expects of its file."""
    data, found = _stored(path)
    return _plan_inside(parse_content(decoded(path, data), path), path), found


def _stored(path: str) -> tuple[bytes, str]:
    """Return the bytes of a file as they are stored, or of standard input, with their SHA-256."""
    data = read_bounded(sys.stdin.buffer, path) if path == STDIN else stored_bytes(Path(path))
    return data, hashlib.sha256(data).hexdigest()


def parse_plan(content: Any, path: str) -> Plan:
    """Return the plan that a document holds; ``path`` is named in errors, which are those of `read_plan`."""
    if kind_of(content) != "Plan":
        raise another_kind(path, content, "Plan")
    if content.get("apiVersion") != API_VERSION:
        raise InputError(f"is {content.get('apiVersion')!r}; must be {API_VERSION}", file=path, field="apiVersion")
    try:
        plan = Plan.model_validate(content)
        _coherent(plan)
    except ValidationError as error:
        raise refusal(error, path) from None
    except InputError as error:
        raise error.in_file(path) from None
    return plan


def _coherent(plan: Plan) -> None:
    """Refuse a plan whose parts contradict each other."""
    require_time(plan.created_at, "createdAt")
    require_time(plan.expires_at, "expiresAt")
    before: set[str] = set()
    for i, wave in enumerate(plan.waves):
        if wave.number != i + 1:
            raise InputError(f"is {wave.number}; must be {i + 1}", field=f"waves[{i}].number")
        ids: set[str] = set()
        for j, move in enumerate(wave.moves):
            field = f"waves[{i}].moves[{j}]"
            if move.id in before | ids:
                raise InputError(f"{move.id!r} appears twice", field=f"{field}.id")
            if move.follows is not None and move.follows not in before:
                raise InputError(f"{move.follows!r} is not a move of an earlier wave", field=f"{field}.follows")
            if (move.source is None) != (move.kind == "place"):
                raise InputError("must be set exactly for pods that have a node", field=f"{field}.source")
            if (move.target is None) != (move.kind == "remove"):
                raise InputError("must be set exactly for pods that get a node", field=f"{field}.target")
            ids.add(move.id)
        before |= ids
    for i, token in enumerate(plan.tokens):
        if token.wave > len(plan.waves):
            raise InputError(f"is {token.wave}; there are {len(plan.waves)} waves", field=f"tokens[{i}].wave")
        if not token.owner_uid and token.pod is None:
            raise InputError("names neither an owner nor a pod", field=f"tokens[{i}]")
