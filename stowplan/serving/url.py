"""Where a server is asked, as users write it."""

from __future__ import annotations

from urllib.parse import urlsplit

from stowplan.models.errors import InputError


def read_url(word: str, option: str) -> str:
    """Return an address of ``stowplan serve``, which answers under ``/v1`` alone, without a slash at its end.

    Raises
    ------
    InputError
        If it cannot be one.
    """
    try:
        parts = urlsplit(word)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port or an IPv6 address that is none
        good = False
    plain = word.isascii() and word.isprintable() and not any(sign in word for sign in " @?#")
    if not good or not plain or parts.path.rstrip("/") != "/v1":
        raise InputError(f"{word!r} is not a URL of stowplan serve, such as http://127.0.0.1:8888/v1", field=option)
    return word.rstrip("/")
