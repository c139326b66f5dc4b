"""Asking a server for JSON, and one clear line for whatever goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from stowplan.models.errors import InputError

TIMEOUT = 10.0
"""Seconds that a server may take to connect, and to answer."""

LOCAL = ("localhost", "127.0.0.1", "[::1]")
"""Hosts that are asked without the proxy that the environment may name."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a server lets us in.

    Parameters
    ----------
    token
        Bearer token, sent to this server only.
    verify
        Check the server's certificate.
    """

    token: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said.

    Parameters
    ----------
    url
        What was asked, without credentials and query, for messages.
    """

    url: str
    status: int
    content: Any


def get_json(url: str, access: Access, query: Mapping[str, str] | None = None) -> Answer:
    """Ask for a JSON document; a status of failure is the caller's to explain.

    Raises
    ------
    InputError
        If the address is none, the server cannot be reached, takes too long, or answers something else than JSON.
    """
    import httpx  # takes a tenth of a second, and most runs ask no server

    name = shown(url)
    direct = {f"all://{host}": None for host in LOCAL}
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    try:
        with httpx.Client(verify=access.verify, timeout=TIMEOUT, follow_redirects=True, mounts=direct) as client:
            response = client.get(url, params=dict(query) if query else None, headers=headers)
    except httpx.TimeoutException:
        raise InputError(f"did not answer within {TIMEOUT:g} seconds", file=name) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise InputError(f"cannot be reached: {_reason(error)}", file=name) from None
    try:
        return Answer(name, response.status_code, response.json())
    except ValueError:
        if response.is_success:
            raise InputError("did not answer with a JSON document", file=name) from None
        return Answer(name, response.status_code, None)


def split_url(url: str) -> SplitResult:
    """Return the parts of an address.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InputError(f"is not an address: {error}", file=shown(url)) from None


def shown(url: str) -> str:
    """Return an address without credentials and query, which have no place in messages."""
    address, _, _ = url.partition("?")
    scheme, separator, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
