"""Which servers a run may ask, and that it says so before it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urlsplit

from stowplan.models.errors import InputError

MAX_ANSWER = 64 << 20
"""Bytes of the largest answer of a server that is read, after unpacking: load of 100,000 nodes."""
MAX_ANSWER_SECONDS = 60.0
"""How long an answer may take, however steadily it trickles in."""


@dataclass
class Network:
    """What a run may ask.

    Parameters
    ----------
    offline
        Refuse all requests.
    tell
        Takes a line on each server that a file makes us ask, before the first request.
    """

    offline: bool = False
    tell: Callable[[str], None] = lambda line: None
    _told: set[str] = field(default_factory=set)

    def named_by_configuration(self, url: str, what: str) -> None:
        """Say that a scheduler configuration makes us ask a server, once for each.

        Parameters
        ----------
        what
            What the server is.

        Raises
        ------
        InputError
            If the run is offline.
        """
        self.require(f"{what} {shown(url)}")
        host = _host(url)
        if host not in self._told:
            self._told.add(host)
            self.tell(f"the scheduler configuration has {host} asked ({what}); --offline forbids it")

    def require(self, what: str) -> None:
        """Refuse if the run is offline.

        Raises
        ------
        InputError
            If so.
        """
        if self.offline:
            raise InputError("is not asked, since --offline forbids it", file=what)


NETWORK = ContextVar("NETWORK", default=Network())  # noqa: B039 - one for all who do not set their own
"""The network of this run; by default everything may be asked, and nothing is told."""


class TooMuch(Exception):
    """An answer is too large, or takes too long; ``str()`` says which."""


def bounded(parts: Iterable[bytes]) -> bytes:
    """Return an answer that arrives part by part.

    Raises
    ------
    TooMuch
        If it is larger than `MAX_ANSWER`, or takes longer than `MAX_ANSWER_SECONDS`.
    """
    begun = monotonic()
    answer = bytearray()
    for part in parts:
        answer += part
        if len(answer) > MAX_ANSWER:
            raise TooMuch(f"the answer is larger than {MAX_ANSWER >> 20} MiB")
        if monotonic() - begun > MAX_ANSWER_SECONDS:
            raise TooMuch(f"the answer takes longer than {MAX_ANSWER_SECONDS:g} seconds")
    return bytes(answer)


def shown(url: str) -> str:
    """Return an address without credentials and query, which have no place in messages."""
    address, _, _ = url.partition("?")
    scheme, separator, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _host(url: str) -> str:
    """Return scheme, host, and port of an address."""
    parts = urlsplit(shown(url))
    return f"{parts.scheme}://{parts.netloc}"
