"""A connection on which not even HTTP need be spoken, and perhaps nothing at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

IDLE_SECONDS = 120.0
"""How long a connection is kept whose last request is answered; kube-scheduler closes it after 90."""
MAX_HEADERS, MAX_HEADER = 32, 4096
"""Number of headers of a request, and bytes of each."""


class Connection(web.RequestHandler):
    """Answers what is no HTTP request with one line, like any other bad question; the library would log a traceback.

    Parameters
    ----------
    refused
        Is called for each such request.
    peers
        Connections that are open, to which this one belongs as long as it is.

    Attributes
    ----------
    begun
        When the first byte of the request under way came, or the connection if none has; ``None`` between requests.
    heard
        Whether its headers have arrived.
    answered
        When the last answer was given.
    """

    __slots__ = ("_peers", "_refused", "answered", "begun", "heard")

    def __init__(self, manager: Any, refused: Callable[[], None], peers: set[Connection], **more: Any) -> None:
        super().__init__(
            manager,
            access_log=None,  # type: ignore[arg-type]  # aiohttp declares a logger, and takes none for silence
            keepalive_timeout=IDLE_SECONDS,
            auto_decompress=False,
            max_headers=MAX_HEADERS,
            max_field_size=MAX_HEADER,
            **more,
        )
        self._refused, self._peers = refused, peers
        self.begun: float | None = None
        self.heard = False
        self.answered = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Join the others."""
        self.begun = self._loop.time()
        self._peers.add(self)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Leave the others."""
        self._peers.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note when a request begins."""
        if self.begun is None:
            self.begun = self._loop.time()
        super().data_received(data)

    def hear(self) -> None:
        """Note that the headers of a request are here."""
        self.heard = True
        if self.begun is None:  # sent together with the request before
            self.begun = self._loop.time()

    async def finish_response(self, *arguments: Any) -> Any:
        """Send an answer, and note when that is done."""
        try:
            return await super().finish_response(*arguments)
        finally:
            self.begun, self.heard, self.answered = None, False, self._loop.time()

    def drop(self) -> None:
        """Close at once, whatever is under way."""
        self._peers.discard(self)
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer for a request that never reached the application."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        self._refused()
        why = next(iter(exc.message.splitlines()), "").strip(" :") or "not HTTP"
        answer = web.Response(status=400, text=f"is not an HTTP request: {why}\n")
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **more: Any) -> None:
        """Log what is our error; a body that cannot be read was answered for, and only fails again when drained."""
        if not isinstance(more.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **more)
