"""The extender that steers replacements, as far as a run has to do with it."""

from __future__ import annotations

import ssl
from pathlib import Path

from stowplan.applying.options import Halt
from stowplan.models.errors import InputError
from stowplan.models.network import NETWORK
from stowplan.models.plan import Plan

SECONDS = 10.0


def tell_extender(url: str, plan: Plan, wave: int, tls: ssl.SSLContext | None = None) -> None:
    """Tell ``stowplan serve`` that a wave begins, so that it hands out its tokens.

    The plan is named as the server's journal names it, by its id and when it was made, so that a server of another
    plan refuses.

    Parameters
    ----------
    url
        Where it is asked, such as ``http://127.0.0.1:8888/v1``.

    Raises
    ------
    Halt
        If it does not answer, or serves another plan or an expired one: replacements would not be steered.
    InputError
        If the run is offline.
    """
    import httpx

    NETWORK.get().require(url)
    try:
        named = {"plan": plan.id, "createdAt": plan.created_at}
        where = f"{url.rstrip('/')}/waves/{wave}"
        answer = httpx.post(where, params=named, json={}, timeout=SECONDS, verify=tls or True)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Halt(f"{url} does not answer, so nothing steers the replacements: {error}") from None
    if not answer.is_success:
        raise Halt(f"{url} does not open wave {wave}: HTTP {answer.status_code} {' '.join(answer.text.split())[:200]}")


def trust(authority: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return how a connection is secured whose server is signed by an authority, and is shown a certificate.

    Parameters
    ----------
    authority, certificate, key
        Files in PEM. Without an authority, those of the system are trusted; the key may be in the certificate's file.

    Raises
    ------
    InputError
        If a file cannot be used.
    """
    if (authority, certificate, key) == (None, None, None):
        return None
    if key is not None and certificate is None:
        raise InputError("is missing; --serve-key is its key", field="--serve-cert")
    for name in (authority, certificate, key):
        if name is not None and not Path(name).is_file():
            raise InputError("no such file", file=name)
    part = authority
    try:
        made = ssl.create_default_context(cafile=authority)
        if certificate is not None:
            part = certificate
            made.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InputError(f"cannot be used: {getattr(error, 'reason', None) or error}", file=part) from None
    return made


def _no_password() -> str:
    raise ValueError("the key is encrypted, which is not supported")
