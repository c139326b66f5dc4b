"""A connection on which not even HTTP need be spoken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError


class Connection(web.RequestHandler):
    """Answers what is no HTTP request with one line, like any other bad question; the library would log a traceback.

    Parameters
    ----------
    refused
        Is called for each such request.
    """

    __slots__ = ("_refused",)

    def __init__(self, manager: Any, refused: Callable[[], None], **more: Any) -> None:
        super().__init__(manager, **more)
        self._refused = refused

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
