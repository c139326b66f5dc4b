"""Asking a server for JSON, and one clear line for whatever goes wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from stowplan.models.errors import InputError
from stowplan.models.network import NETWORK, TooMuch, bounded, shown

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
        If the address is none, the server cannot be reached, takes too long, sends us elsewhere, or answers something
        else than JSON; or if the run is offline.
    """
    import httpx  # takes a tenth of a second, and most runs ask no server

    name = shown(url)
    NETWORK.get().require(name)
    direct = {f"all://{host}": None for host in LOCAL}
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    try:
        with (
            httpx.Client(verify=access.verify, timeout=TIMEOUT, mounts=direct) as client,
            client.stream("GET", url, params=dict(query) if query else None, headers=headers) as response,
        ):
            if response.is_redirect:
                elsewhere = shown(response.headers["Location"])
                raise InputError(f"sends us to {elsewhere!r}, and we do not go there unasked; name that one", file=name)
            body = bounded(response.iter_bytes())
    except TooMuch as error:
        raise InputError(str(error), file=name) from None
    except httpx.TimeoutException:
        raise InputError(f"did not answer within {TIMEOUT:g} seconds", file=name) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise InputError(f"cannot be reached: {_reason(error)}", file=name) from None
    try:
        return Answer(name, response.status_code, json.loads(body))
    except (ValueError, RecursionError):
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


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
