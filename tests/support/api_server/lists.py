"""Lists: selectors, pages of a consistent whole, and what a client may go on from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.support.api_server.errors import ApiError, Object
from tests.support.api_server.resources import Resource
from tests.support.api_server.selectors import field_query, label_query
from tests.support.api_server.store import Store


def selected(found: Object, query: Mapping[str, str]) -> bool:
    """Say whether an object meets the selectors of a request."""
    labels = found["metadata"].get("labels") or {}
    return label_query(query.get("labelSelector", ""), labels) and field_query(query.get("fieldSelector", ""), found)


class Lists:
    """Answers lists; the pages of one list show the cluster of one moment."""

    def __init__(self) -> None:
        self._tokens = itertools.count(1)
        self._left: dict[str, tuple[int, list[Object]]] = {}

    def answer(self, store: Store, resource: Resource, namespace: str | None, query: Mapping[str, str]) -> Object:
        """Return a list, or a page of one."""
        if token := query.get("continue"):
            if token not in self._left:
                raise ApiError(400, "BadRequest", "continue key is not valid")
            revision, items = self._left[token]
        else:
            with store.changed:
                revision = store.revision
                items = [found for found in store.all(resource, namespace) if selected(found, query)]
        metadata: Object = {"resourceVersion": str(revision)}
        limit = int(query.get("limit") or 0)
        if limit and len(items) > limit:
            metadata["continue"] = self.keep(revision, items[limit:])
            metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        shown = [{key: value for key, value in item.items() if key not in {"kind", "apiVersion"}} for item in items]
        kind = f"{resource.kind}List"
        return {"kind": kind, "apiVersion": resource.group_version, "metadata": metadata, "items": shown}

    def keep(self, revision: int, items: list[Object]) -> str:
        """Keep what is left of a list; return the token that leads to it."""
        token = f"page{next(self._tokens)}"
        self._left[token] = (revision, items)
        return token

    def expire(self, store: Store, resource: Resource) -> str:
        """Forget all that was left; return a token that leads to the objects of now, from the second on."""
        self._left.clear()
        return self.keep(store.revision, store.all(resource)[1:])
