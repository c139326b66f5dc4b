"""From a plan to a server that runs."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from pathlib import Path

from aiohttp import web

from stowplan.models.messages import log
from stowplan.models.plan import Plan
from stowplan.models.words import plural
from stowplan.serving.access import Access
from stowplan.serving.certificates import Certificates
from stowplan.serving.journal import LeaseJournal
from stowplan.serving.listener import Listener
from stowplan.serving.options import Listening, Serving, read_address
from stowplan.serving.server import Server

CERTIFICATE_SECONDS = 5.0
"""How often the files of certificates are looked at."""
GRACE_SECONDS = 5.0
"""How long requests under way have when the server is asked to end."""
HEALTH_CONNECTIONS = 32
"""Clients of the address of health and metrics at a time: a kubelet and a few Prometheus."""

OTHER_FILES = 64


def run_server(plan: Plan, listening: Listening, serving: Serving, state: str | None = None) -> None:
    """Serve a plan until the process is told to end.

    Parameters
    ----------
    state
        The journal; by default ``<plan id>.leases`` in the working directory.

    Raises
    ------
    InputError
        With the option that cannot be used.
    """
    host, _ = read_address(listening.bind, "--bind")
    access = Access(listening.clients, {name.lower() for name in (*listening.hosts, host)})
    certificates = Certificates(listening.certificate, listening.key, listening.client_ca)
    server = Server(plan, LeaseJournal(Path(state or f"{plan.id}.leases")), serving, access)
    known = server.restore()
    tokens = sum(token.count for token in plan.tokens)
    log(
        f"plan {plan.id}: {plural(tokens, 'token')} in {plural(len(plan.waves), 'wave')}, "
        f"until {plan.expires_at}; "
        f"{len(server.ledger.leases)} handed out, {known} records in {server.journal.path}"
    )
    if server.expired:
        log(f"{server.why_expired}: no pod is steered; make a new one", "warning")
    if listening.open_to_all:
        log(
            f"every client that reaches {listening.bind} can take tokens and open waves; "
            "--tls-client-ca and --tls-client-name say who may",
            "warning",
        )
    _allow_files(serving.max_connections + HEALTH_CONNECTIONS)
    gc.freeze()  # what is here stays; collections need not look at it
    try:
        asyncio.run(_serve(server, listening, certificates))
    finally:
        server.journal.close()


def _allow_files(connections: int) -> None:
    """Let as many files be open as there may be connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _serve(server: Server, listening: Listening, certificates: Certificates) -> None:
    """Serve until SIGTERM or SIGINT; then answer what is under way, and end. SIGHUP has certificates read again."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, _refresh, server, certificates)
    # The grace below is what requests under way have; what is left after it has none.
    runners = [web.AppRunner(server.app(health=listening.health_bind is None), shutdown_timeout=1.0)]
    if listening.health_bind is not None:
        runners.append(web.AppRunner(server.health_app(), shutdown_timeout=1.0))
    for runner in runners:
        await runner.setup()
    background = [asyncio.create_task(server.sweep()), asyncio.create_task(_watch(server, certificates))]
    listeners: list[Listener] = []
    try:
        limit = server.serving.max_connections
        where = read_address(listening.bind, "--bind")
        listeners.append(Listener(where, "--bind", runners[0], server.metrics, limit, lambda: certificates.context))
        if listening.health_bind is not None:
            where = read_address(listening.health_bind, "--health-bind")
            listeners.append(Listener(where, "--health-bind", runners[1], server.metrics, HEALTH_CONNECTIONS))
            log(f"health and metrics at http://{listeners[1].address}")
        log(f"serving {'https' if certificates.context else 'http'}://{listeners[0].address}/v1")
        await stop.wait()
        server.ready = False
        log("ending")
        for listener in listeners:
            listener.close()
        # The library closes a connection whose request has not arrived as a whole; so that is waited for here.
        deadline = loop.time() + GRACE_SECONDS
        while server.under_way and loop.time() < deadline:
            await asyncio.sleep(0.01)
    finally:
        for listener in listeners:
            listener.close()
        for task in background:
            task.cancel()
        for runner in runners:
            await runner.cleanup()


async def _watch(server: Server, certificates: Certificates) -> None:
    while True:
        await asyncio.sleep(CERTIFICATE_SECONDS)
        _refresh(server, certificates)


def _refresh(server: Server, certificates: Certificates) -> None:
    certificates.refresh(log)
    server.metrics.current.set(certificates.current)
