"""What RBAC grants an account, and what a server was asked for, in the same words."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.api_server import ApiServer, Request
from tests.support.api_server.errors import forbidden
from tests.support.api_server.serving import address_of

Manifest = dict[str, Any]


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource; in all namespaces if ``namespace`` is empty, on all objects if ``name`` is."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""

    def covers(self, other: Right) -> bool:
        """Whether it is enough for what another one says."""
        same = (self.verb, self.resource) == (other.verb, other.resource)
        return same and self.namespace in ("", other.namespace) and self.name in ("", other.name)


LOOKED_AT = {"kube-system"}
"""Namespaces that stowplan itself asks for."""


def granted(manifests: Iterable[Manifest], account: str) -> list[Right]:
    """Return what the roles bound to an account of the namespace ``stowplan`` grant, each verb for itself."""
    manifests = list(manifests)
    roles = {(m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"]): m for m in manifests}
    found: list[Right] = []
    for binding in manifests:
        if binding["kind"] not in {"RoleBinding", "ClusterRoleBinding"}:
            continue
        subject = {"kind": "ServiceAccount", "name": account, "namespace": "stowplan"}
        if subject not in binding["subjects"]:
            continue
        namespace, kind = binding["metadata"].get("namespace", ""), binding["roleRef"]["kind"]
        role = roles[kind, namespace if kind == "Role" else "", binding["roleRef"]["name"]]
        found += (right for rule in role["rules"] for right in rights_of(rule, namespace))
    return found


def rights_of(rule: Manifest, namespace: str = "") -> Iterator[Right]:
    """Iterate over what one rule grants."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [""]):
                    yield Right(verb, f"{resource}.{group}" if group else resource, namespace, name)


def asked(server: ApiServer) -> set[Right]:
    """Return what a server was asked for, without discovery, to which everybody who is logged in has the right.

    If kubectl finds no object of a name, it asks for the namespace, to say so if that is missing. It does without.
    """
    needed = {right for request in server.requests if (right := _right(server, request))}
    return {
        right for right in needed if (right.verb, right.resource) != ("get", "namespaces") or right.name in LOOKED_AT
    }


def enforce(server: ApiServer, rights: Collection[Right]) -> None:
    """Have a server refuse what these rights do not cover."""

    def check(request: Request) -> None:
        right = _right(server, request)
        if right is not None and not any(held.covers(right) for held in rights):
            plural, _, group = right.resource.partition(".")
            raise forbidden(right.verb, plural, group)

    for wish in ("get", "list", "watch", "create", "update", "patch", "delete", "evict"):
        server.faults.on(wish, check, times=sys.maxsize)


def _right(server: ApiServer, request: Request) -> Right | None:
    """Return what a request needs; ``None`` for discovery."""
    if (address := address_of(server.discovery, request.path)) is None:
        return None
    verb = "create" if request.wish == "evict" else request.wish
    below = f"{address.resource.plural}/{address.subresource}" if address.subresource else address.resource.plural
    resource = f"{below}.{address.resource.group}" if address.resource.group else below
    return Right(verb, resource, address.namespace or "", address.name or "")
