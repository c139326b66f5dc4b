"""The extender that steers replacements, as far as a run has to do with it."""

from __future__ import annotations

from models.plan import Plan
from stowplan.applying.options import Halt

SECONDS = 10.0


def tell_extender(url: str, plan: Plan, wave: int) -> None:
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
        If it does not answer, or serves another plan or an expired one: nobody would steer the replacements.
    """
    import httpx

    try:
        named = {"plan": plan.id, "createdAt": plan.created_at}
        answer = httpx.post(f"{url.rstrip('/')}/waves/{wave}", params=named, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Halt(f"{url} does not answer, so nothing steers the replacements: {error}") from None
    if not answer.is_success:
        raise Halt(f"{url} does not open wave {wave}: HTTP {answer.status_code} {' '.join(answer.text.split())[:200]}")
