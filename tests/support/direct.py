"""kubectl without its process: the same requests to the API server of the tests, for campaigns of many plans."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.cluster.kubectl import Kubectl, Listing, NoAnswer, Refusal
from tests.support.api_server import ApiServer
from tests.support.api_server.errors import Object
from tests.support.api_server.resources import BY_KIND, NODES, RESOURCES, Resource


@dataclass(frozen=True)
class DirectKubectl(Kubectl):
    """Speaks HTTP itself.

    Parameters
    ----------
    server
        The API server.
    """

    server: ApiServer | None = None

    def get(
        self, kinds: Sequence[str], *, namespace: str | None = None, chunk: int = 500, partial: bool = False
    ) -> Listing:
        """List whole kinds."""
        items: list[Object] = []
        for resource in RESOURCES:
            if resource.plural in kinds or resource.name in kinds:
                where = f"namespaces/{namespace}/" if namespace and resource.namespaced else ""
                about = {"kind": resource.kind, "apiVersion": resource.group_version}
                found = self._ask_server("GET", f"{_root(resource)}/{where}{resource.plural}")["items"]
                items += [{**item, **about} for item in found]
        return Listing(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode(), ())

    def find(self, kind: str, name: str, namespace: str | None = None) -> bytes | None:
        """Return one object, or ``None``."""
        resource = next(found for word, found in BY_KIND.items() if word.lower() == kind.lower())
        where = f"namespaces/{namespace}/" if namespace else ""
        try:
            return json.dumps(self._ask_server("GET", f"{_root(resource)}/{where}{resource.plural}/{name}")).encode()
        except Refusal as error:
            if error.reason == "NotFound":
                return None
            raise

    def raw(self, path: str) -> bytes:
        """Return what the server answers to a GET."""
        return json.dumps(self._ask_server("GET", path)).encode()

    def post(self, path: str, body: dict[str, Any], what: str) -> bytes:
        """Send an object."""
        return json.dumps(self._ask_server("POST", path, body)).encode()

    def put(self, path: str, body: dict[str, Any], what: str) -> bytes:
        """Replace an object."""
        return json.dumps(self._ask_server("PUT", path, body)).encode()

    def cordon(self, node: str, closed: bool) -> None:
        """Cordon a node, or open it again."""
        self._ask_server("PATCH", f"{_root(NODES)}/nodes/{node}", {"spec": {"unschedulable": closed or None}})

    def served(self) -> frozenset[str]:
        """Return the kinds that the server serves."""
        assert self.server is not None
        return frozenset(resource.name for resource in self.server.discovery.resources)

    def _ask_server(self, method: str, path: str, body: Object | None = None) -> Any:
        assert self.server is not None
        data = None if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(f"{self.server.address}{path}", data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            status = json.loads(error.read())
            cause = " ".join(c.get("message", "") for c in status.get("details", {}).get("causes", ()))
            message = f"{status.get('message', '')} {cause}".strip()
            after = error.headers.get("Retry-After")
            raise Refusal(message, path, status.get("reason", ""), int(after) if after else None) from None
        except (OSError, ValueError) as error:
            raise NoAnswer(str(error), path) from None


def _root(resource: Resource) -> str:
    return f"/apis/{resource.group_version}" if resource.group else "/api/v1"
