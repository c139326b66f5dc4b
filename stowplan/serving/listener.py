"""An address on which connections are accepted: so many at a time, and none for ever."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial

from aiohttp import web

from stowplan.models.errors import InputError
from stowplan.serving.connection import Connection
from stowplan.serving.metrics import Metrics

HEADER_SECONDS = 10.0
"""How long a client may take to secure the connection, and to send the headers of a request."""
EXCHANGE_SECONDS = 30.0
"""How long a request may take from its first byte to the last one of its answer, which the client has to take."""
BACKLOG = 256
LOOK_SECONDS = 1.0


class Listener:
    """Accepts connections of clients.

    If there are as many as there may be, a new one takes the place of one that asks nothing: of the oldest one that has
    sent no request, or else of that whose last request is longest ago. Only where all are being answered is the new one
    turned away. So clients that say nothing keep no other out.

    Parameters
    ----------
    bind
        Host and port; port 0 is any free one.
    option
        Which option names them.
    context
        Returns how the next connection is secured, if it is.

    Raises
    ------
    InputError
        If the address cannot be used.
    """

    def __init__(
        self,
        bind: tuple[str, int],
        option: str,
        runner: web.AppRunner,
        metrics: Metrics,
        limit: int,
        context: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        self._runner, self._metrics, self._limit, self._context = runner, metrics, limit, context
        self._open: set[Connection] = set()
        self._arriving: dict[asyncio.Task[None], float] = {}
        self._socket = _listening(bind, option)
        self._tasks = [asyncio.create_task(self._accept()), asyncio.create_task(self._look())]

    @property
    def address(self) -> str:
        """Host and port, as they are written in a URL."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self) -> None:
        """Accept no more; connections stay."""
        for task in (*self._tasks, *self._arriving):
            task.cancel()
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except OSError:  # too many files are open, or the client has gone already
                await asyncio.sleep(0.05)
                continue
            if not self._make_room():
                self._metrics.dropped.labels("full").inc()
                accepted.close()
                continue
            task = asyncio.create_task(self._admit(accepted))
            self._arriving[task] = loop.time()
            task.add_done_callback(lambda done: self._arriving.pop(done, None))
            await asyncio.sleep(0)  # connections that are ready to be accepted come without a pause

    async def _admit(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        context = self._context()
        seconds = HEADER_SECONDS if context is not None else None
        try:
            await loop.connect_accepted_socket(
                lambda: Connection(self._runner.server, self._refused, self._open, loop=loop),
                accepted,
                ssl=context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except OSError:  # ssl.SSLError, TimeoutError, and what a client does that leaves
            self._metrics.dropped.labels("handshake").inc()

    def _refused(self) -> None:
        """Count a request that was not even HTTP."""
        self._metrics.bad.labels("http").inc()
        self._metrics.requests.labels("none", "400").inc()

    def _make_room(self) -> bool:
        if len(self._arriving) + len(self._open) < self._limit:
            return True
        silent: list[tuple[float, Callable[[], object]]]
        silent = [(at, partial(self._turn_away, task)) for task, at in self._arriving.items()]
        silent += [(one.begun, one.drop) for one in self._open if one.begun is not None and not one.heard]
        idle: list[tuple[float, Callable[[], object]]]
        idle = [(one.answered, one.drop) for one in self._open if one.begun is None]
        if not silent and not idle:
            return False
        _, drop = min(silent or idle, key=lambda one: one[0])
        drop()
        self._metrics.dropped.labels("displaced").inc()
        return True

    def _turn_away(self, task: asyncio.Task[None]) -> None:
        del self._arriving[task]
        task.cancel()

    async def _look(self) -> None:
        """Close connections whose request or answer takes too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = loop.time()
            for one in tuple(self._open):
                limit = EXCHANGE_SECONDS if one.heard else HEADER_SECONDS
                if one.begun is not None and now - one.begun > limit:
                    one.drop()
                    self._metrics.dropped.labels("slow" if one.heard else "silent").inc()


def _listening(bind: tuple[str, int], option: str) -> socket.socket:
    host, port = bind
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setblocking(False)
            made.bind(where)
            made.listen(BACKLOG)
        except OSError:
            made.close()
            raise
    except OSError as error:
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise InputError(f"{shown}: {(error.strerror or str(error)).lower()}", field=option) from None
    return made
