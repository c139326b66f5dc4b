"""From a document to single API objects, each still unparsed, so that a large list never exists twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan.instances.documents import Document
from stowplan.models.errors import InputError
from stowplan.models.input_bounds import require_sparse
from stowplan.models.yaml_input import parse_yaml


@dataclass(frozen=True, slots=True)
class Item:
    """One API object: its kind, and its content as JSON bytes or as parsed YAML."""

    group: str | None
    kind: str
    content: bytes | dict[str, Any]


class _Header(msgspec.Struct, rename="camel"):
    """What tells a list from an object; ``items`` stay raw."""

    kind: str | None = None
    api_version: str | None = None
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_header = msgspec.json.Decoder(_Header)
_array = msgspec.json.Decoder(list[msgspec.Raw])

_LOG_START = re.compile(r"^==== START logs for container ", re.MULTILINE)
_LOG_END = re.compile(r"^==== END logs for container .*$", re.MULTILINE)
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_NEXT = re.compile(r"\s*\{")
_SURELY_OBJECT = re.compile(r'\{\s*(\n|"(kind|apiVersion)")')


def split(document: Document) -> Iterator[Item]:
    """Yield every API object of a document.

    A ``List`` (or ``PodList``, …) yields its items, an array its elements, a stream of several JSON documents, as
    ``kubectl cluster-info dump`` prints it with container logs in between, each of its documents.

    Raises
    ------
    InputError
        If the document is neither.
    """
    if not document.data[:4096].strip() and not document.data.strip():
        if document.chosen:
            raise InputError("is empty", file=document.name)
        return
    if document.is_yaml or document.data[:4096].lstrip()[:1] not in (b"{", b"["):
        yield from _split_yaml(document)
        return
    require_sparse(document.data, document.name)
    try:
        yield from _split_json(msgspec.Raw(document.data), document)
    except RecursionError:
        raise InputError("is nested too deeply", file=document.name) from None
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text: {error.reason}", file=document.name) from None
    except msgspec.DecodeError as error:
        if "trailing characters" not in str(error):
            raise InputError(_syntax(error, document.data), file=document.name) from None
        yield from _split_stream(document)


def _split_json(raw: msgspec.Raw, document: Document, listed_as: str | None = None) -> Iterator[Item]:
    if bytes(memoryview(raw)[:64]).lstrip()[:1] == b"[":
        for element in _array.decode(raw):
            yield from _split_json(element, document)
        return
    try:
        header = _header.decode(raw)
    except msgspec.ValidationError as error:
        if document.chosen:
            raise InputError(f"is not a Kubernetes object: {error}", file=document.name) from None
        return
    group, kind = identify(header.api_version, header.kind, listed_as)
    if header.items is not msgspec.UNSET and kind.endswith("List"):
        # The items of a typed list, as the API itself sends it, do not repeat their kind.
        inner = None if kind == "List" else f"{header.api_version or 'v1'} {kind.removesuffix('List')}"
        for item in header.items or ():
            yield from _split_json(item, document, inner)
    elif kind:
        yield Item(group, kind, bytes(raw))
    elif document.chosen:
        raise InputError("is not a Kubernetes object: it has no kind", file=document.name)


def identify(api_version: str | None, kind: str | None, listed_as: str | None = None) -> tuple[str | None, str]:
    """Return the API group of an object, if it says one, and its kind.

    Parameters
    ----------
    listed_as
        ``apiVersion kind`` of the objects of a typed list, which need not repeat it.
    """
    if kind is None and listed_as is not None:
        api_version, kind = listed_as.split(" ")
    group = None if api_version is None else api_version.rpartition("/")[0]
    return group, kind or ""


def _split_stream(document: Document) -> Iterator[Item]:
    """Read JSON documents one after the other, passing over container logs and stray lines between them."""
    text = document.data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = 0
    # What follows a document directly is the next one, on the same line too.
    while (start := _NEXT.match(text, position) or _OBJECT.search(text, position)) is not None:
        log = _LOG_START.search(text, position, start.start())
        if log is not None:
            end = _LOG_END.search(text, log.end())
            position = end.end() if end else len(text)
            continue
        first = start.end() - 1
        try:
            _, position = decoder.raw_decode(text, first)
        except json.JSONDecodeError as error:
            if _SURELY_OBJECT.match(text, first):
                raise InputError(f"line {error.lineno}: is not JSON: {error.msg}", file=document.name) from None
            position = start.end()
            continue
        raw = msgspec.Raw(text[first:position].encode())
        yield from _split_json(raw, Document(document.name, b"", chosen=False))


def _split_yaml(document: Document) -> Iterator[Item]:
    for content in parse_yaml(document.data, document.name):
        yield from _split_mapping(content, document)


def _split_mapping(content: Any, document: Document) -> Iterator[Item]:
    if isinstance(content, list):
        for element in content:
            yield from _split_mapping(element, document)
    elif isinstance(content, dict) and isinstance(content.get("kind"), str):
        version = content.get("apiVersion")
        group, kind = identify(version if isinstance(version, str) else None, content["kind"])
        if kind.endswith("List") and "items" in content:
            for element in content["items"] or ():
                yield from _split_mapping(element, document)
        else:
            yield Item(group, kind, content)
    elif content is not None and document.chosen:
        raise InputError("is not a Kubernetes object: it has no kind", file=document.name)


def _syntax(error: msgspec.DecodeError, data: bytes) -> str:
    match = re.search(r"\(byte (\d+)\)", str(error))
    if match is None:
        return f"line {data.count(10) + 1}: is truncated JSON" if "truncated" in str(error) else str(error)
    reason = str(error)[: match.start()].removeprefix("JSON is malformed: ").strip()
    return f"line {data.count(10, 0, int(match[1])) + 1}: is not JSON: {reason}"
