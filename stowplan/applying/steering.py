"""The extender that steers replacements, as far as a run has to do with it."""

from __future__ import annotations

from stowplan.applying.options import Halt

SECONDS = 10.0


def tell_extender(url: str, wave: int) -> None:
    """Tell ``stowplan serve`` that a wave begins, so that it hands out its tokens.

    Parameters
    ----------
    url
        Where it is asked, such as ``http://127.0.0.1:8888/v1``.

    Raises
    ------
    Halt
        If it does not answer: nobody would steer the replacements.
    """
    import httpx

    try:
        answer = httpx.post(f"{url.rstrip('/')}/waves/{wave}", timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Halt(f"{url} does not answer, so nothing steers the replacements: {error}") from None
    if not answer.is_success:
        raise Halt(f"{url} does not open wave {wave}: HTTP {answer.status_code} {' '.join(answer.text.split())[:200]}")
