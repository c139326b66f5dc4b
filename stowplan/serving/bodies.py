"""Bodies of requests, within what one may hold, and what all together may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from stowplan.serving.protocol import BadRequest

BODY_SECONDS = 10.0
"""How long a body may take to arrive."""
SMALL = 64 * 2**10
"""Bytes of a body that always have room: a question that names 1,000 nodes. Connections are bounded, so these are."""


class Bodies:
    """Bodies that have arrived, in part or as a whole, and are not answered yet.

    Parameters
    ----------
    each
        Bytes of the largest body.
    total
        Bytes of all, besides the first `SMALL` of each.
    """

    def __init__(self, each: int, total: int) -> None:
        self.each, self.total = each, total
        self.held = 0

    @asynccontextmanager
    async def of(self, request: web.Request) -> AsyncIterator[bytes | bytearray]:
        """Yield the body of a request; it counts until the context ends.

        Raises
        ------
        BadRequest
            If it is packed, or does not arrive as it was announced.
        web.HTTPException
            If it is too large, has no room beside the others, or takes too long.
        """
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise BadRequest("body", "the body is packed; send it as it is")
        if (request.content_length or 0) > self.each:
            raise self._too_large()
        body = bytearray()
        counted = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.content.iter_any():
                    body += part
                    if len(body) > self.each:
                        raise self._too_large()
                    more = max(0, len(body) - SMALL) - counted
                    if self.held + more > self.total:
                        raise web.HTTPServiceUnavailable(text="other requests take all memory; ask again\n")
                    counted += more
                    self.held += more
            yield body
        except TimeoutError:
            raise web.HTTPRequestTimeout(text="the body did not arrive in time\n") from None
        except ConnectionError:
            raise BadRequest("body", "the connection ended before the body did") from None
        except (web.RequestPayloadError, HttpProcessingError, ClientPayloadError) as error:
            raise BadRequest("body", f"the body cannot be read: {error}") from None
        finally:
            self.held -= counted

    def _too_large(self) -> web.HTTPException:
        return web.HTTPRequestEntityTooLarge(
            self.each, self.each + 1, text=f"more than {self.each:,} bytes; --max-body"
        )
