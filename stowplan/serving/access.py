"""Who may ask the server, who may open its waves, and what a web page that a browser shows may not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from stowplan.models.hosts import is_address
from stowplan.serving.options import ClientNames

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Access:
    """What is looked at before a request is answered.

    A browser sends ``Origin`` with whatever a page makes it post, and no scheduler does. A page whose name is made to
    resolve to our address, on the other hand, is told by its ``Host``: where no certificate says who asks, it has to be
    an address or a name of ours.

    Parameters
    ----------
    clients
        Names in clients' certificates; if ``None``, every client may do everything.
    hosts
        Names of the server, in lower case, besides ``localhost``.
    """

    clients: ClientNames | None = None
    hosts: Collection[str] = ()

    def require_asker(self, request: web.Request) -> None:
        """Refuse those who may not ask where a pod belongs.

        Raises
        ------
        web.HTTPForbidden
            With the reason.
        """
        _refuse_pages(request)
        if self.clients is not None:
            _require_name(request, self.clients.askers, "ask")

    def require_opener(self, request: web.Request) -> None:
        """Refuse those who may not open waves, and requests that a page of any site could make a browser send.

        Raises
        ------
        web.HTTPForbidden, web.HTTPUnsupportedMediaType
            With the reason.
        """
        _refuse_pages(request)
        if self.clients is not None:
            _require_name(request, self.clients.openers, "open waves")
        self._require_host(request)
        if request.content_type != JSON:
            raise web.HTTPUnsupportedMediaType(text=f"the request is no JSON; send Content-Type: {JSON}")

    def require_reader(self, request: web.Request) -> None:
        """Refuse those who may neither ask nor open waves.

        Raises
        ------
        web.HTTPForbidden
            With the reason.
        """
        _refuse_pages(request)
        if self.clients is not None:
            _require_name(request, self.clients.askers | self.clients.openers, "see leases")
        self._require_host(request)

    def _require_host(self, request: web.Request) -> None:
        if _certificate(request) is not None:
            return
        try:
            host = (urlsplit(f"//{request.host}").hostname or "").lower()
        except ValueError:  # brackets around no address
            host = ""
        if host != "localhost" and host not in self.hosts and not is_address(host):
            shown = request.host[:80]
            raise web.HTTPForbidden(text=f"Host {shown!r} is no name of this server; --host-name makes it one")


def _refuse_pages(request: web.Request) -> None:
    origin = request.headers.get("Origin")
    if origin is not None:
        raise web.HTTPForbidden(text=f"a page of {origin[:80]!r} asks, and pages may not")


def _require_name(request: web.Request, names: frozenset[str], what: str) -> None:
    shown = _names(request)
    if not shown & names:
        raise web.HTTPForbidden(text=f"the certificate of {', '.join(sorted(shown)) or 'no name'} may not {what}")


def _certificate(request: web.Request) -> dict[str, object] | None:
    """Return what a client's certificate says; ``None`` without one."""
    transport = request.transport
    return (transport.get_extra_info("peercert") if transport is not None else None) or None


def _names(request: web.Request) -> set[str]:
    """Return the common name of a client's certificate, as Kubernetes reads it, and its alternative names."""
    certificate = _certificate(request) or {}
    subject: object = certificate.get("subject", ())
    alternative: object = certificate.get("subjectAltName", ())
    assert isinstance(subject, tuple)
    assert isinstance(alternative, tuple)
    common = {value for part in subject for key, value in part if key == "commonName"}
    return common | {value for kind, value in alternative if kind in ("DNS", "URI")}
