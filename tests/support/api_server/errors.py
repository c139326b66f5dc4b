"""What the server answers when it refuses: ``Status`` objects, worded as upstream words them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


class ApiError(Exception):
    """A refusal: HTTP code, machine-readable reason, message, and what else a ``Status`` can carry."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        retry_after: int = 0,
        causes: tuple[Object, ...] = (),
        details: Object | None = None,
        continuation: str = "",
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message
        self.retry_after, self.causes, self.details, self.continuation = retry_after, causes, details, continuation

    def body(self) -> Object:
        """Return the ``Status`` object."""
        details = dict(self.details or {})
        if self.causes:
            details["causes"] = list(self.causes)
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continuation} if self.continuation else {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            status["reason"] = self.reason
        if details:
            status["details"] = details
        return status


def success(**more: Any) -> Object:
    """Return the ``Status`` of something done."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", **more}


def not_found(resource: str, name: str) -> ApiError:
    """Return a 404 about an object."""
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', details={"name": name, "kind": resource})


def no_such_page() -> ApiError:
    """Return the 404 of a path that the server does not serve."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def conflict(resource: str, name: str, why: str) -> ApiError:
    """Return a 409."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, details={"name": name, "kind": resource})


def forbidden(verb: str, resource: str, group: str) -> ApiError:
    """Return the 403 of a verb that the user may not use anywhere."""
    name = f"{resource}.{group}" if group else resource
    what = f'cannot {verb} resource "{resource}" in API group "{group}" at the cluster scope'
    message = f'{name} is forbidden: User "tester" {what}'
    return ApiError(403, "Forbidden", message, details={"kind": resource, "group": group})


def expired(continuation: str) -> ApiError:
    """Return the 410 of a list that has changed too much since its first page, with a token that goes on anyway."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results."
    )
    return ApiError(410, "Expired", message, continuation=continuation)


def too_many_requests(message: str, retry_after: int, *causes: Object) -> ApiError:
    """Return a 429."""
    return ApiError(429, "TooManyRequests", message, retry_after=retry_after, causes=causes)
