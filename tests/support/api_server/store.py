"""The objects of the cluster, their versions and what happened to them, as etcd and the registry keep them."""

from __future__ import annotations

import copy
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.api_server.errors import ApiError, Object, conflict, not_found
from tests.support.api_server.resources import BY_KIND, PODS, Resource

LETTERS = "bcdfghjklmnpqrstvwxz"

Event = tuple[int, str, str, Object]
"""Revision, ``ADDED``/``MODIFIED``/``DELETED``, resource name, the object."""


def timestamp(moment: datetime | None = None) -> str:
    """Return a moment as Kubernetes writes it."""
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """All objects, under one lock; ``changed`` is notified of every change.

    An object that is in here is never changed, but replaced: whoever is handed one may keep it, and must not touch it.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.revision = 1000
        self.events: list[Event] = []
        self._letters = itertools.count(37)
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}

    def load(self, manifests: Iterator[Object] | list[Object]) -> None:
        """Create objects from manifests that carry ``kind``; what they say of uid and status is kept."""
        for manifest in manifests:
            self.create(BY_KIND[manifest["kind"]], manifest)

    def create(self, resource: Resource, manifest: Object) -> Object:
        """Create an object; a ``generateName`` is completed."""
        with self.changed:
            found = copy.deepcopy(manifest)
            meta = found.setdefault("metadata", {})
            if not meta.get("name"):
                meta["name"] = meta.get("generateName", "") + uuid.uuid4().hex[:5]
            if resource.namespaced:
                meta.setdefault("namespace", "default")
            key = (meta.get("namespace", "") if resource.namespaced else "", meta["name"])
            objects = self._objects.setdefault(resource.name, {})
            if key in objects:
                raise ApiError(409, "AlreadyExists", f'{resource.name} "{meta["name"]}" already exists')
            found["kind"], found["apiVersion"] = resource.kind, resource.group_version
            meta.setdefault("uid", str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", timestamp())
            meta.setdefault("generation", 1)
            objects[key] = found
            self._record("ADDED", resource, found)
            return found

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object, or ``None``."""
        with self.changed:
            return self._objects.get(resource.name, {}).get((namespace, name))

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return an object, or raise a 404."""
        found = self.find(resource, namespace, name)
        if found is None:
            raise not_found(resource.name, name)
        return found

    def all(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        """Return all objects of a kind, by namespace and name."""
        with self.changed:
            objects = self._objects.get(resource.name, {})
            return [objects[key] for key in sorted(objects) if namespace in (None, key[0])]

    def update(self, resource: Resource, namespace: str, name: str, change: Callable[[Object], None]) -> Object:
        """Change an object in place; a change of its ``spec`` is a new generation."""
        with self.changed:
            objects = self._objects.get(resource.name, {})
            found = objects.get((namespace, name))
            if found is None:
                raise not_found(resource.name, name)
            changed = copy.deepcopy(found)
            change(changed)
            if changed == found:
                return found
            if changed.get("spec") != found.get("spec"):
                changed["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
            objects[(namespace, name)] = changed
            self._record("MODIFIED", resource, changed)
            return changed

    def remove(self, resource: Resource, namespace: str, name: str) -> Object:
        """Take an object out for good."""
        with self.changed:
            found = self._objects.get(resource.name, {}).pop((namespace, name), None)
            if found is None:
                raise not_found(resource.name, name)
            last = copy.deepcopy(found)
            self._record("DELETED", resource, last)
            return last

    def delete(self, resource: Resource, namespace: str, name: str, options: Object) -> Object:
        """Delete as a client asks for it: a pod on a node first terminates, all else is gone at once."""
        with self.changed:
            found = self.get(resource, namespace, name)
            _check_preconditions(resource, found, options.get("preconditions") or {})
            if options.get("dryRun"):
                return found
            seconds = options.get("gracePeriodSeconds")
            if seconds is None:
                seconds = found.get("spec", {}).get("terminationGracePeriodSeconds", 30)
            if resource is not PODS or not found.get("spec", {}).get("nodeName") or seconds == 0:
                return self.remove(resource, namespace, name)
            if found["metadata"].get("deletionTimestamp"):
                return found

            def terminate(pod: Object) -> None:
                pod["metadata"]["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=seconds))
                pod["metadata"]["deletionGracePeriodSeconds"] = seconds

            return self.update(resource, namespace, name, terminate)

    def free_name(self, resource: Resource, namespace: str, start: str) -> str:
        """Return a name that nothing of the kind ever had: the start, and five letters."""
        while True:
            number = next(self._letters)
            name = start + "".join(LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(5))
            if self.find(resource, namespace, name) is None:
                return name

    def _record(self, kind: str, resource: Resource, found: Object) -> None:
        self.revision += 1
        found["metadata"]["resourceVersion"] = str(self.revision)
        self.events.append((self.revision, kind, resource.name, found))
        self.changed.notify_all()


def _check_preconditions(resource: Resource, found: Object, preconditions: dict[str, Any]) -> None:
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, actual = preconditions.get(field), found["metadata"][field]
        if wanted is not None and wanted != actual:
            why = f"Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {actual}"
            raise conflict(resource.name, found["metadata"]["name"], why)
