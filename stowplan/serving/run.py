"""From a plan to a server that runs."""

from __future__ import annotations

import asyncio
import gc
import ssl
import sys
from pathlib import Path

from stowplan.models.errors import InputError
from stowplan.models.plan import Plan
from stowplan.models.words import plural
from stowplan.serving.journal import LeaseJournal
from stowplan.serving.options import Serving
from stowplan.serving.server import Server, serve


def run_server(
    plan: Plan,
    bind: str,
    serving: Serving,
    state: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    client_ca: str | None = None,
) -> None:
    """Serve a plan until the process is told to end.

    Parameters
    ----------
    bind
        ``host:port``; port 0 is any free one.
    state
        The journal; by default ``<plan id>.leases`` in the working directory.
    certificate, key
        Files in PEM; both or none.
    client_ca
        A file in PEM: only clients whose certificate it has signed are served.

    Raises
    ------
    InputError
        With the option that cannot be used.
    """
    host, port = address(bind)
    tls = context(certificate, key, client_ca)
    server = Server(plan, LeaseJournal(Path(state or f"{plan.id}.leases")), serving)
    known = server.restore()
    tokens = sum(token.count for token in plan.tokens)
    print(
        f"stowplan: plan {plan.id}: {plural(tokens, 'token')} in {plural(len(plan.waves), 'wave')}, "
        f"until {plan.expires_at}; "
        f"{len(server.ledger.leases)} handed out, {known} records in {server.journal.path}",
        file=sys.stderr,
    )
    if server.expired:
        _say(f"warning: {server.why_expired}: no pod is steered; make a new one")
    gc.freeze()  # what is here stays; collections need not look at it
    try:
        asyncio.run(serve(server, host, port, tls, lambda url: _say(f"serving {url}")))
    finally:
        server.journal.close()


def _say(text: str) -> None:
    print(f"stowplan: {text}", file=sys.stderr, flush=True)


def address(bind: str) -> tuple[str, int]:
    """Read ``host:port``; a host with colons is in brackets, and an empty host means all addresses."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{bind!r} is not an address, such as 127.0.0.1:8888", field="--bind")
    return host.strip("[]") or "0.0.0.0", int(port)


def context(certificate: str | None, key: str | None, client_ca: str | None) -> ssl.SSLContext | None:
    """Return how connections are secured, if they are."""
    if certificate is None or key is None:
        if (certificate, key, client_ca) != (None, None, None):
            raise InputError("needs both --tls-cert and --tls-key; --tls-client-ca needs them too", field="--tls-cert")
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(certificate, key, password=_no_password)
        if client_ca is not None:
            made.load_verify_locations(client_ca)
            made.verify_mode = ssl.CERT_REQUIRED
    except FileNotFoundError:
        missing = next(name for name in (certificate, key, client_ca) if name and not Path(name).exists())
        raise InputError("no such file", file=missing) from None
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InputError(f"cannot be used: {getattr(error, 'reason', None) or error}", file=certificate) from None
    return made


def _no_password() -> str:
    raise ValueError("the key is encrypted, which is not supported")
